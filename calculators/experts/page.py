"""The page of mixtures of experts."""

import streamlit as st

from calculators import page_kit
from calculators.experts import ROOM, curves, explanation, figures, wording
from calculators.experts.compute import compute
from calculators.experts.ranks import ranks_table
from calculators.experts.routing import Routing, routing_of
from calculators.outputs import as_table, columns_of, rows_of

inputs = page_kit.open_page(ROOM)
result = page_kit.answer_or_refusal(compute, inputs)
routing = routing_of(inputs)
caption = wording.caption(inputs, routing)
page_kit.headline(
    wording.answer(inputs, result),
    metrics=wording.metrics(result),
    remarks=result.warnings,
    basis=wording.basis(inputs, routing),
)


def touched(routing: Routing) -> None:
    """Draw the experts touched against the tokens of a step."""
    curve = curves.touched_curve(inputs, routing)
    page_kit.show_figure(
        figures.touched_against_tokens(result, curve, even=routing.even),
        "experts-touched",
        alt="Different experts that a step touches against its tokens, with their spread",
        caption=caption,
        table=columns_of(curve),
    )


def shares() -> None:
    """Draw the share of the experts that a step of every mixture reads."""
    lines = curves.read_curves(inputs)
    page_kit.show_figure(
        figures.share_against_tokens(inputs, result.tokens, lines),
        "share-of-experts",
        alt="Share of its experts that a step reads against its tokens, for every mixture of the database",
        caption="Every mixture of experts of the database",
        table=figures.share_table(lines),
    )


def costs() -> None:
    """Draw the time and the bytes of a step against its tokens, beside dense models."""
    if routing is None or not routing.recorded:
        st.markdown("Bytes and times are those of a mixture's record: choose one as the model, and type no counts in.")
        return
    st.markdown(wording.on_costs(inputs, result))
    st.markdown(wording.on_threshold(result))
    curve = curves.step_curve(inputs, routing, result)
    page_kit.show_figure(
        figures.time_against_tokens(inputs, result, curve),
        "step-time",
        alt="Time of a step of one instance against its tokens, beside dense models of the same active and total size",
        caption=caption,
        table=columns_of(curve),
    )
    page_kit.show_figure(
        figures.bytes_against_tokens(result, curve),
        "expert-bytes",
        alt="Expert weights that a step reads against its tokens",
        caption=caption,
        table=columns_of(curve),
    )


def every_mixture() -> None:
    """Draw every mixture of the database at this step."""
    st.markdown(wording.on_mixtures(inputs))
    page_kit.data_table(rows_of(page_kit.answer_or_refusal(curves.every_mixture, inputs)), "mixtures")
    if routing is not None:
        shares()


def ranks() -> None:
    """Draw what falls on the ranks of an expert-parallel group, for every number of ranks."""
    if routing is None:
        st.markdown("A dense model has no experts to deal out.")
        return
    st.markdown(wording.on_ranks(inputs, result, routing))
    table = ranks_table(inputs, routing)
    page_kit.show_figure(
        figures.load_against_ranks(inputs, table),
        "load-of-ranks",
        alt="Choices that fall on a rank in a layer, on average and on the busiest, against the number of ranks",
        caption=caption,
        table=rows_of(table),
    )
    page_kit.data_table(rows_of(table), "ranks")


def simulation() -> None:
    """Draw the simulated routing beside the formulas."""
    checked = page_kit.simulated(ROOM.name, inputs)
    if checked is None:
        return
    st.markdown(wording.agreement(checked))
    page_kit.data_table(rows_of(checked.rows), "check")
    page_kit.show_figure(
        figures.simulated_counts(checked),
        "simulated-counts",
        alt="Share of the steps by the number of different experts, simulated and exact",
        caption=caption,
        table={title: values for title, values in columns_of(checked.histogram).items() if values is not None},
    )
    if routing is not None and not routing.even:
        st.markdown(wording.on_choices())
        page_kit.show_figure(
            figures.popularity_of_experts(checked),
            "choices",
            alt="Share of the tokens that choose each expert, exact, simulated and by a rule of thumb",
            caption=caption,
            table=columns_of(checked.choices),
        )


if routing is None:
    shares()
else:
    touched(routing)
tabs = page_kit.Tabs(
    ["Bytes and time", "Every mixture", "Expert parallelism", "Formula", "Check by simulation", "Data", "Sources"],
    key="experts-view",
)
tabs.draw("Bytes and time", costs)
tabs.draw("Every mixture", every_mixture)
tabs.draw("Expert parallelism", ranks)
tabs.draw("Formula", lambda: page_kit.formulas(explanation.formulas(inputs, result, routing)))
tabs.draw("Check by simulation", simulation)
tabs.draw("Data", lambda: page_kit.data_table(as_table(result), "results"))
tabs.draw("Sources", lambda: page_kit.show_sources(explanation.facts(inputs, routing)))
