"""Result to figures: speedup over length, over acceptance and cost, over the batch; the round in time; acceptance."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from calculators import plots
from calculators.outputs import short
from calculators.speculative.compute import SpeculativeInputs, SpeculativeResult
from calculators.speculative.costs import OverBatch
from calculators.speculative.curves import Bar, CostMap, LengthCurve, TokensCurve
from calculators.speculative.machines import Spill
from formulas.montecarlo.speculative_sampling import SamplingCheck

OTHERS = ("#a6cde6", "#7fb6db", "#5a9fd0", "#3f8ac4", "#2f76b5", "#2a67a6")
"""Blues for acceptances in order; the user's own curve has a colour of its own."""

PLAIN = "plain decoding"


def speedup_against_length(
    inputs: SpeculativeInputs, result: SpeculativeResult, curves: list[LengthCurve], bound_from: int | None
) -> go.Figure:
    """Return the speedup against the length of the draft for several acceptances, the best lengths marked."""
    others = [curve for curve in curves if not curve.mine]
    traces = []
    for place, curve in enumerate(others):
        colour = plots.GREY if len(others) == 1 else OTHERS[place % len(OTHERS)]
        traces.append(_over_length(curve, colour, 2.0))
    traces += [_over_length(curve, plots.RED, 4.0) for curve in curves if curve.mine]
    traces.append(_optima(curves))
    hover = f"a draft of {inputs.draft_tokens}: {short(result.speedup)} times"
    traces.append(plots.point(inputs.draft_tokens, result.speedup, "You", plots.RED, hover))
    marks = [plots.level(1.0, PLAIN)]
    marks[0][1]["yanchor"] = "top"  # curves of a draft that pays are above
    longest = max(len(curve.speedup) for curve in curves) - 1
    if bound_from is not None and 1 < bound_from <= longest:
        marks.append(plots.upright(bound_from, "bound by arithmetic", side="right"))
    shapes, notes = zip(*marks, strict=True)
    top = max(1.5, *(float(curve.speedup.max()) for curve in curves))
    return plots.figure(
        traces,
        x="Draft length (tokens)",
        y="Speedup over plain decoding",
        shapes=shapes,
        notes=notes,
        xaxis={"range": [0, 1.02 * longest]},
        yaxis={"range": [0, 1.08 * top]},
        hovermode="x unified",
        height=460,
    )


def _over_length(curve: LengthCurve, colour: str, width: float) -> plots.Trace:
    length = np.arange(len(curve.speedup))[1:]
    return plots.line(length, curve.speedup[1:], curve.name, colour, unit="times", width=width)


def _optima(curves: list[LengthCurve]) -> plots.Trace:
    found = [
        (curve.best, float(curve.speedup[curve.best])) for curve in curves if 0 < curve.best < len(curve.speedup) - 1
    ]
    marker = {"size": 11, "symbol": "diamond", "color": plots.ORANGE, "line": {"color": "white", "width": 1.5}}
    return plots.scatter(
        x=[length for length, _ in found],
        y=[gain for _, gain in found],
        name="best length",
        mode="markers",
        marker=marker,
        hoverinfo="skip",
    )


def length_table(curves: list[LengthCurve]) -> dict[str, Any]:
    """Return the speedups by column title; a curve that ends earlier is empty beyond."""
    longest = max(len(curve.speedup) for curve in curves)
    columns: dict[str, Any] = {"Draft length (tokens)": np.arange(longest)}
    for curve in curves:
        values: list[float | None] = [float(value) for value in curve.speedup]
        columns[f"Speedup, {curve.name}"] = values + [None] * (longest - len(values))
    return columns


def speedup_map(result: SpeculativeResult, chart: CostMap) -> go.Figure:
    """Return the best speedup over acceptance and draft cost, with the user's point."""
    size = 0.25 if chart.speedup.max() < 3 else 0.5 if chart.speedup.max() < 6 else 1.0
    heights = plots.contour(
        x=chart.acceptance,
        y=chart.draft_cost,
        z=chart.speedup,
        customdata=chart.length,
        contours={
            "start": 1 + size,
            "end": float(chart.speedup.max()),
            "size": size,
            "coloring": "fill",
            "showlabels": True,
            "labelfont": {"size": 12, "color": "#24292f"},
        },
        colorscale=[[0, "#eef4fa"], [0.25, "#b3d1e8"], [0.6, "#7db3d9"], [1, "#4a90c4"]],
        line={"color": "#41719c", "width": 1},
        showlegend=False,
        colorbar={"title": {"text": "times"}, "thickness": 14},
        hovertemplate="α = %{x:.2f}, c = %{y:.3~g}: %{z:.3~g} times with drafts of %{customdata}<extra></extra>",
    )
    alpha, cost = result.independent_acceptance, result.draft_cost
    edge = plots.line(
        chart.acceptance,
        chart.pays_below,
        "pays below",
        plots.TARGET,
        unit="plain steps",
        dash="dash",
        hoverinfo="skip",
    )
    edge["hovertemplate"] = None
    traces: list[Any] = [heights, edge]
    low, high = float(chart.draft_cost[0]), float(chart.draft_cost[-1])
    if chart.acceptance[0] <= alpha <= chart.acceptance[-1] and low <= cost <= high:
        hover = f"α = {short(alpha)}, c = {short(cost)}: best draft {result.optimal_draft_tokens}"
        traces.append(plots.point(alpha, cost, "You", plots.RED, hover))
    notes = []
    if float(chart.speedup[-1, 0]) <= 1:
        notes.append(plots.corner("no draft pays", "#8a5a00", "top left"))
    return plots.figure(
        traces,
        x="Acceptance (probability)",
        y="Draft cost (plain decode steps)",
        notes=notes,
        hovermode="closest",
        yaxis=plots.log_axis(low, high),
        height=480,
    )


