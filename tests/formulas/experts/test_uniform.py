from itertools import combinations, product

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from formulas.closed_form import DomainError
from formulas.experts import (
    COVERAGE,
    DISTINCT_EXPERTS,
    DISTINCT_VARIANCE,
    RATIO_TO_ONE_TOKEN,
    TOKENS_FOR_COVERAGE,
    TOKENS_PER_EXPERT,
    distinct_law,
    distinct_sd,
    tokens_for_coverage,
)

SHAPES = {"experts": st.integers(2, 600), "share": st.floats(0, 1), "tokens": st.integers(1, 3000)}


def chosen_of(experts, share):
    return 1 + round(share * (experts - 1))


def test_course_figures(course):
    figures = course["experts"]
    given = {name: figures[name] for name in ("experts", "experts_per_token")}
    tokens = np.array(figures["tokens"])
    np.testing.assert_allclose(DISTINCT_EXPERTS(tokens=tokens, **given), figures["distinct"], rtol=1e-8)
    np.testing.assert_allclose(RATIO_TO_ONE_TOKEN(tokens=tokens, **given), figures["ratio_to_one_token"], rtol=1e-8)


def test_every_choice_counted():
    """5 experts, 2 per token, 3 tokens: all 1000 choices, each as likely."""
    counts = [len(set().union(*choice)) for choice in product(combinations(range(5), 2), repeat=3)]
    given = {"experts": 5, "experts_per_token": 2, "tokens": 3}
    assert DISTINCT_EXPERTS(**given) == pytest.approx(np.mean(counts), rel=1e-14)
    assert DISTINCT_VARIANCE(**given) == pytest.approx(np.var(counts), rel=1e-13)
    np.testing.assert_allclose(distinct_law(5, 2, 3), np.bincount(counts) / len(counts), atol=1e-15)


@given(experts=st.integers(2, 60), share=st.floats(0, 1), tokens=st.integers(1, 80))
@settings(max_examples=40, deadline=None)
def test_mean_and_spread_are_those_of_the_law(experts, share, tokens):
    chosen = chosen_of(experts, share)
    law, n = distinct_law(experts, chosen, tokens), np.arange(experts + 1)
    given = {"experts": experts, "experts_per_token": chosen, "tokens": tokens}
    mean = DISTINCT_EXPERTS(**given)
    assert law.sum() == pytest.approx(1, rel=1e-12)
    assert law @ n == pytest.approx(mean, rel=1e-11)
    assert distinct_sd(experts, chosen, tokens) ** 2 == pytest.approx(law @ (n - mean) ** 2, rel=1e-6, abs=1e-10)


@given(**SHAPES)
@settings(max_examples=80, deadline=None)
def test_between_one_tokens_experts_and_all(experts, share, tokens):
    chosen = chosen_of(experts, share)
    given = {"experts": experts, "experts_per_token": chosen, "tokens": tokens}
    distinct, rounding = DISTINCT_EXPERTS(**given), 1e-9 * experts
    assert chosen - rounding <= distinct <= min(experts, tokens * chosen) + rounding
    assert COVERAGE(**given) * experts == pytest.approx(distinct, rel=1e-12)
    assert RATIO_TO_ONE_TOKEN(**given) * chosen == pytest.approx(distinct, rel=1e-12)
    assert TOKENS_PER_EXPERT(**given) * distinct == pytest.approx(tokens * chosen, rel=1e-12)
    assert 0 <= distinct_sd(experts, chosen, tokens) <= np.sqrt(experts) / 2 + rounding


@given(experts=SHAPES["experts"], share=SHAPES["share"], covered=st.floats(0.001, 0.9999))
@settings(max_examples=80, deadline=None)
def test_tokens_for_coverage_are_enough_and_no_more(experts, share, covered):
    chosen = chosen_of(experts, share)
    tokens = tokens_for_coverage(experts, chosen, covered)
    given = {"experts": experts, "experts_per_token": chosen}
    assert COVERAGE(tokens=tokens, **given) >= covered - 1e-12
    assert tokens == 1 or COVERAGE(tokens=tokens - 1, **given) < covered


@pytest.mark.parametrize(("experts", "chosen", "tokens"), [(256, 8, 95), (64, 8, 23)])
def test_tokens_for_95_percent_as_published(experts, chosen, tokens):
    """MoESD (arXiv 2505.19645), T_thres at tau = 0.95."""
    assert tokens_for_coverage(experts, chosen, 0.95) == tokens


def test_a_share_reached_exactly_is_reached():
    assert tokens_for_coverage(8, 4, 0.875) == 3
    assert tokens_for_coverage(6, 2, 5 / 9) == 2
    assert tokens_for_coverage(8, 8, 0.5) == 1


def test_the_inverse_is_the_inverse():
    c, n, k, t = (sp.Symbol(name, positive=True) for name in ("coverage", "experts", "experts_per_token", "tokens"))
    there = COVERAGE.expression.subs(t, TOKENS_FOR_COVERAGE.expression)
    assert sp.simplify(there.rewrite(sp.exp).subs({n: 256, k: 8}) - c) == 0
    assert COVERAGE.inverse("tokens")(coverage=0.95, experts=256, experts_per_token=8) == pytest.approx(
        TOKENS_FOR_COVERAGE(coverage=0.95, experts=256, experts_per_token=8), rel=1e-12
    )


def test_derivations_end_in_the_formula():
    for form in (DISTINCT_EXPERTS, DISTINCT_VARIANCE, TOKENS_FOR_COVERAGE):
        assert form.steps[-1].equation.rhs == form.expression


def test_spread_of_one_token_is_none_and_arrays_work():
    assert distinct_sd(256, 8, 1) == 0.0
    assert distinct_sd(8, 8, 5) == 0.0
    assert distinct_sd(1, 1, 5) == 0.0
    spread = distinct_sd(256, 8, np.array([1, 32, 64]))
    np.testing.assert_allclose(spread, [0, 4.955448, 4.484779], rtol=1e-6)


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        (lambda: DISTINCT_EXPERTS(experts=4, experts_per_token=8, tokens=1), "more experts than there are"),
        (lambda: distinct_sd(4, 8, 3), "more experts than there are"),
        (lambda: distinct_sd(8, 4, 0.5), "at least one token"),
        (lambda: distinct_law(4, 8, 3), "no more than there are"),
        (lambda: tokens_for_coverage(8, 2, 1.0), "between 0 and 1"),
        (lambda: TOKENS_FOR_COVERAGE(experts=8, experts_per_token=8, coverage=0.5), "one token touches all"),
        (lambda: TOKENS_FOR_COVERAGE(experts=8, experts_per_token=2, coverage=1), "a share below 1"),
    ],
)
def test_outside_the_domain_is_a_sentence(question, sentence):
    with pytest.raises(DomainError, match=sentence):
        question()
