import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import least_squares

from formulas.closed_form import DomainError
from formulas.speculative import (
    AcceptanceCurve,
    acceptance_curve,
    fit_acceptance,
    implied_rates,
    tokens_by_length,
    tokens_per_round,
)


def test_published_curves_fit_one_acceptance_only_so_far(published):
    for case in published["curve"]:
        curve = acceptance_curve(zip(case["draft_tokens"], case["tokens"], strict=True), bonus=True)
        fit = fit_acceptance(curve)
        by_scipy = least_squares(
            lambda a, k=case["draft_tokens"], t=case["tokens"]: tokens_per_round(a[0], np.array(k)) - t, [0.7],
            bounds=([0.0], [1.0]), xtol=1e-14, gtol=1e-14,
        )  # fmt: skip
        assert fit.acceptance == pytest.approx(by_scipy.x[0], abs=1e-6)
        assert fit.rms == pytest.approx(np.sqrt(2 * by_scipy.cost / len(case["tokens"])), rel=1e-9)
        assert 0.02 < abs(fit.worst) < 0.1
        first = tokens_per_round(case["tokens"][0] - 1, 8)  # the acceptance of the first draft used for all
        assert first > case["tokens"][-1]


def test_published_curves_come_back_from_their_rates(published):
    for case in published["curve"]:
        curve = acceptance_curve(zip(case["draft_tokens"], case["tokens"], strict=True), bonus=True)
        implied = implied_rates(curve)
        np.testing.assert_allclose(tokens_by_length(implied.rates)[1:], implied.tokens, rtol=1e-12)
        assert (not implied.adjusted) == case["one_process"]
        np.testing.assert_allclose(implied.tokens, case["tokens"], atol=0.13 if implied.adjusted else 1e-9)


def test_one_acceptance_for_a_first_draft_and_for_a_long_one(published):
    """Accepted 79 % of the time at first and 2.58 tokens of a draft of eight: no single acceptance is near both."""
    case = published["long_draft"]
    curve = acceptance_curve([(1, 1 + case["acceptance"]), (8, case["measured"])], bonus=True)
    fit = fit_acceptance(curve)
    assert fit.acceptance < 0.65
    assert abs(fit.worst) > 0.09
    np.testing.assert_allclose(implied_rates(curve).tokens, curve.tokens, rtol=1e-9)
    assert implied_rates(curve).rates[1] < 0.55


@given(alpha=st.floats(0, 1), lengths=st.sets(st.integers(1, 40), min_size=1, max_size=6))
@settings(max_examples=60)
def test_the_independent_model_fits_itself(alpha, lengths):
    curve = acceptance_curve([(k, tokens_per_round(alpha, k)) for k in lengths], bonus=True)
    fit = fit_acceptance(curve)
    np.testing.assert_allclose(fit.predicted, curve.tokens, rtol=1e-9)
    assert fit.acceptance == pytest.approx(alpha, abs=1e-6 if alpha > 0.05 else 1e-3)


@given(rates=st.lists(st.floats(0, 1), min_size=1, max_size=12))
@settings(max_examples=60)
def test_rates_come_back_from_the_curve_they_give(rates):
    tokens = tokens_by_length(rates)
    implied = implied_rates(acceptance_curve(list(enumerate(tokens))[1:], bonus=True))
    np.testing.assert_allclose(tokens_by_length(implied.rates), tokens, atol=1e-6)
    assert implied.adjusted == ()


def test_between_measured_lengths_the_rate_is_constant():
    implied = implied_rates(acceptance_curve([(2, 2.44), (5, 2.44 + 0.64 * (0.5 + 0.25 + 0.125))], bonus=True))
    np.testing.assert_allclose(implied.rates, [0.8, 0.8, 0.5, 0.5, 0.5], rtol=1e-8)


def test_a_curve_that_falls_is_replaced_by_the_nearest_possible_one():
    implied = implied_rates(acceptance_curve([(1, 1.8), (2, 2.4), (3, 2.2)], bonus=True))
    assert implied.adjusted == (2, 3)
    np.testing.assert_allclose(implied.tokens, [1.8, 2.3, 2.3], atol=1e-6)


def test_lengths_without_the_bonus_token_are_one_less():
    with_bonus = acceptance_curve([(2, 2.44), (1, 1.8)], bonus=True)
    without = acceptance_curve([(1, 0.8), (2, 1.44)], bonus=False)
    assert with_bonus == AcceptanceCurve((1, 2), (1.8, 2.44))
    np.testing.assert_allclose(without.tokens, with_bonus.tokens)


@pytest.mark.parametrize(("pairs", "bonus", "sentence"), [
    ([], True, "at least one pair"),
    ([(1, 1.5), (1, 1.6)], True, "each given once"),
    ([(0, 1.0)], True, "whole numbers from 1"),
    ([(1.5, 1.2)], True, "whole numbers from 1"),
    ([(1, 0.8)], True, "between 1 and 2 tokens with the bonus token, not 0.8"),
    ([(2, 2.5)], False, "between 0 and 2 tokens without the bonus token, not 2.5"),
])  # fmt: skip
def test_what_no_round_can_give_is_refused(pairs, bonus, sentence):
    with pytest.raises(DomainError, match=sentence):
        acceptance_curve(pairs, bonus=bonus)
