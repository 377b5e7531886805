import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammainc

from formulas.closed_form import DomainError
from formulas.queueing import md1
from formulas.queueing.bursts import (
    GAMMA_DECAY_RATE,
    gamma_mean_wait,
    gamma_no_wait,
    gamma_wait_quantile,
    gamma_wait_survival,
)
from formulas.queueing.bursts.gamma_contour import GammaQueue

LOADS = np.array([0.01, 0.1, 0.5, 0.8, 0.9, 0.99, 0.999])
LEVELS = np.array([0.5, 0.9, 0.99, 0.999])
shapes = st.floats(0.05, 30.0)
loads = st.floats(0.02, 0.995)


@pytest.mark.parametrize("index", range(11))
def test_reference_values(single_server, index):
    case = single_server["gamma_d1"][index]
    rho, alpha = case["utilization"], case["shape"]
    assert gamma_mean_wait(rho, alpha) == pytest.approx(case["mean_wait"], rel=1e-12)
    assert gamma_no_wait(rho, alpha) == pytest.approx(case["no_wait"], rel=1e-12)
    queue = GammaQueue(rho, alpha)
    assert queue.decay == pytest.approx(case["decay_rate"], rel=1e-12)
    assert queue.tail_constant == pytest.approx(case["tail_constant"], rel=1e-11)
    assert GAMMA_DECAY_RATE(utilization=rho, shape=alpha, service_time=2.0) == pytest.approx(queue.decay / 2, rel=1e-12)
    for name, level in (("p90", 0.9), ("p99", 0.99)):
        value, error = case["simulated"][name]
        assert abs(gamma_wait_quantile(level, rho, alpha) - value) <= 5 * error


def test_shape_one_is_md1():
    np.testing.assert_allclose(gamma_mean_wait(LOADS, 1.0), md1.MEAN_WAIT(rate=LOADS, service_time=1.0), rtol=1e-13)
    np.testing.assert_allclose(gamma_no_wait(LOADS, 1.0), 1 - LOADS, rtol=1e-13)
    quantiles = gamma_wait_quantile(LEVELS[:, None], LOADS, 1.0)
    np.testing.assert_allclose(quantiles, md1.wait_quantile(LEVELS[:, None], LOADS), rtol=1e-11, atol=1e-14)
    t = np.array([0.0, 0.3, 0.999, 1.0, 1.5, 2.0, 7.7, 30.2])[:, None]
    np.testing.assert_allclose(gamma_wait_survival(t, LOADS, 1.0), md1.wait_survival(t, LOADS), atol=1e-13)


@pytest.mark.parametrize(
    ("servers", "rho", "no_wait", "mean", "p99"),
    [
        (2, 0.5, 0.67674105711283688472, 0.17674105711283688472, 1.5639177573892372671),
        (8, 0.8, 1 - 0.433795118732, 0.151953802643, 1.16959545875),
        (64, 0.9, 1 - 0.284003943865, 0.0267341275035, 0.28072923037),
        (64, 0.5, 1 - 4.14446636339e-07, 1.19255532633e-08, 0.0),
    ],
)
def test_whole_shapes_are_round_robin_and_so_many_servers(servers, rho, no_wait, mean, p99):
    """References of M/D/c to 12 digits: roots, elimination of the embedded chain, and Franx's sum agree on them."""
    assert gamma_no_wait(rho, servers) == pytest.approx(no_wait, abs=1e-12)
    assert gamma_mean_wait(rho, servers) == pytest.approx(mean, rel=1e-9)
    assert gamma_wait_quantile(0.99, rho, servers) == pytest.approx(p99, rel=1e-7)


@given(rho=st.floats(0.05, 0.9), alpha=st.floats(0.2, 8.0))
@settings(max_examples=30, deadline=None)
def test_mean_and_idle_share_are_spitzers_sums(rho, alpha):
    n = np.arange(1, int(60 / (alpha * (rho - 1 - np.log(rho)))) + 60)
    longer = gammainc(n * alpha, n * alpha * rho)  # gaps of n services together fall short of the services
    mean = (longer - gammainc(n * alpha + 1, n * alpha * rho) / rho).sum()
    assert gamma_mean_wait(rho, alpha) == pytest.approx(mean, rel=1e-10, abs=1e-14)
    assert gamma_no_wait(rho, alpha) == pytest.approx(np.exp(-(longer / n).sum()), rel=1e-11)


