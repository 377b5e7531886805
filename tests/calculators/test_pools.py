"""Pools of instances: the lecture's exercise, the paper's figure, goodputs from the forms, and the event simulation."""

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
from calculators.pools import curves, explanation, figures, wording
from calculators.pools.check import check
from calculators.pools.compute import compute, goodputs_of, sides_of
from calculators.pools.inputs import PoolsInputs
from calculators.systems import Disaggregated, PrefillFirst, ServingInputs
from formulas.closed_form import DomainError

ROOT = Path(__file__).parents[2]
EXERCISE = PoolsInputs(prefill_goodput=6, decode_goodput=20, colocated_goodput=3, target_rate=60)
KEYS = {
    "prefill_instances", "decode_instances", "gpus", "goodput_per_gpu", "group_goodput", "rounding_waste",
    "gain_over_colocated",
}  # fmt: skip


def command_line(words):
    command = [sys.executable, "-m", "calculators", "pools", *words.split(), "--json"]
    return json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)["results"]


@pytest.mark.parametrize(
    ("rate", "prefills", "each", "waste", "gain"),
    [(60, 10, 4.615385, 0, 1.538462), (50, 9, 4.166667, 1 - 4.166667 / 4.615385, 1.388889)],
)
def test_exercise_4(rate, prefills, each, waste, gain):
    result = compute(replace(EXERCISE, target_rate=rate))
    assert (result.prefill_instances, result.decode_instances, result.gpus) == (prefills, 3, prefills + 3)
    assert result.goodput_per_gpu == pytest.approx(each, rel=1e-6)
    assert result.rounding_waste == pytest.approx(waste, abs=1e-6)
    assert result.gain_over_colocated == pytest.approx(gain, rel=1e-6)


def test_figure_1_of_distserve_on_the_command_line():
    words = (
        "--prefill-goodput 5.6 --decode-goodput 10 --colocated-goodput 1.6 --prefill-instances 2 --decode-instances 1"
    )
    results = command_line(words)
    assert set(results) >= KEYS
    assert results["group_goodput"] == 10
    assert results["goodput_per_gpu"] == pytest.approx(3.333333, rel=1e-6)
    assert results["gain_over_colocated"] == pytest.approx(2.083333, rel=1e-6)


def test_goodputs_are_those_of_the_three_ways_to_serve():
    """The lecture's scenario: 59.14 for prefills alone, about 29.7 colocated, about 1.7 times in proportion."""
    inputs = PoolsInputs()
    found = goodputs_of(inputs)
    shared = part_of(ServingInputs, inputs)
    assert found.prefill == pytest.approx(59.14, rel=1e-4)
    assert found.colocated == pytest.approx(29.7, rel=0.05)
    assert found.colocated == PrefillFirst(shared).goodput(inputs)
    split = Disaggregated(shared).in_proportion(inputs)
    assert found.decode / found.prefill == pytest.approx(split.prefill_instances / split.decode_instances)
    result = compute(inputs)
    assert result.ideal_goodput_per_gpu / found.colocated == pytest.approx(1.7, rel=0.03)


def test_the_decode_side_may_have_other_chips():
    same, other = goodputs_of(PoolsInputs()), goodputs_of(PoolsInputs(decode_accelerator="h200-sxm", decode_tp=2))
    assert other.prefill == same.prefill
    assert other.colocated == same.colocated
    assert other.decode > 1.5 * same.decode
    result = compute(PoolsInputs(decode_accelerator="h200-sxm", decode_tp=2))
    assert result.gpus == result.prefill_instances + 2 * result.decode_instances
    with pytest.raises(InputsError, match=r"^decode_tp = 2: L40S has no scale-up link"):
        compute(PoolsInputs(decode_accelerator="l40s", decode_tp=2))


def test_spares_and_headroom_are_instances_on_top():
    result = compute(replace(EXERCISE, spare=1, headroom=0.2))
    assert (result.prefill_instances, result.decode_instances) == (12 + 1, 4 + 1)
    assert result.goodput_after_loss >= 1.2 * 60
    assert compute(EXERCISE).goodput_after_loss < 60
    given = compute(replace(EXERCISE, prefill_instances=13, decode_instances=5, spare=1, headroom=0.2))
    assert given.served_rate == pytest.approx(min(12 * 6, 4 * 20) / 1.2)
    nothing = compute(replace(EXERCISE, prefill_instances=1, decode_instances=1, spare=1))
    assert nothing.served_rate == 0
    assert any("spares" in sentence for sentence in nothing.warnings)


def test_the_other_side_is_matched_to_the_one_that_is_given():
    result = compute(replace(EXERCISE, prefill_instances=10))
    assert (result.prefill_instances, result.decode_instances, result.served_rate) == (10, 3, 60)
    result = compute(replace(EXERCISE, decode_instances=2))
    assert (result.prefill_instances, result.decode_instances) == (7, 2)


