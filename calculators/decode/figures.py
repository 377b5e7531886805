"""Result to figures: TPOT against rate, the stack of a step, the batch, latency against throughput, the halves."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from calculators import plots
from calculators.decode.compute import DecodeInputs, DecodeResult, LoadCurve
from calculators.decode.curves import BatchLaw, StepStack
from calculators.decode.halves import Halves
from calculators.decode.ways import Way
from calculators.outputs import counted, duration, readable, short

PART_COLOURS = {
    "weights": plots.BLUE,
    "kv": plots.SKY,
    "compute": plots.ORANGE,
    "collectives": plots.PURPLE,
    "overhead": plots.GREY,
}
PART_NAMES = {
    "weights": "Reading the weights",
    "kv": "Reading the KV cache",
    "compute": "Arithmetic beyond the reading",
    "collectives": "All-reduces",
    "overhead": "Overhead",
}


def tpot_against_rate(inputs: DecodeInputs, result: DecodeResult, curves: LoadCurve) -> go.Figure:
    """Return mean, P50, P90 and P99 of TPOT against rate, the target, the user's point and the unstable region."""
    capacity = float(result.capacity or curves.rate[-1])
    right = min(max(1.1 * capacity, 1.05 * inputs.rate), 1.5 * capacity)
    drawn = {"mean": ("Mean", curves.mean_tpot_ms), "p50": ("P50", curves.p50_tpot_ms)}
    drawn |= {"p90": ("P90", curves.p90_tpot_ms), "p99": ("P99", curves.p99_tpot_ms)}
    own = statistic(inputs)
    if own.lower() not in drawn:
        drawn["own"] = (own, curves.own_tpot_ms)
    traces = [
        plots.line(
            curves.rate, values, label, plots.SERIES.get(key, plots.RED), unit="ms",
            dash="dash" if key == "mean" else "solid", width=4 if label == own else 2,
        )
        for key, (label, values) in drawn.items()
    ]  # fmt: skip
    marks = [
        plots.level(inputs.tpot_slo_ms, f"target {duration(inputs.tpot_slo_ms)}"),
        plots.forbidden_beyond(capacity, right, "unstable: no steady state"),
    ]
    if result.max_rate:
        marks.append(plots.upright(result.max_rate, f"up to {short(result.max_rate)} requests/s"))
    if not result.stable:
        beyond = " →" if inputs.rate > right else ""
        text = f"you: {readable(inputs.rate)} requests/s{beyond}"
        marks.append(plots.upright(min(inputs.rate, right), text, plots.RED, height=0.9))
    if result.target_tpot_ms is not None:
        hover = f"{readable(inputs.rate)} requests/s: {own} TPOT {short(result.target_tpot_ms, 'ms')}"
        traces.append(plots.point(inputs.rate, result.target_tpot_ms, f"You: {own} TPOT", plots.RED, hover))
    shapes, notes = zip(*marks, strict=True)
    top = 1.25 * max(inputs.tpot_slo_ms, result.target_tpot_ms or 0, float(np.quantile(curves.p99_tpot_ms, 0.85)))
    return plots.figure(
        traces,
        x="Arrival rate (requests/s)",
        y="Time per output token (ms)",
        shapes=shapes,
        notes=notes,
        xaxis={"range": [0, right]},
        yaxis={"range": [0, top]},
    )


def statistic(inputs: DecodeInputs) -> str:
    """Return what the target is set on: ``P90``."""
    return f"P{100 * inputs.attainment:.6g}"


def step_stack(inputs: DecodeInputs, result: DecodeResult, stack: StepStack) -> go.Figure:
    """Return what a step's time is made of against the batch, with the batches at which it turns."""
    traces = [
        plots.scatter(
            x=stack.batch, y=values, name=PART_NAMES[name], mode="lines", stackgroup="step",
            line={"width": 0, "color": PART_COLOURS[name]}, fillcolor=PART_COLOURS[name],
            hovertemplate="%{y:.4~g} ms",
        )
        for name, values in stack.counted_ms.items()
        if np.any(values > 0)
    ]  # fmt: skip
    hover = f"batch {inputs.batch:,}: {short(result.step_ms, 'ms')}"
    traces.append(plots.point(inputs.batch, result.step_ms, "You", plots.RED, hover))
    largest = float(stack.batch[-1])
    marks = []
    critical = result.reached_critical_batch
    if critical is not None and 1 < critical < largest:
        marks.append(plots.upright(critical, f"projections bound by compute from {short(critical)}", side="left"))
    if result.max_batch and result.max_batch < largest:
        marks.append(plots.forbidden_beyond(result.max_batch, largest, "does not fit in memory"))
    shapes, notes = zip(*marks, strict=True) if marks else ((), ())
    axis = plots.log_axis(1, largest)
    for shape, note in zip(shapes, notes, strict=True):
        # Shapes on a logarithmic axis are given in data, notes in powers of ten.
        note["x"] = float(np.log10(note["x"] if shape["type"] == "line" else np.sqrt(shape["x0"] * shape["x1"])))
    return plots.figure(
        traces, x="Batch (sequences)", y="Time of one step (ms)", shapes=shapes, notes=notes, xaxis=axis,
        yaxis={"rangemode": "tozero"},
    )  # fmt: skip


