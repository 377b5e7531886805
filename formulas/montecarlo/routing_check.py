"""Servers behind a router: a simulation beside what is exactly known about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from formulas.closed_form import DomainError
from formulas.montecarlo.agreement import PERCENTILES, CheckedValue, compare
from formulas.montecarlo.confidence import Interval
from formulas.montecarlo.routers import Router, simulate_routed
from formulas.montecarlo.run_length import relaxation_customers
from formulas.queueing import md1
from formulas.queueing import pollaczek_khinchine as pk
from formulas.queueing.many_servers import mdc
from formulas.queueing.many_servers.service_times import ServiceTimes, draw_times

Array = NDArray[np.float64]


@dataclass(frozen=True)
class RoutingCheck:
    """Simulated servers behind a router, beside what is exactly known about them; waits in seconds.

    Attributes
    ----------
    customers, warm_up
        Prompts simulated, and how many of them at the start are left out.
    simulated
        Intervals of the mean wait and of its percentiles, by name.
    rows
        Those of them for which there is an exact value: all for equal prompts, but none for the shortest queue; the
        mean for a choice at random.
    """

    router: Router
    servers: int
    utilization: float
    customers: int
    warm_up: int
    seed: int
    simulated: Mapping[str, Interval]
    rows: tuple[CheckedValue, ...]


def simulate_poisson(
    router: Router, service: ServiceTimes, servers: int, utilization: float, customers: int, seed: int
) -> tuple[Array, Array]:
    """Return waits and service times of Poisson arrivals behind a router, in order of arrival [s].

    Parameters
    ----------
    router
        How the server is chosen; see :func:`formulas.montecarlo.routers.simulate_routed`.
    service
        Distribution of the service times.
    servers
        Servers [].
    utilization
        Share of the time that each is busy, in (0, 1) [].
    customers
        Prompts simulated [].
    seed
        Of the generator: the same arrivals and service times for every router.

    Examples
    --------
    >>> from formulas.queueing.many_servers.service_times import Constant
    >>> waits, times = simulate_poisson("shared", Constant(0.5), 4, 0.8, 1000, seed=1)
    >>> len(waits), float(times[0])
    (1000, 0.5)
    """
    if not 0 < utilization < 1:
        raise DomainError(pk.UNSTABLE if utilization >= 1 else "A simulation needs a utilization above zero.")
    generator = np.random.default_rng(seed)
    arrivals = np.cumsum(generator.standard_exponential(customers)) * (service.mean / servers / utilization)
    times = draw_times(service, customers, generator)
    return simulate_routed(router, arrivals, times, servers, seed), times


def routed_relaxation(router: Router, cv: float, servers: int, utilization: float) -> float:
    r"""Prompts in one relaxation time [].

    Notes
    -----
    M/D/1's, times the variance that a server sees over that of M/D/1: :math:`1 + c_v^2` for a queue that all share or
    that the router keeps level, and :math:`1/c + c_v^2` or :math:`1 + c_v^2` for one of c queues of their own, which
    gets every c-th prompt. To it the prompts in service are added. A rule, not a bound.
    """
    own = {"random": servers * (1.0 + cv**2), "round_robin": 1.0 + servers * cv**2}
    return float(relaxation_customers(utilization)) * own.get(router, 1.0 + cv**2) + servers


def check_routing(
    router: Router,
    service: ServiceTimes,
    servers: int,
    utilization: float,
    customers: int = 500_000,
    seed: int = 1,
    level: float = 0.95,
) -> RoutingCheck:
    """Simulate servers behind a router and compare the wait with what is exactly known.

    Parameters
    ----------
    router
        How the server is chosen; see :func:`formulas.montecarlo.routers.simulate_routed`.
    service
        Distribution of the service times.
    servers
        Servers [].
    utilization
        Share of the time that each is busy, in (0, 1) [].
    customers
        Prompts simulated, the warm-up included [].
    seed
        Of the generator.
    level
        Confidence of the intervals [].

    Examples
    --------
    >>> from formulas.queueing.many_servers.service_times import Constant
    >>> check = check_routing("round_robin", Constant(0.05), 8, 0.8, customers=100_000)
    >>> [(row.name, row.verdict) for row in check.rows]
    [('mean', 'inside'), ('P50', 'inside'), ('P90', 'inside'), ('P99', 'inside')]
    """
    waits, _ = simulate_poisson(router, service, servers, utilization, customers, seed)
    exact = _exact(router, service, servers, utilization)
    found = compare(waits, exact, routed_relaxation(router, service.cv, servers, utilization), level)
    return RoutingCheck(router, servers, utilization, customers, found.warm_up, seed, found.simulated, found.rows)


def _exact(router: Router, service: ServiceTimes, servers: int, utilization: float) -> dict[str, float]:
    mean = service.mean
    if router == "random" and service.cv > 0:
        rate, second = utilization / mean, mean**2 * (1.0 + service.cv**2)
        return {"mean": pk.MEAN_WAIT(rate=rate, mean_service=mean, service_second_moment=second)}
    if service.cv > 0 or router in ("shortest_queue", "shortest_of_two"):
        return {}
    together = 1 if router == "random" else servers
    percentiles = {f"P{100 * p:g}": mean * mdc.wait_quantile(p, together, utilization) for p in PERCENTILES}
    if router == "random":
        return {"mean": md1.MEAN_WAIT(rate=utilization / mean, service_time=mean)} | percentiles
    return {"mean": mean * mdc.mean_wait(servers, utilization)} | percentiles
