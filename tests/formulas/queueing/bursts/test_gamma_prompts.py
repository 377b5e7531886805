import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from formulas.closed_form import DomainError
from formulas.queueing import mg1
from formulas.queueing.bursts import (
    gamma_law_mean_wait,
    gamma_law_ttft_quantile,
    gamma_law_ttft_survival,
    gamma_law_wait_quantile,
    gamma_law_wait_survival,
    gamma_mean_wait,
    gamma_no_wait,
    gamma_wait_survival,
)
from formulas.queueing.bursts.gamma_law_queue import GammaLawQueue
from formulas.queueing.service import (
    GammaLengths,
    ListedLengths,
    LognormalLengths,
    UniformLengths,
    equal_service,
    service_law,
)

LEVELS = np.array([0.5, 0.9, 0.99])
TIMES = np.array([1e-5, 2e-3, 0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 80.0, 300.0])
EXPONENTIAL = service_law(GammaLengths(1.0, 1.0), lambda x: x)
LAWS = {
    "log-normal": service_law(LognormalLengths(1.0, 1.0), lambda x: x),
    "wide": service_law(LognormalLengths(1000.0, 2.0), lambda x: 1e-3 + 2e-5 * x),
    "uniform": service_law(UniformLengths(0.5, 1.5), lambda x: x),
    "two": service_law(ListedLengths([0.5, 5.0], [0.9, 0.1]), lambda x: x),
}


def busy_root(rho, alpha):
    """With memoryless service the wait is exponential, given that there is one: its share solves one equation."""
    return brentq(lambda x: (1 + (1 - x) / (alpha * rho)) ** -alpha - x, 0.0, 1 - 1e-3 * (1 - rho), xtol=1e-15)


