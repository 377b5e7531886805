"""The widget of each declared input, bound to the URL parameter of the same name."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, cast

import streamlit as st

from calculators.inputs import Choice, Input, Integer, Number, Text, Value, declared, defaults, linked
from calculators.page_kit.alone import is_another, redraw
from calculators.room import Room
from calculators.scenario import GROUPS, Scenario

_LOST = "inputs of a page that Back lost:"

OnChange = Callable[[], None] | Literal["rerun"]

COLLAPSED = (
    "Link between the pools", "Assumptions", "Simulation", "Measured acceptance", "Bursts and convoys", "This page",
)  # fmt: skip
"""Groups that most people leave as they are: folded, and drawn once they are opened."""


def draw(declaration: Input, on_change: Callable[[], None] | None = None) -> None:
    """Draw the widget of one input.

    Its key is the input's name, and so is the URL parameter, which follows every change. Then ``on_change`` is called, or
    else what it stands in is drawn anew.
    """
    label = f"{declaration.label} ({declaration.unit})" if declaration.unit else declaration.label
    match declaration:
        case Integer():
            _draw_integer(declaration, label, on_change or "rerun")
        case Number():
            _draw_number(declaration, label, on_change or "rerun")
        case Choice():
            _draw_choice(declaration, label, on_change or "rerun")
        case Text():
            _draw_text(declaration, label, on_change or "rerun")
        case _:
            raise TypeError(f"no widget for {type(declaration).__name__}")


def _draw_number(declaration: Number, label: str, on_change: OnChange) -> None:
    st.number_input(
        label,
        declaration.low,
        declaration.high,
        cast("float | None", declaration.default),
        declaration.step,
        format="%g",
        key=declaration.name,
        help=declaration.help,
        on_change=on_change,
        placeholder=declaration.empty or None,
        bind="query-params",
    )


def _draw_integer(declaration: Integer, label: str, on_change: OnChange) -> None:
    st.number_input(
        label,
        int(declaration.low),
        int(declaration.high),
        cast("int | None", declaration.default),
        int(declaration.step),
        key=declaration.name,
        help=declaration.help,
        on_change=on_change,
        placeholder=declaration.empty or None,
        bind="query-params",
    )


def _draw_text(declaration: Text, label: str, on_change: OnChange) -> None:
    st.text_input(
        label,
        str(declaration.default),
        max_chars=declaration.longest,
        key=declaration.name,
        help=declaration.help,
        on_change=on_change,
        bind="query-params",
    )


def _draw_choice(declaration: Choice, label: str, on_change: OnChange) -> None:
    default = declaration.default
    st.selectbox(
        label,
        declaration.options,
        None if default is None else declaration.options.index(str(default)),
        key=declaration.name,
        help=declaration.help,
        on_change=on_change,
        placeholder=declaration.empty or "choose",
        bind="query-params",
    )


def draw_sidebar(room: Room) -> None:
    """Draw the inputs of a page that stand in the sidebar, group by group, and keep the shared ones that it does not use.

    When the page is another one than before, every value is sent to the browser again: who leaves a page before it was
    drawn has not seen the values that a link brought.
    """
    changed = is_another(room)
    used = declared(room.inputs)
    for name, declaration in declared(Scenario).items():
        if name not in used or changed:
            _keep(declaration)
    with st.sidebar, _kept_through_history(room, "sidebar"):
        for heading, group in _groups(room):
            if group:
                _draw_group(heading, group)


@contextmanager
def _kept_through_history(room: Room, where: str) -> Iterator[None]:
    """Draw a page's own inputs inside, and once more with what they had, where the browser's history takes it away.

    A page that is left writes a step without its own inputs into the history. Where Back comes to that step, Streamlit takes
    what is not in the URL for a default, whatever the session has.
    """
    key = f"{_LOST} {where}"
    restored = st.session_state.pop(key, {})
    st.session_state.update(restored)
    own = [name for name in linked(room.inputs) if name not in declared(Scenario)]
    before = {name: st.session_state[name] for name in own if name in st.session_state}
    yield
    lost = {
        name: value
        for name, value in before.items()
        if st.session_state[name] != value and name not in st.query_params and name not in restored
    }
    if lost:
        st.session_state[key] = lost
        st.rerun()


def _draw_group(heading: str, group: Sequence[Input]) -> None:
    """Draw a group of inputs; one that most people leave as it is, once it is opened or was changed.

    A default is not in the address, so that what is not drawn is not missing there.
    """
    if heading not in COLLAPSED:
        with st.expander(heading, expanded=True):
            for declaration in group:
                draw(declaration, redraw)
        return
    folded = st.expander(heading, key=f"group {heading}", on_change="rerun")
    changed = any(st.session_state.get(each.name, each.default) != each.default for each in group)
    with folded:
        for declaration in group:
            if folded.open or changed:
                draw(declaration, redraw)
            else:
                _keep(declaration)


def _keep(declaration: Input) -> None:
    """Write the value of an input down again: without its widget it would be forgotten."""
    st.session_state[declaration.name] = st.session_state.get(declaration.name, declaration.default)


def _groups(room: Room) -> Iterator[tuple[str, list[Input]]]:
    """Yield the groups of the sidebar: the shared inputs that the page uses, those it has of its own, and the rest of these."""
    used = linked(room.inputs)
    own = {name: each for name, each in used.items() if name not in declared(Scenario) and name not in room.row}
    for heading, group in GROUPS:
        yield heading, [each for name, each in declared(group).items() if name in used]
    for heading, group in room.groups:
        yield heading, [own.pop(name) for name in declared(group) if name in own]
    if room.own_inputs == "sidebar":
        yield "This page", [*own.values()]


def draw_on_page(room: Room) -> None:
    """Draw the inputs of a page that stand on it, in a row."""
    if room.own_inputs == "page":
        own = [each for name, each in linked(room.inputs).items() if name not in declared(Scenario)]
        columns = st.columns(len(own), vertical_alignment="bottom")
        with _kept_through_history(room, "page"):
            for column, declaration in zip(columns, own, strict=True):
                with column:
                    draw(declaration)
    elif room.row:
        known = declared(room.inputs)
        with st.container(horizontal=True, vertical_alignment="bottom"), _kept_through_history(room, "page"):
            for first in range(0, len(room.row), 2):  # on a narrow screen, two side by side
                with st.container(horizontal=True, vertical_alignment="bottom"):
                    for name in room.row[first : first + 2]:
                        draw(known[name])


def current_values(inputs: type) -> dict[str, Value]:
    """Return the value of each input of ``inputs`` that its widget has now; a file has none."""
    return {name: st.session_state[name] for name in linked(inputs)}


def reset(inputs: type) -> None:
    """Set the shared inputs and those of ``inputs`` back to their defaults, in a button's callback."""
    st.session_state.update(defaults(Scenario) | defaults(inputs))
    st.rerun()


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
        redraw()
        return
    # Four significant digits are what the slider shows; a link with them is one that a person can read.
    st.session_state["rate"] = handle.rate = float(f"{moved_to:.4g}")
    st.rerun()


def known_inputs(inputs: type) -> Mapping[str, Input]:
    """Return every input that a link to a page can set: the shared ones and the page's own."""
    return {**linked(Scenario), **linked(inputs)}
