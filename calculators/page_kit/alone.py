"""A page drawn alone: when an input changes, what stands around the page stays as it is.

To draw the sidebar's widgets costs Streamlit more than most pages cost, in proportion to their number, and none of them
looks different when another one is changed. So a page is a fragment, and an input in the sidebar asks for that
fragment. Whatever writes into the sidebar's inputs asks for everything, by ``st.rerun()``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import streamlit as st
from streamlit.errors import StreamlitAPIException

from calculators.room import Room

_PAGE = "page drawn last"


def is_another(room: Room) -> bool:
    """Note which room's page is drawn, and say whether it is another one than before."""
    before = st.session_state.get(_PAGE)
    st.session_state[_PAGE] = _key(room)
    return bool(before != _key(room))


def draw_page(room: Room, run: Callable[[], None]) -> None:
    """Draw a page by the function that runs it, now and each time that :func:`redraw` asks for it."""
    if room.is_stoppable:
        run()
    else:
        st.fragment(run, key=_key(room))()


def redraw() -> None:
    """Have nothing but the page drawn anew, in the callback of a widget; everything, where the page is no fragment (yet)."""
    with suppress(StreamlitAPIException):  # there is none of that name: an input was changed before its page was drawn
        st.rerun(st.session_state[_PAGE])


def _key(room: Room) -> str:
    return f"page {room.name}"
