"""The wait and the time to first token behind each router, each answer with its method and its error.

* **Random**: a queue of its own at each instance, with Poisson arrivals. Equal prompts: M/D/1, exact.
  Others: on a lattice (:mod:`formulas.queueing.many_servers.lattice`).
* **Round robin**: the same with every c-th arrival. For equal prompts it is the shared queue, exactly; for others on
  the lattice.
* **Least work**, by the router's knowledge of what each instance still has to do, and the **shared queue** start
  every prompt at the same time. Equal prompts: M/D/c, exact. Others: :mod:`formulas.queueing.many_servers.mgc`.
* **Shortest queue**, of all or of two drawn at random: no closed form, simulated with confidence intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from formulas.closed_form import DomainError
from formulas.montecarlo.agreement import estimates
from formulas.montecarlo.confidence import Interval
from formulas.montecarlo.routers import ROUTERS, Router
from formulas.montecarlo.routing_check import routed_relaxation, simulate_poisson
from formulas.queueing.many_servers import mdc
from formulas.queueing.many_servers.lattice import own_queue_laws
from formulas.queueing.many_servers.mgc import MEASURED_ERRORS, shared_queue_laws
from formulas.queueing.many_servers.service_times import ServiceTimes
from formulas.queueing.pollaczek_khinchine import UNSTABLE

Array = NDArray[np.float64]
Method = Literal["exact", "numerical", "approximation", "simulation"]

LEVELS = (0.5, 0.9, 0.99)
SIMULATED = ("shortest_of_two", "shortest_queue")
CUSTOMERS = 300_000


@dataclass(frozen=True)
class Answer:
    """Waits and times to first token behind a router.

    Attributes
    ----------
    instances, utilization
        Instances, and the share of the time that each is busy [].
    mean_wait, mean_ttft
        Means [s].
    wait, ttft
        Percentiles by their level [s].
    method, error
        How they were found, and a sentence on how far off they may be.
    intervals
        Of a simulation: the intervals behind the numbers, by name, as ``wait P99``.
    """

    router: Router
    instances: int
    utilization: float
    mean_wait: float
    mean_ttft: float
    wait: Mapping[float, float]
    ttft: Mapping[float, float]
    method: Method
    error: str
    intervals: Mapping[str, Interval] = field(default_factory=dict)


def compare_routers(
    rate: float,
    service: ServiceTimes,
    instances: int,
    levels: tuple[float, ...] = LEVELS,
    routers: tuple[Router, ...] = ROUTERS,
    customers: int = CUSTOMERS,
    seed: int = 1,
) -> tuple[Answer, ...]:
    """Return the answers for several routers at one rate.

    Parameters
    ----------
    rate
        Prompts per second over all instances [1/s].
    service
        Distribution of a prompt's service time.
    instances
        Instances, each with one prompt in service at a time [].
    levels
        Percentiles wanted, in (0, 1) [].
    routers
        Routers to compare.
    customers, seed
        Size and seed of a simulation.

    Examples
    --------
    >>> from formulas.queueing.many_servers.service_times import Constant
    >>> for found in compare_routers(6.4, Constant(1.0), 8, routers=("random", "round_robin", "shared")):
    ...     print(found.router, found.method, round(found.wait[0.99], 3))
    random exact 10.356
    round_robin exact 1.17
    shared exact 1.17
    """
    return tuple(answer(router, rate, service, instances, levels, customers, seed) for router in routers)


def answer(
    router: Router,
    rate: float,
    service: ServiceTimes,
    instances: int,
    levels: tuple[float, ...] = LEVELS,
    customers: int = CUSTOMERS,
    seed: int = 1,
) -> Answer:
    """Return the answer for one router; see :func:`compare_routers`.

    Examples
    --------
    >>> from formulas.queueing.many_servers.service_times import LognormalTimes
    >>> found = answer("round_robin", 6.4, LognormalTimes(1.0, 1.0), 8)
    >>> found.method, round(found.mean_wait, 3), round(found.wait[0.99], 1)
    ('numerical', 2.015, 14.9)
    """
    if not (float(instances).is_integer() and instances >= 1):
        raise DomainError("The number of instances is a whole number from 1.")
    if not all(0 < p < 1 for p in levels):
        raise DomainError("A percentile's level lies between 0 and 1.")
    utilization = rate * service.mean / instances
    if not 0 < utilization < 1:
        raise DomainError(UNSTABLE if utilization >= 1 else "The rate is above zero.")
    case = _Case(router, service, instances, utilization, levels)
    if router in SIMULATED and instances > 1:
        return _simulated(case, customers, seed)
    if service.cv == 0:
        return _equal(case)
    return _own_queue(case) if router in ("random", "round_robin") or instances == 1 else _shared(case)


@dataclass(frozen=True)
class _Case:
    router: Router
    service: ServiceTimes
    instances: int
    utilization: float
    levels: tuple[float, ...]

    def answer(
        self,
        mean_wait: float,
        wait: Callable[[float], float],
        ttft: Callable[[float], float],
        method: Method,
        error: str,
        intervals: Mapping[str, Interval] | None = None,
    ) -> Answer:
        waits, times = ({p: float(of(p)) for p in self.levels} for of in (wait, ttft))
        mean_ttft = mean_wait + self.service.mean
        return Answer(
            self.router, self.instances, self.utilization, mean_wait, mean_ttft, waits, times, method, error,
            intervals or {},
        )  # fmt: skip


def _equal(case: _Case) -> Answer:
    together = 1 if case.router == "random" else case.instances
    time, rho = case.service.mean, case.utilization
    waits = {p: time * mdc.wait_quantile(p, together, rho) for p in case.levels}
    mean = time * mdc.mean_wait(together, rho)
    return case.answer(mean, waits.__getitem__, lambda p: waits[p] + time, "exact", "Exact: relative error below 1e-9.")


def _own_queue(case: _Case) -> Answer:
    laws = own_queue_laws(case.service, case.utilization, case.instances if case.router == "round_robin" else 1)
    error = "Exact up to the lattice of the computation: 1e-5 of the mean, 1e-4 of P90 and above."
    return case.answer(laws.wait.mean, laws.wait.quantile, laws.ttft.quantile, "numerical", error)


def _shared(case: _Case) -> Answer:
    laws = shared_queue_laws(case.service, case.instances, case.utilization)
    return case.answer(laws.wait.mean, laws.wait.quantile, laws.ttft.quantile, "approximation", _band(case.service.cv))


def _band(cv: float) -> str:
    for band in MEASURED_ERRORS:
        if cv <= band.cv:
            return (
                f"Kimura's mean wait, within {band.mean:.0%}; P99 of the wait within {band.p99:.0%}, of TTFT within "
                f"{band.ttft_p99:.0%} (measured for log-normal service times with a coefficient of variation up to "
                f"{band.cv:g}, 2 to 32 instances)."
            )
    return f"Kimura's mean; its error is not measured for a coefficient of variation of {cv:.2g}: simulate."


def _simulated(case: _Case, customers: int, seed: int) -> Answer:
    waits, times = simulate_poisson(case.router, case.service, case.instances, case.utilization, customers, seed)
    relaxation = routed_relaxation(case.router, case.service.cv, case.instances, case.utilization)
    skipped = min(ceil(10 * relaxation), customers // 2)
    wait = estimates(waits[skipped:], case.levels)
    ttft = estimates(waits[skipped:] + times[skipped:], case.levels)
    intervals = {f"{what} {name}": x for what, found in (("wait", wait), ("ttft", ttft)) for name, x in found.items()}
    half = {name: _half_width(wait[name]) for name in ("mean", f"P{100 * max(case.levels):g}")}
    error = f"Simulation of {customers:,} prompts: " + ", ".join(f"{name} ± {x}" for name, x in half.items()) + "."
    return case.answer(
        wait["mean"].estimate,
        lambda p: wait[f"P{100 * p:g}"].estimate,
        lambda p: ttft[f"P{100 * p:g}"].estimate,
        "simulation",
        error,
        intervals,
    )


def _half_width(interval: Interval) -> str:
    """Half-width of an interval, as a share of the estimate where there is one."""
    if not np.isfinite(interval.high):
        return "unknown (run too short)"
    half = (interval.high - interval.low) / 2
    return f"{half / interval.estimate:.1%}" if interval.estimate > 0 else f"{half:.2g} s"
