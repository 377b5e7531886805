"""The page of the next tokens."""

import streamlit as st

from calculators import page_kit
from calculators.decode import ROOM, curves, explanation, figures, halves, wording
from calculators.decode.compute import compute, context_of, load_curve
from calculators.decode.ways import ways
from calculators.decode_pool import pool_of
from calculators.outputs import as_table, columns_of, rows_of

inputs = page_kit.open_page(ROOM)
result = page_kit.answer_or_refusal(compute, inputs)
pool = pool_of(inputs)
page_kit.headline(
    wording.answer(inputs, result),
    metrics=wording.metrics(inputs, result),
    remarks=result.warnings,
    basis=wording.basis(inputs),
)


def one_step() -> None:
    """Draw what a step's time is made of, and where it turns."""
    st.markdown(wording.on_one_step(inputs, result, context_of(inputs, pool)))
    stack = curves.step_stack(inputs, result, pool)
    page_kit.show_figure(
        figures.step_stack(inputs, result, stack),
        "step-against-batch",
        alt="What the time of a decode step is made of, against the batch",
        caption=wording.caption(inputs),
        table=figures.step_table(stack),
    )


if pool.serves:
    load = load_curve(pool, inputs.attainment)
    page_kit.show_figure(
        figures.tpot_against_rate(inputs, result, load),
        "tpot-against-rate",
        alt=f"Time per output token against arrival rate: mean and percentiles, with the target of {inputs.tpot_slo_ms:g} ms",
        caption=wording.caption(inputs),
        table=columns_of(load),
    )
    page_kit.rate_handle(pool.capacity)
else:
    one_step()


def batch() -> None:
    """Draw how often each batch is found."""
    law = curves.batch_law(inputs, pool)
    if law is None:
        st.markdown("There is no steady state, and so no law of the batch.")
        return
    st.markdown(wording.on_batch(result))
    page_kit.show_figure(
        figures.batch_law(result, law),
        "batch",
        alt="How often each batch is found in the pool",
        caption=wording.caption(inputs),
        table=columns_of(law),
    )


def several() -> None:
    """Draw latency against throughput for tensor, pipeline and replicas."""
    st.markdown(wording.on_ways())
    found = ways(inputs)
    page_kit.show_figure(
        figures.latency_throughput(found),
        "latency-throughput",
        alt="Time per token against tokens per second, for tensor parallel, a pipeline and replicas",
        caption=wording.caption(inputs),
        table=rows_of(found),
    )
    page_kit.data_table(rows_of(found), "ways")


def split() -> None:
    """Draw which accelerators suit attention, and which projections and FFN."""
    rows = halves.halves(inputs)
    st.markdown(wording.on_halves(inputs, halves.crossing(inputs, result.step_ms)))
    page_kit.show_figure(
        figures.halves_map(rows),
        "halves",
        alt="Time of attention and of projections and FFN on every accelerator alone",
        caption=wording.caption(inputs),
        table=rows_of(rows),
    )
    page_kit.data_table(rows_of(rows), "halves")


def formulas() -> None:
    """Draw the formulas of the pool and of one step."""
    st.subheader("Under load", anchor=False)
    page_kit.formulas(explanation.under_load(inputs, result, pool))
    st.subheader("One step", anchor=False)
    page_kit.formulas(explanation.one_step(inputs, pool))


def simulation() -> None:
    """Draw the simulated pool beside the formulas."""
    checked = page_kit.simulated(ROOM.name, inputs)
    if checked is None:
        return
    st.markdown(wording.agreement(checked))
    page_kit.data_table(rows_of(checked.rows), "checked")


loaded = ["One step", "Batch"]
always = ["Several accelerators", "Attention and FFN apart", "Formula", "Check by simulation", "Data", "Sources"]
tabs = page_kit.Tabs([*(loaded if pool.serves else []), *always], key="decode-view")
if pool.serves:
    tabs.draw("One step", one_step)
    tabs.draw("Batch", batch)
tabs.draw("Several accelerators", several)
tabs.draw("Attention and FFN apart", split)
tabs.draw("Formula", formulas)
tabs.draw("Check by simulation", simulation)
tabs.draw("Data", lambda: page_kit.data_table(as_table(result), "results"))
tabs.draw("Sources", lambda: page_kit.show_sources(explanation.facts(inputs)))
