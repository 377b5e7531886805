"""The page of the time to first token."""

from dataclasses import replace
from typing import Any

import streamlit as st

from calculators import page_kit
from calculators.outputs import as_table, columns_of, duration, rows_of
from calculators.ttft import ROOM, burst_figures, burst_wording, figures, traffic_figures, traffic_wording, wording
from calculators.ttft.batching import batch_curves, batching, possible
from calculators.ttft.bursts import at_the_same_load, burst_on_idle, first_token_ms
from calculators.ttft.check import TtftCheck
from calculators.ttft.compute import compute
from calculators.ttft.convoy import behind_a_long_prompt, convoy, convoy_curve, elsewhere, goes_around
from calculators.ttft.curves import curves_of
from calculators.ttft.effects import effects, has_slow_rows, needs
from calculators.ttft.explanation import facts, percentile_formulas, queue_formulas, service_formulas
from calculators.ttft.gains import gains
from calculators.ttft.inputs import statistic
from calculators.ttft.methods import queue_of
from calculators.ttft.queues import Md1
from calculators.ttft.replay import replay
from calculators.ttft.sensitivity import sensitivities
from calculators.ttft.trace import of_outputs, summarise, values_from
from calculators.ttft.trace_statistics import on_trace, statistics_of
from calculators.ttft.whatif import alternatives
from calculators.ttft.wording import HEADLESS
from formulas.closed_form import DomainError

inputs = page_kit.open_page(ROOM)
queue = page_kit.answer_or_refusal(queue_of, inputs)
stable = queue.utilization(inputs.rate) < 1
caption = wording.caption(inputs)


def answered() -> bool:
    """Say whether there is an answer: what has to be simulated is, once it is asked for."""
    if not queue.slow or not stable:
        return True
    asked = page_kit.on_demand(
        wording.ASK[queue.kind], "answer", inputs, f"### {traffic_wording.waiting(inputs, queue)}"
    )
    if not asked:
        st.caption(queue.name)
    return asked


result = None
if answered():
    with page_kit.waiting("Computing …", slow=not isinstance(queue, Md1)):
        result = page_kit.answer_or_refusal(lambda: compute(inputs, thorough=False))
        curves = curves_of(inputs)
    page_kit.headline(
        wording.answer(inputs, result),
        metrics=wording.metrics(inputs, result),
        remarks=result.remarks,
        basis=wording.basis(inputs, result),
    )
    page_kit.show_figure(
        figures.ttft_against_rate(inputs, result, curves),
        "ttft-against-rate",
        alt=f"Time to first token against arrival rate: mean and percentiles, with the target of {inputs.ttft_slo_ms:g} ms",
        caption=caption,
        table=columns_of(curves),
    )
page_kit.rate_handle(queue.capacity)


def formulas() -> None:
    """Draw the formulas behind the answer, with the numbers put in."""
    if result is None:
        st.caption(HEADLESS)
        return
    percentiles = percentile_formulas(inputs, result)
    for heading, forms in (
        ("Service time", service_formulas(inputs)),
        ("Queue", queue_formulas(inputs, result)),
        ("Percentiles", percentiles),
    ):
        if heading == "Percentiles" and not forms and result.stable:
            continue
        st.subheader(heading, anchor=False)
        page_kit.formulas(forms)
    if not percentiles and result.stable:
        st.caption(f"Percentiles have no closed form here. {result.method} {result.approximation_error or ''}")


def simulation() -> None:
    """Draw the simulation beside the formula."""
    checked = page_kit.simulated(ROOM.name, inputs)
    if checked is None:
        return
    if not isinstance(checked, TtftCheck):
        st.markdown(traffic_wording.agreement(checked))
        for rows, name in ((checked.rows, "check"), (checked.compared, "compared")):
            if rows:
                page_kit.data_table(rows_of(rows), name)
        return
    st.markdown(wording.agreement(checked))
    page_kit.data_table(rows_of(checked.rows), "check")
    page_kit.show_figure(
        figures.distribution(checked),
        "ttft-distribution",
        alt="Share of requests by time to first token, simulated and exact",
        caption=caption,
        table=columns_of(checked.distribution),
    )
    st.subheader("What short runs report", anchor=False)
    st.markdown(wording.on_short_runs(checked))
    page_kit.show_figure(
        figures.short_runs(checked),
        "short-runs",
        alt="P99 as reported by runs of different lengths, beside the exact P99",
        caption=caption,
        table=rows_of(checked.short_runs),
    )


