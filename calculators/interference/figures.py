"""Result to figures: the three ways against the rate, and a prompt in a step."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from calculators import plots
from calculators.interference.compute import InterferenceInputs, InterferenceResult
from calculators.interference.curves import Curve
from calculators.interference.mixed import MixedCurve
from calculators.outputs import counted, duration, readable, short

COLOURS = {"prefill_first": plots.ORANGE, "chunked": plots.GREEN, "disaggregated": plots.BLUE}


def level_of(inputs: InterferenceInputs) -> str:
    """Return the percentile that the targets are set on: ``P90``."""
    return f"P{100 * inputs.attainment:.6g}"


def time_against_rate(
    inputs: InterferenceInputs, result: InterferenceResult | None, curves: list[Curve], what: str
) -> go.Figure:
    """Return TTFT or TPOT (``what``) of the three ways against the rate, the target and the user's points.

    Without a result the rate is that of each accelerator, and there are no points.
    """
    level, target = level_of(inputs), getattr(inputs, f"{what}_slo_ms")
    traces: list[plots.Trace] = []
    marked: list[plots.Trace] = []
    for curve in curves:
        colour = COLOURS[curve.key]
        mean, own = getattr(curve, f"mean_{what}_ms"), getattr(curve, f"own_{what}_ms")
        traces.append(plots.line(curve.rate, own, f"{curve.name}, {level}", colour, unit="ms", width=3.5))
        traces.append(plots.line(curve.rate, mean, f"{curve.name}, mean", colour, unit="ms", dash="dot", width=1.8))
        here = None if result is None else getattr(getattr(result, curve.key), f"own_{what}_ms")
        if here is not None:
            hover = f"{readable(inputs.rate)} requests/s, {curve.name.lower()}: {level} {short(here, 'ms')}"
            marked.append(plots.point(inputs.rate, here, "You", plots.RED, hover) | {"showlegend": not marked})
    shape, note = plots.level(target, f"target {duration(target)}")
    if result is not None and not marked:
        lines = [plots.upright(min(inputs.rate, float(curves[0].rate[-1])), f"you: {readable(inputs.rate)}", plots.RED)]
    else:
        lines = []
    shapes, notes = zip((shape, note), *lines, strict=True)
    means = np.concatenate([getattr(curve, f"mean_{what}_ms") for curve in curves])
    lowest = float(np.nanmin(means)) if np.isfinite(means).any() else target
    top = max(2.5 * target, 3 * lowest, *(1.2 * each["y"][0] for each in marked))
    axis = plots.log_axis(0.7 * min(lowest, target), top)
    for each in notes:
        plots.on_log_axis(each)
    name = "Time to first token" if what == "ttft" else "Time per output token"
    return plots.figure(
        traces + marked, x="Arrival rate (requests/s)" if result else "Arrival rate for each accelerator (requests/s)", y=f"{name} (ms)", shapes=shapes, notes=notes, yaxis=axis,
        xaxis={"range": [0, max(float(curves[0].rate[-1]), 0.0)]}, height=480,
    )  # fmt: skip


def attainment_against_rate(inputs: InterferenceInputs, curves: list[Curve]) -> go.Figure:
    """Return the share of requests that meet both targets against the rate for each accelerator."""
    traces = [
        plots.line(curve.rate, 100 * curve.attainment, curve.name, COLOURS[curve.key], unit="%", width=3)
        for curve in curves
    ]
    shape, note = plots.level(100 * inputs.attainment, f"attainment asked for: {100 * inputs.attainment:g} %")
    return plots.figure(
        traces, x="Arrival rate for each accelerator (requests/s)", y="Requests that meet both targets (%)",
        shapes=[shape], notes=[note], yaxis={"range": [0, 103]},
    )  # fmt: skip


def step_against_prompt(inputs: InterferenceInputs, result: InterferenceResult, curve: MixedCurve) -> go.Figure:
    """Return the time of a step against the prompt in it, with the prompt that rides for free and the user's."""
    traces = [plots.line(curve.prompt_tokens, curve.mixed_step_ms, "Step with the prompt in it", plots.BLUE, unit="ms")]
    hover = f"{counted(inputs.prompt_tokens, 'token')}: {short(result.mixed_step_ms, 'ms')}"
    traces.append(plots.point(inputs.prompt_tokens, result.mixed_step_ms, "You", plots.RED, hover))
    marks = [plots.level(result.decode_step_ms, f"without a prompt {short(result.decode_step_ms, 'ms')}", plots.GREY)]
    if 0 < result.free_prompt_tokens < curve.prompt_tokens[-1]:
        text = f"free up to {counted(result.free_prompt_tokens, 'token')}"
        marks.append(plots.upright(result.free_prompt_tokens, text, side="right"))
    shapes, notes = zip(*marks, strict=True)
    return plots.figure(
        traces, x="Prompt in the step (tokens)", y="Time of the step (ms)", shapes=shapes, notes=notes,
        yaxis={"rangemode": "tozero"}, hovermode="closest",
    )  # fmt: skip


def curves_table(curves: list[Curve]) -> dict[str, Any]:
    """Return the three ways by column title."""
    columns: dict[str, Any] = {"Arrival rate (requests/s)": curves[0].rate}
    for curve in curves:
        columns |= {
            f"{curve.name}: mean TTFT (ms)": curve.mean_ttft_ms,
            f"{curve.name}: TTFT at the attainment (ms)": curve.own_ttft_ms,
            f"{curve.name}: mean TPOT (ms)": curve.mean_tpot_ms,
            f"{curve.name}: TPOT at the attainment (ms)": curve.own_tpot_ms,
            f"{curve.name}: attainment": curve.attainment,
        }
    return {title: [None if np.isnan(x) else float(x) for x in values] for title, values in columns.items()}
