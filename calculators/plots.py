"""How every figure looks: one template, one palette, axes with units, on the screen and in a report.

Figures are built from plain dictionaries and not validated on the way, since that takes most of the time of a page; a
test validates each kind of figure instead. No figure holds text from a user, and none holds TeX, which would need
the network.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go
from numpy.typing import ArrayLike

Trace = dict[str, Any]

BLUE, ORANGE, GREEN, RED, PURPLE, SKY, GREY = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#7A828C",
)  # fmt: skip
"""Colours that colour-blind people can tell apart (Okabe and Ito, "Color Universal Design", 2008), and a grey."""

TARGET = "#b0508c"
"""A darker purple, so that the name of a target can be read on white and on black."""

SERIES = {"mean": GREY, "p50": SKY, "p90": BLUE, "p95": GREEN, "p99": ORANGE, "p999": RED}
"""The colour of each statistic, the same in every figure."""

FORBIDDEN = "rgba(213, 94, 0, 0.10)"
"""The fill of a region where there is no answer."""

CONFIG: dict[str, Any] = {
    "displaylogo": False,
    "showSendToCloud": False,
    "modeBarButtonsToRemove": ["lasso2d", "select2d", "autoScale2d", "sendChartToCloud"],
    "toImageButtonOptions": {"format": "svg"},
}
"""Plotly's tool bar, on the page and in exported HTML: no logo, no button that uploads the figure."""

TEMPLATE: dict[str, Any] = {
    "layout": {
        "font": {
            "family": "Source Sans, Source Sans Pro, Helvetica, Arial, sans-serif",
            "size": 15,
            "color": "#24292f",
        },
        "colorway": [BLUE, ORANGE, GREEN, RED, PURPLE, SKY, GREY],
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "hovermode": "x unified",
        "margin": {"l": 70, "r": 24, "t": 56, "b": 60},
        "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.02, "xanchor": "left", "x": 0},
        "xaxis": {
            "gridcolor": "#e6e8eb",
            "zeroline": False,
            "linecolor": "#c3c8ce",
            "ticks": "outside",
            "tickcolor": "#c3c8ce",
        },
        "yaxis": {
            "gridcolor": "#e6e8eb",
            "zeroline": False,
            "linecolor": "#c3c8ce",
            "ticks": "outside",
            "tickcolor": "#c3c8ce",
        },
    }
}
"""The look of a figure in a report: light, without a frame. On a page, Streamlit's theme replaces its colours."""


def figure(
    traces: Sequence[Any],
    *,
    x: str,
    y: str,
    shapes: Sequence[Any] = (),
    notes: Sequence[Any] = (),
    **layout: Any,
) -> go.Figure:
    """Return a figure with the project's look.

    Parameters
    ----------
    traces
        Plotly traces.
    x, y
        Axis titles, with their units.
    shapes, notes
        Layout shapes and annotations.
    **layout
        Further layout properties; ``xaxis`` and ``yaxis`` are merged with the titles.
    """
    # Streamlit's theme makes the fonts small where the figure itself does not say.
    axes = {
        "xaxis": {"title": {"text": x, "font": {"size": 15}}, "tickfont": {"size": 13}, "hoverformat": ".4~g"},
        "yaxis": {"title": {"text": y, "font": {"size": 15}}, "tickfont": {"size": 13}},
    }
    for name, axis in axes.items():
        axis |= layout.pop(name, {})
    whole = {"template": TEMPLATE, "height": 440, "shapes": list(shapes), "annotations": list(notes)} | axes | layout
    return go.Figure({"data": list(traces), "layout": whole}, _validate=False)


def scatter(**properties: Any) -> Trace:
    """Return a trace of points or lines."""
    return {"type": "scatter"} | properties


def bar(**properties: Any) -> Trace:
    """Return a trace of bars."""
    return {"type": "bar"} | properties


def contour(**properties: Any) -> Trace:
    """Return a trace of lines of equal height."""
    return {"type": "contour"} | properties


def captioned(original: go.Figure, title: str, caption: str) -> go.Figure:
    """Return a copy of a figure that says by itself what it shows and for which scenario: for a report."""
    heading = {
        "text": title,
        "subtitle": {"text": caption},
        "x": 0,
        "xref": "paper",
        "xanchor": "left",
        "font": {"size": 18},
    }
    return go.Figure(original).update_layout(title=heading, margin_t=126)


