"""The page that compares three ways to serve on the same accelerators."""

import streamlit as st

from calculators import page_kit
from calculators.compare import ROOM, curves, explanation, figures, wording
from calculators.compare.compute import compute
from calculators.compare.inputs import effective
from calculators.outputs import as_table, rows_of

inputs = page_kit.open_page(ROOM)
result = page_kit.answer_or_refusal(compute, inputs)
used = effective(inputs)
page_kit.headline(
    wording.answer(inputs, result),
    metrics=wording.metrics(result),
    remarks=result.warnings,
    basis=wording.basis(inputs),
)
caption = wording.caption(used)

if result.best is not None:
    lines = curves.against_rate(used)
    page_kit.show_figure(
        figures.attainment_against_rate(used, result, lines),
        "attainment-against-rate",
        alt="Share of requests within both targets against the rate for each accelerator, for three ways to serve",
        caption=caption,
        table=figures.curves_table(lines),
    )


def times() -> None:
    """Draw both times against the rate."""
    st.markdown(wording.on_times(used))
    lines = curves.against_rate(used)
    for what, name in (("ttft", "Time to first token"), ("tpot", "Time per output token")):
        page_kit.show_figure(
            figures.time_against_rate(used, lines, what),
            f"{what}-against-rate",
            alt=f"{name} against the rate for each accelerator, for three ways to serve",
            caption=caption,
            table=figures.curves_table(lines),
        )


def tighter_targets() -> None:
    """Draw the attainment against a common factor of both targets."""
    st.markdown(wording.on_tighter(result))
    found = curves.tightened(used)
    page_kit.show_figure(
        figures.attainment_against_scale(used, found),
        "attainment-against-scale",
        alt="Share of requests within both targets against a common factor of the targets",
        caption=caption,
        table=figures.scale_table(found),
    )


def mixed_steps() -> None:
    """Draw what chunks carry if mixed steps are less efficient."""
    st.markdown(wording.on_mixed(result))
    rows = curves.degraded(used)
    page_kit.show_figure(
        figures.goodput_against_efficiency(used, result, rows),
        "goodput-against-efficiency",
        alt="Goodput per accelerator of chunks against the efficiency of mixed steps",
        caption=caption,
        table=rows_of(rows),
    )


def budgets_and_ratios() -> None:
    """Draw what each budget of chunks and each ratio of instances carries."""
    page_kit.data_table(rows_of(curves.every_budget(used)), "budgets")
    ratios = curves.ratios(used)
    if ratios:
        page_kit.data_table(rows_of(ratios), "ratios")


def simulation() -> None:
    """Draw the simulated ways beside the forms."""
    checked = page_kit.simulated(ROOM.name, inputs)
    if checked is None:
        return
    st.markdown(wording.agreement(checked))
    page_kit.data_table(rows_of(checked.ways), "ways")
    if checked.rows:
        page_kit.data_table(rows_of(checked.rows), "checked")


loaded = ["Times", "Tighter targets", "Mixed steps", "Budgets and ratios"] if result.best is not None else []
tabs = page_kit.Tabs([*loaded, "Formula", "Check by simulation", "Data", "Sources"], key="compare-view")
if result.best is not None:
    tabs.draw("Times", times)
    tabs.draw("Tighter targets", tighter_targets)
    tabs.draw("Mixed steps", mixed_steps)
    tabs.draw("Budgets and ratios", budgets_and_ratios)
tabs.draw("Formula", lambda: page_kit.formulas(explanation.formulas(used, result)))
tabs.draw("Check by simulation", simulation)
tabs.draw("Data", lambda: page_kit.data_table(as_table(result), "results"))
tabs.draw("Sources", lambda: page_kit.show_sources(explanation.facts(used)))
