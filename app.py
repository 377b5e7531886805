"""Headroom in the browser: the list of pages, the navigation and the sidebar of shared inputs; nothing else."""

import gc

import streamlit as st

from calculators import catalog, page_kit


@st.cache_resource(show_spinner=False)
def settle() -> None:
    """Take what is loaded by now out of the garbage collector's sight.

    Streamlit collects after every run of a script. With SymPy and pandas loaded that takes far longer than the
    script; objects that live as long as the server need not be looked at again.
    """
    gc.collect()
    gc.freeze()


st.set_page_config(page_title="Headroom", page_icon="static/icon.png", layout="wide")
page_kit.remember_link()
pages = [
    st.Page(room.page, title=room.title, icon=room.icon, url_path=room.name, default=room.is_front)
    for room in catalog.ROOMS
]
page = st.navigation(pages, position="top")
page_kit.draw_scenario()
page.run()
settle()
