"""The page of speculative decoding."""

import streamlit as st

from calculators import page_kit
from calculators.outputs import as_table, rows_of
from calculators.speculative import ROOM, curves, explanation, figures, wording
from calculators.speculative.accepted import acceptance_of
from calculators.speculative.compute import compare_chips, compute
from calculators.speculative.costs import pair_of
from calculators.speculative.machines import spill_of

inputs = page_kit.open_page(ROOM)
result = page_kit.answer_or_refusal(compute, inputs)
pair = pair_of(inputs)
caption = wording.caption(inputs, pair)
page_kit.headline(
    wording.answer(inputs, result),
    metrics=wording.metrics(inputs, result),
    remarks=result.warnings,
    basis=wording.basis(inputs, result),
)
over_length = curves.length_curves(inputs)
page_kit.show_figure(
    figures.speedup_against_length(inputs, result, over_length, curves.arithmetic_bound_from(inputs)),
    "speedup-against-length",
    alt="Speedup over plain decoding against the draft length, for several acceptances, with the best length of each",
    caption=caption,
    table=figures.length_table(over_length),
)


def one_round() -> None:
    """Draw a round in time, beside plain decoding."""
    st.markdown(wording.on_round(result, pair))
    bars = curves.timeline(inputs)
    page_kit.show_figure(
        figures.round_in_time(result, bars),
        "round-in-time",
        alt="When each token is drafted and when the target verifies them, beside plain decode steps",
        caption=caption,
        table=figures.timeline_table(result, bars),
    )
    for said in (wording.on_bars(bars), wording.on_experts(inputs, pair)):
        if said:
            st.markdown(said)


def batch() -> None:
    """Draw the speedup against the batch, with where it stops paying."""
    found = curves.batch_curve(inputs)
    if found is None:
        st.markdown(wording.NO_BATCH)
        return
    spill = spill_of(pair.draft) if pair else None
    st.markdown(wording.on_batch(result, spill))
    page_kit.show_figure(
        figures.speedup_against_batch(inputs, result, found, spill),
        "speedup-against-batch",
        alt="Speedup over plain decoding against the batch, at the best draft length and at the one given",
        caption=caption,
        table=figures.batch_table(found),
    )


def chips() -> None:
    """Draw the draft on every kind of chip."""
    if pair is None:
        st.markdown(wording.NO_CHIPS)
        return
    st.markdown(wording.ON_CHIPS)
    page_kit.data_table(rows_of(compare_chips(inputs)), "chips")


def cost() -> None:
    """Draw the speedup over acceptance and draft cost."""
    st.markdown(wording.ON_MAP)
    chart = curves.cost_map(inputs)
    page_kit.show_figure(
        figures.speedup_map(result, chart),
        "speedup-map",
        alt="Speedup at the best draft length over acceptance and draft cost",
        caption=caption,
        table=figures.map_table(chart),
    )


def accepted() -> None:
    """Draw the tokens of a round as measured beside one acceptance for all positions."""
    st.markdown(wording.on_acceptance(result, acceptance_of(inputs).kind))
    found = curves.tokens_curve(inputs)
    page_kit.show_figure(
        figures.tokens_against_length(result, found),
        "tokens-against-length",
        alt="Tokens of a round against the draft length, measured and with independent acceptance",
        caption=caption,
        table=figures.tokens_table(found),
    )


def simulation() -> None:
    """Draw both simulations beside the formula."""
    checked = page_kit.simulated(ROOM.name, inputs)
    if checked is None:
        return
    st.markdown(wording.agreement(checked))
    page_kit.data_table(rows_of(checked.rows), "checked")
    page_kit.show_figure(
        figures.accepted_distribution(checked.counts, checked.expected),
        "accepted-drafts",
        alt="How many drafts were accepted in the simulated rounds, beside the formula",
        caption=caption,
        table=figures.distribution_table(checked.counts, checked.expected),
    )
    st.markdown(wording.on_sampling(checked))
    page_kit.show_figure(
        figures.sampled_tokens(checked.sampling),
        "sampled-tokens",
        alt="Shares of the tokens sampled by speculation, beside the target's probabilities",
        caption=caption,
        table=figures.sampled_table(checked.sampling),
    )


tabs = page_kit.Tabs(
    [
        "One round", "Batch", "Draft chips", "Draft cost", "Acceptance", "Formula", "Check by simulation", "Data", "Sources",
    ],
    key="speculative-view",
)  # fmt: skip
tabs.draw("One round", one_round)
tabs.draw("Batch", batch)
tabs.draw("Draft chips", chips)
tabs.draw("Draft cost", cost)
tabs.draw("Acceptance", accepted)
tabs.draw("Formula", lambda: page_kit.formulas(explanation.formulas(inputs, result, pair)))
tabs.draw("Check by simulation", simulation)
tabs.draw("Data", lambda: page_kit.data_table(as_table(result), "results"))
tabs.draw("Sources", lambda: page_kit.show_sources(explanation.facts(inputs, pair)))
