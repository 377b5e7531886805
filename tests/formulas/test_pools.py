"""Pools: the lecture's exercise, the paper's first figure, and what must hold for any numbers."""

import math

import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from formulas import pools
from formulas.closed_form import DomainError

RATES = st.floats(0.01, 1e4)
SIZES = st.integers(1, 8)
# Lecture on disaggregated serving, section 13, exercise 4: 6 and 20 requests/s, colocated 3.
EXERCISE = {"prefill_goodput": 6, "decode_goodput": 20}
# DistServe (OSDI 2024), figure 1: OPT-13B on A100, 512 tokens in and 64 out.
FIGURE = {"prefill_goodput": 5.6, "decode_goodput": 10}
SINGLE = {"prefill_gpus": 1, "decode_gpus": 1}


@pytest.mark.parametrize(
    ("rate", "prefills", "decodes", "each", "gain"),
    [(60, 10, 3, 4.615385, 1.538462), (50, 9, 3, 4.166667, 1.388889)],
)
def test_exercise_4(rate, prefills, decodes, each, gain):
    assert pools.INSTANCES(carried_rate=rate, goodput=6) == prefills
    assert pools.INSTANCES(carried_rate=rate, goodput=20) == decodes
    found = pools.GOODPUT_PER_GPU(rate=rate, prefill_instances=prefills, decode_instances=decodes, **SINGLE)
    assert found == pytest.approx(each, rel=1e-6)
    assert pools.GAIN_OVER_COLOCATED(goodput_per_gpu=found, colocated_per_gpu=3) == pytest.approx(gain, rel=1e-6)
    split = pools.split_for(rate, **EXERCISE)
    assert (split.prefill_instances, split.decode_instances, split.gpus) == (prefills, decodes, prefills + decodes)


def test_figure_1_of_distserve():
    group = pools.GROUP_GOODPUT(prefill_instances=2, decode_instances=1, **FIGURE)
    assert group == 10
    each = pools.GOODPUT_PER_GPU(rate=group, prefill_instances=2, decode_instances=1, **SINGLE)
    assert each == pytest.approx(3.333333, rel=1e-6)
    assert pools.GAIN_OVER_COLOCATED(goodput_per_gpu=each, colocated_per_gpu=1.6) == pytest.approx(2.083333, rel=1e-6)
    split = pools.best_split(3, **FIGURE)
    assert (split.prefill_instances, split.decode_instances, split.goodput) == (2, 1, 10)


def test_sixty_requests_waste_nothing_and_fifty_a_tenth():
    """At 60 the ratio of the exercise is 10 to 3 exactly."""
    counts = {"prefill_instances": 10, "decode_instances": 3}
    assert pools.WASTED(carried_rate=60, **EXERCISE, **SINGLE, **counts) == pytest.approx(0, abs=1e-12)
    fifty = pools.WASTED(carried_rate=50, **EXERCISE, **SINGLE, **counts | {"prefill_instances": 9})
    ideal = pools.IDEAL_GOODPUT(**EXERCISE, **SINGLE)
    assert fifty == pytest.approx(1 - 50 / 12 / ideal, rel=1e-12)
    assert pools.IDEAL_RATIO(**EXERCISE) == pytest.approx(10 / 3)


def test_the_ideal_is_the_limit_of_large_pools():
    ideal = pools.IDEAL_GOODPUT(**EXERCISE, **SINGLE)
    errors = [1 - pools.split_for(rate, **EXERCISE).goodput_per_gpu / ideal for rate in (7, 61, 607, 60_007)]
    assert all(error >= -1e-12 for error in errors)
    assert errors[-1] < 1e-3


