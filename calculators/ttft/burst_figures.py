"""Bursts, convoys and batches as figures."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from calculators import plots
from calculators.outputs import duration, readable, short
from calculators.ttft.batching import BatchCurve
from calculators.ttft.bursts import Arrivals, at_random
from calculators.ttft.convoy import Convoy, ConvoyCurve
from calculators.ttft.inputs import TtftInputs

_COLOURS = (plots.GREY, plots.BLUE, plots.ORANGE)
_NO_LEGEND = {"t": 24}


def same_load(rows: list[Arrivals]) -> go.Figure:
    """Return P99 of TTFT under each kind of arrivals, Poisson on top."""
    shown = rows[::-1]
    bars = plots.bar(
        x=[row.p99_ttft_ms for row in shown],
        y=[_broken(row.arrivals) for row in shown],
        orientation="h",
        marker={"color": [plots.GREY if row is rows[0] else plots.BLUE for row in shown]},
        text=[f"{short(row.p99_ttft_ms, 'ms')}{_times(row)}" for row in shown],
        textposition="auto",
        hovertemplate="P99 TTFT %{x:.4~g} ms<extra></extra>",
    )
    return plots.figure(
        [bars],
        x="P99 of time to first token (ms)",
        y="",
        height=98 + 56 * len(shown),
        margin=_NO_LEGEND,
        hovermode="closest",
        yaxis={"ticks": "", "automargin": True},
        xaxis={"rangemode": "tozero"},
    )


def _times(row: Arrivals) -> str:
    return "" if row.times_poisson == 1 else f", {row.times_poisson:.3g} ×"


def _broken(arrivals: str) -> str:
    """Return the words on lines short enough for a narrow screen."""
    return arrivals.replace(" at ", "<br>at ").replace(", ", ",<br>")


def burst(inputs: TtftInputs, times_ms: np.ndarray) -> go.Figure:
    """Return the time to the first token of each prompt of the burst, and which are later than the target."""
    place = np.arange(1, len(times_ms) + 1)
    late = times_ms > inputs.ttft_slo_ms * (1 + 1e-12)
    bars = plots.bar(
        x=place,
        y=times_ms,
        marker={"color": np.where(late, plots.ORANGE, plots.BLUE).tolist(), "line": {"width": 0}},
        hovertemplate=f"prompt %{{x}}{', on average' if at_random(inputs) else ''}: %{{y:.4~g}} ms<extra></extra>",
    )
    top = 1.15 * float(times_ms[-1])
    shapes, notes = [], []
    if inputs.ttft_slo_ms < top:
        shape, note = plots.level(inputs.ttft_slo_ms, f"target {duration(inputs.ttft_slo_ms)}")
        shapes, notes = [shape], [note]
    return plots.figure(
        [bars], x="Place in the burst (prompts)", y="Time to first token (ms)", shapes=shapes, notes=notes, height=340, margin=_NO_LEGEND,
        xaxis={"range": [0.4, len(place) + 0.6]}, yaxis={"range": [0, top]}, hovermode="closest",
    )  # fmt: skip


def convoy(found: Convoy, curve: ConvoyCurve) -> go.Figure:
    """Return the mean extra wait against the time since the long prompt came."""
    line = plots.line(
        curve.since_ms / 1e3, curve.extra_ms, "Extra wait, on average", plots.RED, unit="ms", fill="tozeroy"
    )
    line["fillcolor"] = plots.FORBIDDEN
    done, note = plots.upright(found.long_ms / 1e3, "long prompt done", side="right")
    return plots.figure(
        [line], x="Time after the long prompt came (s)", y="Extra wait (ms)", shapes=[done], notes=[note], height=340, margin=_NO_LEGEND,
        xaxis={"rangemode": "tozero"}, yaxis={"rangemode": "tozero"},
    )  # fmt: skip


def batches(inputs: TtftInputs, curves: list[BatchCurve]) -> go.Figure:
    """Return mean TTFT of one instance against its rate, for several largest batches, and the share of the rate at hand."""
    lines = [
        plots.line(
            curve.rate,
            curve.mean_ttft_ms,
            "One at a time" if curve.most == 1 else f"Up to {curve.most} together",
            colour,
            unit="ms",
            dash="dash" if curve.most == 1 else "solid",
        )
        for curve, colour in zip(curves, _COLOURS, strict=False)
    ]
    highest = max(float(curve.rate[-1]) for curve in curves)
    each = inputs.rate / inputs.servers
    shapes, notes = [], []
    if each < highest:
        side = "right" if each < 0.6 * highest else "left"
        shape, note = plots.upright(each, f"you: {readable(each)} requests/s", plots.RED, side=side)
        shapes, notes = [shape], [note]
    values = np.concatenate([curve.mean_ttft_ms[np.isfinite(curve.mean_ttft_ms)] for curve in curves])
    return plots.figure(
        lines, x="Arrival rate of one instance (requests/s)", y="Mean time to first token (ms)", shapes=shapes, notes=notes,
        xaxis={"range": [0, 1.03 * highest]}, yaxis=plots.log_axis(0.8 * float(values.min()), 1.3 * float(values.max())),
    )  # fmt: skip


def burst_table(times_ms: np.ndarray) -> dict[str, Any]:
    """Return the figure's data by column."""
    return {"Place in the burst (prompts)": np.arange(1, len(times_ms) + 1), "Time to first token (ms)": times_ms}


def batch_table(curves: list[BatchCurve]) -> dict[str, Any]:
    """Return the figure's data by column."""
    table: dict[str, Any] = {}
    for curve in curves:
        table[f"Arrival rate, up to {curve.most} (requests/s)"] = curve.rate
        table[f"Mean TTFT, up to {curve.most} (ms)"] = curve.mean_ttft_ms
    return table
