"""The page of the time to first token."""

import streamlit as st

from calculators import page_kit
from calculators.outputs import as_table, columns_of, rows_of
from calculators.ttft import ROOM, figures, wording
from calculators.ttft.compute import compute, statistic, sweep
from calculators.ttft.explanation import facts, percentile_formulas, queue_formulas, service_formulas
from calculators.ttft.sensitivity import sensitivities
from calculators.ttft.whatif import alternatives

inputs = page_kit.open_page(ROOM)
result = page_kit.answer_or_refusal(compute, inputs)
page_kit.headline(
    wording.answer(inputs, result),
    metrics=wording.metrics(inputs, result),
    remarks=result.remarks,
    basis=wording.basis(inputs),
)
curves = sweep(result.service_ms, inputs.percentile)
page_kit.show_figure(
    figures.ttft_against_rate(inputs, result, curves),
    "ttft-against-rate",
    alt=f"Time to first token against arrival rate: mean and percentiles, with the target of {inputs.ttft_slo_ms:g} ms",
    caption=wording.caption(inputs),
    table=columns_of(curves),
)
page_kit.rate_handle(1e3 / result.service_ms)


def formulas() -> None:
    """Draw the formulas behind the answer, with the numbers put in."""
    for heading, forms in (
        ("Service time", service_formulas(inputs)),
        ("Queue", queue_formulas(inputs, result)),
        ("Percentiles", percentile_formulas(inputs, result)),
    ):
        st.subheader(heading, anchor=False)
        page_kit.formulas(forms)


def simulation() -> None:
    """Draw the simulation beside the formula."""
    checked = page_kit.simulated(ROOM.name, inputs)
    if checked is None:
        return
    st.markdown(wording.agreement(checked))
    page_kit.data_table(rows_of(checked.rows), "check")
    page_kit.show_figure(
        figures.distribution(checked),
        "ttft-distribution",
        alt="Share of requests by time to first token, simulated and exact",
        caption=wording.caption(inputs),
        table=columns_of(checked.distribution),
    )
    st.subheader("What short runs report", anchor=False)
    st.markdown(wording.on_short_runs(checked))
    page_kit.show_figure(
        figures.short_runs(checked),
        "short-runs",
        alt="P99 as reported by runs of different lengths, beside the exact P99",
        caption=wording.caption(inputs),
        table=rows_of(checked.short_runs),
    )


def what_matters() -> None:
    """Draw how the answer responds to each input."""
    rows = sensitivities(inputs)
    if not rows:
        st.markdown("Without a steady state nothing can be said of small changes.")
        return
    st.markdown(wording.on_sensitivities(rows, statistic(inputs)))
    page_kit.show_figure(
        figures.what_matters(rows, statistic(inputs)),
        "what-matters",
        alt=f"Percent change of the {statistic(inputs)} for one percent change of each input",
        caption=wording.caption(inputs),
        table=rows_of(rows),
    )


def what_if() -> None:
    """Draw what the choices that a planner has would do, one at a time."""
    st.markdown(f"Each row changes one thing. The TTFT is the {statistic(inputs)} of one instance with the whole rate.")
    page_kit.data_table(rows_of(alternatives(inputs)), "what-if")


def data() -> None:
    """Draw the answer's figures, then the curves of the plot."""
    page_kit.data_table(as_table(result), "results")
    page_kit.data_table(columns_of(curves), "sweep")


tabs = page_kit.Tabs(["What if", "Formula", "Check by simulation", "What matters", "Data", "Sources"], key="view")
tabs.draw("What if", what_if)
tabs.draw("Formula", formulas)
tabs.draw("Check by simulation", simulation)
tabs.draw("What matters", what_matters)
tabs.draw("Data", data)
tabs.draw("Sources", lambda: page_kit.show_sources(facts(inputs)))
