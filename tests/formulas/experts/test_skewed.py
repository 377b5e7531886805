from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulas.closed_form import DomainError
from formulas.experts import (
    DISTINCT_EXPERTS,
    distinct_sd,
    inclusion_probabilities,
    share_with_replacement,
    touched_of,
    touched_sd,
    zipf_weights,
)
from formulas.experts.skewed import exclusion_factors
from tests.formulas.experts.test_clocks import all_orders


def every_step(weights, chosen, tokens):
    """Mean and standard deviation of the different experts over everything that can happen."""
    choices = {}
    for order, chance in all_orders(weights, chosen):
        choices[frozenset(order)] = choices.get(frozenset(order), 0.0) + chance
    counts, chances = zip(
        *(
            (len(frozenset().union(*(c for c, _ in step))), np.prod([p for _, p in step]))
            for step in product(choices.items(), repeat=tokens)
        ),
        strict=True,
    )
    mean = np.dot(counts, chances)
    return mean, np.sqrt(np.dot((np.array(counts) - mean) ** 2, chances))


@pytest.mark.parametrize("weights", [[4.0, 3.0, 2.0, 1.0], [9.0, 1.0, 1.0, 0.5, 0.2]])
def test_mean_is_exact_and_spread_nearly(weights):
    mean, sd = every_step(weights, 2, 3)
    p = inclusion_probabilities(weights, 2)
    assert touched_of(p, 3) == pytest.approx(mean, rel=1e-12)
    assert touched_sd(p, 3) == pytest.approx(sd, rel=0.05)


def test_spread_of_single_choices_is_exact():
    weights = [5.0, 1.0, 1.0, 0.5]
    p = inclusion_probabilities(weights, 1)
    assert touched_sd(p, 4) == pytest.approx(every_step(weights, 1, 4)[1], rel=1e-12)


@given(experts=st.integers(2, 300), share=st.floats(0, 1), tokens=st.integers(1, 500))
@settings(max_examples=40, deadline=None)
def test_even_routing_is_a_special_case(experts, share, tokens):
    chosen = 1 + round(share * (experts - 1))
    p = inclusion_probabilities(np.ones(experts), chosen)
    mean = DISTINCT_EXPERTS(experts=experts, experts_per_token=chosen, tokens=tokens)
    assert touched_of(p, tokens) == pytest.approx(mean, rel=1e-12)
    assert touched_sd(p, tokens) == pytest.approx(distinct_sd(experts, chosen, tokens), rel=1e-5, abs=1e-5)


@given(
    experts=st.integers(3, 60),
    share=st.floats(0, 1),
    exponent=st.floats(0, 3),
    tokens=st.integers(1, 200),
)
@settings(max_examples=40, deadline=None)
def test_skewed_routing_touches_fewer(experts, share, exponent, tokens):
    chosen = 1 + round(share * (experts - 2))
    p = inclusion_probabilities(zipf_weights(experts, exponent), chosen)
    touched = touched_of(p, tokens)
    assert chosen * (1 - 1e-9) <= touched
    assert touched <= DISTINCT_EXPERTS(experts=experts, experts_per_token=chosen, tokens=tokens) * (1 + 1e-9)
    assert 0 <= touched_sd(p, tokens) <= np.sqrt(experts) / 2 + 1e-9


def test_one_token_touches_exactly_its_own():
    p = inclusion_probabilities(zipf_weights(128, 1.5), 4)
    assert touched_of(p, 1) == pytest.approx(4, rel=1e-12)
    assert touched_sd(p, 1) == 0.0
    assert touched_sd(p, 1 + 1e-9) < 1e-3  # and not by decree alone


@given(weights=st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=8), share=st.floats(0, 1))
@settings(max_examples=60, deadline=None)
def test_exclusion_factors_make_a_token_touch_a_fixed_number(weights, share):
    p = inclusion_probabilities(weights, 1 + round(share * (len(weights) - 2)))
    c = exclusion_factors(p)
    np.testing.assert_allclose(c * (c.sum() - c), p * (1 - p), atol=1e-9)


def test_rule_of_thumb_errs():
    """Popularities times k, capped: what formulas/experts/skewed.py says that it costs."""
    tokens = 2.0 ** np.arange(11)
    for exponent, worst in {0.5: 0.006, 1.0: 0.093, 1.2: 0.181, 2.0: 0.538}.items():
        weights = zipf_weights(256, exponent)
        exact = touched_of(inclusion_probabilities(weights, 8), tokens)
        shortfall = 1 - touched_of(share_with_replacement(weights, 8), tokens) / exact
        assert np.abs(shortfall).max() == pytest.approx(worst, abs=0.001)
        assert (shortfall > -1e-6).all()


def test_out_of_the_domain():
    with pytest.raises(DomainError, match="at least one token"):
        touched_sd([0.5, 0.5], 0)
    with pytest.raises(DomainError, match="exponent"):
        zipf_weights(4, -1)
