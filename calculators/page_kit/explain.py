"""What makes an answer checkable, drawn: formulas with the numbers put in, data, sources."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd  # noqa: F401 - else the first table does it, while Plotly in another session finds half of it
import pyarrow as pa
import streamlit as st

from calculators.facts import Fact, ShownFormula
from formulas.closed_form import ClosedForm


def formulas(shown: Sequence[ShownFormula]) -> None:
    """Draw each formula, the same with its numbers put in, its symbols, its source and its derivation."""
    if not shown:
        st.caption("Typed in, or outside the domain: there is no formula to show.")
    seen: Counter[str] = Counter()
    for each in shown:
        seen[each.form.name] += 1
        with st.container(border=True):
            _formula(each, seen[each.form.name])


def _formula(shown: ShownFormula, time: int) -> None:
    form = shown.form
    st.markdown(f"**{form.name[0].upper()}{form.name[1:]}**")
    values: dict[str, Any] = dict(shown.values)
    broken = form.violations(**values)
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        st.latex(form.latex(), width="content")
        if not broken:
            st.latex(form.substituted(**values), width="content")
    if broken and not shown.remark:
        st.markdown(" ".join(broken))
    if shown.remark:
        st.markdown(shown.remark)
    st.caption(_legend(form))
    if form.derivation:
        again = f", {time}" if time > 1 else ""  # the same formula may stand there twice, with other numbers
        derivation = st.expander("Derivation", key=f"derivation of the {form.name}{again}", on_change="rerun")
        if derivation.open:
            with derivation:
                for step in form.steps:
                    st.markdown(step.text)
                    st.latex(form.draw(step.equation))


def _legend(form: ClosedForm) -> str:
    symbols = "; ".join(
        f"${each.latex}$ {each.description}" + (f" ({each.unit})" if each.unit else "")
        for each in (form.result, *form.arguments)
    )
    return f"{symbols}. Source: {form.source}."


TABLE_WIDTH = 950
"""Pixels that a table has in a window of 1400."""

WHOLE_ROWS = 16
"""Rows up to which a table is as high as they are; longer ones are scrolled."""

_CHARACTER, _PADDING = 5.7, 18.0  # pixels: of a character, and beside a cell's text
_WIDEST, _NARROWEST = 480, 150  # pixels of a column of text: beyond, Streamlit cuts it; below, every word is a line
_NARROWEST_OF_MANY = 340  # in a table of many rows, of which one line each shows more
_LINE, _ABOVE, _WRAPPED = 19, 14, 62  # pixels: of a line of text, around it, and of the lowest row that Streamlit wraps

_SHORT_UNITS = {"(requests/s)": "(/s)"}


def data_table(columns: Mapping[str, Sequence[Any]], key: str, digits: int = 4) -> None:
    """Draw columns of equal length as a table that can be sorted, searched and saved.

    Figures are shown with so many significant digits, whole ones with all of theirs; what is copied or saved has the
    full precision. Titles and figures are never cut: where a table is too wide, units are written short (whole on
    hovering), then long texts go over several lines, and what is still too wide is scrolled.
    """
    worded = {title: [_worded(value) for value in values] for title, values in columns.items()}
    layout = _layout(worded, digits)
    config = {
        title: _column(title, values, digits, head, width)
        for (title, values), head, width in zip(worded.items(), layout.heads, layout.widths, strict=True)
    }
    # Arrow is what the browser gets; by way of pandas it takes ten times as long.
    table = pa.table({title: _array(values) for title, values in worded.items()})
    rows = max(map(len, worded.values()), default=0)
    st.dataframe(
        table,
        key=f"table-{key}",
        hide_index=True,
        column_config=config,
        placeholder="–",
        row_height=layout.row_height,
        height="content" if rows <= WHOLE_ROWS else "auto",
    )


def _array(values: Sequence[Any]) -> pa.Array:
    """Return a column, NaN as a gap in it; one of several kinds of value as text."""
    try:
        return pa.array(values, from_pandas=True)
    except pa.ArrowException:
        return pa.array([None if value is None else str(value) for value in values])


def _worded(value: Any) -> Any:
    return "; ".join(map(str, value)) if isinstance(value, tuple | list) else value


def _column(title: str, values: Sequence[Any], digits: int, head: str, width: int | None) -> Any:
    floats = [value for value in values if isinstance(value, float)]
    explained = title if head != title else None
    if not floats:
        return st.column_config.Column(head, width=width, help=explained)
    return st.column_config.NumberColumn(head, format=_shown(floats, digits), width=width, help=explained)


def _shown(figures: Sequence[float | None], digits: int) -> str:
    whole = all(figure is None or figure.is_integer() for figure in figures)
    return "%.15g" if whole else f"%.{digits}g"


@dataclass(frozen=True)
class Layout:
    """What stands above each column, its width [pixels] where it is not what it holds, and the height of a row."""

    heads: list[str]
    widths: list[int | None]
    row_height: int | None


def _layout(columns: Mapping[str, Sequence[Any]], digits: int) -> Layout:
    heads = list(columns)
    sizes = [[_pixels(_text(value, digits)) for value in values] for values in columns.values()]
    cells = [max(each, default=0.0) for each in sizes]
    texts = [any(isinstance(value, str) for value in values) for values in columns.values()]
    if sum(map(max, map(_pixels, heads), cells)) > TABLE_WIDTH:
        heads = [_short(head) for head in heads]
    natural = [max(_pixels(head), cell) for head, cell in zip(heads, cells, strict=True)]
    narrowest = _NARROWEST if max(map(len, sizes), default=0) <= WHOLE_ROWS else _NARROWEST_OF_MANY
    least = [
        max(_pixels(head), min(width, narrowest)) if text else width
        for head, text, width in zip(heads, texts, natural, strict=True)
    ]
    widest = float(_WIDEST) if sum(natural) > TABLE_WIDTH else max(natural, default=0.0)
    while widest > narrowest and sum(_given(natural, least, widest)) > TABLE_WIDTH:  # the longest texts give way first
        widest -= 2
    given = _given(natural, least, widest)
    lines = max((_lines(cell, width) for cell, width in zip(cells, given, strict=True)), default=1)
    # The browser measures the first ten cells of a column, and leaves out those that are far longer than the others.
    trusted = [
        not text or min(each, default=0.0) > cell / 2 for each, text, cell in zip(sizes, texts, cells, strict=True)
    ]
    widths = [
        None if trust and width == all_of_it else int(width)
        for trust, width, all_of_it in zip(trusted, given, natural, strict=True)
    ]
    return Layout(heads, widths, max(_WRAPPED, _ABOVE + _LINE * lines) if lines > 1 else None)


def _given(natural: Sequence[float], least: Sequence[float], widest: float) -> list[float]:
    return [min(width, max(low, widest)) for width, low in zip(natural, least, strict=True)]


def _lines(cell: float, width: float) -> int:
    """Return the lines that a text takes: its words do not fill them to the end."""
    return 1 if cell <= width else math.ceil(1.15 * (cell - _PADDING) / (width - _PADDING))


def _short(title: str) -> str:
    for unit, short in _SHORT_UNITS.items():
        title = title.replace(unit, short)
    return title


def _pixels(text: str) -> float:
    return _CHARACTER * len(text) + _PADDING


def _text(value: Any, digits: int) -> str:
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def show_sources(facts: Iterable[Fact]) -> None:
    """Draw each fact with its confidence, its sources and its remarks."""
    for fact in facts:
        with st.container(border=True):
            st.markdown(f"**{fact.what}** · {fact.confidence}")
            for name, value in fact.figures.items():
                st.text(f"{name}: {value}")
            st.caption("Read in")
            for line in (*fact.sources, *fact.remarks):
                st.text(line)