def what_matters() -> None:
    """Draw how the answer responds to each input."""
    rows = sensitivities(inputs)
    if not rows:
        st.markdown(
            "Without a steady state nothing can be said of small changes."
            if not stable
            else "The answer is simulated: small changes drown in its noise."
        )
        return
    st.markdown(wording.on_sensitivities(rows, statistic(inputs)))
    page_kit.show_figure(
        figures.what_matters(rows, statistic(inputs)),
        "what-matters",
        alt=f"Percent change of the {statistic(inputs)} for one percent change of each input",
        caption=caption,
        table=rows_of(rows),
    )


def what_if() -> None:
    """Draw what the choices that a planner has would do, one at a time."""
    if result is None:
        st.caption(HEADLESS)
        return
    pool = "one instance" if inputs.servers == 1 else f"the pool of {inputs.servers} instances"
    st.markdown(f"Each row changes one thing. The TTFT is the {statistic(inputs)} of {pool} with the whole rate.")
    if isinstance(queue, Md1) or page_kit.on_demand(
        "Compute the rows", "what-if", inputs, "With this traffic a row takes up to a second."
    ):
        with page_kit.waiting("Computing …", slow=not isinstance(queue, Md1)):
            rows = alternatives(inputs)
        page_kit.data_table(rows_of(rows), "what-if")


def traffic() -> None:
    """Draw what spread, bursts and the router each do, and how many instances each router needs."""
    above = st.container()
    slow = not has_slow_rows(inputs) or page_kit.on_demand(
        "Simulate longer", "effects", inputs, traffic_wording.ON_SHORT_SIMULATIONS
    )
    with above:
        with st.spinner("Computing …", show_time=False):
            rows = effects(inputs, slow=slow)
        st.markdown(traffic_wording.on_effects(inputs, rows))
        if any(row.p99_ttft_ms is not None for row in rows):
            page_kit.show_figure(
                traffic_figures.effect_bars(inputs, rows),
                "traffic-effects",
                alt=f"P99 of time to first token at {inputs.rate:g} requests/s under each kind of traffic",
                caption=caption,
                table=rows_of(rows),
            )
    page_kit.data_table(rows_of(rows), "effects")
    if inputs.order != "fcfs" and stable:
        orders()
    st.subheader("What a smarter router saves", anchor=False)
    asked = page_kit.on_demand(
        "Find the instances that each router needs",
        "needs",
        inputs,
        f"The fewest instances that keep the {statistic(inputs)} within {duration(inputs.ttft_slo_ms)} at this rate and with "
        "this traffic. The shortest queue is simulated: some seconds.",
    )
    if asked:
        found = page_kit.kept("needs", inputs, lambda move: needs(inputs, move), "Looking for the instances …")
        page_kit.data_table(rows_of(found), "needs")


def orders() -> None:
    """Draw who gains and who pays where short prompts go first."""
    st.subheader("Who gains, who pays", anchor=False)
    with st.spinner("Simulating …", show_time=False):
        rows = gains(inputs)
    st.markdown(traffic_wording.on_gains(rows))
    if rows:
        page_kit.data_table(rows_of(rows), "gains")


def bursts() -> None:
    """Draw other arrivals at the same utilization, a single burst on an idle pool, and one very long prompt."""
    rows = at_the_same_load(inputs)
    st.subheader("The same utilization, other arrivals", anchor=False)
    st.markdown(burst_wording.on_same_load(inputs, rows))
    if rows:
        page_kit.show_figure(
            burst_figures.same_load(rows),
            "same-load",
            alt="P99 of time to first token at the same utilization, under Poisson arrivals and three kinds of bursts",
            caption=caption,
            table=rows_of(rows),
        )
    st.subheader("A burst on an idle pool", anchor=False)
    burst, times = burst_on_idle(inputs), first_token_ms(inputs)
    st.markdown(burst_wording.on_burst(inputs, burst))
    if burst.burst > 1:
        page_kit.show_figure(
            burst_figures.burst(inputs, times),
            "burst",
            alt=f"Time to first token of each of {burst.burst} prompts that come at once",
            caption=caption,
            table=burst_figures.burst_table(times),
        )
    st.subheader("One very long prompt", anchor=False)
    if goes_around(inputs):
        st.markdown(burst_wording.on_elsewhere(inputs, elsewhere(inputs)))
        return
    found = convoy(inputs)
    st.markdown(burst_wording.on_convoy(inputs, found))
    if found is not None:
        curve = convoy_curve(found)
        page_kit.show_figure(
            burst_figures.convoy(found, curve),
            "convoy",
            alt=f"Mean extra wait against the time after a prompt of {inputs.long_tokens:,} tokens",
            caption=caption,
            table=columns_of(curve),
        )
        st.caption(burst_wording.ON_CONVOY_CURVE)


