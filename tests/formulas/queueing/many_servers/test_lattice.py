import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulas.closed_form import DomainError
from formulas.queueing import md1
from formulas.queueing.many_servers import (
    ROUND_ROBIN_MEAN_WAIT,
    Constant,
    LognormalTimes,
    ObservedTimes,
    mdc,
    own_queue_laws,
)
from formulas.queueing.many_servers.lattice import LatticeLaw, lattice_step, on_lattice


def test_random_choice_is_mg1(many_servers_reference):
    cases = many_servers_reference["mg1_lognormal"]
    assert len(cases) == 5
    for case in cases:
        laws = own_queue_laws(LognormalTimes(1.0, case["cv"]), case["utilization"])
        assert laws.wait.mean == pytest.approx(case["mean_wait"], rel=1e-7)
        assert laws.ttft.mean == pytest.approx(1 + case["mean_wait"], rel=1e-7)
        for law, exact in ((laws.wait, case["wait"]), (laws.ttft, case["ttft"])):
            assert len(exact) >= 3
            for level, time in exact.items():
                assert law.quantile(float(level)) == pytest.approx(time, rel=5e-5 if level == "0.5" else 3e-6)


@pytest.mark.parametrize(("every", "rho"), [(1, 0.7), (2, 0.8), (8, 0.8), (8, 0.95), (64, 0.9)])
def test_equal_prompts_are_mdc(every, rho):
    """Round robin with equal prompts: two methods that share nothing."""
    laws = own_queue_laws(Constant(1.0), rho, every)
    assert laws.wait.mean == pytest.approx(mdc.mean_wait(every, rho), rel=5e-3)
    for level in (0.9, 0.99, 0.999):
        assert laws.wait.quantile(level) == pytest.approx(mdc.wait_quantile(level, every, rho), rel=5e-3, abs=2e-3)


def test_reference_simulations_of_round_robin(many_servers_reference):
    cases = many_servers_reference["round_robin_spread"]
    assert len(cases) == 9
    for case in cases:
        mean, error = case["simulated"]
        found = own_queue_laws(LognormalTimes(1.0, case["cv"]), case["utilization"], case["servers"]).wait.mean
        assert abs(found - mean) < 4 * error


def test_closed_form_of_round_robin_is_the_references(many_servers_reference):
    for case in many_servers_reference["round_robin_spread"]:
        at = {"utilization": case["utilization"], "servers": case["servers"], "cv": case["cv"], "mean_service": 1.0}
        assert ROUND_ROBIN_MEAN_WAIT(**at) == pytest.approx(case["simulated"][0] * (1 + case["klb_error"]), rel=1e-9)


def test_closed_form_of_round_robin_errs_as_its_source_says():
    for servers, rho, cv in ((2, 0.5, 1.0), (8, 0.9, 1.0), (32, 0.5, 1.0), (32, 0.5, 2.0)):
        exact = own_queue_laws(LognormalTimes(1.0, cv), rho, servers).wait.mean
        found = ROUND_ROBIN_MEAN_WAIT(utilization=rho, servers=servers, cv=cv, mean_service=1.0)
        assert abs(found / exact - 1) < 0.12
    low = ROUND_ROBIN_MEAN_WAIT(utilization=0.5, servers=8, cv=0.0, mean_service=1.0) / mdc.mean_wait(8, 0.5)
    assert low == pytest.approx(1 - 0.89, abs=0.005)


@given(st.floats(0.1, 0.97), st.floats(0.3, 1.2))
@settings(max_examples=10)
def test_mean_wait_is_pollaczeks_and_falls_with_regular_arrivals(rho, cv):
    service = LognormalTimes(2.0, cv)
    random = own_queue_laws(service, rho)
    assert random.wait.mean == pytest.approx(2.0 * rho * (1 + cv**2) / 2 / (1 - rho), rel=1e-6)
    assert own_queue_laws(service, rho, 4).wait.mean < random.wait.mean


def test_hits_and_misses_of_a_cache():
    """Two lengths, one of them no multiple of the step."""
    service = ObservedTimes([0.0371] * 3 + [1.7391])
    rho = 0.75
    laws = own_queue_laws(service, rho)
    second = service.mean**2 * (1 + service.cv**2)
    assert laws.wait.mean == pytest.approx(rho / service.mean * second / 2 / (1 - rho), rel=1e-3)


def test_units_scale():
    seconds = own_queue_laws(LognormalTimes(1.0, 0.7), 0.8, 4)
    milli = own_queue_laws(LognormalTimes(1e-3, 0.7), 0.8, 4)
    assert milli.wait.mean == pytest.approx(1e-3 * seconds.wait.mean, rel=1e-9)
    assert milli.ttft.quantile(0.99) == pytest.approx(1e-3 * seconds.ttft.quantile(0.99), rel=1e-9)


def test_the_lattice_keeps_mean_and_mass():
    service = LognormalTimes(1.0, 1.0)
    step, points = lattice_step(service, 0.9)
    law = on_lattice(service, step, points)
    assert law.masses.sum() == pytest.approx(1.0, abs=1e-12)
    assert law.mean == pytest.approx(1.0, rel=1e-9)
    other = law.on(0.37, 3000)
    assert other.masses.sum() == pytest.approx(1.0, abs=1e-12)
    assert other.mean == pytest.approx(1.0, rel=1e-9)
    assert law.plus(law).mean == pytest.approx(2.0, rel=1e-9)


def test_survival_and_quantile_are_inverse():
    wait = own_queue_laws(LognormalTimes(1.0, 1.0), 0.8).wait.fine
    assert isinstance(wait, LatticeLaw)
    levels = np.array([0.3, 0.9, 0.999])
    np.testing.assert_allclose(wait.survival(wait.quantile(levels)), 1 - levels, rtol=1e-9)
    assert wait.survival(0.0) == pytest.approx(0.8, abs=2e-4)
    assert wait.quantile(0.1) == 0.0


def test_near_saturation_the_lattice_grows_with_the_wait():
    laws = own_queue_laws(LognormalTimes(1.0, 1.0), 0.9995)
    assert laws.wait.mean == pytest.approx(0.9995 / 5e-4, rel=2e-4)
    assert laws.wait.quantile(0.99) == pytest.approx(np.log(100) * 0.9995 / 5e-4, rel=2e-3)
    assert own_queue_laws(Constant(1.0), 0.99).wait.mean == pytest.approx(
        md1.MEAN_WAIT(rate=0.99, service_time=1.0), rel=1e-4
    )


@pytest.mark.parametrize("rho", [0.0, 1.0, 1.5])
def test_outside_the_domain(rho):
    with pytest.raises(DomainError):
        own_queue_laws(Constant(1.0), rho)


def test_too_near_saturation_there_is_a_sentence():
    with pytest.raises(DomainError, match=r"utilization of 0\.99999"):
        own_queue_laws(LognormalTimes(1.0, 1.0), 0.99999)
