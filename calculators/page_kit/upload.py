"""A trace from the reader's machine, kept for the session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from calculators.page_kit.demand import progress
from calculators.traces import Columns, Trace, TraceError, read_trace
from calculators.traces.formats import TimeUnit

_KEPT = "trace of this session"
_UNITS: tuple[TimeUnit, ...] = ("date", "s", "ms", "us", "ns")


@dataclass(frozen=True, eq=False)
class Uploaded:
    """A trace with the name of its file."""

    name: str
    trace: Trace


def uploaded_trace(note: str) -> Uploaded | None:
    """Draw the uploader, and return the trace that was read last in this session, if there is one.

    It stays when the reader goes to another tab or page, where the uploader is not drawn.
    """
    st.markdown(note)
    file = st.file_uploader("Trace file", key="trace file")
    columns = None
    if file is not None:
        columns = _named_columns() if st.checkbox("Name the columns", key="trace columns named") else None
        wanted = (file.file_id, columns)
        if st.session_state.get(_KEPT, (None, None))[0] != wanted:
            st.session_state[_KEPT] = (wanted, _read(file, columns))
    found: Uploaded | str | None = st.session_state.get(_KEPT, (None, None))[1]
    if isinstance(found, str):
        with st.container(border=True, key="trace-refused"):
            st.text(found)
        return None
    if found is not None and file is None:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.text(f"{found.name}, read before in this session")
            st.button("Forget it", key="forget-trace", on_click=_forget)
    return found


def _forget() -> None:
    st.session_state.pop(_KEPT, None)


def _read(file: Any, columns: Columns | None) -> Uploaded | str:
    with progress(f"Reading {file.name} …") as move:
        try:
            return Uploaded(file.name, read_trace(file, columns, progress=move))
        except TraceError as error:
            return str(error)


def _named_columns() -> Columns | None:
    """Draw the names of three columns and the unit of time, and return them once all are there."""
    with st.container(horizontal=True):
        names = [
            st.text_input(label, key=f"trace column {label}", max_chars=80)
            for label in ("Time of arrival", "Input tokens", "Output tokens")
        ]
        unit = st.selectbox("Unit of time", _UNITS, index=None, placeholder="by the first one", key="trace unit")
    time, prompts, outputs = names
    return Columns(time, prompts, outputs, unit) if all(names) else None
