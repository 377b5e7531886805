import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulas.closed_form import DomainError
from formulas.speculative import (
    accepted_by_length,
    accepted_distribution,
    accepted_tokens,
    best_by_position,
    conditional_rates,
    optimal_draft_tokens,
    survival,
    tokens_by_length,
)

rates = st.lists(st.floats(0, 1), min_size=1, max_size=30)


def test_equal_rates_are_the_independent_model():
    np.testing.assert_allclose(accepted_by_length([0.8] * 10), accepted_tokens(0.8, np.arange(11)), rtol=1e-14)
    length, _ = best_by_position([0.8] * 30, 0.1)
    assert length == optimal_draft_tokens(0.8, 0.1)


def test_published_positions_give_the_length_printed_beside_them(published):
    for case in published["positions"]:
        found = tokens_by_length(conditional_rates(case["shares"]))[-1]
        assert found == pytest.approx(case["length"], abs=0.005 * len(case["shares"]) + 0.005)  # two decimals each


def test_published_rates_fall_or_rise_along_the_draft(published):
    """Acceptance is not independent in either direction: deep drafts degrade, and easy passages stay easy."""
    for case in published["positions"]:
        found = conditional_rates(case["shares"])
        change = found[-1] - found[0]
        assert {"falling": change < -0.1, "rising": change > 0.1, "level": abs(change) < 0.1}[case["trend"]]


@given(rates=rates)
def test_there_and_back(rates):
    shares = survival(rates)
    assert np.all(np.diff(shares) <= 0)
    back = conditional_rates(shares)
    np.testing.assert_allclose(survival(back), shares, rtol=1e-12, atol=1e-300)


@given(rates=rates)
def test_the_distribution_adds_up(rates):
    law = accepted_distribution(rates)
    assert law.min() >= 0
    assert law.sum() == pytest.approx(1, abs=1e-12)
    assert np.arange(len(law)) @ law == pytest.approx(accepted_by_length(rates)[-1], rel=1e-9, abs=1e-12)


@given(rates=rates, cost=st.floats(0.01, 1), verify=st.floats(0.5, 3))
def test_best_of_all_lengths(rates, cost, verify):
    length, speedup = best_by_position(rates, cost, verify)
    gains = [1.0] + [tokens_by_length(rates)[k] / (k * cost + verify) for k in range(1, len(rates) + 1)]
    assert speedup == pytest.approx(max(gains), rel=1e-11)
    assert gains[length] == pytest.approx(max(gains), rel=1e-11)


@given(rates=rates, cost=st.floats(0.01, 1), verify=st.floats(0.5, 3))
def test_one_peak_whatever_the_rates(rates, cost, verify):
    gains = tokens_by_length(rates) / (np.arange(len(rates) + 1) * cost + verify)
    rises, falls = np.diff(gains) > 1e-12, np.diff(gains) < -1e-12
    assert not falls.any() or not rises[np.argmax(falls) :].any()


def test_a_verification_in_steps_can_have_two_peaks():
    """Why every length is looked at: the fourth token costs a step that the fifth to the seventh share."""
    verify = np.array([1.0, 1.0, 1.0, 1.3, 1.3, 1.3, 1.3])
    gains = tokens_by_length([0.9] * 6) / (np.arange(7) * 0.02 + verify)
    assert gains[3] < gains[2]
    assert best_by_position([0.9] * 6, 0.02, verify)[0] == 6


def test_a_verification_that_grows_wants_a_shorter_draft():
    grows = 1 + 0.2 * np.arange(9)
    assert best_by_position([0.8] * 8, 0.05, grows)[0] < best_by_position([0.8] * 8, 0.05)[0]


@pytest.mark.parametrize(("call", "sentence"), [
    (lambda: conditional_rates([0.5, 0.6]), "cannot rise"),
    (lambda: survival([1.2]), "probability"),
    (lambda: survival([]), "At least one"),
    (lambda: survival([float("nan")]), "probability"),
])  # fmt: skip
def test_outside_the_domain_is_a_sentence(call, sentence):
    with pytest.raises(DomainError, match=sentence):
        call()
