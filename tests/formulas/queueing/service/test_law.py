from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import gamma

from formulas.closed_form import DomainError
from formulas.queueing.service import (
    GammaLengths,
    ListedLengths,
    LognormalLengths,
    UniformLengths,
    equal_service,
    mixed_service,
    service_law,
)
from formulas.queueing.service.partial import PanelTables
from formulas.queueing.service.quadrature import TOO_ROUGH

LENGTHS = {
    "log-normal": (LognormalLengths(1.3, 0.8), stats.lognorm(np.log(1.64) ** 0.5, scale=1.3 / 1.64**0.5)),
    "wide log-normal": (LognormalLengths(1.0, 2.0), stats.lognorm(np.log(5) ** 0.5, scale=5**-0.5)),
    "gamma": (GammaLengths(2.0, 0.5), stats.gamma(4, scale=0.5)),
    "bursty gamma": (GammaLengths(1.0, 2.0), stats.gamma(0.25, scale=4)),
    "uniform": (UniformLengths(0.5, 2.5), stats.uniform(0.5, 2.0)),
}
MOMENTS = {
    "log-normal": lambda k: 1.3**k * 1.64 ** (k * (k - 1) / 2),
    "wide log-normal": lambda k: 5.0 ** (k * (k - 1) / 2),
    "gamma": lambda k: 0.5**k * gamma(4 + k) / gamma(4),
    "bursty gamma": lambda k: 4.0**k * gamma(0.25 + k) / gamma(0.25),
    "uniform": lambda k: (2.5 ** (k + 1) - 0.5 ** (k + 1)) / 2 / (k + 1),
}
TIMES = {
    "line": lambda x: 0.1 + 2 * x,
    "attention": lambda x: 0.1 + x + 0.3 * x**2,
    "roofline": lambda x: np.maximum(0.8 + 0.1 * x, x),
    "floor": lambda x: np.maximum(0.9, x),
    "jump": lambda x: x + np.where(x > 1.3, 0.5, 0.0),
}
KINKS = {"roofline": 0.8 / 0.9, "floor": 0.9, "jump": 1.3}
ALL = [(d, t) for d in LENGTHS for t in TIMES]


def expectation(frozen, function, kink):
    """Integral over the logarithm of the lengths by Simpson's rule, on both sides of a kink."""
    low, high = frozen.support()
    ends = sorted({max(low, 1e-70), min(high, 1e5), kink or 1.0})
    total = 0.0
    for a, b in pairwise(ends):
        y, step = np.linspace(np.log(a), np.log(b), 200_001, retstep=True)
        y[[0, -1]] += [1e-13, -1e-13]  # on this side of a jump
        x = np.exp(y)
        values = frozen.pdf(x) * x * function(x)
        total += step / 3 * (values[0] + values[-1] + 4 * values[1::2].sum() + 2 * values[2:-1:2].sum())
    return total


@pytest.mark.parametrize(("lengths", "times"), ALL)
def test_transform_and_mean_are_the_integrals_over_the_lengths(lengths, times):
    distribution, frozen = LENGTHS[lengths]
    time, kink = TIMES[times], KINKS.get(times)
    law = service_law(distribution, time)
    assert law.all_weights.sum() == pytest.approx(1.0, rel=1e-13)
    assert law.mean == pytest.approx(expectation(frozen, time, kink), rel=1e-9)
    for s in (0.3, 2.0 + 5.0j):
        transform = expectation(frozen, lambda x, s=s: np.exp(-s * time(x)), kink)
        assert law.laplace(s) == pytest.approx(transform, abs=1e-9)


@pytest.mark.parametrize("lengths", LENGTHS)
def test_moments_of_a_polynomial_time_are_exact(lengths):
    law = service_law(LENGTHS[lengths][0], TIMES["attention"])
    polynomial = np.polynomial.Polynomial([0.1, 1.0, 0.3])
    for order in (1, 2, 3):
        coefficients = (polynomial**order).coef
        exact = sum(c * MOMENTS[lengths](k) for k, c in enumerate(coefficients))
        assert law.moment(order) == pytest.approx(exact, rel=1e-11)


