"""The page of pools: how many instances of each kind, and what each accelerator carries."""

from functools import partial

import streamlit as st

from calculators import page_kit
from calculators.outputs import as_table, columns_of, rows_of
from calculators.pools import ROOM, curves, explanation, figures, wording
from calculators.pools.compute import Sides, compute, sides_of
from calculators.pools.goodputs import Goodputs

inputs = page_kit.open_page(ROOM)
result = page_kit.answer_or_refusal(compute, inputs)
sides = sides_of(inputs, Goodputs(result.prefill_goodput, result.decode_goodput, result.colocated_goodput))
page_kit.headline(
    wording.answer(inputs, result),
    metrics=wording.metrics(inputs, result),
    remarks=result.warnings,
    basis=wording.basis(inputs, result),
)
caption = wording.caption(inputs, result)
if sides is not None:
    curve = curves.rate_curve(inputs, result, sides)
    page_kit.show_figure(
        figures.goodput_against_rate(result, curve),
        "goodput-against-rate",
        alt="Goodput per accelerator against the target rate, with the steps of rounding",
        caption=caption,
        table=columns_of(curve),
    )
    st.markdown(wording.on_safety(inputs, result))


def every_budget(sides: Sides) -> None:
    """Draw the best ratio for every number of accelerators."""
    rows = curves.budgets(result, sides)
    st.markdown(wording.on_budgets(result, rows))
    page_kit.show_figure(
        figures.goodput_against_budget(result, rows),
        "goodput-against-budget",
        alt="Goodput per accelerator with the best whole ratio, against the number of accelerators",
        caption=caption,
        table=rows_of(rows),
    )
    page_kit.data_table(rows_of(rows), "budgets")


def shifted_workload() -> None:
    """Draw what the group carries when prompts or outputs change their lengths."""
    found = page_kit.answer_or_refusal(curves.shift_map, inputs, result)
    st.markdown(wording.on_shift(inputs, result, found))
    page_kit.show_figure(
        figures.shifted_workload(found),
        "shifted-workload",
        alt="Goodput of the group for other prompt and output lengths, relative to now",
        caption=caption,
        table=curves.shift_table(found),
    )


def simulation() -> None:
    """Draw the simulated attainment beside what was asked for."""
    checked = page_kit.simulated(ROOM.name, inputs)
    if checked is None:
        return
    st.markdown(wording.agreement(inputs, checked))
    page_kit.data_table(rows_of(checked.rows), "checked")


pooled = ["Every budget", "Shifted workload"] if sides is not None else []
tabs = page_kit.Tabs([*pooled, "Formula", "Check by simulation", "Data", "Sources"], key="pools-view")
if sides is not None:
    tabs.draw("Every budget", partial(every_budget, sides))
    tabs.draw("Shifted workload", shifted_workload)
tabs.draw("Formula", lambda: page_kit.formulas(explanation.formulas(inputs, result, sides)))
tabs.draw("Check by simulation", simulation)
tabs.draw("Data", lambda: page_kit.data_table(as_table(result), "results"))
tabs.draw("Sources", lambda: page_kit.show_sources(explanation.facts(inputs)))