@given(rho=loads, alpha=shapes)
@settings(max_examples=40, deadline=None)
def test_the_survival_begins_at_those_who_wait_and_falls(rho, alpha):
    t = np.concatenate([[0.0], np.geomspace(1e-3, 60, 40), np.arange(1.0, 6.0), np.arange(1.0, 6.0) - 1e-12])
    t.sort()
    survival = gamma_wait_survival(t, rho, alpha)
    assert survival[0] == pytest.approx(1 - gamma_no_wait(rho, alpha), abs=1e-10)
    assert np.all(np.diff(survival) <= 1e-11)


@given(rho=loads, alpha=shapes, level=st.floats(0.3, 0.999))
@settings(max_examples=60, deadline=None)
def test_quantile_and_survival_go_together(rho, alpha, level):
    wait = gamma_wait_quantile(level, rho, alpha)
    if wait == 0:
        assert gamma_no_wait(rho, alpha) >= level - 1e-12
    else:
        # Of very uneven gaps the survival all but jumps at whole services: a wait is known to rounding, its level is not.
        before, after = (gamma_wait_survival(wait * (1 + step), rho, alpha) for step in (-1e-11, 1e-11))
        assert after * (1 - 1e-7) <= 1 - level <= before * (1 + 1e-7)


def test_survivals_integrate_to_the_means():
    """The survival has a cusp at every whole time, steepest on its left: nodes crowd there."""
    nodes, weights = np.polynomial.legendre.leggauss(12)
    crowded = 1 - np.geomspace(1, 1e-9, 12)
    edges = np.unique(np.concatenate([(np.arange(9)[:, None] + crowded).ravel(), np.linspace(9, 120, 60)]))
    half = np.diff(edges)[:, None] / 2
    for rho, alpha in ((0.5, 0.4), (0.8, 3.0)):
        area = (half * weights * gamma_wait_survival(edges[:-1, None] + half * (1 + nodes), rho, alpha)).sum()
        assert area == pytest.approx(gamma_mean_wait(rho, alpha), rel=1e-8)


def test_burstier_is_later_and_equal_gaps_never_wait():
    alphas = np.array([0.05, 0.2, 0.5, 1.0, 2.0, 8.0, 40.0, 100.0])
    for rho in (0.3, 0.8, 0.98):
        assert np.all(np.diff(gamma_mean_wait(rho, alphas)) < 0)
        assert np.all(np.diff(gamma_wait_quantile(0.99, rho, alphas)) <= 0)
    assert gamma_mean_wait(0.9, np.inf) == 0.0
    assert gamma_no_wait(0.9, np.inf) == 1.0
    assert gamma_wait_quantile(0.99, 0.9, np.inf) == 0.0
    assert gamma_wait_survival(0.5, 0.9, np.inf) == 0.0


def test_more_load_is_later():
    for alpha in (0.1, 1.0, 6.0):
        waits = gamma_wait_quantile(LEVELS[:, None], np.linspace(0.02, 0.999, 25), alpha)
        assert np.all(np.diff(waits, axis=1) >= 0)
        assert np.all(np.diff(waits, axis=0) >= 0)


def test_heavy_traffic():
    """Near saturation the mean is that of the two-moment formula, whatever the gaps."""
    for alpha in (0.2, 5.0):
        rho = 0.9999
        assert (1 - rho) * gamma_mean_wait(rho, alpha) == pytest.approx(1 / alpha / 2, rel=1e-3)


def test_outside_the_domain():
    for function in (gamma_mean_wait, gamma_no_wait):
        for rho, alpha, sentence in ((1.0, 1.0, "no steady state"), (-0.1, 1.0, "cannot be negative"),
                                     (0.5, 0.0, "above zero"), (0.5, 101.0, "infinite shape")):  # fmt: skip
            with pytest.raises(DomainError, match=sentence):
                function(rho, alpha)
        found = function(np.array([-0.1, 0.5, 1.0, 0.0]), np.array([1.0, 500.0, 1.0, 1.0]))
        np.testing.assert_array_equal(np.isnan(found), [True, True, True, False])
    with pytest.raises(DomainError, match="lies between"):
        gamma_wait_quantile(1.0, 0.5, 1.0)
    assert np.isnan(gamma_wait_quantile(np.array([1.0, 0.5]), 0.5, 1.0))[0]
    assert gamma_wait_survival(-1.0, 0.5, 1.0) == 1.0
    np.testing.assert_allclose(gamma_wait_survival(np.array([-1.0, 0.0]), 0.5, 1.0), [1.0, 0.5])


def test_numbers_in_numbers_out():
    assert type(gamma_mean_wait(0.5, 0.5)) is float
    assert type(gamma_wait_quantile(0.9, 0.5, 0.5)) is float
    assert gamma_wait_quantile(LEVELS[:, None], 0.5, np.array([0.5, 2.0])).shape == (4, 2)
