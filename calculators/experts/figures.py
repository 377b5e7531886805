"""Result to figures: experts, bytes and time against the tokens of a step, ranks, and the simulated routing."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from calculators import plots
from calculators.experts.check import ExpertsCheck
from calculators.experts.compute import EXAMPLES, ExpertsInputs, ExpertsResult
from calculators.experts.curves import TOKENS, ReadCurve, StepCurve, TouchedCurve
from calculators.experts.ranks import Ranks
from calculators.outputs import counted, readable, short

TOKENS_TITLE = "Size of the step (tokens)"
EXAMPLE_COLOURS = (plots.BLUE, plots.ORANGE, plots.GREEN, plots.PURPLE)


def touched_against_tokens(result: ExpertsResult, curve: TouchedCurve, *, even: bool) -> go.Figure:
    """Return the experts touched against the tokens, with their spread, the user's point and all experts."""
    traces = []
    if even:
        traces += _band(curve)
        traces.append(plots.line(curve.tokens, curve.touched, "Experts touched", plots.BLUE, unit="experts", width=3))
    else:
        traces.append(
            plots.line(
                curve.tokens, curve.even, "All equally popular", plots.GREY, unit="experts", dash="dash", width=2
            )
        )
        traces.append(
            plots.line(curve.tokens, curve.touched, "As popular as given", plots.BLUE, unit="experts", width=3)
        )
    distinct, spread = result.distinct_experts or 0.0, result.distinct_experts_sd or 0.0
    hover = f"{counted(result.tokens, 'token')}: {short(distinct)} ± {short(spread)} of {result.experts} experts"
    traces.append(
        plots.point(result.tokens, distinct, "You", plots.RED, hover)
        | {"error_y": {"type": "constant", "value": spread, "color": plots.RED, "thickness": 2, "width": 6}}
    )
    shape, note = plots.level(result.experts or 0, f"all {result.experts} experts", plots.GREY, side="left")
    shapes, notes = [shape], [note]
    if result.tokens_for_95_percent is not None and result.tokens_for_95_percent < curve.tokens[-1]:
        shape, note = plots.upright(
            result.tokens_for_95_percent, f"95 %: {counted(result.tokens_for_95_percent, 'token')}", height=0.08
        )
        shapes.append(shape)
        notes.append(_on_log(note))
    return plots.figure(
        traces,
        x=TOKENS_TITLE,
        y=f"Experts touched in a layer (of {result.experts})",
        shapes=shapes,
        notes=notes,
        xaxis=plots.log_axis(1, float(curve.tokens[-1])),
        yaxis={"range": [0, 1.12 * (result.experts or 1)]},
        legend={"traceorder": "normal"},
        height=460,
    )


def _band(curve: TouchedCurve) -> list[plots.Trace]:
    """Return the band of one standard deviation."""
    edge = {"width": 0}
    return [
        plots.scatter(
            x=curve.tokens, y=curve.high, mode="lines", line=edge, hoverinfo="skip", showlegend=False, name="upper"
        ),
        plots.scatter(
            x=curve.tokens,
            y=curve.low,
            mode="lines",
            line=edge,
            fill="tonexty",
            fillcolor="rgba(0, 114, 178, 0.28)",
            hoverinfo="skip",
            name="± one standard deviation",
        ),
    ]


def _on_log(note: dict[str, Any]) -> dict[str, Any]:
    """Return a note whose place along a logarithmic axis is given in data, where Plotly counts in powers of ten."""
    return note | {"x": float(np.log10(note["x"]))}


def bytes_against_tokens(result: ExpertsResult, curve: StepCurve) -> go.Figure:
    """Return the expert weights that a step reads against its tokens."""
    mine = (result.expert_bytes_per_step or 0.0) / 1e9
    traces = [
        plots.line(curve.tokens, curve.expert_gb, "Expert weights read", plots.BLUE, unit="GB", width=3),
        plots.point(result.tokens, mine, "You", plots.RED, f"{counted(result.tokens, 'token')}: {short(mine, 'GB')}"),
    ]
    return plots.figure(
        traces,
        x=TOKENS_TITLE,
        y="Expert weights read in a step (GB)",
        xaxis=plots.log_axis(1, float(curve.tokens[-1])),
        yaxis={"rangemode": "tozero"},
    )


def time_against_tokens(inputs: ExpertsInputs, result: ExpertsResult, curve: StepCurve) -> go.Figure:
    """Return the time of a step against its tokens, beside dense models of the same active and total size."""
    traces = [
        plots.line(curve.tokens, curve.dense_total_ms, "Dense, total size", plots.PURPLE, unit="ms", dash="dash"),
        plots.line(curve.tokens, curve.step_ms, inputs.model, plots.BLUE, unit="ms", width=3.5),
        plots.line(curve.tokens, curve.dense_active_ms, "Dense, active size", plots.GREEN, unit="ms", dash="dot"),
    ]
    mine = float(np.interp(np.log(result.tokens), np.log(curve.tokens), curve.step_ms))
    if not result.ranks and result.step_ms:
        mine = result.step_ms
    traces.append(
        plots.point(result.tokens, mine, "You", plots.RED, f"{counted(result.tokens, 'token')}: {short(mine, 'ms')}")
    )
    shapes, notes = [], []
    critical = result.reached_critical_batch
    if critical and curve.tokens[0] < critical < curve.tokens[-1]:
        text = f"experts compute-bound: {readable(round(critical))}"
        shape, note = plots.upright(critical, text, height=0.07)
        shapes, notes = [shape], [_on_log(note)]
    times = np.concatenate([curve.step_ms, curve.dense_active_ms, curve.dense_total_ms])
    return plots.figure(
        traces,
        x=TOKENS_TITLE,
        y="Time of a step (ms)",
        shapes=shapes,
        notes=notes,
        xaxis=plots.log_axis(1, float(curve.tokens[-1])),
        yaxis=plots.log_axis(float(times.min()) / 2.5, float(times.max()) * 1.5),
        height=480,
    )


