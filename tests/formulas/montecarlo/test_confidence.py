import numpy as np
import pytest
from scipy import stats

from formulas.montecarlo.confidence import Interval, mean_interval, quantile_interval


def test_mean_interval_is_students():
    x = np.random.default_rng(1).normal(3.0, 2.0, (32, 50))
    ours = mean_interval(x.ravel(), 0.9)
    means = x.mean(axis=1)
    low, high = stats.t.interval(0.9, 31, means.mean(), stats.sem(means))
    assert (ours.low, ours.high) == pytest.approx((low, high), rel=1e-12)


def test_coverage_of_correlated_values():
    """An autoregressive sequence: a 90 % interval covers in about 90 of 100 runs (80 is 3.3 sigma low)."""
    rng = np.random.default_rng(2)
    noise = rng.normal(size=(100, 20_000))
    for t in range(1, noise.shape[1]):
        noise[:, t] += 0.9 * noise[:, t - 1]
    p90 = stats.norm.ppf(0.9) / np.sqrt(1 - 0.81)
    assert sum(mean_interval(x, 0.9).contains(0.0) for x in noise) >= 80
    assert sum(quantile_interval(x, 0.9, 0.9).contains(p90) for x in noise) >= 80


def test_sorted_values_may_be_given():
    x = np.random.default_rng(4).exponential(size=5_000)
    assert quantile_interval(x, 0.9, ordered=np.sort(x)) == quantile_interval(x, 0.9)


def test_too_short_to_bound_a_quantile():
    assert quantile_interval(np.random.default_rng(4).exponential(size=64), 0.99).high == np.inf


def test_too_few_values():
    with pytest.raises(ValueError, match="10 values are too few for 32 batches"):
        mean_interval(np.ones(10))


def test_interval_contains_its_ends():
    interval = Interval(1.0, 0.5, 1.5, 0.95)
    assert interval.contains(0.5)
    assert interval.contains(1.5)
    assert not interval.contains(1.6)
