"""Result to figures: transfer beside prefill, cache against context, and the overlap layer by layer."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

import hardware_db
from calculators import plots
from calculators.kv_cache.compute import KvCacheInputs, KvCacheResult
from calculators.kv_cache.curves import CONTEXTS, PROMPTS, CacheCurve, TransferCurve
from calculators.kv_transfer import route_of, transfer
from calculators.outputs import counted, short
from formulas.kv_cache import Gantt, gantt

COLOURS = (plots.RED, plots.BLUE, plots.GREEN, plots.ORANGE, plots.PURPLE, plots.SKY)


def transfer_against_prompt(
    inputs: KvCacheInputs, result: KvCacheResult, curves: list[TransferCurve], prefill_ms: Any
) -> go.Figure:
    """Return the transfer over several links against the prompt's length, with the prefill and the user's point."""
    traces = [plots.line(PROMPTS, prefill_ms, "Prefill", plots.GREY, unit="ms", dash="dash", width=3)]
    traces += [
        plots.line(PROMPTS, curve.transfer_ms, curve.name, colour, unit="ms", width=3.5 if place == 0 else 1.8)
        for place, (curve, colour) in enumerate(zip(curves, COLOURS, strict=False))
    ]
    hover = f"{counted(inputs.prompt_tokens, 'token')}: {short(result.transfer_ms, 'ms')}"
    traces.append(plots.point(inputs.prompt_tokens, result.transfer_ms, "You", plots.RED, hover))
    times = [float(np.min(curve.transfer_ms)) for curve in curves] + [result.transfer_ms]
    highest = max(float(np.max(prefill_ms)), *(float(np.max(curve.transfer_ms)) for curve in curves))
    lowest, longest = min(64, inputs.prompt_tokens), max(131_072, inputs.prompt_tokens)
    return plots.figure(
        traces,
        x="Prompt length (tokens)",
        y="Time (ms)",
        xaxis=plots.log_axis(lowest, longest),
        yaxis=plots.log_axis(min(times) / 1.5, highest * 1.5),
        height=480,
    )


def transfer_table(curves: list[TransferCurve], prefill_ms: Any) -> dict[str, Any]:
    """Return the transfers by column title."""
    columns: dict[str, Any] = {"Prompt length (tokens)": PROMPTS, "Prefill (ms)": prefill_ms}
    return columns | {f"{curve.name} (ms)": curve.transfer_ms for curve in curves}


def cache_against_context(inputs: KvCacheInputs, curves: list[CacheCurve]) -> go.Figure:
    """Return the cache of one sequence against its context for every model, with the accelerator's memory."""
    traces = []
    for curve in sorted(curves, key=lambda one: one.id == inputs.model):
        mine = curve.id == inputs.model
        some = curve.cache_bytes > 0
        traces.append(
            plots.scatter(
                x=CONTEXTS[some],
                y=curve.cache_bytes[some] / 1e9,
                mode="lines",
                name=curve.id,
                showlegend=mine,
                opacity=1 if mine else 0.5,
                line={"color": plots.RED if mine else plots.GREY, "width": 3.5 if mine else 1.2},
                hovertemplate=curve.id + ": %{y:.4~g} GB at %{x:,} tokens<extra></extra>",
            )
        )
    memory_gb = hardware_db.accelerators()[inputs.accelerator].memory_bytes / 1e9
    shape, note = plots.level(memory_gb, f"memory of {inputs.accelerator}: {short(memory_gb, 'GB')}")
    plots.on_log_axis(note)
    return plots.figure(
        traces,
        x="Context of one sequence (tokens)",
        y="Cache (GB)",
        shapes=[shape],
        notes=[note],
        xaxis=plots.log_axis(128, 1_048_576),
        yaxis={"type": "log", "dtick": 1, "tickformat": "~r"},
        hovermode="closest",
        height=480,
    )


def cache_table(curves: list[CacheCurve]) -> dict[str, Any]:
    """Return the caches by column title."""
    return {"Context (tokens)": CONTEXTS} | {f"{curve.id} (bytes)": curve.cache_bytes for curve in curves}


def overlap(inputs: KvCacheInputs, result: KvCacheResult) -> Gantt:
    """Return when each layer is computed and sent."""
    layers = hardware_db.models()[inputs.model].layers
    route = route_of(inputs)
    link_s = transfer(inputs, route, result.prefill_ms).link_ms / 1e3
    return gantt(layers, result.prefill_ms / 1e3 / layers, link_s / layers, route.latency_s)


def overlap_chart(result: KvCacheResult, chart: Gantt) -> go.Figure:
    """Return the layers computed and sent on a time axis, with the end of the prefill marked."""
    lanes = (
        ("Computed", chart.compute_start, chart.compute_end, plots.BLUE),
        ("Sent", chart.transfer_start, chart.transfer_end, plots.ORANGE),
    )
    layer = np.arange(1, len(chart.compute_start) + 1)
    bars = [
        plots.bar(
            y=layer,
            x=1e3 * (end - start),
            base=1e3 * start,
            orientation="h",
            name=name,
            width=0.45,
            offset=-0.45 if name == "Computed" else 0.0,
            marker={"color": colour, "line": {"width": 0}},
            hovertemplate=f"layer %{{y}} {name.lower()}: %{{x:.4~g}} ms<extra></extra>",
        )
        for name, start, end, colour in lanes
    ]
    shape, note = plots.upright(
        result.prefill_ms, f"end of the prefill: {short(result.exposed_ms, 'ms')} exposed after it", side="left"
    )
    return plots.figure(
        bars,
        x="Time from the start of the prefill (ms)",
        y="Layer",
        shapes=[shape],
        notes=[note],
        yaxis={"autorange": "reversed"},
        hovermode="closest",
        barmode="overlay",
        height=max(360, min(900, 60 + 12 * len(layer))),
    )


def overlap_table(chart: Gantt) -> dict[str, Any]:
    """Return the times of each layer by column title."""
    return {
        "Layer": np.arange(1, len(chart.compute_start) + 1),
        "Computed from (ms)": 1e3 * chart.compute_start,
        "to (ms)": 1e3 * chart.compute_end,
        "Sent from (ms)": 1e3 * chart.transfer_start,
        "received (ms)": 1e3 * chart.transfer_end,
    }