def map_table(chart: CostMap) -> dict[str, Any]:
    """Return the map's data, a row for each point, by column title."""
    alpha, cost = np.meshgrid(chart.acceptance, chart.draft_cost)
    return {
        "Acceptance": alpha.ravel(),
        "Draft cost (plain steps)": cost.ravel(),
        "Best draft (tokens)": chart.length.ravel(),
        "Speedup": chart.speedup.ravel(),
    }


def speedup_against_batch(
    inputs: SpeculativeInputs, result: SpeculativeResult, found: OverBatch, spill: Spill | None
) -> go.Figure:
    """Return the speedup against the batch, at the best length and at the one given, with where it stops paying."""
    best = plots.line(found.batch, found.best, "best length", plots.BLUE, unit="times", width=3.5)
    best["customdata"] = found.length
    best["hovertemplate"] = "%{y:.4~g} times with drafts of %{customdata}"
    given = plots.line(
        found.batch, found.given, f"drafts of {inputs.draft_tokens}", plots.ORANGE, unit="times", dash="dash"
    )
    hover = f"batch {inputs.batch:,}: {short(result.speedup)} times"
    traces = [best, given, plots.point(inputs.batch, result.speedup, "You", plots.RED, hover)]
    low, high = float(found.batch[0]), float(found.batch[-1])
    marks = [plots.level(1.0, PLAIN, plots.TARGET)]
    if result.break_even_batch is not None and low < result.break_even_batch < high:
        marks.append(plots.forbidden_beyond(result.break_even_batch, high, "no draft pays"))
    if spill is not None and low < spill.batch < high:
        marks.append(plots.upright(spill.batch, f"cache in {spill.tier} up to here", side="left", height=0.06))
    if result.largest_batch is not None and low < result.largest_batch < high:
        marks.append(plots.upright(result.largest_batch, f"{result.largest_batch:,} fit", side="left"))
    for shape, note in marks[1:]:
        _to_log_x(shape, note, high)
    shapes, notes = zip(*marks, strict=True)
    return plots.figure(
        traces,
        x="Batch (sequences)",
        y="Speedup over plain decoding",
        shapes=shapes,
        notes=notes,
        xaxis=plots.log_axis(low, high) | {"hoverformat": ",.0f", "range": [np.log10(low / 1.12), np.log10(high)]},
        yaxis={"rangemode": "tozero"},
        height=460,
    )


def _to_log_x(shape: dict[str, Any], note: dict[str, Any], high: float) -> None:
    """Move a note to the middle of its region on a logarithmic axis, where Plotly counts in powers of ten."""
    middle = np.sqrt(shape["x0"] * min(shape["x1"], high))
    note["x"] = float(np.log10(middle))


def batch_table(found: OverBatch) -> dict[str, Any]:
    """Return the speedups against the batch by column title."""
    return {
        "Batch (sequences)": found.batch,
        "Best draft (tokens)": found.length,
        "Speedup, best draft": found.best,
        "Speedup, draft given": found.given,
    }


LANES = {"Plain decoding": plots.GREY, "Target": plots.BLUE, "Link": plots.GREEN, "Draft": plots.ORANGE}


def round_in_time(result: SpeculativeResult, bars: list[Bar]) -> go.Figure:
    """Return the round on a time axis, beside the plain decoding that takes as long."""
    unit, scale = ("ms", result.target_step_ms) if result.target_step_ms else ("plain decode steps", 1.0)
    traces = []
    for lane, colour in LANES.items():
        mine = [bar for bar in bars if bar.lane == lane]
        traces.append(
            plots.bar(
                y=[lane] * len(mine),
                x=[scale * bar.length for bar in mine],
                base=[scale * bar.start for bar in mine],
                orientation="h",
                name=lane,
                showlegend=False,
                marker={"color": colour, "line": {"color": "white", "width": 0 if lane == "Link" else 1.5}},
                text=[f"{bar.steps:,} steps" if bar.steps > 1 else "" for bar in mine],
                textposition="inside",
                insidetextanchor="middle",
                customdata=[bar.what for bar in mine],
                hovertemplate=f"%{{customdata}}: %{{x:.4~g}} {unit}<extra></extra>",
            )
        )
    traces = [trace for trace in traces if trace["y"]]
    return plots.figure(
        traces,
        x=f"Time from the start of the round ({unit})",
        y="",
        yaxis={"automargin": True},
        hovermode="closest",
        barmode="overlay",
        height=300,
    )