def line(
    x: ArrayLike,
    y: ArrayLike,
    name: str,
    colour: str,
    *,
    unit: str,
    dash: str = "solid",
    width: float = 2.5,
    **more: Any,
) -> Trace:
    """Return a curve whose hover text is its name and its value with the unit."""
    hover = f"%{{y:.4~g}} {unit}"
    style = {"color": colour, "dash": dash, "width": width}
    return scatter(x=x, y=y, name=name, mode="lines", line=style, hovertemplate=hover, **more)


def point(x: float, y: float, name: str, colour: str, hover: str) -> Trace:
    """Return the marker of the user's own point."""
    marker = {"size": 15, "color": colour, "line": {"color": "white", "width": 2.5}, "symbol": "circle"}
    return scatter(x=[x], y=[y], name=name, mode="markers", marker=marker, hovertemplate=hover + "<extra></extra>")


def log_axis(bottom: float, top: float) -> dict[str, Any]:
    """Return a logarithmic axis from ``bottom`` to ``top`` whose ticks are numbers that people say: 1, 2, 5, 10."""
    decades = range(math.floor(math.log10(bottom)), math.ceil(math.log10(top)) + 1)
    steps = (1, 2, 5) if top < 2000 * bottom else (1,)
    ticks = [value for decade in decades for step in steps if bottom <= (value := step * 10.0**decade) <= top]
    span = [math.log10(bottom), math.log10(top)]
    return {"type": "log", "range": span, "tickvals": ticks, "ticktext": [f"{tick:,.10g}" for tick in ticks]}


def on_log_axis(note: dict[str, Any]) -> None:
    """Move a note whose height is given in data to a logarithmic axis, where Plotly counts in powers of ten."""
    if note.get("yref") != "paper":
        note["y"] = math.log10(note["y"])


def level(y: float, text: str, colour: str = TARGET, *, side: str = "left") -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a horizontal line across the plot and its label at one side: a target."""
    shape = {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": y,
        "y1": y,
        "line": {"color": colour, "width": 2, "dash": "dash"},
    }
    return shape, {
        "xref": "paper",
        "x": 0.01 if side == "left" else 0.99,
        "y": y,
        "text": text,
        "showarrow": False,
        "xanchor": side,
        "yanchor": "bottom",
        "font": {"color": colour},
    }


def upright(
    x: float, text: str, colour: str = GREY, *, side: str = "left", height: float = 0.98
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a vertical line through the plot and its label near the top, on one side of it."""
    shape = {
        "type": "line",
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "x0": x,
        "x1": x,
        "line": {"color": colour, "width": 1.5, "dash": "dot"},
    }
    anchor = "right" if side == "left" else "left"
    shift = -5 if side == "left" else 5
    return shape, {
        "yref": "paper",
        "y": height,
        "x": x,
        "text": text,
        "showarrow": False,
        "xanchor": anchor,
        "xshift": shift,
        "yanchor": "top",
        "font": {"color": colour},
    }


def corner(text: str, colour: str, where: str) -> dict[str, Any]:
    """Return a name for a region, in a corner of the plot: ``top left``, ``bottom right``."""
    y_anchor, x_anchor = where.split()
    x, y = {"left": 0.02, "right": 0.98}[x_anchor], {"bottom": 0.03, "top": 0.97}[y_anchor]
    place = {"xref": "paper", "yref": "paper", "x": x, "y": y, "xanchor": x_anchor, "yanchor": y_anchor}
    return {"text": text, "showarrow": False, "font": {"size": 16, "color": colour}} | place


def forbidden_beyond(x0: float, x1: float, text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the shading of a region to the right where there is no answer, and its label."""
    shape = {
        "type": "rect",
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "x0": x0,
        "x1": x1,
        "fillcolor": FORBIDDEN,
        "line": {"width": 0},
        "layer": "below",
    }
    return shape, {
        "yref": "paper",
        "y": 0.25,
        "x": (x0 + x1) / 2,
        "text": text,
        "showarrow": False,
        "textangle": -90,
        "font": {"color": RED},
    }