def test_transform_of_known_laws():
    s = np.array([0.1, 1.0 + 1.0j, 5.0 + 60.0j])
    four = service_law(GammaLengths(2.0, 0.5), lambda x: x)
    np.testing.assert_allclose(four.laplace(s), (1 + 0.5 * s) ** -4.0, atol=1e-14)
    uniform = service_law(UniformLengths(0.5, 2.5), lambda x: x)
    np.testing.assert_allclose(uniform.laplace(s), (np.exp(-0.5 * s) - np.exp(-2.5 * s)) / (2 * s), atol=1e-14)
    floor = service_law(GammaLengths(1.0, 1.0), lambda x: np.maximum(0.5, x))
    atom = 1 - np.exp(-0.5)
    np.testing.assert_allclose(floor.laplace(s), atom * np.exp(-0.5 * s) + np.exp(-0.5 * (1 + s)) / (1 + s), atol=1e-12)
    assert floor.atoms == pytest.approx([0.5])
    assert floor.shares == pytest.approx([atom], rel=1e-10)


@pytest.mark.parametrize(("lengths", "times"), ALL)
def test_distribution_function_is_that_of_the_lengths(lengths, times):
    distribution, frozen = LENGTHS[lengths]
    law = service_law(distribution, TIMES[times])
    x = frozen.ppf(np.array([0.1, 0.35, 0.5, 0.8, 0.99, 0.9999]))
    time = TIMES[times](x)
    within = frozen.cdf(np.where((times == "floor") & (x < 0.9), 0.9, x))
    np.testing.assert_allclose(law.cdf(time), within, atol=1e-11)


@pytest.mark.parametrize(("lengths", "times"), ALL)
def test_quantiles_invert_the_distribution_function(lengths, times):
    law = service_law(LENGTHS[lengths][0], TIMES[times])
    for level in (0.05, 0.5, 0.9, 0.999):
        time = law.quantile(level)
        assert law.cdf(time) >= level - 1e-10
        assert law.cdf(time * (1 - 1e-6)) <= level


@given(time=st.floats(0.01, 50.0), cv=st.floats(0.05, 2.5))
@settings(max_examples=60, deadline=None)
def test_part_of_the_mean_below_a_time(time, cv):
    """A log-normal law weighted by its size is a log-normal law."""
    share, mean, density = service_law(LognormalLengths(1.0, cv), lambda x: x).below(time)
    sigma = np.log(1 + cv**2) ** 0.5
    z = np.log(time) / sigma
    assert share == pytest.approx(stats.norm.cdf(z + sigma / 2), abs=1e-13)
    assert mean == pytest.approx(stats.norm.cdf(z - sigma / 2), abs=1e-13)
    assert density == pytest.approx(stats.norm.pdf(z + sigma / 2) / sigma / time, rel=1e-8, abs=1e-13)


def test_a_law_without_panels_has_nothing_below():
    assert PanelTables(np.empty((0, 1)), np.empty((0, 1))).below(1.0) == (0.0, 0.0, 0.0)


def test_listed_lengths_are_added_up_and_put_in_order():
    law = service_law(ListedLengths([800, 200, 200, 5000], [1, 2, 3, 0]), lambda x: x / 100)
    np.testing.assert_allclose(law.atoms, [2.0, 8.0])
    np.testing.assert_allclose(law.shares, [5 / 6, 1 / 6])
    assert law.mean == pytest.approx(3.0)
    assert law.variance == pytest.approx(5.0)
    assert law.third_moment == pytest.approx(5 / 6 * 8 + 512 / 6)
    np.testing.assert_array_equal(law.quantile([0.5, 5 / 6, 0.9]), [2.0, 2.0, 8.0])
    np.testing.assert_allclose(law.cdf([1.99, 2.0, 7.0, 8.0]), [0, 5 / 6, 5 / 6, 1])


