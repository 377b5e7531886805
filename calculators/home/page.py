"""The front page."""

import streamlit as st

from calculators import catalog, page_kit
from calculators.home import ROOM

page_kit.open_page(ROOM)
st.markdown(
    "Headroom computes serving capacity for large language models from closed forms that you can read, on accelerator "
    "and model figures with their sources, and checks each answer by simulation beside it. Describe your traffic, "
    "model and target once in the sidebar; every page uses them, and a link carries them to a colleague."
)
rooms = [room for room in catalog.ROOMS if room is not ROOM]
for column, room in zip(st.columns(len(rooms)), rooms, strict=True):
    with column.container(border=True, height="stretch"):
        st.markdown(f"#### {room.icon} {room.title}")
        st.markdown(room.question)
        st.page_link(room.page, label="Open", icon=":material/arrow_forward:")