@pytest.mark.parametrize("alpha", [0.1, 0.3, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("rho", [0.05, 0.6, 0.9, 0.999])
def test_memoryless_service_has_a_closed_form(alpha, rho):
    share = busy_root(rho, alpha)
    queue = GammaLawQueue(EXPONENTIAL, rho, alpha)
    assert queue.mean == pytest.approx(share / (1 - share), rel=1e-7)
    assert queue.no_wait == pytest.approx(1 - share, rel=1e-8)
    tail = np.exp(-(1 - share) * TIMES)
    np.testing.assert_allclose(gamma_law_wait_survival(TIMES, rho, alpha, EXPONENTIAL), share * tail, atol=5e-7)
    np.testing.assert_allclose(gamma_law_ttft_survival(TIMES, rho, alpha, EXPONENTIAL), tail, atol=5e-7)
    exact = -np.log(1 - LEVELS) / (1 - share)
    np.testing.assert_allclose(gamma_law_ttft_quantile(LEVELS, rho, alpha, EXPONENTIAL), exact, rtol=3e-6)


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("load", [0.2, 0.8, 0.99])
def test_shape_one_is_mg1(name, load):
    law = LAWS[name]
    rate = load / law.mean
    assert gamma_law_mean_wait(rate, 1.0, law) == pytest.approx(mg1.mean_wait(rate, law), rel=1e-9)
    t = TIMES[4:] * law.mean
    np.testing.assert_allclose(gamma_law_wait_survival(t, rate, 1.0, law), mg1.wait_survival(t, rate, law), atol=1e-6)
    np.testing.assert_allclose(gamma_law_ttft_survival(t, rate, 1.0, law), mg1.ttft_survival(t, rate, law), atol=1e-6)
    for ours, theirs in ((gamma_law_wait_quantile, mg1.wait_quantile), (gamma_law_ttft_quantile, mg1.ttft_quantile)):
        np.testing.assert_allclose(ours(LEVELS, rate, 1.0, law), theirs(LEVELS, rate, law), rtol=2e-5, atol=1e-12)


@pytest.mark.parametrize("alpha", [0.25, 2.0, 8.0])
def test_equal_prompts_agree_with_their_own_method(alpha):
    """Means to rounding; probabilities away from the kinks, which are not taken out here."""
    queue = GammaLawQueue(equal_service(1.0), 0.7, alpha)
    assert queue.mean == pytest.approx(gamma_mean_wait(0.7, alpha), rel=1e-11)
    assert queue.no_wait == pytest.approx(gamma_no_wait(0.7, alpha), rel=1e-11)
    t = np.array([0.3, 0.7, 1.5, 2.6, 3.7, 8.3])
    np.testing.assert_allclose(
        gamma_law_wait_survival(t, 0.7, alpha, equal_service(1.0)), gamma_wait_survival(t, 0.7, alpha), atol=1e-6
    )


@given(alpha=st.floats(0.1, 10.0), rho=st.floats(0.05, 0.99), cv=st.floats(0.2, 2.0))
@settings(max_examples=15, deadline=None)
def test_survivals_fall_and_begin_at_those_who_wait(alpha, rho, cv):
    law = service_law(LognormalLengths(1.0, cv), lambda x: x)
    survival = gamma_law_wait_survival(np.concatenate([[0.0], TIMES]), rho, alpha, law)
    assert np.all(np.diff(survival) <= 1e-6)
    assert survival[0] == pytest.approx(1 - GammaLawQueue(law, rho, alpha).no_wait, abs=1e-9)
    assert np.all(gamma_law_ttft_survival(TIMES, rho, alpha, law) >= survival[1:] - 1e-6)


@given(alpha=st.floats(0.15, 8.0), rho=st.floats(0.1, 0.98), level=st.floats(0.5, 0.995))
@settings(max_examples=15, deadline=None)
def test_quantile_and_survival_go_together(alpha, rho, level):
    law = LAWS["log-normal"]
    ttft = gamma_law_ttft_quantile(level, rho, alpha, law)
    assert gamma_law_ttft_survival(ttft, rho, alpha, law) == pytest.approx(1 - level, rel=1e-4)
    wait = gamma_law_wait_quantile(level, rho, alpha, law)
    assert wait <= ttft
    if wait > 0:
        assert gamma_law_wait_survival(wait, rho, alpha, law) == pytest.approx(1 - level, rel=1e-4)


def test_burstier_or_busier_is_later():
    law = LAWS["wide"]
    shapes = np.array([0.1, 0.3, 1.0, 3.0, 10.0])
    assert np.all(np.diff(gamma_law_mean_wait(0.8 / law.mean, shapes, law)) < 0)
    rates = np.linspace(0.1, 0.99, 8) / law.mean
    for function in (gamma_law_wait_quantile, gamma_law_ttft_quantile):
        found = function(LEVELS[:, None], rates, 0.5, law)
        assert np.all(np.diff(found, axis=1) >= 0)
        assert np.all(np.diff(found, axis=0) >= 0)


def test_survivals_add_up_to_the_mean():
    law, nodes = LAWS["log-normal"], np.polynomial.legendre.leggauss(8)
    edges = np.concatenate([[0.0], np.geomspace(1e-3, 400, 30)])
    half = np.diff(edges)[:, None] / 2
    t = edges[:-1, None] + half * (1 + nodes[0])
    for alpha in (0.4, 3.0):
        area = (half * nodes[1] * gamma_law_wait_survival(t, 0.7, alpha, law)).sum()
        assert area == pytest.approx(gamma_law_mean_wait(0.7, alpha, law), rel=1e-5)


def test_outside_the_domain():
    law = LAWS["log-normal"]
    for rate, alpha, sentence in ((1.0, 1.0, "no steady state"), (0.0, 1.0, "above zero"), (0.5, 0.05, "lies between"),
                                  (0.5, 11.0, "lies between")):  # fmt: skip
        with pytest.raises(DomainError, match=sentence):
            gamma_law_mean_wait(rate, alpha, law)
    found = gamma_law_mean_wait(np.array([0.0, 0.5, 1.0]), 0.5, law)
    np.testing.assert_array_equal(np.isnan(found), [True, False, True])
    with pytest.raises(DomainError, match="lies between"):
        gamma_law_ttft_quantile(1.0, 0.5, 1.0, law)
    assert type(gamma_law_ttft_quantile(0.9, 0.5, 1.0, law)) is float
    np.testing.assert_array_equal(gamma_law_ttft_survival([-1.0, 0.0], 0.5, 1.0, law), [1.0, 1.0])
