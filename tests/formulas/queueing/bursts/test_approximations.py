import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from formulas.closed_form import DomainError
from formulas.queueing import pollaczek_khinchine as pk
from formulas.queueing.bursts import ALLEN_CUNNEEN, KINGMAN_BOUND, gamma_law_mean_wait, gamma_mean_wait, klb_mean_wait
from formulas.queueing.bursts.approximations import KLB_BURSTY, KLB_REGULAR
from formulas.queueing.mg1 import MEAN_WAIT_BY_SPREAD
from formulas.queueing.service import LognormalLengths, service_law

LOADS = (0.5, 0.8, 0.9)
WITH_PROMPTS = {  # the second table: log-normal prompts of variation 1
    0.125: ((100, 19, 8), (50, 12, 5), (-5, 0, 0)),
    0.5: ((138, 25, 10), (19, 5, 2), (6, 2, 1)),
    2.0: ((154, 31, 13), (-15, -5, -2), (-22, -8, -4)),
    4.0: ((154, 33, 14), (-25, -9, -4), (-38, -15, -8)),
    9.0: ((153, 34, 15), (-32, -11, -5), (-50, -22, -11)),
}
STATED = {  # the first table of the module: percent at the three loads
    0.125: ((2582, 157, 54), (570, 65, 25), (-89, -41, -21)),
    0.5: ((466, 73, 29), (41, 11, 5), (1, 2, 1)),
    1.0: ((300, 56, 23), (0, 0, 0), (0, 0, 0)),
    2.0: ((225, 47, 20), (-19, -6, -3), (-37, -15, -8)),
    4.0: ((189, 41, 18), (-28, -10, -5), (-50, -22, -12)),
    9.0: ((168, 38, 16), (-33, -12, -6), (-57, -26, -14)),
}


@pytest.mark.parametrize("scv", STATED)
def test_stated_errors_are_the_measured_ones(scv):
    for column, rho in enumerate(LOADS):
        exact = gamma_mean_wait(rho, 1 / scv)
        given_ = {"utilization": rho, "arrival_scv": scv, "service_scv": 0.0, "mean_service": 1.0}
        for form, stated in zip(
            (KINGMAN_BOUND, ALLEN_CUNNEEN, lambda **x: klb_mean_wait(**x)), STATED[scv], strict=True
        ):
            assert 100 * (form(**given_) / exact - 1) == pytest.approx(stated[column], abs=0.61)


@pytest.mark.parametrize("scv", WITH_PROMPTS)
def test_stated_errors_for_variable_prompts(scv):
    law = service_law(LognormalLengths(1.0, 1.0), lambda x: x)
    exact = gamma_law_mean_wait(np.array(LOADS), 1 / scv, law)
    at = {"utilization": np.array(LOADS), "arrival_scv": scv, "service_scv": 1.0, "mean_service": 1.0}
    for form, stated in zip((KINGMAN_BOUND, ALLEN_CUNNEEN, klb_mean_wait), WITH_PROMPTS[scv], strict=True):
        np.testing.assert_allclose(100 * (form(**at) / exact - 1), stated, atol=0.61)


@given(rho=st.floats(0.02, 0.99), alpha=st.floats(0.1, 20.0))
@settings(max_examples=60, deadline=None)
def test_kingmans_is_a_bound(rho, alpha):
    bound = KINGMAN_BOUND(utilization=rho, arrival_scv=1 / alpha, service_scv=0.0, mean_service=1.0)
    assert bound > gamma_mean_wait(rho, alpha)


def test_allen_cunneen_is_exact_for_poisson_arrivals():
    assert sp.simplify(ALLEN_CUNNEEN.expression.subs(sp.Symbol("arrival_scv", nonnegative=True), 1)
                       - MEAN_WAIT_BY_SPREAD.expression) == 0  # fmt: skip


def test_the_bound_follows_from_its_last_step():
    assert sp.simplify(KINGMAN_BOUND.steps[-1].equation.rhs - KINGMAN_BOUND.expression) == 0
    before = KINGMAN_BOUND.steps[-2].equation.rhs.subs(pk.RATE.symbol, pk.RHO.symbol / pk.MEAN_SERVICE.symbol)
    assert sp.simplify(before - KINGMAN_BOUND.expression) == 0


@given(rho=st.floats(0.05, 0.99), cs=st.floats(0.1, 5.0))
@settings(max_examples=30, deadline=None)
def test_both_forms_meet_at_poisson_arrivals(rho, cs):
    at = {"utilization": rho, "arrival_scv": 1.0, "service_scv": cs, "mean_service": 2.0}
    exact = MEAN_WAIT_BY_SPREAD(utilization=rho, service_scv=cs, mean_service=2.0)
    assert KLB_REGULAR(**at) == pytest.approx(exact, rel=1e-13)
    assert KLB_BURSTY(**at) == pytest.approx(exact, rel=1e-13)


def test_the_right_form_is_taken():
    scv = np.array([0.25, 1.0, 4.0])
    values = klb_mean_wait(0.8, scv, 1.0, 1.0)
    for x, value in zip(scv, values, strict=True):
        assert klb_mean_wait(0.8, float(x), 1.0, 1.0) == pytest.approx(value, rel=1e-14)
    assert np.all(np.diff(values) > 0)
    with pytest.raises(DomainError, match="more irregular"):
        KLB_REGULAR(utilization=0.8, arrival_scv=2.0, service_scv=1.0, mean_service=1.0)
    with pytest.raises(DomainError, match="more regular"):
        KLB_BURSTY(utilization=0.8, arrival_scv=0.5, service_scv=1.0, mean_service=1.0)
    with pytest.raises(DomainError, match="no steady state"):
        klb_mean_wait(1.0, 0.5, 1.0, 1.0)
