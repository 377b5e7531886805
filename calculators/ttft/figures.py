"""Result to figures: TTFT against rate, its distribution beside the simulated one, and what short runs see."""

from __future__ import annotations

import math

import numpy as np
import plotly.graph_objects as go

from calculators import plots
from calculators.outputs import duration, readable, short
from calculators.ttft.check import LECTURE_P99, LECTURE_UTILIZATION, TtftCheck
from calculators.ttft.compute import Sweep, TtftResult
from calculators.ttft.inputs import TtftInputs, statistic
from calculators.ttft.methods import queue_of
from calculators.ttft.sensitivity import Sensitivity
from calculators.ttft.wording import highest_rate

NAMES = {"p50": "P50", "p90": "P90", "p95": "P95", "p99": "P99", "p999": "P99.9"}


def ttft_against_rate(inputs: TtftInputs, result: TtftResult, curves: Sweep) -> go.Figure:
    """Return mean, P50, P90 and P99 of TTFT against rate, the target, the user's point and the unstable region."""
    capacity = queue_of(inputs).capacity
    right = min(max(1.12 * capacity, 1.05 * inputs.rate), 1.6 * capacity)
    traces = _curves(inputs, curves)
    marks = [
        plots.level(inputs.ttft_slo_ms, f"target {duration(inputs.ttft_slo_ms)}"),
        plots.forbidden_beyond(capacity, right, "unstable: no steady state"),
    ]
    if result.max_rate:
        limit = highest_rate(inputs, result)
        said = limit if limit.startswith("below") else f"up to {limit}"
        marks.append(plots.upright(result.max_rate, f"{said} requests/s"))
    if not result.stable:
        beyond = " →" if inputs.rate > right else ""
        marks.append(
            plots.upright(min(inputs.rate, right), f"you: {readable(inputs.rate)} requests/s{beyond}", plots.RED)
        )
    if result.target_ttft_ms is not None:
        name = f"You: {statistic(inputs)}"
        hover = f"{readable(inputs.rate)} requests/s: {statistic(inputs)} {short(result.target_ttft_ms, 'ms')}"
        traces.append(plots.point(inputs.rate, result.target_ttft_ms, name, plots.RED, hover))
    if result.verdict == "does_not_fit":
        marks.append(plots.forbidden_beyond(0, capacity, "the weights do not fit"))
    bottom, top = _height(inputs, result)
    shapes, notes = zip(*marks, strict=True)
    for note in notes:
        plots.on_log_axis(note)
    return plots.figure(
        traces,
        x="Arrival rate (requests/s)",
        y="Time to first token (ms)",
        shapes=shapes,
        notes=notes,
        xaxis={"range": [0, right]},
        yaxis=plots.log_axis(bottom, top),
    )


def _curves(inputs: TtftInputs, curves: Sweep) -> list[plots.Trace]:
    """Return mean, P50, P90 and P99, and the statistic that the target is set on drawn strongly."""
    drawn = {"mean": curves.mean_ttft_ms} | {key: getattr(curves, f"{key}_ttft_ms") for key in ("p50", "p90", "p99")}
    own = statistic(inputs).removesuffix(" TTFT").lower().replace(".", "")
    if own not in drawn:
        drawn[own] = curves.own_ttft_ms
    labels = {"mean": "Mean"} | NAMES | ({own: statistic(inputs).removesuffix(" TTFT")} if own != "mean" else {})
    return [
        plots.line(
            curves.rate,
            values,
            labels[key],
            plots.SERIES.get(key, plots.RED),
            unit="ms",
            dash="dash" if key == "mean" else "solid",
            width=4 if key == own else 2,
        )
        for key, values in drawn.items()
        if np.isfinite(values).any()  # what is simulated has no curve
    ]


def _height(inputs: TtftInputs, result: TtftResult) -> tuple[float, float]:
    low = min(result.service_ms, inputs.ttft_slo_ms)
    high = max(20 * result.service_ms, 2 * inputs.ttft_slo_ms, 1.5 * (result.target_ttft_ms or 0))
    return 0.7 * low, high


