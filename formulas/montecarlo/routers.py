"""Servers behind a router by simulation: any arrivals, any service times, six ways to choose a server.

Random choice and round robin give each server a stream of its own, and those waits need no loop over customers
(:mod:`formulas.montecarlo.lindley`). One shared queue needs the time at which each server falls free, and no more
(Kiefer and Wolfowitz 1955). The shortest queue needs the customers that are still there: an event loop.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from formulas.closed_form import DomainError
from formulas.montecarlo.lindley import simulate_waits

Array = NDArray[np.float64]

Router = Literal["random", "round_robin", "shortest_of_two", "shortest_queue", "least_work", "shared"]
ROUTERS: tuple[Router, ...] = get_args(Router)


def simulate_routed(router: Router, arrivals: Any, services: Any, servers: int, seed: int = 1) -> Array:
    """Return the waits of customers that find all servers idle at first, each server first come, first served.

    Parameters
    ----------
    router
        ``random``: any server. ``round_robin``: in turn. ``shortest_queue``: the fewest customers, waiting and in
        service. ``shortest_of_two``: the fewer of two servers drawn at random. ``least_work``: the
        least work left. ``shared``: one queue, whose head goes to the first server that falls free.
        The last two start every customer at the same time.
    arrivals
        Times of arrival, ascending [s].
    services
        Service time of each customer; a number if all are equal [s].
    servers
        Servers [].
    seed
        Of the router's own choices: random servers, and ties.

    Returns
    -------
    ndarray
        Wait of each customer, in order of arrival [s].

    Examples
    --------
    >>> simulate_routed("shared", [0.0, 0.1, 0.2, 0.3], 1.0, 2)
    array([0. , 0. , 0.8, 0.8])
    >>> simulate_routed("round_robin", [0.0, 0.1, 0.2, 0.3], [9.0, 0.1, 0.1, 0.1], 2)
    array([0. , 0. , 8.8, 0. ])
    """
    if router not in ROUTERS:
        raise DomainError(f"There is no router {router}; there are {', '.join(ROUTERS)}.")
    if servers < 1:
        raise DomainError("A router needs at least one server.")
    times = np.asarray(arrivals, dtype=float)
    work = np.broadcast_to(np.asarray(services, dtype=float), times.shape)
    generator = np.random.default_rng(seed)
    if router == "random":
        return _own_queues(times, work, generator.integers(servers, size=len(times)))
    if router == "round_robin":
        return _own_queues(times, work, np.arange(len(times)) % servers)
    if router in ("shared", "least_work"):
        return _shared_queue(times, work, servers)
    pairs = _two_servers(servers, len(times), generator) if router == "shortest_of_two" else None
    return _shortest_queue(times, work, servers, pairs, generator)


def _own_queues(arrivals: Array, services: Array, server: NDArray[np.int64]) -> Array:
    """Return the waits where the server of each customer is known beforehand."""
    waits = np.empty_like(arrivals)
    order = np.argsort(server, kind="stable")
    for mine in np.split(order, np.cumsum(np.bincount(server))[:-1]):
        if mine.size:
            waits[mine] = simulate_waits(np.append(np.diff(arrivals[mine]), 0.0), services[mine])
    return waits


def _shared_queue(arrivals: Array, services: Array, servers: int) -> Array:
    """Return the waits for the first of the servers that falls free."""
    free = [0.0] * servers  # a heap of the times at which they do
    heapify(free)
    waits = []
    for arrival, service in zip(arrivals.tolist(), services.tolist(), strict=True):
        start = free[0] if free[0] > arrival else arrival  # noqa: FURB136 - a call would take a fifth of the time
        heapreplace(free, start + service)
        waits.append(start - arrival)
    return np.array(waits)


def _two_servers(servers: int, customers: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Two different servers for each customer, or twice the only one."""
    first = generator.integers(servers, size=customers)
    apart = generator.integers(1, servers, size=customers) if servers > 1 else np.zeros(customers, dtype=np.int64)
    return np.column_stack([first, (first + apart) % servers])


def _shortest_queue(
    arrivals: Array, services: Array, servers: int, pairs: NDArray[np.int64] | None, generator: np.random.Generator
) -> Array:
    """Return the waits behind the fewest customers, of two servers for each customer or of all."""
    present, free = [0] * servers, [0.0] * servers
    leaving: list[tuple[float, int]] = []  # a heap of departures
    first = generator.integers(servers, size=len(arrivals)).tolist()  # of a tie, the first from here on
    two = pairs.tolist() if pairs is not None else None
    waits = []
    for n, (arrival, service) in enumerate(zip(arrivals.tolist(), services.tolist(), strict=True)):
        while leaving and leaving[0][0] <= arrival:
            present[heappop(leaving)[1]] -= 1
        if two is not None:
            one, other = two[n]
            server = one if present[one] <= present[other] else other
        else:
            fewest = min(present)
            server = present.index(fewest, first[n] if fewest in present[first[n] :] else 0)
        start = free[server] if free[server] > arrival else arrival  # noqa: FURB136
        free[server] = start + service
        present[server] += 1
        heappush(leaving, (free[server], server))
        waits.append(start - arrival)
    return np.array(waits)
