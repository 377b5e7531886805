"""Headroom in the browser: the list of pages, the navigation and the sidebar of shared inputs; nothing else."""

from typing import Any

import streamlit as st

from calculators import catalog, page_kit
from calculators.room import Room

st.set_page_config(page_title="Headroom", page_icon="static/icon.png", layout="wide")
page_kit.remember_link()


def page_of(room: Room, **options: Any) -> st.Page:
    """Return a room as a page of the navigation."""
    return st.Page(room.page, title=room.title, icon=room.icon, **{"url_path": room.name} | options)


front = catalog.room_at("")
pages = {
    section: [page_of(room) if room is not front else page_of(room, default=True, url_path="front") for room in rooms]
    for section, rooms in catalog.SECTIONS.items()
}
pages[""].append(page_of(front, visibility="hidden"))  # under its own name as well, as all others are
room = catalog.room_at(st.navigation(pages, position="top").url_path)
page_kit.draw_sidebar(room)
# Streamlit runs a page once each time that it is navigated to.
page_kit.draw_page(room, lambda: st.navigation(pages, position="top").run())
page_kit.settle()
