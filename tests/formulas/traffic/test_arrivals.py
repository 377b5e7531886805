import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulas.closed_form import DomainError
from formulas.traffic import autocorrelation, gap_cv2, index_of_dispersion, mean_rate, rate_over_time


def poisson(n, seed=1, rate=5.0):
    return np.cumsum(np.random.default_rng(seed).exponential(1 / rate, n))


def switching(seconds, seed=2):
    """Poisson arrivals whose rate is 2 or 10 a second, for exponential times of 20 s."""
    rng = np.random.default_rng(seed)
    times, now, rate = [], 0.0, 2.0
    while now < seconds:
        stay = rng.exponential(20.0)
        times.append(now + np.sort(rng.uniform(0, stay, rng.poisson(rate * stay))))
        now, rate = now + stay, 12.0 - rate
    return np.concatenate(times)


def test_poisson_arrivals():
    arrivals = poisson(200_000)
    assert mean_rate(arrivals) == pytest.approx(5.0, rel=0.01)
    assert gap_cv2(arrivals) == pytest.approx(1.0, abs=0.02)
    dispersion = index_of_dispersion(arrivals)
    assert len(dispersion.windows_s) > 30
    assert np.all(np.abs(dispersion.index - 1) < 4.5 * dispersion.poisson_error + 0.01)
    assert np.abs(autocorrelation(np.diff(arrivals), 50)).max() < 4 / np.sqrt(len(arrivals))


def test_regular_arrivals_do_not_scatter():
    arrivals = np.arange(1000) / 8
    assert gap_cv2(arrivals) == pytest.approx(0.0, abs=1e-20)
    np.testing.assert_allclose(index_of_dispersion(arrivals, [1.0, 4.0]).index, 0.0, atol=1e-12)
    rates = rate_over_time(arrivals, 1.0)
    np.testing.assert_array_equal(rates.counts, 8)
    np.testing.assert_array_equal(rates.rates, 8.0)
    assert rates.peak_over_mean == 1.0


@pytest.mark.parametrize("shape", [0.25, 4.0])
def test_independent_gaps_tend_to_their_own_cv2(shape):
    """Cox and Lewis 1966: in long windows the index of dispersion is the gaps' squared cv."""
    arrivals = np.cumsum(np.random.default_rng(3).gamma(shape, 1 / shape, 300_000))
    assert gap_cv2(arrivals) == pytest.approx(1 / shape, rel=0.03)
    assert index_of_dispersion(arrivals, [300.0]).index[0] == pytest.approx(1 / shape, rel=0.2)


def test_a_rate_that_switches_is_seen_at_its_own_time_scale():
    """Two states, 2 and 10 a second, each left at 1/20 a second: exact index of dispersion at a window t."""
    dispersion = index_of_dispersion(switching(200_000), [0.5, 10.0, 200.0])
    decay, mean, half = 2 / 20.0, 6.0, 4.0
    t = dispersion.windows_s
    exact = 1 + 2 * half**2 / (mean * decay) * (1 - (1 - np.exp(-decay * t)) / (decay * t))
    np.testing.assert_allclose(dispersion.index, exact, rtol=0.1)
    assert exact[0] < 2.5 < 50 < exact[2]


@given(st.lists(st.floats(0.001, 10), min_size=30, max_size=200), st.floats(0.1, 100))
@settings(max_examples=40)
def test_scaling_time_changes_the_rate_alone(gaps, scale):
    arrivals = np.cumsum([0.0, *gaps])
    assert mean_rate(arrivals * scale) == pytest.approx(mean_rate(arrivals) / scale, rel=1e-9)
    assert gap_cv2(arrivals * scale) == pytest.approx(gap_cv2(arrivals), rel=1e-6, abs=1e-12)
    assert mean_rate(arrivals + 1e3) == pytest.approx(mean_rate(arrivals), rel=1e-9)


@given(st.lists(st.floats(0.0, 10), min_size=3, max_size=200), st.floats(0.01, 5))
@settings(max_examples=60)
def test_bins_hold_every_request_before_the_last_whole_bin(gaps, width):
    arrivals = np.cumsum([0.0, *gaps, 6.0])
    rates = rate_over_time(arrivals, width)
    end = len(rates.counts) * width
    assert abs(int(rates.counts.sum()) - np.count_nonzero(arrivals < end)) <= np.count_nonzero(
        np.abs(arrivals - end) < 1e-9 * end
    )
    assert end <= arrivals[-1] * (1 + 1e-9) < end + width * (1 + 1e-6)


def test_autocorrelation_is_the_definition():
    x = np.random.default_rng(5).normal(size=301)
    y = x - x.mean()
    expected = [np.dot(y[:-k], y[k:]) / np.dot(y, y) for k in range(1, 8)]
    np.testing.assert_allclose(autocorrelation(x, 7), expected, atol=1e-12)
    np.testing.assert_allclose(autocorrelation(x + 1e6, 7), expected, atol=1e-6)


def test_windows_that_do_not_fit_are_left_out():
    found = index_of_dispersion(poisson(2000), [1.0, 30.0, 100.0])
    assert list(found.windows_s) == [1.0, 30.0]
    assert found.counted[0] > found.counted[1] >= 10


def test_outside_the_domain():
    arrivals = poisson(100)
    for wrong in ([], [1.0], [2.0, 2.0], [[1.0, 2.0]]):
        with pytest.raises(DomainError, match="at least two requests"):
            mean_rate(wrong)
    with pytest.raises(DomainError, match="ascending"):
        gap_cv2([0.0, 2.0, 1.0, 3.0])
    with pytest.raises(DomainError, match="longer than nothing"):
        rate_over_time(arrivals, 0.0)
    with pytest.raises(DomainError, match="longer than nothing"):
        index_of_dispersion(arrivals, [1.0, -1.0])
    with pytest.raises(DomainError, match="longer than the trace"):
        rate_over_time(arrivals, 1e9)
    with pytest.raises(DomainError, match="More than 10,000,000 bins"):
        rate_over_time(arrivals, 1e-9)
    with pytest.raises(DomainError, match="fewer than ten windows"):
        index_of_dispersion([0.0, 1.0, 3.0])
    with pytest.raises(DomainError, match="lags"):
        autocorrelation([1.0, 2.0], 2)
    with pytest.raises(DomainError, match="all equal"):
        autocorrelation([3.0] * 10, 2)
