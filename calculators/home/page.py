"""The front page: what Headroom is for, and each question with its answer for the scenario at hand."""

import streamlit as st

from calculators import catalog, page_kit
from calculators.home import ROOM
from calculators.inputs import InputsError, as_dict, declared
from calculators.room import Calculator

scenario = page_kit.open_page(ROOM)
st.markdown(
    "Headroom computes serving capacity for large language models from closed forms that you can read, on accelerator "
    "and model figures with their sources, and checks each answer by simulation beside it. Describe your traffic, "
    "model and target once in the sidebar; every page uses them, and a link carries them to a colleague."
)


def answer(calculator: Calculator) -> str:
    """Return a calculator's answer for the scenario in the sidebar."""
    shared = {name: value for name, value in as_dict(scenario).items() if name in declared(calculator.inputs)}
    inputs = calculator.inputs(**shared)
    try:
        return calculator.answer(inputs, calculator.compute(inputs))
    except InputsError as wrong:
        return f":red[:material/block:] No answer for these inputs: {wrong}"


rooms = [room for room in catalog.ROOMS if room is not ROOM]
for column, room in zip(st.columns(len(rooms)), rooms, strict=True):
    with column.container(border=True, height="stretch"):
        st.markdown(f"#### {room.icon} {room.title}")
        st.markdown(room.question)
        if isinstance(room, Calculator) and room.on_front:
            st.markdown(answer(room))
        st.page_link(room.page, label="Open", icon=":material/arrow_forward:")
