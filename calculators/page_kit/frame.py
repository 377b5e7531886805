"""What stands around every page: its head, the share link, what a link said, a refusal, the answer, the tabs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, TypeVar

import streamlit as st

from calculators import catalog, links
from calculators.inputs import Input, InputError, InputsError, Value, build, declared, linked
from calculators.page_kit.widgets import current_values, draw_on_page, known_inputs, reset
from calculators.room import Room
from calculators.scenario import Scenario
from formulas.closed_form import DomainError

R = TypeVar("R")

MOST_NOTICES = 20

_LINK = "link as it was opened"
_NOTICES = "what of the link was not understood"


def remember_link() -> None:
    """Take over the parameters with which the session was opened, before a widget is drawn.

    What is understood goes into the session at once, so that it is kept even if the reader changes the page before
    the first one is drawn; what is not understood is set to its default, and the page says so.
    """
    if _LINK in st.session_state:
        return
    st.session_state[_LINK] = {name: st.query_params.get_all(name) for name in st.query_params}
    for room in catalog.ROOMS:
        for name, declaration in known_inputs(room.inputs).items():
            if name in st.session_state[_LINK]:
                st.session_state[name] = _understood(declaration, st.session_state[_LINK][name])


def _understood(declaration: Input, texts: Sequence[str]) -> Value:
    try:
        return declaration.parse(texts[-1])
    except InputError:
        return declaration.default


def open_page(room: Room) -> Any:
    """Draw a page's head and those of its inputs that stand on it, and return its inputs.

    Returns
    -------
    object
        An instance of ``room.inputs``. If a value is not allowed, the page says which and ends here.
    """
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.title(room.title, anchor=False, width="stretch")
        share = st.popover("Share", icon=":material/link:")
        st.button(
            "Reset",
            icon=":material/restart_alt:",
            on_click=reset,
            args=(room.inputs,),
            help="Every input back to its default",
        )
    st.caption(room.question)
    notices = st.container()
    draw_on_page(room)
    with notices:
        _show_notices(room)
    inputs = answer_or_refusal(build, room.inputs, current_values(room.inputs))
    with share:
        st.markdown("This link carries every value of this page, defaults included.")
        st.code(_share_link(room, inputs), language=None, wrap_lines=True)
    return inputs


def _share_link(room: Room, inputs: Any) -> str:
    base = (st.context.url or "").rstrip("/").removesuffix(f"/{room.name}")
    return f"{base}/{links.encode(room.path, inputs)}"


def _show_notices(room: Room) -> None:
    """Name each parameter of the opened link that was not understood, as plain text, until it is dismissed."""
    opened = st.session_state[_LINK]
    if opened:
        known = known_inputs(room.inputs)
        used = current_values(Scenario) | current_values(room.inputs)
        st.session_state[_NOTICES] = links.misunderstandings(opened, known, used)
        st.session_state[_LINK] = {}
        for name in opened.keys() - linked(room.inputs).keys():  # so that a copied address says what the page uses
            del st.query_params[name]
    notices = st.session_state.get(_NOTICES)
    if not notices:
        return
    with st.container(border=True, key="link-notices"):
        count = "One parameter" if len(notices) == 1 else f"{len(notices)} parameters"
        st.markdown(f":material/link_off: **{count} of this link could not be used as written.** Everything else was.")
        for notice in notices[:MOST_NOTICES]:
            st.text(notice.sentence)
        if notices[MOST_NOTICES:]:
            st.text(f"and {len(notices) - MOST_NOTICES} more")
        st.button("Dismiss", key="dismiss-notices", on_click=_dismiss)


def _dismiss() -> None:
    st.session_state[_NOTICES] = []


def answer_or_refusal(function: Callable[..., R], *arguments: Any) -> R:
    """Return ``function(*arguments)``; if there is none for the inputs, say which and why, and end the page here."""
    try:
        return function(*arguments)
    except InputsError as errors:
        reasons = [_labelled(error) for error in errors.errors]
    except DomainError as beyond:
        reasons = [str(beyond)]
    return _refuse(reasons)


def _refuse(reasons: list[str]) -> NoReturn:
    with st.container(border=True, key="refusal"):
        st.markdown(":material/block: **No answer for these inputs.** Change what is named here; the rest is kept.")
        for reason in reasons:
            st.text(reason)
    st.stop()


def _labelled(error: Any) -> str:
    declaration = declared(Scenario).get(error.name)
    return f"{declaration.label}: {error}" if declaration else str(error)


def headline(answer: str, *, metrics: Sequence[tuple[str, str, str]], remarks: Sequence[str], basis: str = "") -> None:
    """Draw the answer: one sentence, three or four numbers, and what a person should know before using them.

    Parameters
    ----------
    answer
        The sentence, in Markdown of the project's own making.
    metrics
        Label, value with unit, and help of each number.
    remarks
        Sentences, shown as plain text.
    basis
        What the answer rests on and how far it can be trusted, in Markdown.
    """
    st.markdown(f"### {answer}")
    with st.container(horizontal=True):
        for label, value, explanation in metrics:
            st.metric(label, value, help=explanation, border=True)
    if basis:
        st.caption(basis)
    if remarks:
        with st.container(border=True, key="remarks"):
            for remark in remarks:
                st.text(remark)


class Tabs:
    """Tabs of which only the open one is computed."""

    def __init__(self, labels: Sequence[str], key: str) -> None:
        self._tabs = dict(zip(labels, st.tabs(labels, key=key, on_change="rerun"), strict=True))

    @contextmanager
    def _inside(self, label: str) -> Iterator[None]:
        with self._tabs[label]:
            yield

    def draw(self, label: str, content: Callable[[], None]) -> None:
        """Call ``content`` inside the tab if it is open."""
        if self._tabs[label].open:
            with self._inside(label):
                content()
