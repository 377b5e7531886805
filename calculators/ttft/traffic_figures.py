"""Real traffic as figures: what each effect does to P99, and what a trace shows."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from calculators import plots
from calculators.outputs import duration, readable, short
from calculators.ttft.effects import Effect
from calculators.ttft.inputs import TtftInputs
from calculators.ttft.trace_statistics import BurstCurve, LengthCurve, RateCurve, TraceStatistics


def effect_bars(inputs: TtftInputs, rows: list[Effect]) -> go.Figure:
    """Return P99 of TTFT under each traffic, the plain one on top."""
    shown = [row for row in rows if row.p99_ttft_ms is not None][::-1]
    colours = [_colour(row.traffic) for row in shown]
    bars = plots.bar(
        x=[row.p99_ttft_ms for row in shown],
        y=[_named(row) for row in shown],
        orientation="h",
        marker={"color": colours},
        hovertemplate="P99 TTFT %{x:.4~g} ms<extra></extra>",
    )
    largest = max((row.p99_ttft_ms or 0.0 for row in shown), default=inputs.ttft_slo_ms)
    marks, notes = [], []
    if inputs.ttft_slo_ms < 1.5 * largest:
        side = "left" if inputs.ttft_slo_ms > 0.5 * largest else "right"
        shape, note = plots.upright(
            inputs.ttft_slo_ms, f"target {duration(inputs.ttft_slo_ms)}", plots.TARGET, side=side, height=1.0
        )
        marks, notes = [shape], [note | {"yanchor": "bottom"}]
    return plots.figure(
        [bars],
        x="P99 TTFT (ms)",
        y="",
        shapes=marks,
        notes=notes,
        height=130 + 52 * len(shown),
        hovermode="closest",
        yaxis={"ticks": "", "automargin": True},
        xaxis={"rangemode": "tozero"},
    )


def _colour(traffic: str) -> str:
    if traffic.startswith("plain"):
        return plots.GREY
    return plots.RED if traffic.startswith(("all", "as set")) else plots.BLUE


def _named(row: Effect) -> str:
    """Return name and value on two lines: beside the bar, where the line of the target cannot cross them."""
    value = f"<b>{'≈ ' if row.simulated else ''}{short(row.p99_ttft_ms, 'ms')}</b>"
    name, _, detail = row.traffic.replace(" behind ", ": behind ").partition(": ")
    return f"{name}: {value}<br>{detail}" if detail else f"{name}<br>{value}"


def rate_over_time(found: TraceStatistics, mean_rate: float) -> go.Figure:
    """Return the rate of a trace over time, and its mean."""
    curve: RateCurve = found.rate
    line = plots.line(curve.start_s, curve.rate, f"Rate in {readable(found.width_s)} s", plots.BLUE, unit="requests/s")
    line["line"]["shape"] = "hv"
    shape, note = plots.level(mean_rate, f"mean {readable(mean_rate, 4)} requests/s")
    return plots.figure(
        [line], x="Time (s)", y="Arrival rate (requests/s)", shapes=[shape], notes=[note], yaxis={"rangemode": "tozero"}
    )


def bursts(curve: BurstCurve, gap_scv: float) -> go.Figure:
    """Return the index of dispersion against the window, beside what Poisson and independent gaps would have."""
    low, high = (np.maximum(1 + side * 2 * curve.poisson_error, 0.01) for side in (-1, 1))
    band = plots.scatter(
        x=[*curve.window_s, *curve.window_s[::-1]], y=[*high, *low[::-1]], fill="toself", mode="lines",
        line={"width": 0}, fillcolor="rgba(125, 133, 144, 0.25)", name="Poisson, 95 %", hoverinfo="skip",
    )  # fmt: skip
    seen = plots.line(curve.window_s, curve.index, "Trace", plots.RED, unit="")
    bottom = min(0.5, 0.8 * float(curve.index.min() or 0.5), 0.8 * gap_scv or 0.5)
    top = 1.5 * max(float(curve.index.max()), float(high.max()), gap_scv)
    shape, note = plots.level(gap_scv, f"spread of the gaps: {readable(gap_scv, 3)}")
    plots.on_log_axis(note)
    return plots.figure(
        [band, seen],
        x="Length of the window (s)",
        y="Variance over mean of the counts (Poisson: 1)",
        shapes=[shape],
        notes=[note],
        xaxis={"type": "log"},
        yaxis=plots.log_axis(max(bottom, 1e-3), top),
    )


def lengths(curve: LengthCurve, what: str) -> go.Figure:
    """Return the share of requests longer than a length, beside two log-normal laws."""
    lowest = max(float(curve.seen[curve.seen > 0].min(initial=1.0)) / 2, 1e-6)
    traces = [
        plots.line(curve.tokens, np.where(values > 0, values, np.nan), name, colour, unit="", dash=dash)
        for values, name, colour, dash in (
            (curve.seen, "Trace", plots.RED, "solid"),
            (curve.moments, "Log-normal by mean and spread", plots.BLUE, "dash"),
            (curve.likelihood, "Log-normal by the logarithms", plots.GREEN, "dot"),
        )
    ]
    decades = [10.0**power for power in range(int(np.floor(np.log10(lowest))), 1)]
    return plots.figure(
        traces,
        x=f"Length of {what} (tokens)",
        y="Share of requests longer",
        xaxis={"type": "log"},
        yaxis=plots.log_axis(lowest, 1.5) | {"tickvals": decades, "ticktext": [f"{100 * s:.10g} %" for s in decades]},
    )
