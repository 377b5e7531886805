import ciw
import numpy as np
import pytest

from formulas.closed_form import DomainError
from formulas.montecarlo.confidence import mean_interval
from formulas.montecarlo.lindley import md1_waits, simulate_waits
from formulas.queueing import md1


def recursion(interarrivals, services):
    waits = [0.0]
    for service, gap in zip(services[:-1], interarrivals[:-1], strict=True):
        waits.append(max(0.0, waits[-1] + service - gap))
    return np.array(waits)


def test_is_the_recursion():
    rng = np.random.default_rng(5)
    gaps, services = rng.exponential(1.2, (2, 500)), rng.gamma(2.0, 0.5, (2, 500))
    waits = simulate_waits(gaps, services)
    for row in range(2):
        np.testing.assert_allclose(waits[row], recursion(gaps[row], services[row]), atol=1e-11)


def test_a_long_run_keeps_its_digits():
    gaps = np.random.default_rng(5).exponential(1.1, 300_000)
    np.testing.assert_allclose(simulate_waits(gaps, 1.0), recursion(gaps, np.ones(300_000)), atol=1e-9)


def test_same_seed_same_waits():
    np.testing.assert_array_equal(md1_waits(0.8, 1000, 3), md1_waits(0.8, 1000, 3))
    assert not np.array_equal(md1_waits(0.8, 1000, 3), md1_waits(0.8, 1000, 4))
    assert md1_waits(0.8, 100, 3, replicas=4).shape == (4, 100)


@pytest.mark.parametrize("utilization", [0.0, 1.0, 1.2])
def test_outside_the_domain(utilization):
    with pytest.raises(DomainError):
        md1_waits(utilization, 100, 1)


def test_agrees_with_an_independent_simulator():
    """Both 99.9 % intervals hold the exact mean, and so they overlap."""
    ciw.seed(11)
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(0.7)],
        service_distributions=[ciw.dists.Deterministic(1.0)],
        number_of_servers=[1],
    )
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_customers(20_000, method="Finish")
    records = sorted(simulation.get_all_records(), key=lambda r: r.arrival_date)
    theirs = mean_interval([r.waiting_time for r in records][500:], 0.999)
    ours = mean_interval(md1_waits(0.7, 200_000, 11)[500:], 0.999)
    exact = md1.MEAN_WAIT(rate=0.7, service_time=1.0)
    assert theirs.contains(exact)
    assert ours.contains(exact)
    assert max(theirs.low, ours.low) <= min(theirs.high, ours.high)
