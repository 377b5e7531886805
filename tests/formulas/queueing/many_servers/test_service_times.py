import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import lognorm

from formulas.closed_form import DomainError
from formulas.queueing.many_servers import Constant, LognormalTimes, ObservedTimes, draw_times


@given(st.floats(0.01, 10), st.floats(0.1, 3), st.floats(0.01, 20))
@settings(max_examples=40)
def test_lognormal_is_scipys(mean, cv, x):
    times = LognormalTimes(mean, cv)
    law = lognorm(times.sigma, scale=times.median)
    assert law.mean() == pytest.approx(mean, rel=1e-12)
    assert law.std() / law.mean() == pytest.approx(cv, rel=1e-9)
    upper = quad(lambda y: law.sf(np.exp(y)) * np.exp(y), np.log(x), np.log(x) + 60, epsabs=1e-13, limit=200)[0]
    assert times.excess(x) == pytest.approx(upper, rel=1e-6, abs=1e-9 * mean)
    assert times.quantile(0.9) == pytest.approx(law.ppf(0.9), rel=1e-12)


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=50), st.floats(0, 120))
def test_observed_times_are_their_own_average(values, x):
    times = ObservedTimes(values)
    assert times.excess(x) == pytest.approx(np.maximum(np.array(values) - x, 0).mean(), rel=1e-9, abs=1e-12)
    assert times.quantile(1.0) == max(values)
    assert times.cv == pytest.approx(np.std(values) / np.mean(values), abs=1e-12)


@pytest.mark.parametrize("times", [Constant(0.3), LognormalTimes(0.3, 1.0), ObservedTimes([0.1, 0.2, 0.6])])
def test_excess_over_nothing_is_the_mean_and_draws_have_it(times):
    assert times.excess(0.0) == pytest.approx(0.3, rel=1e-12)
    drawn = draw_times(times, 200_000, np.random.default_rng(1))
    assert drawn.mean() == pytest.approx(0.3, rel=5 * max(times.cv, 1e-9) / np.sqrt(200_000))
    assert drawn.std() / 0.3 == pytest.approx(times.cv, abs=0.05)


@pytest.mark.parametrize("wrong", [
    lambda: Constant(0.0), lambda: LognormalTimes(-1.0, 1.0), lambda: LognormalTimes(1.0, 0.0),
    lambda: ObservedTimes([]), lambda: ObservedTimes([0.1, -0.1]), lambda: ObservedTimes([0.1, np.inf]),
])  # fmt: skip
def test_outside_the_domain(wrong):
    with pytest.raises(DomainError, match="above zero"):
        wrong()
