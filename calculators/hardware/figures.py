"""The rooflines of accelerators, the scenario's own in front."""

from __future__ import annotations

import plotly.graph_objects as go

from calculators import plots
from calculators.hardware.tables import Roofline


def roofline_plot(lines: list[Roofline], own: str, dtype: str) -> go.Figure:
    """Return rate against arithmetic intensity for each accelerator, ``own`` drawn strongly with its ridge marked."""
    traces = []
    for each in sorted(lines, key=lambda one: one.id == own):
        mine = each.id == own
        style = {"color": plots.RED if mine else plots.GREY, "width": 3.5 if mine else 1.2}
        traces.append(
            plots.scatter(
                x=each.intensity,
                y=each.tflops,
                mode="lines",
                name=each.name,
                line=style,
                opacity=1 if mine else 0.55,
                showlegend=mine,
                hovertemplate=f"{each.name}: %{{y:.4~g}} TFLOP/s at %{{x:.4~g}} FLOP/byte<extra></extra>",
            )
        )
        if mine:
            hover = f"ridge of {each.name}: {each.ridge:.4g} FLOP/byte"
            traces.append(
                plots.point(each.ridge, float(each.tflops.max()), f"Ridge at {each.ridge:.0f}", plots.RED, hover)
            )
    return plots.figure(
        traces,
        x="Arithmetic intensity (FLOP/byte)",
        y=f"Dense {dtype.upper()} rate (TFLOP/s)",
        xaxis={"type": "log", "dtick": 1},
        yaxis={"type": "log", "dtick": 1},
        hovermode="closest",
    )
