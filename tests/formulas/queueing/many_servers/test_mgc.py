import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulas.closed_form import DomainError
from formulas.montecarlo.confidence import mean_interval, quantile_interval
from formulas.montecarlo.routing_check import simulate_poisson
from formulas.queueing.many_servers import (
    ALLEN_CUNNEEN_MEAN_WAIT,
    KIMURA_MEAN_WAIT,
    MEASURED_ERRORS,
    MMC_MEAN_WAIT,
    LognormalTimes,
    erlang_c,
    mdc,
    mgc_mean_wait,
    mgc_wait_probability,
    own_queue_laws,
    shared_queue_laws,
)

CUSTOMERS = 400_000


def exponential_mean(servers, rho):
    return MMC_MEAN_WAIT(wait_probability=erlang_c(servers, rho), servers=servers, utilization=rho, mean_service=1.0)


def test_kimuras_formula_is_the_references(many_servers_reference):
    cases = many_servers_reference["kimura"]
    assert {case["cv"] for case in cases} == {1.0, 2.0}
    for case in cases:
        expected = case["simulated"] * (1 + case["error"])
        found = mgc_mean_wait(case["servers"], case["utilization"], case["cv"])
        # those of cv 2 are printed to three or four digits
        assert found == pytest.approx(expected, rel=1e-9 if case["cv"] == 1 else 4e-3)


@given(st.integers(1, 200), st.floats(0.1, 0.99))
@settings(max_examples=40)
def test_exact_where_the_wait_is_known(servers, rho):
    assert mgc_mean_wait(servers, rho, 0.0) == pytest.approx(mdc.mean_wait(servers, rho), rel=1e-12)
    assert mgc_mean_wait(servers, rho, 1.0) == pytest.approx(exponential_mean(servers, rho), rel=1e-12)
    assert mgc_mean_wait(1, rho, 1.7) == pytest.approx(rho * (1 + 1.7**2) / 2 / (1 - rho), rel=1e-12)
    assert mgc_wait_probability(servers, rho, 0.0) == pytest.approx(mdc.wait_probability(servers, rho), rel=1e-12)


@given(st.integers(2, 60), st.floats(0.1, 0.98), st.floats(0.0, 3.0), st.floats(0.01, 0.5))
@settings(max_examples=60)
def test_waits_grow_with_the_spread(servers, rho, cv, more):
    assert mgc_mean_wait(servers, rho, cv + more) > mgc_mean_wait(servers, rho, cv)


@pytest.mark.parametrize("cv", [0.5, 1.0, 2.0])
def test_one_server_is_mg1(cv):
    service = LognormalTimes(0.2, cv)
    exact, found = own_queue_laws(service, 0.8), shared_queue_laws(service, 1, 0.8)
    assert found.wait.mean == pytest.approx(exact.wait.mean, rel=1e-5)
    levels = np.array([0.5, 0.9, 0.99, 0.999])
    np.testing.assert_allclose(found.wait.quantile(levels), exact.wait.quantile(levels), rtol=1e-4)
    np.testing.assert_allclose(found.ttft.quantile(levels), exact.ttft.quantile(levels), rtol=1e-4)


@pytest.mark.parametrize("band", MEASURED_ERRORS, ids=lambda band: f"cv {band.cv}")
@pytest.mark.parametrize(("servers", "rho"), [(4, 0.5), (16, 0.7), (8, 0.9)])
def test_errors_are_as_small_as_stated(band, servers, rho):
    """The stated error, and the simulation's own on top of it."""
    service = LognormalTimes(1.0, band.cv)
    waits, times = simulate_poisson("shared", service, servers, rho, CUSTOMERS, seed=3)
    waits, ttft = waits[20_000:], (waits + times)[20_000:]
    laws = shared_queue_laws(service, servers, rho)
    simulated = (mean_interval(waits, 0.999), quantile_interval(waits, 0.9, 0.999),
                 quantile_interval(waits, 0.99, 0.999), quantile_interval(ttft, 0.99, 0.999))  # fmt: skip
    found = (laws.wait.mean, laws.wait.quantile(0.9), laws.wait.quantile(0.99), laws.ttft.quantile(0.99))
    for value, interval, error in zip(found, simulated, (band.mean, band.p90, band.p99, band.ttft_p99), strict=True):
        assert interval.low * (1 - error) <= value <= interval.high * (1 + error)


def test_the_simple_formula_is_as_far_off_as_its_source_says():
    simple = ALLEN_CUNNEEN_MEAN_WAIT(cv=0.0, exponential_wait=exponential_mean(8, 0.5))
    assert simple / mdc.mean_wait(8, 0.5) == pytest.approx(1 - 0.208, abs=1e-3)
    spread = ALLEN_CUNNEEN_MEAN_WAIT(cv=2.0, exponential_wait=exponential_mean(8, 0.5))
    assert spread / 0.0214 == pytest.approx(1.73, abs=0.01)


def test_law_has_its_mean_and_its_atom():
    service = LognormalTimes(0.05, 1.0)
    laws = shared_queue_laws(service, 8, 0.8)
    assert laws.wait.masses.sum() == pytest.approx(1.0, abs=1e-9)
    assert laws.wait.mean == pytest.approx(0.05 * mgc_mean_wait(8, 0.8, 1.0), rel=1e-9)
    assert laws.ttft.mean == pytest.approx(0.05 + laws.wait.mean, rel=1e-6)
    assert laws.wait.survival(0.0) == pytest.approx(erlang_c(8, 0.8), rel=1e-2)
    assert laws.wait.quantile(0.5) == 0.0


def test_outside_the_domain():
    for rho in (0.0, 1.0):
        with pytest.raises(DomainError):
            shared_queue_laws(LognormalTimes(1.0, 1.0), 8, rho)
    with pytest.raises(DomainError, match="do not belong to one queue"):
        KIMURA_MEAN_WAIT(cv=3.0, exponential_wait=1.0, equal_wait=0.1)


@pytest.mark.parametrize("utilization", [0.003, 0.05])
def test_where_next_to_nobody_waits_the_shared_queue_of_many_is_the_service_alone(utilization):
    law = LognormalTimes(1.0, 1.0)
    found = shared_queue_laws(law, 256, utilization)
    assert mgc_mean_wait(256, utilization, 1.0) < 1e-100
    assert found.wait.mean < 1e-100
    assert found.ttft.quantile(0.99) == pytest.approx(float(law.quantile(0.99)), rel=1e-3)
