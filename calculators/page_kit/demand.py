"""What takes longer than a page may: computed when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeVar

import streamlit as st

from calculators.inputs import InputError, Value, linked
from calculators.scenario import Scenario
from formulas.closed_form import DomainError

R = TypeVar("R")


def on_demand(label: str, key: str, of: Any, note: str = "") -> bool:
    """Draw a button until it was pressed for exactly `of`, and return whether it was.

    Parameters
    ----------
    label
        What the button says.
    key
        Of the button.
    of
        What is asked for: the inputs, or anything that can be compared with them.
    note
        What it does, and how long that takes.
    """
    state = f"asked for {key}"
    if st.session_state.get(state) == of:
        return True
    if note:
        st.markdown(note)
    if st.button(label, key=f"ask-{key}", icon=":material/play_arrow:"):
        st.session_state[state] = of
        st.rerun()
    return False


def kept(key: str, of: Any, function: Callable[[Callable[[float], None]], R], text: str) -> R:
    """Return what a slow function gave for exactly `of` in this session; call it, with a bar that it moves, if it is new."""
    state = f"result of {key}"
    if st.session_state.get(state, (None, None))[0] != of:
        with progress(text) as move:
            st.session_state[state] = (of, function(move))
    found: R = st.session_state[state][1]
    return found


def stoppable(key: str, of: Any, function: Callable[[Callable[[float], None]], R], text: str) -> R | None:
    """Return what a slow function gives, as :func:`kept` does, with a button beside the bar that stops it.

    ``None`` once it was stopped, until it is asked for again; the page says so. A function that has nothing to compute raises
    DomainError, which is shown. The room of such a page is ``is_stoppable``.
    """
    stopped = f"stopped {key}"
    if st.session_state.get(stopped) == of:
        st.markdown("The simulation was stopped.")
        if not st.button("Start it again", key=f"again-{key}", icon=":material/play_arrow:"):
            return None
        del st.session_state[stopped]
    place = st.empty()
    with place.container(horizontal=True, vertical_alignment="center"):
        if st.session_state.get(f"result of {key}", (None, None))[0] != of:
            # A click makes Streamlit run the page anew, which ends what the bar is moved from.
            st.button("Stop", key=f"stop-{key}", icon=":material/stop:", on_click=_stop, args=(stopped, of))
        try:
            found = kept(key, of, function, text)
        except DomainError as nothing:
            st.markdown(str(nothing))
            return None
    place.empty()
    return found


def _stop(state: str, of: Any) -> None:
    st.session_state[state] = of


def waiting(text: str, *, slow: bool) -> AbstractContextManager[None]:
    """Show that something is computed, where that may be slow; the spinner's own thread takes longer than a formula."""
    return st.spinner(text, show_time=False) if slow else nullcontext()


@contextmanager
def progress(text: str) -> Iterator[Any]:
    """Draw a bar, and yield what moves it: a function of the share that is done."""
    bar = st.progress(0.0, text)
    yield lambda share: bar.progress(min(max(float(share), 0.0), 1.0), text)
    bar.empty()


def take_over(inputs: type, values: dict[str, float | str]) -> None:
    """Set inputs to values, shared ones among them, in a button's callback.

    A number that its input does not allow is brought to the nearest, and each to four digits, so that a link can be read.
    """
    known = {**linked(Scenario), **linked(inputs)}
    for name, value in values.items():
        declaration: Any = known[name]
        if isinstance(value, str):
            st.session_state[name] = declaration.check(value)
            continue
        nearest: Value = min(max(float(f"{value:.4g}"), declaration.low), declaration.high)
        try:
            st.session_state[name] = declaration.check(nearest)
        except InputError:
            st.session_state[name] = declaration.check(round(nearest))  # type: ignore[arg-type]
    st.rerun()