def share_against_tokens(inputs: ExpertsInputs, tokens: int, curves: list[ReadCurve]) -> go.Figure:
    """Return the share of the experts that a step reads, for every mixture, the chosen one in front."""
    traces = []
    colours = dict(zip(EXAMPLES, EXAMPLE_COLOURS, strict=True)) | {inputs.model: plots.RED}
    for curve in sorted(curves, key=lambda one: (one.id == inputs.model, one.id in colours)):
        mine = curve.id == inputs.model
        traces.append(
            plots.scatter(
                x=TOKENS,
                y=100 * curve.coverage,
                mode="lines",
                name=f"{curve.id} ({curve.chosen} of {curve.experts})",
                showlegend=curve.id in colours,
                opacity=1 if curve.id in colours else 0.5,
                line={
                    "color": colours.get(curve.id, plots.GREY),
                    "width": 3.5 if mine else 2.2 if curve.id in colours else 1.2,
                },
                hovertemplate="%{fullData.name}: %{y:.3~g} % at %{x:,} tokens<extra></extra>",
            )
        )
    shapes, notes = [], []
    if 1 < tokens < TOKENS[-1]:
        shape, note = plots.upright(tokens, f"your step: {counted(tokens, 'token')}", side="right", height=0.08)
        shapes, notes = [shape], [_on_log(note)]
    return plots.figure(
        traces,
        x=TOKENS_TITLE,
        y="Share of the experts that a step reads (%)",
        shapes=shapes,
        notes=notes,
        xaxis=plots.log_axis(1, float(TOKENS[-1])),
        yaxis={"range": [0, 104]},
        hovermode="closest",
        height=460,
    )


def share_table(curves: list[ReadCurve]) -> dict[str, Any]:
    """Return the shares by column title."""
    return {"Tokens in the step": TOKENS} | {f"{curve.id} (share)": curve.coverage for curve in curves}


def load_against_ranks(inputs: ExpertsInputs, table: list[Ranks]) -> go.Figure:
    """Return the choices that fall on a rank, on average and on the busiest, against the number of ranks."""
    ranks = [each.ranks for each in table]
    top, bottom = max(each.busiest_load for each in table), min(each.mean_load for each in table)
    traces = [
        _marked(ranks, [each.busiest_load for each in table], "Busiest rank", plots.ORANGE),
        _marked(ranks, [each.mean_load for each in table], "Mean of the ranks", plots.BLUE),
    ]
    mine = next((each for each in table if each.ranks == inputs.ep), None)
    if mine is not None:
        hover = f"{counted(mine.ranks, 'rank')}: {counted(mine.busiest_load, 'choice')} on the busiest"
        traces.append(plots.point(mine.ranks, mine.busiest_load, "You", plots.RED, hover))
    return plots.figure(
        traces,
        x="Expert-parallel ranks (accelerators)",
        y="Choices on a rank in a layer (choices)",
        xaxis=plots.log_axis(0.9, 1.1 * ranks[-1]) | {"tickvals": ranks, "ticktext": [f"{n:,}" for n in ranks]},
        yaxis=plots.log_axis(bottom / 1.5, top * 1.5),
    )


def _marked(x: list[int], y: list[float], name: str, colour: str) -> plots.Trace:
    return plots.line(x, y, name, colour, unit="choices") | {"mode": "lines+markers", "marker": {"size": 7}}


def simulated_counts(check: ExpertsCheck) -> go.Figure:
    """Return how many steps touched how many experts, simulated and, for even routing, exactly."""
    data = check.histogram
    traces: list[plots.Trace] = [
        plots.bar(
            x=data.experts,
            y=data.simulated,
            name="Simulated",
            marker={"color": plots.SKY},
            hovertemplate="%{y:.3~g}",
        )
    ]
    if data.exact is not None:
        traces.append(plots.line(data.experts, data.exact, "Exact", plots.RED, unit="") | {"mode": "lines+markers"})
    return plots.figure(
        traces,
        x="Different experts in a step (experts)",
        y="Share of the steps",
        bargap=0.1,
        yaxis={"rangemode": "tozero"},
    )


def popularity_of_experts(check: ExpertsCheck) -> go.Figure:
    """Return how often each expert is chosen: by the exact formula, simulated, and by the rule of thumb."""
    data = check.choices
    traces = [
        plots.scatter(
            x=data.place,
            y=data.simulated,
            mode="markers",
            name="Simulated",
            marker={"color": plots.SKY, "size": 7},
            hovertemplate="%{y:.3~g}",
        ),
        plots.line(data.place, data.exact, "Exact", plots.BLUE, unit=""),
        plots.line(
            data.place, data.rule_of_thumb, "k times the popularity, at most 1", plots.ORANGE, unit="", dash="dash"
        ),
    ]
    return plots.figure(
        traces,
        x="Place by popularity (experts)",
        y="Share of the tokens that choose it",
        xaxis=plots.log_axis(0.9, 1.1 * len(data.place)),
        yaxis={"rangemode": "tozero"},
    )