def test_the_derivations_lead_to_the_formulas():
    share = pools.IDEAL_GOODPUT.steps[2].equation.rhs
    carried = sp.simplify(share * pools.PREFILL.symbol / pools.PREFILL_SIZE.symbol)
    assert sp.simplify(carried - pools.IDEAL_GOODPUT.expression) == 0
    needed, present = (step.equation.rhs for step in pools.WASTED.steps[:2])
    assert sp.simplify(1 - needed / present - pools.WASTED.expression) == 0
    over = pools.WASTE_BOUND.steps[-2].equation.rhs
    assert sp.simplify(1 - needed / over - pools.WASTE_BOUND.expression) == 0
    either = sp.Min(*(step.equation.rhs for step in pools.AFTER_LOSS.steps[:2]))
    numbers = {pools.PREFILLS.symbol: 4, pools.DECODES.symbol: 3, pools.PREFILL.symbol: 6, pools.DECODE.symbol: 7}
    assert either.subs(numbers) == pools.AFTER_LOSS.expression.subs(numbers) == 14


@given(RATES, RATES, RATES, SIZES, SIZES)
def test_the_split_for_a_rate_carries_it_and_no_smaller_one_does(rate, prefill, decode, prefill_gpus, decode_gpus):
    split = pools.split_for(rate, prefill, decode, prefill_gpus, decode_gpus)
    assert split.goodput >= rate * (1 - 1e-8)
    assert split.prefill_instances == 1 or (split.prefill_instances - 1) * prefill < rate
    assert split.decode_instances == 1 or (split.decode_instances - 1) * decode < rate
    sizes = {"prefill_gpus": prefill_gpus, "decode_gpus": decode_gpus}
    sides = {"prefill_goodput": prefill, "decode_goodput": decode}
    counts = {"prefill_instances": split.prefill_instances, "decode_instances": split.decode_instances}
    carried = min(rate, split.goodput)
    waste = pools.WASTED(carried_rate=carried, **sizes, **sides, **counts)
    assert -1e-9 <= waste < pools.WASTE_BOUND(carried_rate=carried, **sizes, **sides) + 1e-8


@given(st.integers(2, 60), st.floats(0.1, 100), st.floats(0.1, 100), SIZES, SIZES)
def test_the_best_split_is_the_best_of_all(gpus, prefill, decode, prefill_gpus, decode_gpus):
    if gpus < prefill_gpus + decode_gpus:
        with pytest.raises(DomainError, match="too few"):
            pools.best_split(gpus, prefill, decode, prefill_gpus, decode_gpus)
        return
    split = pools.best_split(gpus, prefill, decode, prefill_gpus, decode_gpus)
    every = [
        min(n * prefill, m * decode)
        for n in range(1, gpus + 1)
        for m in range(1, gpus + 1)
        if n * prefill_gpus + m * decode_gpus <= gpus
    ]
    assert split.goodput == pytest.approx(max(every), rel=1e-9)
    assert split.gpus <= gpus
    ideal = pools.IDEAL_GOODPUT(
        prefill_goodput=prefill, decode_goodput=decode, prefill_gpus=prefill_gpus, decode_gpus=decode_gpus
    )
    assert split.goodput <= gpus * ideal * (1 + 1e-9)


@given(st.integers(1, 40), st.integers(1, 40), RATES, RATES)
def test_losing_an_instance_never_helps(prefills, decodes, prefill, decode):
    group = {"prefill_goodput": prefill, "decode_goodput": decode}
    whole = pools.GROUP_GOODPUT(prefill_instances=prefills, decode_instances=decodes, **group)
    left = pools.AFTER_LOSS(prefill_instances=prefills, decode_instances=decodes, **group)
    assert 0 <= left < whole
    one_less = [
        min(max(n, 0) * prefill, max(m, 0) * decode) for n, m in ((prefills - 1, decodes), (prefills, decodes - 1))
    ]
    assert left == pytest.approx(min(one_less))


def test_what_is_outside_says_so():
    with pytest.raises(DomainError, match="does not carry"):
        pools.WASTED(carried_rate=70, prefill_instances=10, decode_instances=3, **EXERCISE, **SINGLE)
    with pytest.raises(DomainError, match="above zero"):
        pools.best_split(4, 0, 20)
    assert pools.PLANNED_RATE(rate=50, headroom=0.2) == pytest.approx(60)
    assert math.isclose(pools.split_for(0.1 + 0.2, 0.3, 0.1).decode_instances, 3)
