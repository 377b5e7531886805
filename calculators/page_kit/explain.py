"""What makes an answer checkable, drawn: formulas with the numbers put in, data, sources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

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


def data_table(columns: Mapping[str, Sequence[Any]], key: str) -> None:
    """Draw columns of equal length as a table that can be sorted, searched and saved."""
    six_digits = st.column_config.NumberColumn(format="%.6g")
    formats = {
        title: six_digits for title, values in columns.items() if any(isinstance(value, float) for value in values)
    }
    st.dataframe(dict(columns), key=f"table-{key}", hide_index=True, column_config=formats, placeholder="–")


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
