"""What is done once for a server, not once for a run of a page."""

from __future__ import annotations

import gc
from typing import Any

import streamlit as st

from calculators import catalog
from formulas.closed_form import DomainError


@st.cache_resource(show_spinner=False)
def settle() -> None:
    """Take what is loaded by now out of the garbage collector's sight.

    Streamlit collects after every run of a script. With SymPy and pandas loaded that takes far longer than the
    script; objects that live as long as the server need not be looked at again.
    """
    gc.collect()
    gc.freeze()


def simulated(calculator: str, inputs: Any) -> Any | None:
    """Return the result of a calculator's simulation, or say why there is none and return ``None``."""
    try:
        return _simulate(calculator, inputs)
    except DomainError as nothing_to_simulate:
        st.markdown(str(nothing_to_simulate))
        return None


@st.cache_data(max_entries=256, show_spinner="Simulating …")
def _simulate(calculator: str, inputs: Any) -> Any:
    check = catalog.CALCULATORS[calculator].check
    if check is None:
        raise ValueError(f"{calculator} has no simulation")
    return check(inputs)
