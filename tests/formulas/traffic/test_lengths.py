import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ks_1samp, lognorm, spearmanr

from formulas.closed_form import DomainError
from formulas.traffic import correlation, fit_lognormal, length_statistics, rank_correlation


@pytest.fixture(scope="module")
def lengths():
    return np.maximum(np.rint(np.random.default_rng(4).lognormal(5.5, 0.9, 200_000)), 1)


@pytest.mark.parametrize("fit", ["moments", "likelihood"])
def test_a_lognormal_law_is_found_again(lengths, fit):
    found = fit_lognormal(lengths, fit)
    assert found.sigma == pytest.approx(0.9, abs=0.01)
    assert found.mean == pytest.approx(np.exp(5.5 + 0.9**2 / 2), rel=0.01)
    assert found.ks_distance < 0.004
    assert all(abs(error) < 0.02 for error in found.quantile_errors.values())


def test_moments_are_those_of_the_data(lengths):
    found, data = fit_lognormal(lengths, "moments"), length_statistics(lengths)
    assert found.mean == pytest.approx(data.mean, rel=1e-12)
    assert found.cv == pytest.approx(data.cv, rel=1e-12)
    assert data.count == 200_000
    assert data.quantiles[0.5] == np.quantile(lengths, 0.5)


def test_misfit_is_scipys_for_lengths_that_are_no_whole_numbers():
    x = np.random.default_rng(6).gamma(2.0, 100.3, 3000)
    found = fit_lognormal(x, "likelihood")
    law = lognorm(found.sigma, scale=found.mean * np.exp(-(found.sigma**2) / 2))
    assert found.ks_distance == pytest.approx(ks_1samp(x, law.cdf).statistic, rel=1e-9)
    for level, error in found.quantile_errors.items():
        assert error == pytest.approx(law.ppf(level) / np.quantile(x, level, method="inverted_cdf") - 1, abs=1e-9)


def test_misfit_of_whole_numbers_is_that_of_a_rounded_law():
    """Of short lengths, where a continuous law would be off by half of the largest probability."""
    x = np.maximum(np.rint(np.random.default_rng(7).lognormal(1.0, 0.6, 100_000)), 1)
    assert fit_lognormal(x, "likelihood").ks_distance < 0.02


def test_two_kinds_of_requests_are_no_lognormal_law():
    x = np.concatenate([np.full(5000, 20.0), np.full(5000, 4000.0)])
    assert fit_lognormal(x).ks_distance > 0.2
    assert max(abs(error) for error in fit_lognormal(x).quantile_errors.values()) > 0.5


def test_lengths_that_are_all_equal():
    found = fit_lognormal([512] * 10)
    assert (found.mean, found.cv, found.ks_distance) == (512.0, 0.0, 0.0)
    assert set(found.quantile_errors.values()) == {0.0}


@given(st.lists(st.tuples(st.integers(1, 1000), st.integers(1, 1000)), min_size=3, max_size=80))
@settings(max_examples=60)
def test_correlations_are_numpys_and_scipys(pairs):
    x, y = np.array(pairs, dtype=float).T
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        with pytest.raises(DomainError, match="all equal"):
            correlation(x, y)
        return
    assert correlation(x, y) == pytest.approx(np.corrcoef(x, y)[0, 1], abs=1e-9)
    assert rank_correlation(x, y) == pytest.approx(spearmanr(x, y).statistic, abs=1e-9)
    assert rank_correlation(x, y**3) == pytest.approx(rank_correlation(x, y), abs=1e-9)


def test_outside_the_domain():
    for wrong in ([], [0.0, 1.0], [-1.0], [[1.0]]):
        for function in (length_statistics, fit_lognormal):
            with pytest.raises(DomainError, match="above zero"):
                function(wrong)
    for x, y in (([1.0], [1.0]), ([1.0, 2.0], [1.0])):
        with pytest.raises(DomainError, match="two sequences of the same length"):
            correlation(x, y)
