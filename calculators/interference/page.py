"""The page of prompts and tokens on the same accelerators."""

import streamlit as st

from calculators import page_kit
from calculators.interference import ROOM, curves, example, explanation, figures, wording
from calculators.interference.compute import compute, context_of, systems_of
from calculators.interference.mixed import mixed_curve
from calculators.outputs import as_table, columns_of, rows_of

inputs = page_kit.open_page(ROOM)
result = page_kit.answer_or_refusal(compute, inputs)
systems = systems_of(inputs)
page_kit.headline(
    wording.answer(inputs, result),
    metrics=wording.metrics(inputs, result),
    remarks=result.warnings,
    basis=wording.basis(inputs),
)
serves = systems[0].pool.serves


def against_rate(what: str, name: str) -> None:
    """Draw TTFT or TPOT of the three ways against the rate."""
    lines = curves.curves_of(systems, inputs)
    page_kit.show_figure(
        figures.time_against_rate(inputs, result, lines, what),
        f"{what}-of-three-ways",
        alt=f"{name} against arrival rate: prefill first, chunked and disaggregated",
        caption=wording.caption(inputs),
        table=figures.curves_table(lines),
    )


def one_step() -> None:
    """Draw the time of a step against the prompt in it."""
    context = context_of(inputs, systems[0].pool)
    st.markdown(wording.on_one_step(inputs, result, context))
    if serves:
        st.markdown(wording.on_chunks(inputs, result))
    curve = mixed_curve(inputs, inputs.batch, context, max(2048, 2 * inputs.prompt_tokens))
    page_kit.show_figure(
        figures.step_against_prompt(inputs, result, curve),
        "step-against-prompt",
        alt="Time of a decode step against the prompt in it",
        caption=wording.caption(inputs),
        table=columns_of(curve),
    )


if serves:
    against_rate("tpot", "Time per output token")
    page_kit.rate_handle(max(system.bound for system in systems))
else:
    one_step()


def same_accelerators() -> None:
    """Draw the attainment of the three ways against the rate for each accelerator, and where they change places."""
    lines = curves.on_the_same_accelerators(systems, inputs)
    found = curves.overtakings(lines, figures.level_of(inputs))
    st.markdown(wording.on_the_same_accelerators(result, found))
    if found:
        page_kit.data_table(rows_of(found), "overtakings")
    page_kit.show_figure(
        figures.attainment_against_rate(inputs, lines),
        "attainment-of-three-ways",
        alt="Share of requests that meet both targets against the rate for each accelerator",
        caption=wording.caption(inputs),
        table=figures.curves_table(lines),
    )
    _on_the_same(lines, "ttft", "Time to first token")
    _on_the_same(lines, "tpot", "Time per output token")


def _on_the_same(lines: list[curves.Curve], what: str, name: str) -> None:
    page_kit.show_figure(
        figures.time_against_rate(inputs, None, lines, what),
        f"{what}-on-the-same-accelerators",
        alt=f"{name} against the rate for each accelerator: prefill first, chunked and disaggregated",
        caption=wording.caption(inputs),
        table=figures.curves_table(lines),
    )


def worked_example() -> None:
    """Draw the companion article's example beside what the step-time model gives."""
    st.markdown(wording.on_the_example())
    page_kit.data_table(rows_of(example.agents(inputs)), "agents")


def simulation() -> None:
    """Draw the simulated ways beside the formulas."""
    checked = page_kit.simulated(ROOM.name, inputs)
    if checked is None:
        return
    st.markdown(wording.agreement(checked))
    page_kit.data_table(rows_of(checked.rows), "checked")
    page_kit.data_table(rows_of(checked.shares), "shares")


loaded = ["First token", "Same accelerators", "One step"]
always = ["Worked example", "Formula", "Check by simulation", "Data", "Sources"]
tabs = page_kit.Tabs([*(loaded if serves else []), *always], key="interference-view")
if serves:
    tabs.draw("First token", lambda: against_rate("ttft", "Time to first token"))
    tabs.draw("Same accelerators", same_accelerators)
    tabs.draw("One step", one_step)
tabs.draw("Worked example", worked_example)
tabs.draw("Formula", lambda: page_kit.formulas(explanation.formulas(inputs, result)))
tabs.draw("Check by simulation", simulation)
tabs.draw("Data", lambda: page_kit.data_table(as_table(result), "results"))
tabs.draw("Sources", lambda: page_kit.show_sources(explanation.facts(inputs)))
