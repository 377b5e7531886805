"""G/G/c: where it must be another queue, and against a simulation of the shared queue."""

import numpy as np
import pytest

from formulas.montecarlo.agreement import estimates
from formulas.montecarlo.routers import simulate_routed
from formulas.queueing.bursts import gamma_mean_wait
from formulas.queueing.many_servers import LognormalTimes, bursty_queue_laws, mgc_mean_wait, shared_queue_laws

CASES = [(cv, servers, load, scv) for cv in (0.5, 1.5) for servers, load in ((2, 0.8), (8, 0.7)) for scv in (0.25, 4.0)]


def test_poisson_arrivals_are_mgc():
    service = LognormalTimes(0.1, 1.0)
    found, poisson = bursty_queue_laws(service, 8, 0.8, 1.0), shared_queue_laws(service, 8, 0.8)
    assert np.array_equal(found.wait.masses, poisson.wait.masses)


def test_prompts_that_hardly_differ_wait_as_equal_ones_do():
    found = bursty_queue_laws(LognormalTimes(1.0, 0.05), 4, 0.8, 4.0)
    assert found.wait.mean == pytest.approx(gamma_mean_wait(0.8, 1.0), rel=0.01)


def test_near_saturation_the_wait_grows_as_the_sum_of_the_variations():
    cv, scv, load = 1.0, 4.0, 0.995
    grows = bursty_queue_laws(LognormalTimes(1.0, cv), 4, load, scv).wait.mean / mgc_mean_wait(4, load, cv)
    assert grows == pytest.approx((scv + cv**2) / (1 + cv**2), rel=0.02)


@pytest.mark.parametrize(("cv", "servers", "load", "scv"), CASES)
def test_the_error_stated_holds_in_a_simulation(cv, servers, load, scv):
    generator, customers = np.random.default_rng([1, servers]), 120_000
    sigma2 = np.log1p(cv**2)
    times = np.exp(np.sqrt(sigma2) * generator.standard_normal(customers) - sigma2 / 2)
    arrivals = np.cumsum(generator.gamma(1 / scv, scv / (load * servers), customers))
    waits = simulate_routed("shared", arrivals, times, servers)
    simulated = estimates((waits + times)[10_000:], (0.9, 0.99))
    ttft = bursty_queue_laws(LognormalTimes(1.0, cv), servers, load, scv).ttft
    for level, name, error in ((0.9, "P90", 0.11), (0.99, "P99", 0.20)):
        interval, value = simulated[name], float(ttft.quantile(level))
        assert (1 - error) * interval.low <= value <= (1 + error) * interval.high


def test_waits_grow_with_the_load_and_with_the_bursts():
    service = LognormalTimes(1.0, 1.0)
    by_load = [bursty_queue_laws(service, 4, load, 4.0).ttft.quantile(0.99) for load in (0.3, 0.6, 0.9)]
    by_bursts = [bursty_queue_laws(service, 4, 0.7, scv).ttft.quantile(0.99) for scv in (0.25, 0.5, 1.0, 2.0, 4.0, 9.0)]
    assert np.all(np.diff(by_load) > 0)
    assert np.all(np.diff(by_bursts) > 0)