def test_the_curve_passes_through_the_answer_and_below_the_ideal():
    for inputs in (EXERCISE, replace(EXERCISE, target_rate=50, spare=1, headroom=0.3)):
        result = compute(inputs)
        sides = sides_of(inputs, goodputs_of(inputs))
        curve = curves.rate_curve(inputs, result, sides)
        assert np.all(curve.goodput_per_gpu <= result.ideal_goodput_per_gpu * (1 + 1e-9))
        index = int(np.searchsorted(curve.rate, inputs.target_rate))
        here = inputs.target_rate / (result.prefill_instances + result.decode_instances)
        assert curve.goodput_per_gpu[index] == pytest.approx(here, rel=0.03)
    falls = np.diff(curve.goodput_per_gpu).min()
    assert falls < -0.01  # the steps are there


def test_budgets_reach_the_ideal_at_thirteen():
    result = compute(EXERCISE)
    rows = curves.budgets(result, sides_of(EXERCISE, goodputs_of(EXERCISE)))
    by_size = {row.gpus: row for row in rows}
    assert (by_size[13].prefill_instances, by_size[13].decode_instances) == (10, 3)
    assert by_size[13].share == pytest.approx(1)
    assert all(row.share <= 1 + 1e-9 for row in rows)
    assert "10 + 3 carries most" in wording.on_budgets(result, rows)


def test_longer_prompts_make_the_prefill_side_the_weaker_one():
    inputs = PoolsInputs(prefill_instances=5, decode_instances=1)
    found = curves.shift_map(inputs, compute(inputs))
    now = list(found.prompt).index(1.0)
    assert found.relative[now, now] == pytest.approx(1)
    assert found.prefill_binds[now, -1]
    assert not found.prefill_binds[-1, 0]
    relative = np.nan_to_num(found.relative)
    assert np.all(np.diff(relative, axis=0) <= 1e-9)
    assert np.all(np.diff(relative, axis=1) <= 1e-9)
    typed = replace(inputs, prefill_goodput=30)
    assert curves.shift_map(typed, compute(typed)).relative[now, now] == pytest.approx(1)


def test_the_simulation_attains_what_the_forms_say():
    """The interval of one instance holds the attainment; a router that sees the queues does better than chance."""
    found = check(PoolsInputs(customers=20_000, target_rate=200))
    prefill, decode, group = found.rows
    assert prefill.low < 0.9 < prefill.high
    assert decode.low < 0.9 < decode.high
    assert group.simulated > 0.9
    with pytest.raises(DomainError, match="typed in"):
        check(EXERCISE)


@pytest.mark.parametrize(
    ("changes", "begins"),
    [
        ({"ttft_slo_ms": 5}, "Too slow even unloaded"),
        ({"tpot_slo_ms": 5}, "Too slow even alone"),
        ({"model": "llama-3.1-70b", "ttft_slo_ms": 1000}, "Does not fit"),
        ({"output_tokens": 1}, "A single output token"),
    ],
)
def test_what_has_no_answer_says_which_kind_of_no(changes, begins):
    inputs = PoolsInputs(**changes)
    result = compute(inputs)
    assert result.gpus is None
    assert any(sentence.startswith(begins) for sentence in result.warnings)
    assert "No number of" in wording.answer(inputs, result)
    with pytest.raises(DomainError):
        check(inputs)


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(list(hardware_db.models())),
    st.sampled_from(["h100-sxm", "b200-sxm", "a100-80-sxm", "mi300x"]),
    st.sampled_from([None, "h200-sxm", "l40s"]),
    st.sampled_from([1, 8]),
    st.floats(0.001, 1e5),
    st.integers(0, 2),
    st.floats(0, 2),
)
def test_every_scenario_has_an_answer(model, accelerator, other, tp, rate, spare, headroom):
    inputs = PoolsInputs(
        model=model, accelerator=accelerator, decode_accelerator=other, tp=tp, target_rate=rate, spare=spare,
        headroom=headroom, ttft_slo_ms=1000, tpot_slo_ms=50,
    )  # fmt: skip
    try:
        result = compute(inputs)
    except InputsError:  # a chip without the data type or the link
        return
    assert wording.answer(inputs, result)
    assert wording.metrics(inputs, result)
    for value in outputs.as_dict(result).values():
        assert not isinstance(value, float) or (np.isfinite(value) and value >= 0)
    if result.gpus is None:
        return
    assert result.group_goodput >= rate * (1 + headroom) * (1 - 1e-8)
    assert result.goodput_per_gpu <= result.ideal_goodput_per_gpu * (1 + 1e-9)
    assert result.rounding_waste < 1
    sides = sides_of(inputs, goodputs_of(inputs))
    for shown in explanation.formulas(inputs, result, sides):
        assert not shown.form.violations(**shown.values)
    figures.goodput_against_rate(result, curves.rate_curve(inputs, result, sides))
    assert curves.budgets(result, sides)


def test_contexts_that_differ_make_tokens_late_as_often_as_in_the_simulation():
    inputs = PoolsInputs(prompt_tokens=1000, prompt_cv=2.0, ttft_slo_ms=1000.0, tpot_slo_ms=15.0, customers=40_000)
    equal = goodputs_of(replace(inputs, prompt_cv=0.0)).decode
    assert goodputs_of(inputs).decode < 0.95 * equal
    row = check(inputs).rows[1]
    assert row.low <= inputs.attainment <= row.high
