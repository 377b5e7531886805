import numpy as np
import pytest

from formulas.montecarlo.agreement import checked_value, compare, estimates, long_enough
from formulas.montecarlo.confidence import Interval, mean_interval, quantile_interval


@pytest.mark.parametrize(("exact", "verdict"), [(1.0, "inside"), (0.89, "outside"), (1.11, "outside"), (0.9, "inside")])
def test_verdict(exact, verdict):
    interval = Interval(1.0, 0.9, 1.1, 0.95)
    assert checked_value("mean", exact, interval, trusted=True).verdict == verdict
    assert checked_value("mean", exact, interval, trusted=False).verdict == "run too short"


def test_without_an_upper_end_nothing_is_said():
    assert checked_value("P99", 1.0, Interval(1.0, 0.9, np.inf, 0.95), trusted=True).verdict == "run too short"


def test_estimates_are_the_intervals():
    x = np.random.default_rng(3).exponential(size=50_000)
    found = estimates(x, (0.5, 0.99), 0.9)
    assert found == {
        "mean": mean_interval(x, 0.9), "P50": quantile_interval(x, 0.5, 0.9), "P99": quantile_interval(x, 0.99, 0.9),
    }  # fmt: skip


def test_batches_span_ten_relaxation_times():
    assert long_enough(32 * 500, 50.0)
    assert not long_enough(32 * 500 - 1, 50.0)


def test_the_warm_up_is_left_out_and_the_exact_values_decide():
    x = np.concatenate([np.full(500, 1e6), np.random.default_rng(3).exponential(size=50_000)])
    found = compare(x, {"mean": 1.0, "P90": 3.0}, 50.0)
    assert found.warm_up == 500
    assert found.simulated == estimates(x[500:], (0.5, 0.9, 0.99))
    assert [(row.name, row.verdict) for row in found.rows] == [("mean", "inside"), ("P90", "outside")]


def test_a_run_too_short_keeps_half_and_says_nothing():
    found = compare(np.ones(1000), {"mean": 1.0}, 500.0)
    assert found.warm_up == 500
    assert found.rows[0].verdict == "run too short"
