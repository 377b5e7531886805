"""Headroom in the browser: the list of pages, the navigation and the sidebar of shared inputs; nothing else."""

import streamlit as st

from calculators import catalog, page_kit

st.set_page_config(page_title="Headroom", page_icon="static/icon.png", layout="wide")
page_kit.remember_link()
pages = {
    section: [
        st.Page(room.page, title=room.title, icon=room.icon, url_path=room.name, default=room.is_front)
        for room in rooms
    ]
    for section, rooms in catalog.SECTIONS.items()
}
page = st.navigation(pages, position="top")
page_kit.draw_scenario(page.url_path, catalog.room_at(page.url_path).inputs)
page.run()
page_kit.settle()
