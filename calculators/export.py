"""Figures and tables as files: HTML and CSV from Python alone, PDF where a Chrome is found.

PNG and SVG are drawn by the reader's own browser from the same figure (:func:`preview_html`), so they need nothing
on the server.
"""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import plotly.graph_objects as go
import plotly.io

from calculators.plots import CONFIG

SIZE = {"width": 1000, "height": 560}
"""Pixels of an exported picture; PNG is drawn at twice the density."""

PNG_SCALE = 2

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
"""Programs that can draw a PDF, by the names under which they are installed."""


def to_csv(columns: Mapping[str, Sequence[Any]]) -> bytes:
    """Return columns of equal length as a CSV file with a header row.

    Raises
    ------
    ValueError
        If the columns differ in length.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows(zip(*map(_plain, columns.values()), strict=True))
    return text.getvalue().encode()


def _plain(column: Iterable[Any]) -> list[Any]:
    """Return NumPy's numbers as Python's, which are written with all their digits and no type name."""
    return list(getattr(column, "tolist", lambda: column)())


def to_html(figure: go.Figure) -> bytes:
    """Return a page that holds the figure and everything it needs to be shown, offline too."""
    return str(plotly.io.to_html(figure, config=CONFIG, include_plotlyjs=True)).encode()


def preview_html(figure: go.Figure, name: str) -> str:
    """Return a page that shows the figure as it goes into a report, with buttons that save it as PNG and as SVG.

    The reader's browser draws the files. ``name`` is the files' name without its ending.
    """
    graph = plotly.io.to_html(
        figure,
        config=CONFIG | {"responsive": True},
        include_plotlyjs=True,
        full_html=False,
        div_id="figure",
    )
    options = json.dumps({"png": _picture("png", name), "svg": _picture("svg", name)})
    return _PREVIEW.replace("{graph}", graph).replace("{options}", options)


def _picture(kind: str, name: str) -> dict[str, Any]:
    return {"format": kind, "filename": name, "scale": PNG_SCALE if kind == "png" else 1, **SIZE}


_PREVIEW = """<!doctype html><html lang="en"><head><meta charset="utf-8"><style>
body { margin: 0; background: white; font: 15px "Source Sans", "Source Sans Pro", Helvetica, Arial, sans-serif; }
button { font: inherit; padding: 6px 16px; margin: 0 8px 8px 0; border: 1px solid #8c959f; border-radius: 6px;
  background: white; color: #24292f; cursor: pointer; }
button:hover { border-color: #0072b2; color: #0072b2; }
</style></head><body>
<div><button data-format="png">Save PNG</button><button data-format="svg">Save SVG</button></div>
{graph}
<script>
const options = {options};
for (const button of document.querySelectorAll("button[data-format]"))
  button.addEventListener("click", () => Plotly.downloadImage("figure", options[button.dataset.format]));
</script></body></html>"""


@cache
def pdf_obstacle() -> str:
    """Return why this server cannot write PDF, as a sentence, or an empty string if it can."""
    if not (os.environ.get("BROWSER_PATH") or any(map(shutil.which, BROWSERS))):
        return "PDF needs a Chrome or Chromium on the server, and none was found."
    return ""


def to_pdf(figure: go.Figure) -> bytes:
    """Return the figure as a PDF file with vector graphics.

    Raises
    ------
    RuntimeError
        If no Chrome is found, or it does not start.
    """
    # The print engine cuts a few pixels off the bottom of the page; a wider margin keeps the axis title clear of it.
    roomy = go.Figure(figure).update_layout(margin_b=84)
    return bytes(roomy.to_image(format="pdf", **SIZE))