def test_a_trace_gives_its_lengths_equal_shares():
    assert ListedLengths([3.0, 1.0, 3.0]).shares == pytest.approx([1 / 3, 2 / 3])


def test_equal_lengths_have_no_spread():
    law = equal_service(0.05)
    assert (law.mean, law.variance) == (0.05, 0.0)
    assert law.second_moment == pytest.approx(0.0025)


def test_kinds_of_prompts_are_mixed():
    hits, misses = equal_service(0.2), service_law(GammaLengths(1.0, 1.0), lambda x: x)
    both = mixed_service([hits, misses, equal_service(9.0)], [7, 3, 0])
    s = np.array([0.5, 1 + 2j])
    np.testing.assert_allclose(both.laplace(s), 0.7 * np.exp(-0.2 * s) + 0.3 / (1 + s), atol=1e-14)
    assert both.mean == pytest.approx(0.44)
    np.testing.assert_allclose(both.cdf([0.1, 0.2, 2.0]), [0.3 * (1 - np.exp(-0.1)), 0.7 + 0.3 * (1 - np.exp(-0.2)),
                                                         0.7 + 0.3 * (1 - np.exp(-2.0))])  # fmt: skip
    assert both.quantile(0.5) == 0.2
    assert both.quantile(0.9) == pytest.approx(-np.log(1 / 3), rel=1e-12)


def test_mixing_one_law_with_itself_changes_nothing():
    law = service_law(LognormalLengths(1.0, 1.0), lambda x: x)
    twice = mixed_service([law, law], [0.4, 0.6])
    assert twice.second_moment == pytest.approx(law.second_moment, rel=1e-14)
    assert twice.quantile(0.9) == pytest.approx(law.quantile(0.9), rel=1e-12)


@pytest.mark.parametrize("lengths", LENGTHS)
def test_random_times_have_the_law(lengths):
    law = service_law(LENGTHS[lengths][0], TIMES["roofline"])
    times = law.draw(2_000, np.random.default_rng(7))
    assert stats.kstest(times, law.cdf).pvalue > 1e-3


def test_random_times_of_mixed_kinds():
    law = mixed_service([equal_service(0.2), service_law(ListedLengths([1, 4]), lambda x: x)], [0.5, 0.5])
    times = law.draw(40_000, np.random.default_rng(7))
    for time, share in zip(law.atoms, law.shares, strict=True):
        assert abs(np.mean(times == time) - share) < 4 * (share / 40_000) ** 0.5


def test_outside_the_domain():
    for wrong in (lambda: LognormalLengths(0.0, 1.0), lambda: GammaLengths(1.0, 0.0), lambda: UniformLengths(2.0, 1.0)):
        with pytest.raises(DomainError, match="spread above zero"):
            wrong()
    with pytest.raises(DomainError, match="one share for each"):
        ListedLengths([1, 2], [1])
    with pytest.raises(DomainError, match="cannot be negative"):
        ListedLengths([1, 2], [1, -1])
    with pytest.raises(DomainError, match="share above zero"):
        ListedLengths([1, 2], [0, 0])
    with pytest.raises(DomainError, match="mean service time above zero"):
        equal_service(0.0)
    with pytest.raises(DomainError, match="not negative"):
        service_law(LognormalLengths(1.0, 1.0), lambda x: x - 1)
    with pytest.raises(DomainError, match="cannot fall"):
        service_law(LognormalLengths(1.0, 1.0), lambda x: 1 / (1 + x))
    with pytest.raises(DomainError, match="cannot fall"):
        service_law(ListedLengths([1, 2]), lambda x: 3 - x)
    with pytest.raises(DomainError) as found:
        service_law(UniformLengths(0.0, 1e5), np.ceil)
    assert str(found.value) == TOO_ROUGH
    with pytest.raises(DomainError, match="Each kind"):
        mixed_service([equal_service(1.0)], [0.0])
    with pytest.raises(DomainError, match="lies between"):
        equal_service(1.0).quantile(1.0)