def step_table(stack: StepStack) -> dict[str, Any]:
    """Return the stack by column title."""
    columns: dict[str, Any] = {"Batch (sequences)": stack.batch, "Step (ms)": stack.step_ms}
    return columns | {f"{PART_NAMES[name]} (ms)": values for name, values in stack.counted_ms.items()}


def batch_law(result: DecodeResult, law: BatchLaw) -> go.Figure:
    """Return how often each batch is found, and where memory cuts it."""
    bars = plots.bar(
        x=law.batch, y=100 * law.share, name="Share of the time", marker={"color": plots.BLUE, "line": {"width": 0}},
        hovertemplate="batch %{x}: %{y:.3~g} %<extra></extra>",
    )  # fmt: skip
    marks = [plots.upright(float(result.mean_batch or 0), f"mean {short(result.mean_batch)}", plots.RED, side="right")]
    if result.slots is not None and result.slots <= 1.4 * law.batch[-1]:
        marks.append(
            plots.upright(result.slots, f"memory: {counted(result.slots, 'sequence')}", plots.TARGET, height=0.88)
        )
    shapes, notes = zip(*marks, strict=True)
    width = f" per {counted(law.width, 'sequence')}" if law.width > 1 else ""
    return plots.figure(
        [bars], x="Batch (sequences)", y=f"Share of the time{width} (%)", shapes=shapes, notes=notes, bargap=0.02,
        hovermode="closest",
    )  # fmt: skip


def latency_throughput(found: list[Way]) -> go.Figure:
    """Return time per token against tokens per second for tensor, pipeline and replicas."""
    colours = {"tensor": plots.BLUE, "pipeline": plots.ORANGE, "replicas": plots.GREY}
    traces = []
    for way, colour in colours.items():
        rows = [row for row in found if row.way == way and row.tpot_ms is not None]
        traces.append(
            plots.scatter(
                x=[row.tokens_per_second for row in rows],
                y=[row.tpot_ms for row in rows],
                text=[str(row.degree) for row in rows],
                name=way.capitalize(),
                mode="lines+markers+text",
                textposition="top center",
                line={"color": colour, "width": 2, "dash": "solid"},
                marker={"size": 11, "color": colour, "symbol": ["x" if row.remark else "circle" for row in rows]},
                hovertemplate=way + " %{text}: %{y:.4~g} ms, %{x:,.4~g} tokens/s<extra></extra>",
            )
        )
    return plots.figure(
        traces, x="Tokens per second, all sequences together", y="Time per token of a sequence (ms)",
        hovermode="closest", yaxis={"rangemode": "tozero"}, xaxis={"rangemode": "tozero"},
    )  # fmt: skip


def halves_map(rows: list[Halves]) -> go.Figure:
    """Return every accelerator by the time that it alone takes for each half of the step."""
    kinds = {
        "attention": (plots.BLUE, "Gains more at attention"),
        "projections and FFN": (plots.ORANGE, "Gains more at projections and FFN"),
        "either": (plots.GREY, "Alike"),
        "the one chosen": (plots.RED, "The one chosen"),
    }
    traces = []
    for kind, (colour, name) in kinds.items():
        some = [row for row in rows if row.suits == kind]
        if not some:
            continue
        traces.append(
            plots.scatter(
                x=[row.attention_ms for row in some], y=[row.projections_ms for row in some],
                text=[row.accelerator for row in some], name=name, mode="markers",
                marker={"size": 16 if kind == "the one chosen" else 10, "color": colour},
                hovertemplate="%{text}: attention %{x:.4~g} ms, projections %{y:.4~g} ms<extra></extra>",
            )
        )  # fmt: skip
    times = [[row.attention_ms for row in rows if row.attention_ms > 0], [row.projections_ms for row in rows]]
    axes = [plots.log_axis(min(values) / 1.5, max(values) * 1.5) for values in times]
    return plots.figure(
        traces, x="Attention of one step, alone (ms)", y="Projections and FFN of one step, alone (ms)",
        hovermode="closest", xaxis=axes[0], yaxis=axes[1],
    )  # fmt: skip
