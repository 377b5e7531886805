import ciw
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulas.closed_form import DomainError
from formulas.montecarlo.confidence import mean_interval, quantile_interval
from formulas.montecarlo.routers import ROUTERS, simulate_routed
from formulas.montecarlo.routing_check import simulate_poisson
from formulas.queueing.many_servers import Constant, LognormalTimes


def one_by_one(choose, arrivals, services, servers):
    """Serve each customer at the chosen server, which knows all that came before; no heap, no cumulative sum."""
    departures = [[] for _ in range(servers)]
    waits = []
    for n, (arrival, service) in enumerate(zip(arrivals, services, strict=True)):
        present = [sum(d > arrival for d in mine) for mine in departures]
        free = [max(mine[-1], arrival) if mine else arrival for mine in departures]
        server = choose(n, present, [at - arrival for at in free])
        waits.append(free[server] - arrival)
        departures[server].append(free[server] + service)
    return np.array(waits)


@pytest.fixture
def stream():
    rng = np.random.default_rng(8)
    return np.cumsum(rng.exponential(0.3, 600)), rng.gamma(1.0, 1.0, 600)


@pytest.mark.parametrize("servers", [1, 4])
def test_are_the_recursions(stream, servers):
    """Each router against a plain loop, with the router's own random numbers drawn again."""
    arrivals, services = stream
    draws = np.random.default_rng(7).integers(servers, size=600)
    rules = {
        "random": lambda n, _, __: draws[n],
        "round_robin": lambda n, _, __: n % servers,
        "least_work": lambda _, __, work: int(np.argmin(work)),
        "shared": lambda _, __, work: int(np.argmin(work)),
        "shortest_queue": lambda n, present, _: next(
            k for k in [*range(draws[n], servers), *range(draws[n])] if present[k] == min(present)
        ),
    }
    for router, rule in rules.items():
        expected = one_by_one(rule, arrivals, services, servers)
        np.testing.assert_allclose(simulate_routed(router, arrivals, services, servers, 7), expected, atol=1e-9)


def test_two_servers_of_two_are_the_shortest_queue(stream):
    """With ties to the first drawn, both choose the same number of customers at every step."""
    arrivals, services = stream
    two = simulate_routed("shortest_of_two", arrivals, services, 2, 1)
    rng = np.random.default_rng(1)
    first = rng.integers(2, size=600)
    expected = one_by_one(
        lambda n, present, _: int(first[n] if present[first[n]] <= present[1 - first[n]] else 1 - first[n]),
        arrivals, services, 2,
    )  # fmt: skip
    np.testing.assert_allclose(two, expected, atol=1e-9)


@given(st.integers(1, 20), st.floats(0.2, 0.98), st.integers(0, 10))
@settings(max_examples=30)
def test_round_robin_is_the_shared_queue_for_equal_prompts(servers, rho, seed):
    """Sample path by sample path."""
    arrivals = np.cumsum(np.random.default_rng(seed).exponential(1 / (servers * rho), 500))
    np.testing.assert_allclose(
        simulate_routed("round_robin", arrivals, 1.0, servers),
        simulate_routed("shared", arrivals, 1.0, servers),
        atol=1e-9,
    )


@given(st.integers(2, 12), st.integers(0, 1000))
@settings(max_examples=30)
def test_the_shared_queue_waits_least_in_total(servers, seed):
    """First come first served over all servers has the smallest total wait of the routers, on long runs."""
    rng = np.random.default_rng(seed)
    arrivals, services = np.cumsum(rng.exponential(1 / (0.85 * servers), 3000)), rng.lognormal(-0.5, 1.0, 3000)
    totals = {router: simulate_routed(router, arrivals, services, servers).sum() for router in ROUTERS}
    assert totals["shared"] == totals["least_work"]
    assert totals["shared"] <= min(totals["random"], totals["round_robin"])


@pytest.mark.parametrize("index", range(30))
def test_reference_simulations(many_servers_reference, index):
    """Another program's runs: mean, P90 and P99 of the wait within both errors, four sigma."""
    case = many_servers_reference["routing"][index]
    service = LognormalTimes(1.0, case["cv"]) if case["cv"] else Constant(1.0)
    waits, _ = simulate_poisson(case["router"], service, case["servers"], case["utilization"], 250_000, seed=12)
    waits = waits[15_000:]
    ordered = np.sort(waits)
    intervals = {
        "mean": mean_interval(waits, 0.9999),
        "p90": quantile_interval(waits, 0.9, 0.9999, ordered=ordered),
        "p99": quantile_interval(waits, 0.99, 0.9999, ordered=ordered),
    }
    for name, interval in intervals.items():
        value, error = case[name]
        assert interval.low - 4 * error <= value <= interval.high + 4 * error


def test_agrees_with_an_independent_simulator():
    """Shared queue with uniform service times, which no formula here knows."""
    ciw.seed(9)
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(3.2)],
        service_distributions=[ciw.dists.Uniform(0.2, 1.8)],
        number_of_servers=[4],
    )
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_customers(15_000, method="Finish")
    records = sorted(simulation.get_all_records(), key=lambda r: r.arrival_date)
    theirs = mean_interval([r.waiting_time for r in records][500:], 0.999)
    rng = np.random.default_rng(9)
    arrivals, services = np.cumsum(rng.exponential(1 / 3.2, 200_000)), rng.uniform(0.2, 1.8, 200_000)
    ours = mean_interval(simulate_routed("shared", arrivals, services, 4)[500:], 0.999)
    assert max(theirs.low, ours.low) <= min(theirs.high, ours.high)


def test_same_seed_same_waits(stream):
    for router in ROUTERS:
        first, again, other = (simulate_routed(router, *stream, 4, seed) for seed in (3, 3, 4))
        np.testing.assert_array_equal(first, again)
        assert np.array_equal(first, other) == (router in ("round_robin", "least_work", "shared"))


def test_outside_the_domain(stream):
    with pytest.raises(DomainError, match="There is no router fastest"):
        simulate_routed("fastest", *stream, 4)
    with pytest.raises(DomainError, match="at least one server"):
        simulate_routed("shared", *stream, 0)
    for rho in (0.0, 1.0):
        with pytest.raises(DomainError):
            simulate_poisson("shared", Constant(1.0), 4, rho, 100, seed=1)
