"""The widget of each declared input, bound to the URL parameter of the same name."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

import streamlit as st

from calculators.inputs import Choice, Input, Integer, Number, Text, Value, declared, defaults, linked
from calculators.scenario import GROUPS, Scenario

_PAGE = "page drawn last"
_LOST = "inputs of a page that Back lost"

COLLAPSED = ("Link between the pools", "Assumptions", "Simulation", "Measured acceptance", "Bursts and convoys")
"""Groups that most people leave as they are."""


def draw(declaration: Input) -> None:
    """Draw the widget of one input.

    Its key is the input's name, and so is the URL parameter, which follows every change.
    """
    label = f"{declaration.label} ({declaration.unit})" if declaration.unit else declaration.label
    match declaration:
        case Integer():
            _draw_integer(declaration, label)
        case Number():
            _draw_number(declaration, label)
        case Choice():
            _draw_choice(declaration, label)
        case Text():
            _draw_text(declaration, label)
        case _:
            raise TypeError(f"no widget for {type(declaration).__name__}")


def _draw_number(declaration: Number, label: str) -> None:
    st.number_input(
        label,
        declaration.low,
        declaration.high,
        cast("float | None", declaration.default),
        declaration.step,
        format="%g",
        key=declaration.name,
        help=declaration.help,
        placeholder=declaration.empty or None,
        bind="query-params",
    )


def _draw_integer(declaration: Integer, label: str) -> None:
    st.number_input(
        label,
        int(declaration.low),
        int(declaration.high),
        cast("int | None", declaration.default),
        int(declaration.step),
        key=declaration.name,
        help=declaration.help,
        placeholder=declaration.empty or None,
        bind="query-params",
    )


def _draw_text(declaration: Text, label: str) -> None:
    st.text_input(
        label,
        str(declaration.default),
        max_chars=declaration.longest,
        key=declaration.name,
        help=declaration.help,
        bind="query-params",
    )


def _draw_choice(declaration: Choice, label: str) -> None:
    default = declaration.default
    st.selectbox(
        label,
        declaration.options,
        None if default is None else declaration.options.index(str(default)),
        key=declaration.name,
        help=declaration.help,
        placeholder=declaration.empty or "choose",
        bind="query-params",
    )


def draw_scenario(page: str, inputs: type) -> None:
    """Draw the shared inputs that a page uses in the sidebar, group by group, and keep the others.

    Parameters
    ----------
    page
        Name of the page that is drawn. When it is another one than before, every value is sent to the browser again:
        who leaves a page before it was drawn has not seen the values that a link brought.
    inputs
        The dataclass of the page's inputs.
    """
    changed = st.session_state.get(_PAGE) != page
    st.session_state[_PAGE] = page
    used = declared(inputs)
    for name, declaration in declared(Scenario).items():
        if name not in used or changed:
            # An input that is not drawn would be forgotten, were it not written down again.
            st.session_state[name] = st.session_state.get(name, declaration.default)
    with st.sidebar:
        for heading, group in GROUPS:
            drawn = [declaration for name, declaration in declared(group).items() if name in used]
            if drawn:
                with st.expander(heading, expanded=heading not in COLLAPSED):
                    for declaration in drawn:
                        draw(declaration)


def draw_own(
    inputs: type, where: Literal["sidebar", "page"], row: Sequence[str] = (), groups: Sequence[tuple[str, type]] = ()
) -> None:
    """Draw the inputs that only this page has: below the shared ones in the sidebar, or in a row on the page.

    Of those in the sidebar, the ones named in ``row`` stand on the page instead, and those of the dataclasses in
    ``groups`` under a heading of their own.
    """
    own = [each for name, each in linked(inputs).items() if name not in declared(Scenario)]
    restored = st.session_state.pop(_LOST, {})
    st.session_state.update(restored)
    before = {each.name: st.session_state[each.name] for each in own if each.name in st.session_state}
    _draw_own(own, where, row, groups)
    # A page that is left writes a step without its own inputs into the browser's history. Where Back comes to that step,
    # Streamlit takes what is not in the URL for a default, whatever the session has: draw again with what it had.
    lost = {
        name: value
        for name, value in before.items()
        if st.session_state[name] != value and name not in st.query_params and name not in restored
    }
    if lost:
        st.session_state[_LOST] = lost
        st.rerun()


def _draw_own(
    own: list[Input], where: Literal["sidebar", "page"], row: Sequence[str], groups: Sequence[tuple[str, type]]
) -> None:
    if row:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            for pair in zip(row[::2], (*row[1::2], None), strict=False):  # on a narrow screen, two side by side
                with st.container(horizontal=True, vertical_alignment="bottom"):
                    for declaration in (each for each in own if each.name in pair):
                        draw(declaration)
        own = [each for each in own if each.name not in row]
    for heading, group in groups:
        grouped = [each for each in own if each.name in declared(group)]
        own = [each for each in own if each not in grouped]
        with st.sidebar, st.expander(heading, expanded=heading not in COLLAPSED):
            for declaration in grouped:
                draw(declaration)
    if not own:
        return
    if where == "sidebar":
        with st.sidebar, st.expander("This page", expanded=False):
            for declaration in own:
                draw(declaration)
    else:
        for column, declaration in zip(st.columns(len(own), vertical_alignment="bottom"), own, strict=True):
            with column:
                draw(declaration)


def current_values(inputs: type) -> dict[str, Value]:
    """Return the value of each input of ``inputs`` that its widget has now; a file has none."""
    return {name: st.session_state[name] for name in linked(inputs)}


def reset(inputs: type) -> None:
    """Set the shared inputs and those of ``inputs`` back to their defaults."""
    st.session_state.update(defaults(Scenario) | defaults(inputs))


def rate_handle(capacity: float) -> None:
    """Draw a slider below a plot that moves the arrival rate of the sidebar.

    The sidebar's number is the one truth. The slider starts from it, and is a new one whenever the number was changed
    elsewhere: a slider that were written to on each run would send its former place back with the next click, and
    take the number with it.

    Parameters
    ----------
    capacity
        Rate [requests/s] at which the instance is saturated: the slider reaches a tenth beyond, or to the rate at hand.
    """
    rate = float(st.session_state["rate"])
    handle = st.session_state.setdefault(_HANDLE, _Handle())
    if handle.rate != rate:
        handle.version += 1
        handle.rate = rate
        handle.drawn_at.append(rate)
    declaration = declared(Scenario)["rate"]
    assert isinstance(declaration, Number)  # noqa: S101 - the declaration is a few files away; for the type checker
    top = max(1.1 * capacity, rate)
    low, high = max(declaration.low, top / 1000), min(declaration.high, top)
    if low >= high:
        return
    key = f"rate_handle {handle.version}"
    st.slider(
        f"{declaration.label} ({declaration.unit})",
        low,
        high,
        min(max(rate, low), high),
        step=(high - low) / 400,
        format="%.4g",
        key=key,
        on_change=_follow_handle,
        args=(key,),
    )


@dataclass
class _Handle:
    """What is known of the slider in one session: its version, the rate it stands for, the rates it was drawn at."""

    version: int = 0
    rate: float | None = None
    drawn_at: deque[float] = field(default_factory=lambda: deque(maxlen=100))


_HANDLE = "handle of the rate"


def _follow_handle(key: str) -> None:
    handle, moved_to = st.session_state[_HANDLE], st.session_state[key]
    if moved_to in handle.drawn_at:
        # Under quick clicks the browser sends an earlier slider's place under the name of a later one. That is nobody's
        # hand: a hand stops at a step of the slider, and no slider is drawn exactly there. Draw another one.
        handle.rate = None
        return
    # Four significant digits are what the slider shows; a link with them is one that a person can read.
    st.session_state["rate"] = handle.rate = float(f"{moved_to:.4g}")


def known_inputs(inputs: type) -> Mapping[str, Input]:
    """Return every input that a link to a page can set: the shared ones and the page's own."""
    return {**linked(Scenario), **linked(inputs)}
