"""Result to figures: per accelerator against the rate, for every budget, and what a shifted workload does."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from calculators import plots
from calculators.outputs import readable, short
from calculators.pools.compute import PoolsResult
from calculators.pools.curves import Budget, RateCurve, ShiftMap

AXIS = "Goodput per accelerator (requests/s)"


def goodput_against_rate(result: PoolsResult, curve: RateCurve) -> go.Figure:
    """Return what each accelerator carries against the target rate, with the limit of large pools and the user's point."""
    here, each = result.served_rate or 0.0, result.goodput_per_gpu or 0.0
    traces = [plots.line(curve.rate, curve.goodput_per_gpu, "Pools", plots.BLUE, unit="requests/s")]
    if np.isfinite(curve.colocated_per_gpu).any():
        traces.append(
            plots.line(curve.rate, curve.colocated_per_gpu, "Colocated", plots.ORANGE, unit="requests/s", width=1.8)
        )
    hover = (
        f"{readable(here)} requests/s: {result.prefill_instances} + {result.decode_instances} instances, "
        f"{short(each)} requests/s for each accelerator"
    )
    traces.append(plots.point(here, each, "You", plots.RED, hover))
    ideal = result.ideal_goodput_per_gpu or 0.0
    shape, note = plots.level(ideal, f"without rounding {short(ideal)}", plots.GREY)
    top = 1.15 * max(ideal, float(np.nanmax([*curve.goodput_per_gpu, *curve.colocated_per_gpu])))
    return plots.figure(
        traces, x="Target rate (requests/s)", y=AXIS, shapes=[shape], notes=[note],
        yaxis={"range": [0, top]}, xaxis={"range": [0, float(curve.rate[-1])]}, hovermode="closest",
    )  # fmt: skip


def goodput_against_budget(result: PoolsResult, rows: list[Budget]) -> go.Figure:
    """Return what each accelerator carries with the best split of every budget, and the user's group."""
    texts = [f"{row.prefill_instances} + {row.decode_instances}" for row in rows]
    trace = plots.scatter(
        x=[row.gpus for row in rows], y=[row.goodput_per_gpu for row in rows], customdata=texts, name="Best split",
        mode="lines+markers", line={"color": plots.BLUE, "width": 1.5}, marker={"size": 8, "color": plots.BLUE},
        hovertemplate="%{x} accelerators: %{customdata}, %{y:.4~g} requests/s for each<extra></extra>",
    )  # fmt: skip
    traces = [trace]
    gpus, group = result.gpus or 0, result.group_goodput or 0.0
    if gpus <= rows[-1].gpus:
        hover = f"{result.prefill_instances} + {result.decode_instances}: {short(group / gpus)} requests/s for each"
        traces.append(plots.point(gpus, group / gpus, "You", plots.RED, hover))
    ideal = result.ideal_goodput_per_gpu or 0.0
    shape, note = plots.level(ideal, f"without rounding {short(ideal)}", plots.GREY)
    return plots.figure(
        traces, x="Accelerators (number)", y=AXIS, shapes=[shape], notes=[note], yaxis={"range": [0, 1.15 * ideal]},
        hovermode="closest",
    )  # fmt: skip


def shifted_workload(found: ShiftMap) -> go.Figure:
    """Return what the same group carries for other lengths, and where the other side becomes the weaker one."""
    binds = np.where(found.prefill_binds, "prefill", "decode")
    percent = 100 * found.relative
    most = max(200.0, float(np.nanmax(percent, initial=0.0)))
    heat = {
        "type": "heatmap", "x": _names(found.prompt), "y": _names(found.output), "z": percent, "zmin": 0, "zmax": most,
        "colorscale": [[0.0, "#E8955A"], [100 / most, "#f2f2f2"], [1.0, plots.SKY]],
        "colorbar": {"title": {"text": "% of now"}}, "hoverongaps": False,
        "customdata": np.stack([binds, np.round(100 * np.nan_to_num(found.idle)).astype(int).astype(str)], axis=-1),
        "hovertemplate": "prompts × %{x}, outputs × %{y}: %{z:.3~g} % of the goodput now; the weaker side is "
        "%{customdata[0]}, of the other %{customdata[1]} % is idle<extra></extra>",
        "text": np.where(np.isfinite(found.relative), np.where(found.prefill_binds, "P", "D"), "–"),
        "texttemplate": "%{text}", "textfont": {"size": 13, "color": "#10151a"},
    }  # fmt: skip
    return plots.figure(
        [heat], x="Prompt lengths (times those now)", y="Output lengths (times those now)",
        xaxis={"type": "category"}, yaxis={"type": "category"}, hovermode="closest",
    )  # fmt: skip


def _names(factors: np.ndarray) -> list[str]:
    return [f"{factor:g}" for factor in factors]
