"""Result to figures: the accelerators that each kind of deployment takes against the rate."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from calculators import plots
from calculators.outputs import readable
from calculators.plan.compute import KINDS, PlanInputs
from calculators.plan.curves import FleetCurve

MOST_TICKS = 8
"""Accelerators up to which each has a tick of its own, so that none stands at half of one."""

COLOURS = {"prefill_first": plots.ORANGE, "chunked": plots.GREEN, "disaggregated": plots.BLUE}


def accelerators_against_rate(inputs: PlanInputs, curves: list[FleetCurve]) -> go.Figure:
    """Return how many accelerators each kind takes against the rate, as steps, with the user's points."""
    traces = []
    for curve in curves:
        line = plots.line(curve.rate, curve.gpus, KINDS[curve.kind].capitalize(), COLOURS[curve.kind], unit="", width=3)
        line["line"]["shape"] = "hv"
        traces.append(line)
    points: list[plots.Trace] = []
    for curve in curves:
        gpus = float(np.interp(inputs.rate, curve.rate, curve.gpus))
        hover = f"{readable(inputs.rate)} requests/s: {curve.here:,} accelerators, {KINDS[curve.kind]}"
        points.append(
            plots.point(inputs.rate, curve.here or gpus, "You", plots.RED, hover) | {"showlegend": not points}
        )
    marks = []
    if inputs.most_gpus is not None:
        marks.append(plots.level(inputs.most_gpus, f"at hand: {inputs.most_gpus:,}"))
    shapes, notes = zip(*marks, strict=True) if marks else ((), ())
    few = max(float(np.max(curve.gpus)) for curve in curves) <= MOST_TICKS if curves else True
    return plots.figure(
        traces + points, x="Arrival rate (requests/s)", y="Accelerators", shapes=shapes, notes=notes,
        yaxis={"rangemode": "tozero"} | ({"dtick": 1} if few else {}), xaxis={"rangemode": "tozero"}, hovermode="closest",
    )  # fmt: skip


def fleet_table(curves: list[FleetCurve]) -> dict[str, Any]:
    """Return the curves by column title."""
    columns: dict[str, Any] = {"Arrival rate (requests/s)": curves[0].rate}
    return columns | {f"{KINDS[curve.kind].capitalize()} (accelerators)": curve.gpus for curve in curves}
