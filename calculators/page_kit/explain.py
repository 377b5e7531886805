"""What makes an answer checkable, drawn: formulas with the numbers put in, data, sources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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
    with st.container(horizontal=True, gap="large", vertical_alignment="center"):
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

_CHARACTER, _PADDING, _NARROWEST, _WIDEST = 6.0, 18.0, 80.0, 300.0  # pixels: of a character, beside it, and of a column


def data_table(columns: Mapping[str, Sequence[Any]], key: str, digits: int = 4) -> None:
    """Draw columns of equal length as a table that can be sorted, searched and saved.

    Figures are shown with so many significant digits, whole ones with all of theirs; what is copied or saved has the
    full precision. Where long titles would push the last columns out of sight, they are cut, and whole on hovering.
    """
    config = {
        title: _column(title, values, digits, width)
        for (title, values), width in zip(columns.items(), _widths(columns, digits), strict=True)
    }
    # Arrow is what the browser gets; by way of pandas it takes ten times as long.
    table = pa.table({title: _array(values) for title, values in columns.items()})
    st.dataframe(table, key=f"table-{key}", hide_index=True, column_config=config, placeholder="–")


def _array(values: Sequence[Any]) -> pa.Array:
    """Return a column, NaN as a gap in it; one of several kinds of value as text."""
    try:
        return pa.array(values, from_pandas=True)
    except pa.ArrowException:
        return pa.array([None if value is None else str(value) for value in values])


def _column(title: str, values: Sequence[Any], digits: int, width: int | None) -> Any:
    floats = [value for value in values if isinstance(value, float)]
    if not floats:
        return st.column_config.Column(width=width, help=title if width else None)
    shown = _shown(floats, digits)
    return st.column_config.NumberColumn(format=shown, width=width, help=title if width else None)


def _shown(figures: Sequence[float | None], digits: int) -> str:
    whole = all(figure is None or figure.is_integer() for figure in figures)
    return "%.15g" if whole else f"%.{digits}g"


def _widths(columns: Mapping[str, Sequence[Any]], digits: int) -> list[int | None]:
    """Return the width of each column [pixels], or ``None`` for each where all fit by themselves."""
    titles = [_pixels(len(title)) for title in columns]
    cells = [
        min(_WIDEST, max((_pixels(len(_text(value, digits))) for value in values), default=0.0))
        for values in columns.values()
    ]
    if sum(map(max, titles, cells)) <= TABLE_WIDTH:
        return [None] * len(titles)
    longest = max(titles)
    while True:  # the longest titles give way first
        widths = [int(max(min(title, longest), cell)) for title, cell in zip(titles, cells, strict=True)]
        if sum(widths) <= TABLE_WIDTH or longest <= _NARROWEST:
            return [*widths]
        longest -= 1


def _pixels(characters: int) -> float:
    return _CHARACTER * characters + _PADDING


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
