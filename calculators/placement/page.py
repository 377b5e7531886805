"""The page of the placement."""

import streamlit as st

from calculators import page_kit
from calculators.outputs import as_table, rows_of
from calculators.placement import ROOM, explanation, figures, published, wording
from calculators.placement.compute import compute

inputs = page_kit.open_page(ROOM)
result = page_kit.answer_or_refusal(compute, inputs)
page_kit.headline(
    wording.answer(inputs, result),
    metrics=wording.metrics(inputs, result),
    remarks=result.warnings,
    basis=wording.basis(inputs),
)
allowed = [each for each in result.table if each.allowed]
refused = [each for each in result.table if not each.allowed]
if result.layout.seats:
    st.markdown(wording.on_map(inputs, result))
    page_kit.show_figure(
        figures.seats(inputs, result),
        "placement",
        alt="Which stage of which instance sits on which accelerator of which node",
        caption=wording.caption(inputs),
        table=rows_of(result.layout.seats),
    )


def ranked() -> None:
    """Draw every configuration by its goodput for each accelerator, and why the others are refused."""
    st.markdown(wording.on_ranked(inputs, result))
    if allowed:
        page_kit.show_figure(
            figures.goodput_per_gpu(result),
            "goodput-per-accelerator",
            alt="Goodput for each accelerator of every configuration, against the accelerators of an instance",
            caption=wording.caption(inputs),
            table=rows_of(allowed),
        )
        for side, name in figures.NAMES.items():
            st.subheader(name, anchor=False)
            page_kit.data_table(wording.ranked(allowed, side), f"ranked-{side}")
    if refused:
        st.subheader("Refused", anchor=False)
        page_kit.data_table(wording.refusals(refused), "refused")


def pairs() -> None:
    """Draw the joint choices of a slow network."""
    st.markdown(wording.on_pairs())
    page_kit.data_table(rows_of(result.pairs), "pairs")


def traffic() -> None:
    """Say what the caches ask of the link."""
    st.markdown(wording.on_traffic(inputs, result))


def others() -> None:
    """Draw DistServe's own choices beside ours."""
    st.markdown(wording.on_published())
    with st.spinner("Searching five times; once for all visitors …"):
        rows = published.compared()
    page_kit.data_table(wording.choices(rows), "published")
    st.markdown(wording.why_they_differ(rows))
    note = "The same where prompts and outputs spread by 1: pipelines are simulated, which takes some ten seconds."
    if page_kit.on_demand("Let lengths spread", "published-spread", True, note):
        with st.spinner("Searching …"):
            spread = published.compared(1.0)
        page_kit.data_table(wording.choices(spread), "published-spread")
        st.markdown(wording.why_they_differ(spread))


def simulation() -> None:
    """Draw the simulated finalists beside the closed forms."""
    st.markdown(
        "The event simulation takes the best configurations of each side and looks for their goodput, which takes some seconds."
    )
    if not st.toggle("Simulate the finalists", key="simulate-finalists"):
        return
    checked = page_kit.simulated(ROOM.name, inputs)
    if checked is None:
        return
    st.markdown(wording.agreement(checked))
    page_kit.data_table(rows_of(checked.rows), "checked")


optional = ["Joint choices"] if result.pairs else []
labels = [
    "Configurations",
    *optional,
    "KV traffic",
    "DistServe's choices",
    "Formula",
    "Check by simulation",
    "Data",
    "Sources",
]
tabs = page_kit.Tabs(labels, key="placement-view")
tabs.draw("Configurations", ranked)
if result.pairs:
    tabs.draw("Joint choices", pairs)
tabs.draw("KV traffic", traffic)
tabs.draw("DistServe's choices", others)
tabs.draw("Formula", lambda: page_kit.formulas(explanation.formulas(inputs, result)))
tabs.draw("Check by simulation", simulation)
tabs.draw("Data", lambda: page_kit.data_table(as_table(result), "results"))
tabs.draw("Sources", lambda: page_kit.show_sources(explanation.facts(inputs)))
