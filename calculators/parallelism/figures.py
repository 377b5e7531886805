"""Result to figures: TTFT of each way against the rate, who wins where, and what the speedup depends on."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import plotly.graph_objects as go

import hardware_db
from calculators import plots
from calculators.outputs import counted, duration, readable, short
from calculators.parallelism.compute import LEVELS, ParallelismInputs, ParallelismResult
from calculators.parallelism.maps import SpeedupCurve, WinnerMap
from calculators.parallelism.ways import Way
from calculators.parallelism.wording import said

COLOURS = {"tp": plots.BLUE, "pp": plots.ORANGE, "replicas": plots.GREEN}
NAMES = {"tp": "Tensor", "pp": "Pipeline", "replicas": "Replicas"}


def ttft_against_rate(inputs: ParallelismInputs, result: ParallelismResult, by: str) -> go.Figure:
    """Return the TTFT of the three ways against the rate, by the mean or a percentile, with the crossover marked."""
    ways = [way for way in result.ways if way.id in NAMES]
    largest = max(way.capacity for way in ways)
    right = min(max(1.06 * largest, 1.05 * inputs.rate), 1.6 * largest)
    traces = [_curve(way, LEVELS[by]) for way in ways]
    marks = [
        plots.level(inputs.ttft_slo_ms, f"target {duration(inputs.ttft_slo_ms)}"),
        plots.forbidden_beyond(largest, right, "unstable in every way"),
    ]
    crossing = result.crossover_rate if by == "mean" else getattr(result, f"crossover_rate_{by}")
    if crossing:
        marks.append(plots.upright(crossing, f"crossover {short(crossing)}/s"))
    times = []
    for way in ways:
        time = way.ttft_ms(inputs.rate, LEVELS[by])
        if time is not None:
            times.append(time)
            hover = f"{readable(inputs.rate)} requests/s: {NAMES[way.id]} {short(time, 'ms')}"
            point = plots.point(inputs.rate, time, f"You: {NAMES[way.id]}", COLOURS[way.id], hover)
            traces.append(point | {"showlegend": False})
    low = 0.7 * min(inputs.ttft_slo_ms, *(way.unloaded_ms for way in ways))
    high = max(8 * max(way.unloaded_ms for way in ways), 2 * inputs.ttft_slo_ms, *(1.5 * time for time in times), 0)
    shapes, notes = zip(*marks, strict=True)
    for note in notes:
        plots.on_log_axis(note)
    return plots.figure(
        traces,
        x="Arrival rate (requests/s)",
        y=f"{said(by)[0].upper()}{said(by)[1:]} (ms)",
        shapes=shapes,
        notes=notes,
        xaxis={"range": [0, right]},
        yaxis=plots.log_axis(low, high),
    )


LOADS = np.concatenate([np.linspace(0.0, 0.9, 90, endpoint=False), 1 - np.geomspace(0.1, 0.005, 40)])
"""Utilizations at which a curve is drawn, closer together near the capacity."""


def curves_table(result: ParallelismResult, by: str) -> dict[str, Any]:
    """Return the data of the curves, by column title."""
    columns: dict[str, Any] = {"Utilization": LOADS}
    for way in result.ways:
        if way.id in NAMES:
            columns[f"{NAMES[way.id]}, arrival rate (requests/s)"] = way.capacity * LOADS
            columns[f"{NAMES[way.id]}, {said(by)} (ms)"] = way.curve_ms(way.capacity * LOADS, LEVELS[by])
    return columns


def map_table(chart: WinnerMap) -> dict[str, Any]:
    """Return the map's data, a row for each point, by column title; a time that does not exist is empty."""
    rate, speedup = np.meshgrid(chart.rate, chart.speedup)
    best = [None if np.isnan(value) else float(value) for value in chart.best_ms.ravel()]
    return {
        "Arrival rate (requests/s)": rate.ravel(),
        "Tensor speedup": speedup.ravel(),
        "Pipeline wins": (rate >= chart.crossover_rate[:, None]).ravel().astype(int),
        "Lower TTFT (ms)": best,
    }


