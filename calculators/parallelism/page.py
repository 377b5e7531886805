"""The page of tensor against pipeline parallelism."""

import streamlit as st

from calculators import page_kit
from calculators.outputs import counted, rows_of
from calculators.parallelism import ROOM, explanation, figures, maps, wording
from calculators.parallelism.compute import compute

inputs = page_kit.open_page(ROOM)
result = page_kit.answer_or_refusal(compute, inputs)
by = wording.statistic(inputs)
page_kit.headline(wording.answer(inputs, result), metrics=wording.metrics(inputs, result), remarks=result.warnings)
page_kit.show_figure(
    figures.ttft_against_rate(inputs, result, by),
    "ways-against-rate",
    alt=f"{wording.said(by)} of tensor, pipeline and replicas against the arrival rate",
    caption=wording.caption(inputs, result),
    table=figures.curves_table(result, by),
)
page_kit.rate_handle(max(way.capacity for way in result.ways if way.id in figures.NAMES))


def who_wins() -> None:
    """Draw who wins over rate and speedup, and how that depends on the statistic."""
    st.markdown(wording.on_crossover(result))
    chart = maps.winner_map(inputs, result, by)
    page_kit.show_figure(
        figures.winner_map(inputs, result, chart),
        "who-wins",
        alt=f"Whether tensor or pipeline has the lower {wording.said(by)}, over arrival rate and speedup",
        caption=wording.caption(inputs, result),
        table=figures.map_table(chart),
    )


def speedup() -> None:
    """Draw what the speedup depends on."""
    st.markdown(
        "The speedup is no free number: short prompts, slow links and many accelerators lower it. Curves are the "
        "step-time model's, with an ideal link; crosses are what engines were measured to reach for a doubling."
    )
    curves = maps.speedup_curves(inputs)
    page_kit.show_figure(
        figures.speedup_curves(inputs, curves),
        "speedup",
        alt="Tensor speedup against the prompt length for several degrees, with measured values",
        caption=wording.caption(inputs, result),
        table=figures.speedup_table(curves),
    )


def arrangements() -> None:
    """Draw every split of the accelerators, and which degrees the model allows."""
    st.subheader(f"Every split of {counted(inputs.gpus, 'accelerator')}", anchor=False)
    page_kit.data_table(wording.mixed(inputs, result), "mixed")
    if result.degrees:
        st.subheader(f"Degrees for {inputs.model} on {inputs.accelerator}", anchor=False)
        page_kit.data_table(wording.degrees(result), "degrees")


def formulas() -> None:
    """Draw the formulas behind the answer, with the numbers put in."""
    page_kit.formulas(explanation.formulas(inputs, result))


def simulation() -> None:
    """Draw the simulation beside the formulas."""
    st.markdown(wording.on_spread(inputs, result))
    checked = page_kit.simulated(ROOM.name, inputs)
    if checked is None:
        return
    st.markdown(wording.agreement(checked))
    if checked.rows:
        page_kit.data_table(rows_of(checked.rows), "checked")
    if checked.simulated:
        st.markdown("For these there is no closed form; the formula for equal prompts stands beside them.")
        page_kit.data_table(rows_of(checked.simulated), "simulated")


tabs = page_kit.Tabs(
    ["Who wins where", "Speedup", "Arrangements", "Formula", "Check by simulation", "Sources"], key="parallelism-view"
)
tabs.draw("Who wins where", who_wins)
tabs.draw("Speedup", speedup)
tabs.draw("Arrangements", arrangements)
tabs.draw("Formula", formulas)
tabs.draw("Check by simulation", simulation)
tabs.draw("Sources", lambda: page_kit.show_sources(explanation.facts(inputs)))