def distribution(check: TtftCheck) -> go.Figure:
    """Return the share of requests in each bin of TTFT: simulated as bars, exact as a curve."""
    shares = check.distribution
    width_ms = float(shares.middle_ms[1] - shares.middle_ms[0])
    lowest = max(float(shares.exact[-1]), 1e-10)
    decades = [10.0**power for power in range(math.ceil(math.log10(lowest)), 1)]
    bars = plots.bar(
        x=shares.middle_ms, y=shares.simulated, width=width_ms, name="Simulated",
        marker={"color": plots.SKY, "line": {"width": 0}}, hovertemplate="%{y:.3~g}",
    )  # fmt: skip
    exact = plots.line(shares.middle_ms, shares.exact, "Exact", plots.RED, unit="", width=2)
    exact["line"]["shape"] = "hvh"
    marks = [
        plots.upright(row.exact_ms, row.label, plots.GREY, side="right", height=1.02 - 0.05 * place)
        for place, row in enumerate(check.rows)
        if row.label != "mean"
    ]
    shapes, notes = zip(*marks, strict=True)
    return plots.figure(
        [bars, exact],
        x="Time to first token (ms)",
        y=f"Share of requests per {short(width_ms, 'ms')}",
        shapes=shapes,
        notes=notes,
        # A decade and a half above a share of one, so that the names of the percentiles stand clear of the bars.
        yaxis=plots.log_axis(lowest, 30)
        | {"tickvals": decades, "ticktext": [f"{100 * share:.10g} %" for share in decades]},
        bargap=0,
    )


def short_runs(check: TtftCheck) -> go.Figure:
    """Return what runs of different lengths, started empty, report as P99: the median run and nine in ten of them."""
    runs = check.short_runs
    lengths = [run.customers for run in runs]
    medians = [run.median_ms for run in runs]
    spread = {
        "type": "data",
        "symmetric": False,
        "array": [run.high_ms - run.median_ms for run in runs],
        "arrayminus": [run.median_ms - run.low_ms for run in runs],
        "color": plots.BLUE,
    }
    simulated = plots.scatter(
        x=lengths, y=medians, error_y=spread, mode="lines+markers", name="P99 of one run: median, and 5 % to 95 %",
        line={"color": plots.BLUE}, marker={"size": 9}, hovertemplate="%{y:.4~g} ms",
    )  # fmt: skip
    levels = [plots.level(check.exact_p99_ms, f"exact P99 {short(check.exact_p99_ms, 'ms')}", plots.RED, side="right")]
    if abs(check.utilization - LECTURE_UTILIZATION) < 0.005:
        lecture_ms = LECTURE_P99 * check.service_ms
        levels.append(plots.level(lecture_ms, f"the lecture's run: {short(lecture_ms, 'ms')}", side="right"))
    shapes, notes = zip(*levels, strict=True)
    return plots.figure(
        [simulated],
        x="Requests in the run",
        y="P99 of time to first token (ms)",
        shapes=shapes,
        notes=notes,
        xaxis={"type": "log", "tickvals": lengths, "ticktext": [f"{n:,}" for n in lengths]},
        yaxis={"rangemode": "tozero"},
        hovermode="closest",
    )


def what_matters(rows: tuple[Sensitivity, ...], name: str) -> go.Figure:
    """Return the elasticity of the TTFT held against the target in each input, the largest on top."""
    bars = plots.bar(
        x=[row.elasticity for row in rows][::-1],
        y=[row.label for row in rows][::-1],
        orientation="h",
        marker={"color": [plots.ORANGE if row.elasticity > 0 else plots.BLUE for row in rows][::-1]},
        hovertemplate="1 % more: %{x:.3~g} % of " + name + "<extra></extra>",
    )
    return plots.figure(
        [bars],
        x=f"Change of {name} for 1 % more (%)",
        y="",
        height=120 + 48 * len(rows),
        hovermode="closest",
        yaxis={"ticks": "", "automargin": True},
        xaxis={"zeroline": True, "zerolinecolor": plots.GREY},
    )