def timeline_table(result: SpeculativeResult, bars: list[Bar]) -> dict[str, Any]:
    """Return the bars of the timeline by column title."""
    unit, scale = ("ms", result.target_step_ms) if result.target_step_ms else ("plain steps", 1.0)
    return {
        "Lane": [bar.lane for bar in bars],
        "What": [bar.what for bar in bars],
        "Steps": [bar.steps for bar in bars],
        f"From ({unit})": [scale * bar.start for bar in bars],
        f"Takes ({unit})": [scale * bar.length for bar in bars],
    }


def tokens_against_length(result: SpeculativeResult, found: TokensCurve) -> go.Figure:
    """Return the tokens of a round against the length of the draft: measured, as used, and by one acceptance."""
    alpha = f"independent, α = {result.independent_acceptance:.3g}"
    traces = [plots.line(found.length, found.independent, alpha, plots.BLUE, unit="tokens", dash="dash")]
    if found.measured:
        traces.append(plots.line(found.length, found.used, "by position", plots.RED, unit="tokens", width=3))
        marker = {"size": 10, "color": plots.RED, "symbol": "x"}
        traces.append(
            plots.scatter(
                x=found.measured_length, y=found.measured, name="measured", mode="markers", marker=marker,
                hovertemplate="%{y:.4~g} tokens measured<extra></extra>",
            )
        )  # fmt: skip
    traces.append(
        plots.line(
            found.length, found.length + 1.0, "every draft accepted", plots.GREY, unit="tokens", dash="dot", width=1.5
        )
    )
    top = 1.35 * max(float(found.used.max()), float(found.independent.max()))
    return plots.figure(
        traces,
        x="Draft length (tokens)",
        y="Tokens per round (bonus token counted)",
        xaxis={"range": [0, 1.03 * float(found.length[-1])]},
        yaxis={"range": [0, top]},
        height=440,
    )


def tokens_table(found: TokensCurve) -> dict[str, Any]:
    """Return the tokens of a round by column title."""
    measured = dict(zip(found.measured_length, found.measured, strict=True))
    return {
        "Draft length (tokens)": found.length,
        "Measured (tokens per round)": [measured.get(int(length)) for length in found.length],
        "By position (tokens per round)": found.used,
        "Independent (tokens per round)": found.independent,
    }


def accepted_distribution(counts: Any, expected: Any) -> go.Figure:
    """Return how many drafts were accepted in the simulated rounds, beside what the formula expects."""
    accepted, total = np.arange(len(counts)), float(np.sum(counts))
    marker = {"size": 11, "color": plots.RED, "symbol": "line-ew-open", "line": {"width": 3}}
    return plots.figure(
        [
            plots.bar(
                x=accepted, y=counts / total, name="simulated", marker={"color": plots.SKY}, hovertemplate="%{y:.4~g}"
            ),
            plots.scatter(
                x=accepted, y=expected / total, name="formula", mode="markers", marker=marker, hovertemplate="%{y:.4~g}"
            ),
        ],
        x="Drafts accepted in a round (tokens)",
        y="Share of the rounds",
        xaxis={"dtick": max(1, len(counts) // 16)},
        bargap=0.15,
        height=360,
    )


def distribution_table(counts: Any, expected: Any) -> dict[str, Any]:
    """Return the distribution of accepted drafts by column title."""
    return {"Drafts accepted": np.arange(len(counts)), "Rounds": counts, "Rounds expected": expected}


def sampled_tokens(check: SamplingCheck) -> go.Figure:
    """Return the shares of the sampled tokens beside the target's and the draft's probabilities."""
    rank = np.arange(1, len(check.target) + 1)
    target = {"size": 10, "color": plots.RED, "symbol": "line-ew-open", "line": {"width": 3}}
    return plots.figure(
        [
            plots.bar(x=rank, y=check.sampled, name="sampled", marker={"color": plots.SKY}, hovertemplate="%{y:.4~g}"),
            plots.scatter(x=rank, y=check.target, name="target", mode="markers", marker=target, hovertemplate="%{y:.4~g}"),
            plots.scatter(
                x=rank, y=check.draft, name="draft", mode="lines", line={"color": plots.ORANGE, "width": 1.5, "dash": "dot"},
                hovertemplate="%{y:.4~g}",
            ),
        ],
        x="Token (by the target's rank)",
        y="Share of the tokens",
        bargap=0.15,
        height=360,
    )  # fmt: skip


def sampled_table(check: SamplingCheck) -> dict[str, Any]:
    """Return the shares of the sampled tokens by column title."""
    return {
        "Token": np.arange(1, len(check.target) + 1),
        "Sampled share": check.sampled,
        "Target's probability": check.target,
        "Draft's probability": check.draft,
    }
