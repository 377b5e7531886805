"""What is done once for a server, not once for a run of a page."""

from __future__ import annotations

import gc
from typing import Any

import streamlit as st

from calculators import catalog


@st.cache_resource(show_spinner=False)
def settle() -> None:
    """Take what is loaded by now out of the garbage collector's sight.

    Streamlit collects after every run of a script. With SymPy and pandas loaded that takes far longer than the
    script; objects that live as long as the server need not be looked at again.
    """
    gc.collect()
    gc.freeze()


@st.cache_data(max_entries=256, show_spinner="Simulating …")
def simulate(calculator: str, inputs: Any) -> Any:
    """Return the result of a calculator's simulation, kept for those who ask for the same again.

    Raises
    ------
    DomainError
        If there is no steady state to simulate.
    """
    check = catalog.CALCULATORS[calculator].check
    if check is None:
        raise ValueError(f"{calculator} has no simulation")
    return check(inputs)
