import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulas.closed_form import DomainError
from formulas.montecarlo.lindley import simulate_waits
from formulas.queueing import md1
from formulas.queueing.bursts import (
    BATCH_MEAN_WAIT,
    BURST_DRAIN,
    batch_wait_quantile,
    batch_wait_survival,
    burst_mean_wait,
    burst_quantile,
    largest_burst,
)
from formulas.queueing.service import ListedLengths
from tests.formulas.queueing.lattice import batch_work_cdf

K = np.arange(1, 120)
SIZES = {
    "four": ListedLengths(4),
    "geometric": ListedLengths(K, 0.25 * 0.75 ** (K - 1)),
    "single or many": ListedLengths([1, 20], [0.9, 0.1]),
}


def mean(batch_rate, sizes, service_time):
    return BATCH_MEAN_WAIT(
        batch_rate=batch_rate, batch_mean=sizes.mean, batch_second_moment=float(sizes.shares @ sizes.lengths**2),
        mean_service=service_time, service_variance=0.0,
    )  # fmt: skip


@given(burst=st.integers(1, 60), servers=st.integers(1, 12))
def test_a_burst_is_served_in_rounds(burst, servers):
    rounds = np.arange(burst) // servers
    assert burst_mean_wait(burst, servers, 0.05) == pytest.approx(0.05 * rounds.mean(), abs=1e-15)
    for level in (0.01, 0.5, 0.9, 1.0):
        served = int(np.ceil(level * burst - 1e-9))
        assert burst_quantile(level, burst, servers, 0.05) == pytest.approx(0.05 * (rounds[max(served, 1) - 1] + 1))


def test_a_burst_on_one_server_is_lindleys_recursion():
    waits = simulate_waits(np.zeros(9), 0.05)
    assert burst_mean_wait(9, 1, 0.05) == pytest.approx(waits.mean())


def test_bursts_of_many_sizes_at_once():
    bursts = np.array([1, 8, 9])
    np.testing.assert_allclose(burst_mean_wait(bursts, 4, 1.0), [0.0, 0.5, 2 / 3])
    assert BURST_DRAIN(burst=10, rate=0.8, service_time=1.0) == pytest.approx(50.0)
    with pytest.raises(DomainError, match="at least one request"):
        burst_quantile(0.0, 5, 1, 1.0)
    with pytest.raises(DomainError, match="no steady state"):
        BURST_DRAIN(burst=10, rate=1.0, service_time=1.0)


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("load", [0.1, 0.6, 0.95])
def test_batches_against_an_exact_sum(name, load):
    sizes = SIZES[name]
    rate = load / sizes.mean
    cdf = batch_work_cdf(rate, sizes.lengths.astype(int).tolist(), sizes.shares.tolist(), 60)
    ahead = [float(sizes.shares[sizes.lengths > n].sum()) / sizes.mean for n in range(int(sizes.lengths[-1]))]
    for t in (0.0, 0.5, 1.0, 2.5, 4.0, 4.01, 19.9, 20.0, 43.0):
        exact = 1 - sum(share * cdf(t - n) for n, share in enumerate(ahead) if t >= n)
        assert batch_wait_survival(t, rate, sizes, 1.0) == pytest.approx(exact, abs=2e-9)


@pytest.mark.parametrize("index", range(3))
def test_reference_simulations(single_server, index):
    case = single_server["batch_poisson"][index]
    sizes = SIZES["four" if case["sizes"] == "fixed4" else "geometric"]
    rate = case["utilization"] / sizes.mean
    simulated = case["simulated"]
    exact = {"mean": mean(rate, sizes, 1.0)}
    exact |= {f"p{level}": batch_wait_quantile(level / 100, rate, sizes, 1.0) for level in (90, 99)}
    for statistic, (value, error) in simulated.items():
        assert abs(exact[statistic] - value) < 4 * error


def test_batches_of_one_are_md1():
    rho, one = 0.8, ListedLengths(1)
    assert mean(rho / 0.05, one, 0.05) == pytest.approx(md1.MEAN_WAIT(rate=rho / 0.05, service_time=0.05), rel=1e-14)
    levels = np.array([0.5, 0.9, 0.99])
    exact = 0.05 * md1.wait_quantile(levels, rho)
    np.testing.assert_allclose(batch_wait_quantile(levels, rho / 0.05, one, 0.05), exact, rtol=1e-8)


@given(load=st.floats(0.05, 0.95), big=st.integers(2, 30), share=st.floats(0.05, 0.95))
@settings(max_examples=6, deadline=None)
def test_survivals_add_up_to_the_mean(load, big, share):
    sizes = ListedLengths([1, big], [1 - share, share])
    rate = load / sizes.mean
    nodes, weights = np.polynomial.legendre.leggauss(6)
    scale = mean(rate, sizes, 1.0)
    edges = np.concatenate([np.arange(0.0, 2.0 * big), np.geomspace(2.0 * big, 2.0 * big + 60 * scale, 25)])
    half = np.diff(np.unique(edges))[:, None] / 2
    t = np.unique(edges)[:-1, None] + half * (1 + nodes)
    assert (half * weights * batch_wait_survival(t, rate, sizes, 1.0)).sum() == pytest.approx(scale, rel=1e-4)


def test_variable_prompts_in_batches_wait_longer():
    base = {"batch_rate": 0.1, "batch_mean": 4.0, "batch_second_moment": 28.0, "mean_service": 1.0}
    assert BATCH_MEAN_WAIT(service_variance=1.0, **base) > BATCH_MEAN_WAIT(service_variance=0.0, **base)
    with pytest.raises(DomainError, match="square of the mean"):
        BATCH_MEAN_WAIT(**(base | {"batch_second_moment": 3.0, "service_variance": 0.0}))


def test_a_batch_is_whole():
    for wrong in ([0, 2], [1.5]):
        with pytest.raises(DomainError, match="whole number"):
            batch_wait_quantile(0.9, 0.1, ListedLengths(wrong), 1.0)
    with pytest.raises(DomainError, match="no steady state"):
        batch_wait_quantile(0.9, 0.25, SIZES["four"], 1.0)


@given(st.floats(0.001, 3.0), st.floats(0.01, 1.0), st.integers(1, 40), st.floats(0.01, 1.0))
def test_the_largest_burst_is_within_the_limit_and_one_more_is_not(limit, level, servers, service_time):
    largest = largest_burst(limit, level, servers, service_time)
    assert (largest == 0) == (limit < service_time * (1 - 1e-12))
    if largest:
        assert burst_quantile(level, largest, servers, service_time) <= limit * (1 + 1e-9)
    assert burst_quantile(level, largest + 1, servers, service_time) > limit * (1 - 1e-9)


def test_the_largest_burst_needs_a_level_and_a_pool():
    for wrong in ((1.0, 0.0, 1, 0.1), (1.0, 1.1, 1, 0.1), (1.0, 0.9, 0, 0.1), (1.0, 0.9, 1, 0.0)):
        with pytest.raises(DomainError):
            largest_burst(*wrong)
