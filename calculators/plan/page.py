"""The page of the plan."""

import streamlit as st

from calculators import page_kit
from calculators.outputs import as_table, rows_of
from calculators.plan import ROOM, curves, explanation, figures, launch, wording
from calculators.plan.check import check
from calculators.plan.compute import compute, deployments_of

inputs = page_kit.open_page(ROOM)
with st.spinner("Planning …"):
    result = page_kit.answer_or_refusal(compute, inputs)
    best = deployments_of(inputs)
page_kit.headline(
    wording.answer(inputs, result),
    metrics=wording.metrics(inputs, result),
    remarks=result.warnings,
    basis=wording.basis(inputs),
)
plan = result.recommendation
if best:
    lines = curves.fleet_curves(best, inputs.rate)
    page_kit.show_figure(
        figures.accelerators_against_rate(inputs, lines),
        "accelerators-against-rate",
        alt="Accelerators against arrival rate for each kind of deployment",
        caption=wording.caption(inputs),
        table=figures.fleet_table(lines),
    )


def alternatives() -> None:
    """Draw the recommended deployment beside the best of the other kinds."""
    if plan is not None:
        page_kit.data_table(wording.predicted_table(result), "predicted")
        st.markdown(" ".join(filter(None, (wording.on_binding(result), wording.on_link(result)))))
        page_kit.data_table(wording.deployments_table([plan, *result.alternatives]), "alternatives")
    if result.refused:
        st.markdown("Tensor degrees that do not serve:")
        page_kit.data_table(rows_of(result.refused), "refused")


def disaggregate() -> None:
    """Draw the reasons for and against disaggregating."""
    st.markdown(wording.on_disaggregation(result))
    st.markdown(wording.on_reasons(result.reasons))


def commands() -> None:
    """Draw the plan as launch commands."""
    if plan is None:
        st.markdown("There is no plan to launch.")
        return
    for each in launch.launches(inputs, plan):
        st.markdown(f"**{each.title}**")
        st.code(each.text, language=each.language)
        if each.note:
            st.caption(each.note)


def simulation() -> None:
    """Draw the simulated deployment beside the prediction."""
    checked = page_kit.stoppable("plan-check", inputs, lambda move: check(inputs, move), "Simulating the plan …")
    if checked is None:
        return
    st.markdown(wording.agreement(inputs, checked))
    page_kit.data_table(rows_of(checked.rows), "checked")


tabs = page_kit.Tabs(
    [
        "Alternatives",
        "Should I disaggregate?",
        "Check this plan",
        "Launch",
        "Formula",
        "Data",
        "Sources",
    ],
    key="plan-view",
)
tabs.draw("Alternatives", alternatives)
tabs.draw("Should I disaggregate?", disaggregate)
tabs.draw("Check this plan", simulation)
tabs.draw("Launch", commands)
tabs.draw("Formula", lambda: page_kit.formulas(explanation.formulas(inputs, next(iter(best.values()), None))))
tabs.draw("Data", lambda: page_kit.data_table(as_table(result), "results"))
tabs.draw("Sources", lambda: page_kit.show_sources(explanation.facts(inputs)))