def batches() -> None:
    """Draw what prefilling prompts together brings, up to the saturation length and beyond."""
    if not possible(inputs):
        st.markdown(burst_wording.NOT_KNOWN)
        return
    found = batching(inputs)
    st.markdown(burst_wording.on_batching(inputs, found))
    curves = batch_curves(inputs, found)
    page_kit.show_figure(
        burst_figures.batches(inputs, curves),
        "batches",
        alt="Mean time to first token of one instance against its rate, one at a time and in batches",
        caption=caption,
        table=burst_figures.batch_table(curves),
    )
    page_kit.data_table(rows_of(found.rows), "batches")


def trace() -> None:
    """Draw what an uploaded trace shows, offer its figures as inputs, and replay it."""
    found = page_kit.uploaded_trace(traffic_wording.NO_FILE_IN_LINK)
    if found is None:
        return
    try:
        with st.spinner(f"Looking at {len(found.trace):,} requests …", show_time=False):
            summary, shown = summarise(found.trace), statistics_of(found.trace)
    except DomainError as too_short:
        st.text(str(too_short))
        return
    st.markdown(traffic_wording.on_file(found.name, summary, found.trace.notes))
    if summary.broken:
        with st.expander("Rows that could not be used: the first of them"):
            for line in summary.broken:
                st.text(line)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Use this traffic in the scenario",
            key="use-trace",
            icon=":material/input:",
            on_click=page_kit.take_over,
            args=(ROOM.inputs, values_from(summary) | of_outputs(summary) | {"arrivals": "gamma"}),
        )
    with st.expander("What is taken over, to the last digit"):
        page_kit.data_table(as_table(summary), "trace-summary")
    st.markdown(on_trace(shown, summary.arrival_scv))
    drawn: list[tuple[str, str, Any, Any]] = [
        ("rate-over-time", "Rate over time", traffic_figures.rate_over_time(shown, summary.rate), shown.rate)
    ]
    if shown.bursts is not None:
        burst_figure = traffic_figures.bursts(shown.bursts, summary.arrival_scv)
        drawn.append(("bursts", "Burstiness at several time scales", burst_figure, shown.bursts))
    for what, seen in (("prompts", shown.inputs), ("outputs", shown.outputs)):
        drawn.append((f"lengths-of-{what}", f"Length of {what}", traffic_figures.lengths(seen, what), seen))
    for name, title, figure, curve in drawn:
        st.subheader(title, anchor=False)
        page_kit.show_figure(figure, name, alt=f"{title} of the trace {found.name}", table=columns_of(curve))
    page_kit.data_table(rows_of(shown.fits), "fits")
    st.subheader("Replay", anchor=False)
    asked = (inputs, found.name, len(found.trace), summary.rate)
    if page_kit.on_demand("Replay the trace", "replay", asked, traffic_wording.ON_REPLAY):
        replayed = page_kit.kept("replay", asked, lambda move: replay(inputs, found.trace, move), "Replaying …")
        st.markdown(traffic_wording.on_replay(replayed))
        page_kit.data_table(rows_of(replayed.rows), "replay")


def data() -> None:
    """Draw the answer's figures, then the curves of the plot."""
    if result is None:
        st.caption(HEADLESS)
        return
    whole = replace(result, burst=burst_on_idle(inputs), long_prompt=behind_a_long_prompt(inputs))
    page_kit.data_table(as_table(whole), "results")
    page_kit.data_table(columns_of(curves), "sweep")


names = [
    "What if", "Traffic", "Bursts and convoys", "Batching", "Trace",
    "Formula", "Check by simulation", "What matters", "Data", "Sources",
]  # fmt: skip
tabs = page_kit.Tabs(names, key="view")
tabs.draw("What if", what_if)
tabs.draw("Traffic", traffic)
tabs.draw("Bursts and convoys", bursts)
tabs.draw("Batching", batches)
tabs.draw("Trace", trace)
tabs.draw("Formula", formulas)
tabs.draw("Check by simulation", simulation)
tabs.draw("What matters", what_matters)
tabs.draw("Data", data)
tabs.draw("Sources", lambda: page_kit.show_sources(facts(inputs)))
