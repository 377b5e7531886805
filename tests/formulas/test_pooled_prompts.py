"""Prompts of several instances that share one queue: as other queues where they must be, and against simulations."""

import numpy as np
import pytest

from formulas.closed_form import DomainError
from formulas.interference import PooledPrompts, Prompts, pooled_max_rate
from formulas.montecarlo.agreement import estimates
from formulas.montecarlo.routers import simulate_routed
from formulas.queueing.many_servers import mdc
from formulas.queueing.service import LognormalLengths, equal_service, service_law

EQUAL = equal_service(0.02)
SPREAD = service_law(LognormalLengths(1000.0, 1.0), lambda tokens: 2e-3 + 2e-5 * np.asarray(tokens))


def test_equal_prompts_at_random_times_are_mdc():
    prompts = PooledPrompts(0.8 * 8 / 0.02, EQUAL, 8)
    assert prompts.mean_wait == pytest.approx(0.02 * mdc.mean_wait(8, 0.8), rel=1e-12)
    assert prompts.finished_quantile(0.99) == pytest.approx(0.02 * (1 + mdc.wait_quantile(0.99, 8, 0.8)), rel=1e-12)
    assert prompts.finished_within(0.02 * 0.999) == 0
    assert prompts.finished_within(prompts.finished_quantile(0.99)) == pytest.approx(0.99, rel=1e-9)


def test_equal_prompts_in_bursts_are_every_cth_at_each_instance():
    prompts, one = PooledPrompts(0.8 * 4 / 0.02, EQUAL, 4, 2.0), Prompts(0.8 / 0.02, EQUAL, 0.5)
    assert prompts.mean_wait == pytest.approx(one.mean_wait, rel=1e-7)
    assert prompts.finished_quantile([0.5, 0.99]) == pytest.approx(one.finished_quantile([0.5, 0.99]), rel=1e-5)


@pytest.mark.parametrize("scv", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("law", [EQUAL, SPREAD], ids=["equal", "spread"])
def test_simulated_prompts_finish_in_time_as_often(law, scv):
    servers, customers, generator = 4, 100_000, np.random.default_rng(5)
    rate = 0.75 * servers / law.mean
    arrivals = np.cumsum(generator.gamma(1 / scv, scv / rate, customers))
    times = law.draw(customers, generator)
    ttft = (simulate_routed("shared", arrivals, times, servers) + times)[5_000:]
    prompts = PooledPrompts(rate, law, servers, scv)
    limit = float(prompts.finished_quantile(0.9))
    assert float(prompts.finished_within(limit)) == pytest.approx(0.9, abs=1e-3)
    interval = estimates((ttft <= limit).astype(float), ())["mean"]
    assert interval.low - 0.012 <= 0.9 <= interval.high + 0.012


def test_sharing_a_queue_is_worth_instances():
    alone = pooled_max_rate(0.1, 0.9, SPREAD, 2)
    rates = [pooled_max_rate(0.1, 0.9, SPREAD, servers) / servers for servers in (2, 4, 16, 64)]
    assert alone == pytest.approx(2 * rates[0])
    assert np.all(np.diff(rates) > 0)
    assert rates[-1] < 1 / SPREAD.mean
    at_the_rate = PooledPrompts(64 * rates[-1], SPREAD, 64)
    assert float(at_the_rate.finished_within(0.1)) == pytest.approx(0.9, abs=2e-3)


def test_more_instances_than_one_queue_is_computed_for():
    few, many = (PooledPrompts(0.9 * servers / 0.02, EQUAL, servers) for servers in (256, 100_000))
    assert many.mean_wait == pytest.approx(few.mean_wait)


def test_refusals():
    with pytest.raises(DomainError):
        PooledPrompts(4 / 0.02, EQUAL, 4)
    assert pooled_max_rate(0.019, 0.9, EQUAL, 4) is None
    assert pooled_max_rate(0.001, 0.9, SPREAD, 4) is None
