"""Prompts and tokens on the same accelerators: the lecture's numbers, the event simulation, the three ways."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hardware_db
from calculators import outputs
from calculators.inputs import InputsError, part_of
from calculators.interference import curves, example, figures, wording
from calculators.interference.check import check
from calculators.interference.compute import InterferenceInputs, compute, systems_of
from calculators.interference.mixed import mixed_curve
from calculators.kv_transfer import TransferInputs, route_of, transfer
from calculators.machine import MachineInputs
from calculators.scenario import ServiceLevels
from calculators.simulation import link_of
from calculators.systems import ChunkedPrefill, Disaggregated, PrefillFirst, ServingInputs, overtaking_rates
from formulas.closed_form import DomainError
from formulas.queueing import md1

ROOT = Path(__file__).parents[2]
WAYS = ("prefill_first", "chunked", "disaggregated")
LECTURE = InterferenceInputs(batch=32, context_tokens=700)


@pytest.mark.parametrize(("prompt", "mixed_ms"), [(128, 7.6960), (512, 14.8954), (2048, 55.4837)])
def test_a_prompt_in_a_step_of_the_lecture(prompt, mixed_ms):
    result = compute(replace(LECTURE, prompt_tokens=prompt))
    assert result.decode_step_ms == pytest.approx(7.6960, rel=1e-4)
    assert result.mixed_step_ms == pytest.approx(mixed_ms, rel=1e-4)
    assert result.slowdown == pytest.approx(mixed_ms / 7.6960, rel=1e-3)
    assert ("rides for free" in wording.answer(replace(LECTURE, prompt_tokens=prompt), result)) == (prompt == 128)


def test_the_prompt_that_rides_for_free_is_where_the_step_begins_to_grow():
    free = compute(LECTURE).free_prompt_tokens
    assert free == pytest.approx(231.0, abs=0.1)  # by the closed form, tests/formulas/test_interference.py
    curve = mixed_curve(part_of(MachineInputs, LECTURE), 32, 700, 2048)
    late = np.interp([0.97 * free, 1.2 * free], curve.prompt_tokens, curve.late_ms)
    assert late[0] == pytest.approx(0, abs=0.05)
    assert late[1] > 0.5


@pytest.mark.parametrize(
    "instance",
    [
        {"model": "llama-3.1-70b", "tp": 4},  # more to reduce
        {"model": "mixtral-8x7b", "accelerator": "h200-sxm"},  # more experts to read
    ],
)
def test_nothing_rides_for_free_where_a_prompt_costs_anything(instance):
    assert compute(replace(LECTURE, **instance)).free_prompt_tokens == 0


@pytest.mark.parametrize("rate", [10, 30, 40])
def test_the_forms_agree_with_the_event_simulation(rate):
    """At the errors that the page states; P99 and P90 of the first token in chunks are the loose ones."""
    for row in check(InterferenceInputs(rate=rate, customers=40_000)).rows:
        statistic, way = row.label.split()[0], row.label.split(", ")[1]
        loose = {"prefill first": 2, "chunked": 3, "disaggregated": 2}[way]
        limit = {"mean": loose, "P90": 11 if way == "chunked" else 2 * loose, "P99": 12}[statistic]
        assert abs(row.off_percent) < limit, row


def test_the_simulated_link_takes_as_long_as_in_the_formulas():
    inputs = InterferenceInputs(message_overhead_us=5, links_used=2, link_efficiency=0.7, cached_tokens=100)
    route = route_of(part_of(TransferInputs, inputs))
    alone_ms = transfer(part_of(TransferInputs, inputs), route, 10.0).link_ms
    link = link_of(inputs)
    assert 1e3 * link.bytes_per_token * inputs.prompt_tokens / link.bytes_s == pytest.approx(alone_ms, rel=1e-12)


def test_attainment_agrees_with_the_event_simulation():
    for share in check(InterferenceInputs(rate=28, customers=40_000)).shares:
        assert share.formula == pytest.approx(share.simulated, abs=0.03), share


def test_goodput_of_the_lecture():
    """59.14 for prefills alone; 29.7 by simulation for prefill first; about 1.7 times for each accelerator."""
    result = compute(InterferenceInputs())
    assert result.disaggregated.goodput == pytest.approx(59.14, rel=1e-3)
    assert result.prefill_first.goodput == pytest.approx(29.7, rel=0.05)
    gain = result.disaggregated.goodput_per_accelerator / result.prefill_first.goodput_per_accelerator
    assert gain == pytest.approx(1.7, rel=0.03)
    assert result.best == "chunked"


def test_the_goodput_is_where_the_attainment_is_just_met():
    targets = ServiceLevels()
    shared = part_of(ServingInputs, InterferenceInputs())
    for system in (PrefillFirst(shared), ChunkedPrefill(shared, 512), Disaggregated(shared)):
        highest = system.goodput(targets)
        assert system.at(0.998 * highest).attainment(targets) > targets.attainment
        assert system.at(1.002 * highest).attainment(targets) < targets.attainment


def test_disaggregated_is_the_queue_and_the_pool_apart():
    inputs = InterferenceInputs(rate=10)
    result = compute(inputs).disaggregated
    exact = 1e3 * md1.MEAN_TTFT(rate=10, service_time=compute(inputs).prefill_ms / 1e3)
    assert result.mean_ttft_ms == pytest.approx(exact, rel=1e-12)
    slow = compute(replace(inputs, link="eth-10g"))
    assert slow.disaggregated.mean_tpot_ms - result.mean_tpot_ms == pytest.approx(
        (slow.transfer_ms - compute(inputs).transfer_ms) / 63, rel=1e-9
    )
    assert compute(replace(inputs, link="eth-10g", links_used=1, rate=60)).disaggregated.mean_tpot_ms is None


def test_chunks_cost_steps_and_reading():
    result = compute(InterferenceInputs(rate=2, prompt_tokens=4000, chunk_tokens=512))
    assert result.chunk_steps == 8
    assert result.reread_tokens == pytest.approx(512 * 8 * 7 / 2, rel=0.01)
    assert result.chunk_ttft_steps >= 8


def test_a_budget_below_the_batch_starves_the_prompts():
    inputs = InterferenceInputs(rate=20, output_tokens=512, chunk_tokens=128)
    result = compute(inputs)
    assert result.chunked.mean_ttft_ms is None
    assert any(sentence.startswith("Starved") for sentence in result.warnings)


@pytest.mark.parametrize("changes", [{"prompt_tokens": 1}, {"output_tokens": 2}])
def test_the_main_figure_is_drawn_at_the_edges(changes):
    inputs = InterferenceInputs(**changes)
    lines = curves.curves_of(systems_of(inputs), inputs)
    for what in ("ttft", "tpot"):
        figure = figures.time_against_rate(inputs, compute(inputs), lines, what)
        assert all(np.isfinite(figure.layout.yaxis.range))


def test_the_ways_change_places_on_the_same_accelerators():
    systems = systems_of(InterferenceInputs())
    found = curves.overtakings(curves.on_the_same_accelerators(systems, ServiceLevels()), "P90")
    assert {(each.what, each.better_below) for each in found} >= {
        ("P90 TTFT", "Disaggregated"),
        ("P90 TPOT", "Disaggregated"),
    }
    assert all(each.rate > 0 for each in found)
    with_gap = overtaking_rates(np.array([1.0, 2, 3]), np.array([1, np.nan, 3.0]), np.array([2.0, 2, 2]))
    assert with_gap == [2.0]


def test_the_travel_agents():
    """No number of H100s has both 25 ms for a token and 80 ms for the query, as the page says."""
    rows = example.agents(MachineInputs())
    assert [row.accelerators for row in rows] == [2, 4, 8]
    assert all(row.cache_gb == pytest.approx(0.65536) for row in rows)
    assert not any(row.decode_step_ms > 22 and row.prefill_ms < 95 for row in rows)
    assert all(row.mixed_step_ms > 2.5 * row.decode_step_ms for row in rows)


def test_the_command_line_gives_the_keys_of_the_answer():
    words = "--batch 32 --context-tokens 700 --prompt-tokens 512 --rate 40 --output-tokens 64 --chunk-tokens 512 --json"
    command = [sys.executable, "-m", "calculators", "interference", *words.split()]
    results = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)[
        "results"
    ]
    wanted = {f"{way}_{name}" for way in WAYS for name in ("mean_ttft_ms", "mean_tpot_ms", "p90_tpot_ms")}
    assert set(results) >= wanted | {"decode_step_ms", "mixed_step_ms", "slowdown", "free_prompt_tokens"}
    assert results["prefill_first_mean_tpot_ms"] == pytest.approx(18.65, rel=0.02)


@pytest.mark.parametrize(
    "changes", [{"model": "llama-3.1-70b"}, {"output_tokens": 1}, {"rate": 1e6}, {"tpot_slo_ms": 1}]
)
def test_what_has_no_answer_says_so(changes):
    inputs = InterferenceInputs(**changes)
    result = compute(inputs)
    assert wording.answer(inputs, result)
    if "tpot_slo_ms" not in changes:
        assert result.prefill_first.mean_ttft_ms is None
        with pytest.raises(DomainError):
            check(inputs)
    if "rate" not in changes:
        assert result.best is None


@settings(max_examples=10, deadline=None)
@given(
    st.sampled_from(list(hardware_db.models())),
    st.sampled_from(["h100-sxm", "h200-sxm", "b200-sxm", "a100-80-sxm", "mi300x", "l40s"]),
    st.sampled_from([1, 8]),
    st.floats(0.001, 200),
    st.integers(1, 20_000),
    st.integers(2, 2000),
    st.integers(1, 8192),
)
def test_every_scenario_has_an_answer_in_order(model, accelerator, tp, rate, prompt, output, budget):
    inputs = InterferenceInputs(
        model=model, accelerator=accelerator, tp=tp, rate=rate, prompt_tokens=prompt, output_tokens=output,
        chunk_tokens=budget,
    )  # fmt: skip
    try:
        result = compute(inputs)
    except (
        InputsError
    ):  # a chip without the data type or the link; tests/calculators/test_service_time.py has the words
        return
    assert wording.answer(inputs, result)
    assert result.mixed_step_ms >= result.decode_step_ms * (1 - 1e-12)
    for value in outputs.as_dict(result).values():
        assert not isinstance(value, float) or (np.isfinite(value) and value >= -1e-9)
    for way in WAYS:
        served = getattr(result, way)
        if served.mean_ttft_ms is not None:
            assert served.p90_ttft_ms <= served.p99_ttft_ms * (1 + 1e-9)
            assert served.p90_tpot_ms <= served.p99_tpot_ms * (1 + 1e-9)
            assert 0 <= served.attainment <= 1 + 1e-9
