"""Result to figures: goodput for each accelerator of every configuration, and which stage sits on which accelerator."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from calculators import plots
from calculators.outputs import short
from calculators.placement.candidates import Candidate
from calculators.placement.cluster import PlacementInputs
from calculators.placement.compute import Chosen, PlacementResult
from calculators.placement.drawing import Seat

COLOURS = {"prefill": (plots.BLUE, plots.SKY), "decode": (plots.ORANGE, "#F5CF7A")}
"""Of every other instance of a side, so that neighbours can be told apart."""

SYMBOLS = {"prefill": "circle", "decode": "diamond"}
NAMES = {"prefill": "Prefill", "decode": "Decode"}

WORDS_UP_TO = 16
"""Accelerators of a node up to which a box has room for words."""

BOX = 0.86
"""Width and height of a box, as a share of its place."""


def goodput_per_gpu(result: PlacementResult) -> go.Figure:
    """Return the goodput for each accelerator of every allowed configuration against the accelerators it takes."""
    allowed = [each for each in result.table if each.allowed]
    most = max((each.gpus for each in allowed), default=1)
    traces = [_cloud(side, [each for each in allowed if each.side == side]) for side in NAMES]
    traces += [
        _chosen(side, chosen, most)
        for side, chosen in (("prefill", result.prefill), ("decode", result.decode))
        if chosen
    ]
    values = [each.goodput_per_gpu or 0.0 for each in allowed] or [1.0]
    low, high = min(values), max(values)
    return plots.figure(
        traces,
        x="Accelerators of an instance",
        y="Goodput of each accelerator (requests/s)",
        hovermode="closest",
        xaxis=plots.log_axis(0.8, 1.3 * most),
        yaxis=plots.log_axis(0.6 * low, 2 * high * (high / low) ** 0.1),  # room for a name above the highest,
    )


def _cloud(side: str, candidates: list[Candidate]) -> plots.Trace:
    return plots.scatter(
        x=[each.gpus for each in candidates],
        y=[each.goodput_per_gpu for each in candidates],
        text=[each.name for each in candidates],
        name=NAMES[side],
        mode="markers",
        marker={"size": 8, "color": COLOURS[side][0], "symbol": SYMBOLS[side], "opacity": 0.75},
        hovertemplate=f"{NAMES[side]} %{{text}}: %{{y:.4~g}} requests/s of each<extra></extra>",
    )


def _chosen(side: str, chosen: Chosen, most: int) -> plots.Trace:
    name = f"TP {chosen.tp} PP {chosen.pp}"
    return plots.scatter(
        x=[chosen.gpus],
        y=[chosen.goodput_per_gpu],
        text=[name],
        name=f"{NAMES[side]}, chosen",
        mode="markers+text",
        textposition="top right" if chosen.gpus**2 <= most else "top left",  # never beyond the plot
        textfont={"size": 14},
        marker={
            "size": 16,
            "color": COLOURS[side][0],
            "symbol": SYMBOLS[side],
            "line": {"color": plots.RED, "width": 3},
        },
        hovertemplate=f"{NAMES[side]} {name}: {short(chosen.goodput_per_gpu)} requests/s of each<extra></extra>",
        showlegend=False,
    )


def seats(inputs: PlacementInputs, result: PlacementResult) -> go.Figure:
    """Return the nodes as rows of boxes: side, instance and stage of each accelerator.

    Boxes are bars, which are as wide as the screen lets them be; markers would overlap on a narrow one.
    """
    taken = result.layout.seats
    rows = max([inputs.nodes if inputs.nodes <= 64 else 1, *(seat.node for seat in taken)])
    traces = [_free(inputs, rows, taken)]
    for side, colours in COLOURS.items():
        for parity, colour in enumerate(colours):
            these = [seat for seat in taken if seat.side == side and seat.instance % 2 != parity]
            if these:
                traces.append(_boxes(side, these, colour, legend=parity == 0))
    shapes: list[Any] = []
    notes: list[Any] = []
    if rows > inputs.nodes:
        shapes.append(
            {"type": "rect", "xref": "paper", "x0": 0, "x1": 1, "y0": inputs.nodes + 0.5, "y1": rows + 0.5,
             "fillcolor": plots.FORBIDDEN, "line": {"width": 0}, "layer": "below"}
        )  # fmt: skip
        notes.append(
            {"xref": "paper", "x": 1, "y": (inputs.nodes + rows + 1) / 2, "text": "not in the cluster", "showarrow": False,
             "xanchor": "left", "textangle": -90, "font": {"color": plots.RED}}
        )  # fmt: skip
    return plots.figure(
        traces,
        x="Accelerator in the node",
        y="Node",
        shapes=shapes,
        notes=notes,
        height=160 + (44 if inputs.node_gpus <= WORDS_UP_TO else 20) * rows,
        hovermode="closest",
        barmode="overlay",
        uniformtext={"minsize": 9, "mode": "hide"},
        margin=plots.TEMPLATE["layout"]["margin"] | {"r": 36},
        xaxis={
            "range": [0.4, inputs.node_gpus + 0.6],
            "dtick": max(1, inputs.node_gpus // 8),
            "showgrid": False,
            "ticks": "",
        },
        yaxis={"range": [rows + 0.6, 0.4], "dtick": max(1, rows // 16), "showgrid": False, "ticks": ""},
    )


def _free(inputs: PlacementInputs, rows: int, taken: tuple[Seat, ...]) -> plots.Trace:
    used = {(seat.node, seat.place) for seat in taken}
    free = [
        (node, place)
        for node in range(1, rows + 1)
        for place in range(1, inputs.node_gpus + 1)
        if (node, place) not in used
    ]
    return _row_of_boxes(
        free,
        name="Free",
        marker={"color": "rgba(0, 0, 0, 0)", "line": {"width": 1, "color": plots.GREY}},
        hovertemplate="node %{y}, accelerator %{customdata[0]}: free<extra></extra>",
        customdata=[[place] for _, place in free],
    )


def _boxes(side: str, these: list[Seat], colour: str, *, legend: bool) -> plots.Trace:
    letter = side[0].upper()
    return _row_of_boxes(
        [(seat.node, seat.place) for seat in these],
        name=NAMES[side],
        marker={"color": colour, "line": {"width": 0}},
        hovertemplate=(
            f"node %{{y}}, accelerator %{{customdata[0]}}: {side} instance %{{customdata[1]}}, "
            "stage %{customdata[2]}<extra></extra>"
        ),
        customdata=[[seat.place, seat.instance, seat.stage] for seat in these],
        text=[f"{letter}{seat.instance}.{seat.stage}" for seat in these],
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        insidetextfont={"size": 13, "color": "#10151a" if colour != plots.BLUE else "white"},
        legendgroup=side,
        showlegend=legend,
    )


def _row_of_boxes(places: list[tuple[int, int]], **properties: Any) -> plots.Trace:
    return plots.bar(
        orientation="h",
        base=[place - BOX / 2 for _, place in places],
        x=[BOX] * len(places),
        y=[node for node, _ in places],
        width=BOX,
        **properties,
    )
