"""Result to figures: attainment and times against the rate, tighter targets, less efficient mixed steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from calculators import plots
from calculators.compare.compute import CompareResult
from calculators.compare.curves import Curve, Degraded, Tightening, goodputs
from calculators.compare.inputs import CompareInputs
from calculators.outputs import duration, readable, short

NAN = float("nan")
COLOURS = {"prefill_first": plots.ORANGE, "chunked": plots.GREEN, "disaggregated": plots.BLUE}
NAMES = {"prefill_first": "Prefill first", "chunked": "Chunked prefill", "disaggregated": "Disaggregated"}


def attainment_against_rate(inputs: CompareInputs, result: CompareResult, curves: list[Curve]) -> go.Figure:
    """Return the share of requests within both targets against the rate for each accelerator, and the user's points."""
    traces = [
        plots.line(curve.rate, 100 * curve.attainment, curve.name, COLOURS[curve.key], unit="%", width=3)
        for curve in curves
    ]
    here = result.total_rate / inputs.fleet_gpus
    for curve in curves:
        share = getattr(result, curve.key).attainment
        if share is not None:
            hover = f"{short(here)} requests/s for each, {curve.name.lower()}: {100 * share:.3g} % within both targets"
            point = plots.point(here, 100 * share, "You", plots.RED, hover)
            traces.append(point | {"showlegend": traces[-1]["name"] != "You"})
    shape, note = plots.level(100 * inputs.attainment, f"asked for: {100 * inputs.attainment:g} %")
    return plots.figure(
        traces, x="Rate for each accelerator (requests/s)", y="Requests within both targets (%)",
        shapes=[shape], notes=[note], yaxis={"range": [0, 103]}, xaxis={"range": [0, float(curves[0].rate[-1])]},
    )  # fmt: skip


def time_against_rate(inputs: CompareInputs, curves: list[Curve], what: str) -> go.Figure:
    """Return TTFT or TPOT (``what``) at the attainment asked for against the rate for each accelerator."""
    target = getattr(inputs, f"{what}_slo_ms")
    values = {curve.key: getattr(curve, f"own_{what}_ms") for curve in curves}
    traces = [plots.line(c.rate, values[c.key], c.name, COLOURS[c.key], unit="ms", width=3) for c in curves]
    shape, note = plots.level(target, f"target {duration(target)}")
    plots.on_log_axis(note)
    lowest = min([target, *(float(np.nanmin(each)) for each in values.values() if np.isfinite(each).any())])
    name = f"P{100 * inputs.attainment:.6g} {what.upper()}"
    return plots.figure(
        traces, x="Rate for each accelerator (requests/s)", y=f"{name} (ms)", shapes=[shape], notes=[note],
        yaxis=plots.log_axis(0.7 * lowest, max(5 * target, 5 * lowest)),
    )  # fmt: skip


def attainment_against_scale(inputs: CompareInputs, found: list[Tightening]) -> go.Figure:
    """Return the attainment at the arrival rate against a common factor of both targets."""
    traces = [
        plots.line(each.scale, 100 * each.attainment, NAMES[each.key], COLOURS[each.key], unit="%", width=3)
        for each in found
    ]
    shape, note = plots.level(100 * inputs.attainment, f"asked for: {100 * inputs.attainment:g} %")
    now, text = plots.upright(1, "targets as they are", side="right", height=0.5)
    text["x"] = 0.0  # of a logarithmic axis
    return plots.figure(
        traces, x="Both targets (times those asked for)", y="Requests within both targets (%)",
        shapes=[shape, now], notes=[note, text], yaxis={"range": [0, 103]}, xaxis=plots.log_axis(0.2, 5),
    )  # fmt: skip


def goodput_against_efficiency(inputs: CompareInputs, result: CompareResult, rows: list[Degraded]) -> go.Figure:
    """Return what chunks carry against the efficiency of mixed steps, beside the two ways without mixed steps."""
    values = np.array([NAN if (each := row.goodput_per_gpu) is None else each for row in rows])
    traces = [
        plots.line([row.efficiency for row in rows], values, NAMES["chunked"], COLOURS["chunked"], unit="requests/s")
    ]
    marks = []
    for key in ("disaggregated", "prefill_first"):
        level = goodputs(result)[key]
        if level:
            marks.append(plots.level(level, f"{NAMES[key].lower()} {short(level)}", COLOURS[key]))
    turn = result.turning_efficiency
    if turn is not None:
        marks.append(plots.upright(turn, f"chunks fall behind below {short(turn)}"))
    here = goodputs(result)["chunked"]
    if here:
        hover = f"{readable(inputs.mixed_efficiency)}: {short(here)} requests/s"
        traces.append(plots.point(inputs.mixed_efficiency, here, "You", plots.RED, hover))
    shapes, notes = zip(*marks, strict=True) if marks else ((), ())
    return plots.figure(
        traces, x="Efficiency of mixed steps (share of the arithmetic rate)", y="Goodput per accelerator (requests/s)",
        shapes=shapes, notes=notes, yaxis={"rangemode": "tozero"}, hovermode="closest",
    )  # fmt: skip


def curves_table(curves: list[Curve]) -> dict[str, Any]:
    """Return the three ways by column title."""
    columns: dict[str, Any] = {"Rate for each accelerator (requests/s)": curves[0].rate}
    for curve in curves:
        columns |= {
            f"{curve.name}: attainment": curve.attainment,
            f"{curve.name}: TTFT at the attainment (ms)": curve.own_ttft_ms,
            f"{curve.name}: TPOT at the attainment (ms)": curve.own_tpot_ms,
        }
    return {title: [None if np.isnan(x) else float(x) for x in values] for title, values in columns.items()}


def scale_table(found: list[Tightening]) -> dict[str, Any]:
    """Return the attainment against the scale of the targets, by column title."""
    return {"Scale of both targets": found[0].scale.tolist()} | {
        f"{NAMES[each.key]}: attainment": each.attainment.tolist() for each in found
    }
