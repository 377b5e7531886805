import ciw
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import poisson

from formulas.closed_form import DomainError
from formulas.montecarlo.confidence import mean_interval
from formulas.queueing.many_servers.erlang import MMC_MEAN_WAIT, MMC_QUANTILE, erlang_b, erlang_c


@given(st.integers(1, 300), st.floats(0.01, 0.999))
@settings(max_examples=80)
def test_blocking_is_the_truncated_poisson_law(servers, rho):
    load = servers * rho
    assert erlang_b(servers, load) == pytest.approx(poisson.pmf(servers, load) / poisson.cdf(servers, load), rel=1e-10)


@given(st.floats(0.0, 0.999))
def test_one_server_waits_when_it_is_busy(rho):
    assert erlang_c(1, rho) == pytest.approx(rho, abs=1e-15)


@given(st.integers(1, 100), st.floats(0.01, 0.99))
def test_more_servers_wait_less(servers, rho):
    assert erlang_c(servers + 1, rho) < erlang_c(servers, rho)


def test_arrays_equal_numbers():
    rho = np.array([0.1, 0.5, 0.9])
    np.testing.assert_allclose(erlang_c(8, rho), [erlang_c(8, x) for x in rho], rtol=1e-15)
    np.testing.assert_array_equal(np.isnan(erlang_c(8, np.array([-0.5, 0.5, 1.0]))), [True, False, True])


def test_agrees_with_an_independent_simulator():
    ciw.seed(5)
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(2.4)],
        service_distributions=[ciw.dists.Exponential(1.0)],
        number_of_servers=[3],
    )
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_customers(20_000, method="Finish")
    records = sorted(simulation.get_all_records(), key=lambda r: r.arrival_date)
    waits = np.array([r.waiting_time for r in records][500:])
    exact = {"wait_probability": erlang_c(3, 0.8), "servers": 3, "utilization": 0.8, "mean_service": 1.0}
    assert mean_interval(waits, 0.999).contains(MMC_MEAN_WAIT(**exact))
    assert mean_interval(waits > 0, 0.999).contains(erlang_c(3, 0.8))
    assert mean_interval(waits <= MMC_QUANTILE(level=0.9, **exact), 0.999).contains(0.9)


def test_outside_the_domain():
    for wrong in (0, 1.5):
        with pytest.raises(DomainError, match="whole number"):
            erlang_b(wrong, 0.5)
    with pytest.raises(DomainError, match="load cannot be negative"):
        erlang_b(2, -0.5)
    with pytest.raises(DomainError, match="no steady state"):
        erlang_c(2, 1.0)
    with pytest.raises(DomainError, match="utilization cannot be negative"):
        erlang_c(2, -1.0)
    with pytest.raises(DomainError, match="percentile is zero"):
        MMC_QUANTILE(level=0.5, wait_probability=0.2, servers=3, utilization=0.5, mean_service=1.0)
