from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulas.closed_form import DomainError
from formulas.experts import inclusion_probabilities, ranks_visited, visit_probabilities, zipf_weights

POPULARITIES = st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=6)


def all_orders(weights, chosen):
    """Every order of choice with its probability: each draw by popularity among the experts left."""
    for order in permutations(range(len(weights)), chosen):
        left, chance = sum(weights), 1.0
        for expert in order:
            chance *= weights[expert] / left
            left -= weights[expert]
        yield order, chance


@given(weights=POPULARITIES, share=st.floats(0, 1))
@settings(max_examples=40, deadline=None)
def test_equals_the_sum_over_all_orders_of_choice(weights, share):
    chosen = 1 + round(share * (len(weights) - 2))
    exact = np.zeros(len(weights))
    for order, chance in all_orders(weights, chosen):
        exact[list(order)] += chance
    np.testing.assert_allclose(inclusion_probabilities(weights, chosen), exact, atol=1e-11)


def test_visits_of_groups_equal_the_sum_over_all_orders():
    weights, group = [5.0, 3.0, 1.0, 0.5, 0.2, 0.1], np.array([0, 1, 2, 0, 1, 2])
    exact = np.zeros(3)
    for order, chance in all_orders(weights, 3):
        exact[list(set(group[list(order)]))] += chance
    np.testing.assert_allclose(visit_probabilities(weights, 3, group), exact, atol=1e-13)


@pytest.mark.parametrize(("experts", "chosen", "exponent"), [(256, 8, 1.0), (512, 22, 0.7), (128, 1, 4.0), (16, 15, 4)])
def test_probabilities_add_up_to_the_choices_of_a_token(experts, chosen, exponent):
    p = inclusion_probabilities(zipf_weights(experts, exponent), chosen)
    assert p.sum() == pytest.approx(chosen, rel=1e-12)
    assert ((p > 0) & (p <= 1 + 1e-12)).all()
    assert (np.diff(p) <= 1e-15).all()  # the more popular, the more often


def test_known_cases():
    weights = zipf_weights(40, 1.3)
    np.testing.assert_allclose(inclusion_probabilities(weights, 1), weights, rtol=1e-11)
    np.testing.assert_allclose(inclusion_probabilities(weights, 40), 1.0)
    np.testing.assert_allclose(inclusion_probabilities([7.0] * 128, 4), 4 / 128, rtol=1e-15)
    nearly_even = 1 + 1e-9 * np.arange(64)
    np.testing.assert_allclose(inclusion_probabilities(nearly_even, 6), 6 / 64, rtol=1e-6)


def test_order_and_scale_do_not_matter():
    weights = zipf_weights(30, 1.0)
    shuffled = np.random.default_rng(1).permutation(30)
    p = inclusion_probabilities(weights, 5)
    np.testing.assert_allclose(inclusion_probabilities(1e6 * weights[shuffled], 5), p[shuffled], rtol=1e-12)


def test_even_groups_are_hypergeometric():
    visits = visit_probabilities(np.ones(64), 6, np.arange(64) // 8)
    assert visits.sum() == pytest.approx(ranks_visited(64, 6, 8), rel=1e-12)
    missed = len(list(combinations(range(9), 3))) / len(list(combinations(range(12), 3)))
    assert visit_probabilities(np.ones(12), 3, np.arange(12) // 3)[0] == pytest.approx(1 - missed, rel=1e-12)


@pytest.mark.parametrize(
    ("weights", "chosen", "sentence"),
    [
        ([1.0, 0.0], 1, "positive"),
        ([1.0, float("nan")], 1, "positive"),
        ([1.0, 2.0], 3, "no more than there are"),
        ([1.0, 2.0], 0, "at least one expert"),
        ([1e20, 1.0, 1e-5], 2, "15 orders of magnitude"),
    ],
)
def test_outside_the_domain(weights, chosen, sentence):
    with pytest.raises(DomainError, match=sentence):
        inclusion_probabilities(weights, chosen)


@pytest.mark.parametrize("chosen", [1, 2, 3])
def test_popularities_far_apart(chosen):
    weights = [1e14, 1e7, 1.0, 0.5]
    exact = np.zeros(4)
    for order, chance in all_orders(weights, chosen):
        exact[list(order)] += chance
    np.testing.assert_allclose(inclusion_probabilities(weights, chosen), exact, atol=1e-9)


def test_every_group_has_an_expert():
    with pytest.raises(ValueError, match="every group an expert"):
        visit_probabilities([1.0, 2.0, 3.0], 1, [0, 2, 2])
