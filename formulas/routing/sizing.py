"""How many instances a router needs for a target: what a better router saves, counted in accelerators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from formulas.closed_form import DomainError
from formulas.montecarlo.routers import ROUTERS, Router
from formulas.queueing.many_servers.mdc import MOST_SERVERS
from formulas.queueing.many_servers.service_times import ServiceTimes
from formulas.routing.answers import CUSTOMERS, SIMULATED, Answer, answer

Quantity = Literal["wait", "ttft"]


@dataclass(frozen=True)
class Need:
    """Instances that a router needs, and what is reached with them.

    Attributes
    ----------
    instances
        Fewest instances that keep the target [].
    reached_s
        The percentile with that many [s].
    answer
        All of it with that many.
    """

    router: Router
    instances: int
    reached_s: float
    answer: Answer


def needs_by_router(
    rate: float,
    service: ServiceTimes,
    target_s: float,
    level: float = 0.99,
    quantity: Quantity = "ttft",
    routers: tuple[Router, ...] = ROUTERS,
    customers: int = CUSTOMERS,
    seed: int = 1,
) -> tuple[Need, ...]:
    """Return the instances that each router needs at one rate, in the given order; see :func:`instances_needed`.

    Examples
    --------
    >>> from formulas.queueing.many_servers.service_times import LognormalTimes
    >>> prompts = LognormalTimes(0.1, 1.0)
    >>> for need in needs_by_router(100.0, prompts, 0.6, routers=("random", "round_robin", "shared")):
    ...     print(need.router, need.instances)
    random 67
    round_robin 29
    shared 12
    """
    return tuple(
        instances_needed(router, rate, service, target_s, level, quantity, customers, seed) for router in routers
    )


def instances_needed(
    router: Router,
    rate: float,
    service: ServiceTimes,
    target_s: float,
    level: float = 0.99,
    quantity: Quantity = "ttft",
    customers: int = CUSTOMERS,
    seed: int = 1,
) -> Need:
    """Return the fewest instances with which a share `level` of the prompts keeps a target.

    Parameters
    ----------
    router
        How the instance is chosen; see :func:`formulas.montecarlo.routers.simulate_routed`.
    rate
        Prompts per second over all instances [1/s].
    service
        Distribution of a prompt's service time.
    target_s
        Longest wait, or time to first token [s].
    level
        Share of the prompts that keeps it, in (0, 1) [].
    quantity
        Whether the target is for the wait or for the time to first token, wait and service.
    customers, seed
        Size and seed of a simulation; the same arrivals for every number of instances.

    Raises
    ------
    DomainError
        Where the service alone takes longer than the target, or more than 1024 instances are needed.

    Notes
    -----
    More instances never make the percentile longer, so their number is doubled until the target is kept, and then halved
    in. A simulated percentile near the target may be on the wrong side of it: an instance more or less.

    Examples
    --------
    >>> from formulas.queueing.many_servers.service_times import Constant
    >>> need = instances_needed("random", 6.4, Constant(1.0), 2.17)
    >>> need.instances, round(need.reached_s, 2)
    (41, 2.17)
    """
    if not target_s > 0 or not rate > 0:
        raise DomainError("The target and the rate are above zero.")
    unloaded = float(service.quantile(level)) if quantity == "ttft" else 0.0
    if unloaded > target_s:
        raise DomainError(
            f"Too slow even unloaded: {level:.1%} of the prompts need up to {unloaded:.3g} s of service, the target is "
            f"{target_s:.3g} s, and no number of instances helps."
        )

    def reached(instances: int) -> Answer:
        return answer(router, rate, service, instances, (level,), customers, seed)

    def keeps(found: Answer) -> bool:
        return bool(getattr(found, quantity)[level] <= target_s)

    stable = guess = int(rate * service.mean) + 1
    if router in SIMULATED:  # it needs about as many as the shared queue or more, and that is quicker to ask
        guess = instances_needed("shared", rate, service, target_s, level, quantity).instances
    best = _fewest(stable, guess, keeps, reached)
    return Need(router, best.instances, getattr(best, quantity)[level], best)


def _fewest(stable: int, guess: int, keeps: Callable[[Answer], bool], reached: Callable[[int], Answer]) -> Answer:
    """Return the answer with the fewest instances that keep the target: strides that double, then halves."""
    too_few, stride, instances = stable - 1, 1, min(guess, MOST_SERVERS)
    good: Answer | None = None
    while True:
        found = reached(instances)
        if keeps(found):
            good = found
        else:
            too_few = instances
        if good is None:
            if too_few >= MOST_SERVERS:
                raise DomainError(f"The target takes more than {MOST_SERVERS} instances.")
            instances = min(too_few + stride, MOST_SERVERS)
        elif good.instances - too_few <= 1:
            return good
        elif too_few < stable:  # the guess was enough, and nothing yet was not
            instances = max(good.instances - stride, stable)
        else:
            instances = (good.instances + too_few) // 2
        stride *= 2