def speedup_table(curves: list[SpeedupCurve]) -> dict[str, Any]:
    """Return the speedups by column title."""
    tokens: Any = curves[0].prompt_tokens if curves else []
    return {"Prompt length (tokens)": tokens} | {f"Speedup of {curve.tp}": curve.speedup for curve in curves}


def _curve(way: Way, level: float | None) -> plots.Trace:
    rate = way.capacity * LOADS
    name = NAMES[way.id] + (" (does not fit)" if way.fits is False else "")
    dash = "dot" if way.fits is False else "solid"
    return plots.line(rate, way.curve_ms(rate, level), name, COLOURS[way.id], unit="ms", dash=dash)


def winner_map(inputs: ParallelismInputs, result: ParallelismResult, chart: WinnerMap) -> go.Figure:
    """Return who wins over rate and speedup, with the user's point and the contour of the target."""
    right = float(chart.rate[-1])
    tensor = plots.scatter(
        x=np.clip(chart.crossover_rate, 0, right),
        y=chart.speedup,
        mode="lines",
        name="crossover",
        line={"color": plots.GREY, "width": 2},
        fill="tozerox",
        fillcolor="rgba(0, 114, 178, 0.35)",
        hovertemplate="K = %{y:.3~g}: crossover at %{x:.4~g} requests/s<extra></extra>",
    )
    pipeline = plots.scatter(
        x=[right] * len(chart.speedup),
        y=chart.speedup,
        mode="lines",
        line={"width": 0},
        fill="tonextx",
        fillcolor="rgba(230, 159, 0, 0.35)",
        showlegend=False,
        hoverinfo="skip",
    )
    contour = plots.contour(
        x=chart.rate, y=chart.speedup, z=chart.best_ms, showscale=False, hoverinfo="skip", name="target met",
        contours={"start": inputs.ttft_slo_ms, "end": inputs.ttft_slo_ms, "size": 1, "coloring": "none"},
        line={"color": plots.PURPLE, "width": 2.5, "dash": "dash"}, showlegend=True,
    )  # fmt: skip
    hover = f"{readable(inputs.rate)} requests/s, K = {short(result.speedup)}"
    traces: list[Any] = [tensor, pipeline, contour, plots.point(inputs.rate, result.speedup, "You", plots.RED, hover)]
    notes = [
        plots.corner("tensor wins", "#2f8fd0", "top left"),
        plots.corner("pipeline wins", "#b97f00", "bottom right"),
    ]
    return plots.figure(
        traces,
        x="Arrival rate (requests/s)",
        y=f"Tensor speedup K of {counted(inputs.gpus, 'accelerator')}",
        notes=notes,
        hovermode="closest",
        xaxis={"range": [0, right]},
        yaxis={"range": [1, inputs.gpus]},
    )


def speedup_curves(inputs: ParallelismInputs, curves: list[SpeedupCurve]) -> go.Figure:
    """Return the speedup against the prompt length for several degrees, with measured doublings beside them."""
    colours = (plots.SKY, plots.BLUE, plots.GREEN, plots.PURPLE)
    traces: list[Any] = [
        plots.line(curve.prompt_tokens, curve.speedup, f"{curve.tp} in tensor", colour, unit="times")
        for curve, colour in zip(curves, colours, strict=False)
    ]
    doublings = [each for each in hardware_db.speedups().values() if each.to_tp == 2 * each.from_tp]
    measured = plots.scatter(
        x=[each.prompt_tokens for each in doublings],
        y=[each.speedup for each in doublings],
        mode="markers",
        name="Measured, for a doubling",
        text=[
            f"{each.model}, {each.accelerator}, {each.engine}, TP {each.from_tp} to {each.to_tp}" for each in doublings
        ],
        hovertemplate="%{text}: %{y}<extra></extra>",
        marker={"symbol": "x", "size": 10, "color": plots.RED},
    )
    shape, note = plots.upright(inputs.prompt_tokens, f"you: {counted(inputs.prompt_tokens, 'token')}", plots.RED)
    note["x"] = math.log10(inputs.prompt_tokens)
    return plots.figure(
        [*traces, measured],
        x="Prompt length (tokens)",
        y="Speedup over one accelerator",
        shapes=[shape],
        notes=[note],
        xaxis=plots.log_axis(64, 65_536),
        yaxis={"rangemode": "tozero"},
    )
