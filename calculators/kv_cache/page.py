"""The page of the KV cache."""

import streamlit as st

from calculators import page_kit
from calculators.kv_cache import ROOM, curves, explanation, figures, wording
from calculators.kv_cache.compute import compare_links, compute
from calculators.outputs import as_table, rows_of

inputs = page_kit.open_page(ROOM)
result = page_kit.answer_or_refusal(compute, inputs)
page_kit.headline(wording.answer(inputs, result), metrics=wording.metrics(result), remarks=result.warnings)
transfers, prefill_ms = curves.transfer_curves(inputs), curves.prefill_curve_ms(inputs)
page_kit.show_figure(
    figures.transfer_against_prompt(inputs, result, transfers, prefill_ms),
    "transfer-against-prompt",
    alt="Time to transfer one request's KV cache against the prompt length, over several links, beside the prefill",
    caption=wording.caption(inputs),
    table=figures.transfer_table(transfers, prefill_ms),
)


def all_links() -> None:
    """Draw every link of the database side by side, with a verdict for each."""
    st.markdown(wording.on_links())
    page_kit.data_table(wording.links_table(compare_links(inputs), result.prefill_ms), "links")
    st.markdown(wording.on_reuse(inputs, result))


def overlap() -> None:
    """Draw the overlap of prefill and transfer, layer by layer."""
    chart = figures.overlap(inputs, result)
    page_kit.show_figure(
        figures.overlap_chart(result, chart),
        "overlap",
        alt="When each layer is computed and when its cache is sent",
        caption=wording.caption(inputs),
        table=figures.overlap_table(chart),
    )


def memory() -> None:
    """Draw what fits in memory, and the cache of every model against the context."""
    st.markdown(wording.on_memory(inputs, result))
    lines = curves.cache_curves(inputs)
    page_kit.show_figure(
        figures.cache_against_context(inputs, lines),
        "cache-against-context",
        alt="KV cache of one sequence against its context, for every model of the database",
        caption=wording.caption(inputs),
        table=figures.cache_table(lines),
    )


def simulation() -> None:
    """Draw the simulated link beside the formulas."""
    checked = page_kit.simulated(ROOM.name, inputs)
    if checked is None:
        return
    st.markdown(wording.agreement(checked))
    page_kit.data_table(rows_of(checked.rows), "checked")


tabs = page_kit.Tabs(
    ["All links", "Overlap", "Memory", "Formula", "Check by simulation", "Data", "Sources"], key="kv-cache-view"
)
tabs.draw("All links", all_links)
tabs.draw("Overlap", overlap)
tabs.draw("Memory", memory)
tabs.draw("Formula", lambda: page_kit.formulas(explanation.formulas(inputs, result)))
tabs.draw("Check by simulation", simulation)
tabs.draw("Data", lambda: page_kit.data_table(as_table(result), "results"))
tabs.draw("Sources", lambda: page_kit.show_sources(explanation.facts(inputs)))
