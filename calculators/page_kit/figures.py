"""A figure on a page, and the window that saves it as PNG, SVG, PDF, HTML or CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from calculators import export
from calculators.plots import CONFIG, captioned


def show_figure(
    figure: go.Figure, name: str, *, alt: str, table: Mapping[str, Sequence[Any]], caption: str = ""
) -> None:
    """Draw a figure with its export button.

    Parameters
    ----------
    figure
        The figure.
    name
        What its files are called, without ending; also the key of its elements.
    alt
        What the figure shows, for those who cannot see it; the title of an exported figure.
    table
        The figure's data, by column title with unit.
    caption
        For which scenario, in plain text; it stands under the title of an exported figure.
    """
    picture = CONFIG | {"toImageButtonOptions": {"format": "svg", "filename": name}}
    st.plotly_chart(figure, key=f"figure-{name}", config=picture, alt=alt)
    with st.container(horizontal=True, horizontal_alignment="right"):
        if st.button("Export", key=f"export-{name}", icon=":material/download:", type="tertiary"):
            _export_window(captioned(figure, alt, caption), name, table)


@st.dialog("Export the figure and its data", width="large")
def _export_window(figure: go.Figure, name: str, table: Mapping[str, Sequence[Any]]) -> None:
    st.iframe(export.preview_html(figure, name), height=500)
    with st.container(horizontal=True):
        _download("PDF", "application/pdf", figure, name, export.to_pdf, export.pdf_obstacle())
        _download("HTML", "text/html", figure, name, export.to_html)
        _download("CSV", "text/csv", table, name, export.to_csv)
    if export.pdf_obstacle():
        st.caption(export.pdf_obstacle())


def _download(kind: str, mime: str, content: Any, name: str, write: Any, obstacle: str = "") -> None:
    st.download_button(
        f"Save {kind}",
        lambda: write(content),
        f"{name}.{kind.lower()}",
        mime,
        key=f"save-{kind}-{name}",
        on_click="ignore",
        disabled=bool(obstacle),
        help=obstacle or None,
    )
