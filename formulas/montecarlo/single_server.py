"""One server, first come first served, any arrivals and any prompts: by simulation, beside what is exact.

The waits are Lindley's (:mod:`formulas.montecarlo.lindley`), a cumulative sum and a running minimum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulas.closed_form import DomainError
from formulas.montecarlo.agreement import PERCENTILES, CheckedValue, compare
from formulas.montecarlo.arrivals import batch_gaps, gamma_gaps, switching_gaps
from formulas.montecarlo.confidence import Interval
from formulas.montecarlo.lindley import simulate_waits
from formulas.montecarlo.run_length import relaxation_customers
from formulas.queueing import mg1
from formulas.queueing.bursts import (
    BATCH_MEAN_WAIT,
    Switching,
    batch_wait_quantile,
    gamma_law_mean_wait,
    gamma_law_ttft_quantile,
    gamma_mean_wait,
    gamma_wait_quantile,
    switching_mean_wait,
    switching_wait_quantile,
)
from formulas.queueing.bursts.gamma_prompts import LEAST_SHAPE, MOST_SHAPE
from formulas.queueing.pollaczek_khinchine import UNSTABLE
from formulas.queueing.service import ListedLengths, ServiceLaw

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SingleServerCheck:
    """A simulated server beside what is exactly known about it; times to first token in seconds.

    Attributes
    ----------
    customers, warm_up
        Prompts simulated, and how many of them at the start are left out.
    simulated
        Intervals of the mean and of the percentiles, by name.
    rows
        Those of them for which there is an exact value.
    """

    utilization: float
    customers: int
    warm_up: int
    seed: int
    simulated: Mapping[str, Interval]
    rows: tuple[CheckedValue, ...]


def simulate_ttft(gaps: Any, services: Any) -> Array:
    """Return the times to first token of prompts that find the server idle at first.

    Parameters
    ----------
    gaps
        Time from each arrival to the next one; the last is not used [s].
    services
        Service time of each prompt; a number if all are equal [s].

    Examples
    --------
    >>> simulate_ttft([1.0, 0.5, 2.0], [1.5, 1.0, 1.0])
    array([1.5, 1.5, 2. ])
    """
    times = simulate_waits(gaps, np.broadcast_to(services, np.shape(gaps)))
    times += services
    return times


def check_mg1(
    rate: float, law: ServiceLaw, customers: int = 500_000, seed: int = 1, level: float = 0.95
) -> SingleServerCheck:
    """Simulate Poisson arrivals of any prompts and compare with the exact mean and percentiles.

    Parameters
    ----------
    rate
        Prompts per second [1/s].
    law
        Distribution of the service time.
    customers
        Prompts simulated, the warm-up included [].
    seed
        Of the generator.
    level
        Confidence of the intervals [].

    Notes
    -----
    A batch of the intervals should span ten relaxation times. They are taken as M/D/1's times :math:`c_a^2 + c_s^2`, the
    dispersion of the arrivals and the spread of the service, as it is near saturation: a rule, not a bound.

    Examples
    --------
    >>> from formulas.queueing.service import GammaLengths, service_law
    >>> check = check_mg1(0.7, service_law(GammaLengths(1.0, 1.0), lambda length: length), 200_000)
    >>> [row.verdict for row in check.rows]
    ['inside', 'inside', 'inside', 'inside']
    """
    return check_gamma_arrivals(rate, 1.0, law, customers, seed, level)


def check_gamma_arrivals(
    rate: float, shape: float, law: ServiceLaw, customers: int = 500_000, seed: int = 1, level: float = 0.95
) -> SingleServerCheck:
    """Simulate gamma gaps; exact values are known for equal prompts, and for others if the shape is between 0.1 and 10.

    The arguments are those of :func:`check_mg1`, and the shape of the gaps.

    Examples
    --------
    >>> from formulas.queueing.service import equal_service
    >>> check = check_gamma_arrivals(0.7, 0.5, equal_service(1.0), 200_000, level=0.999)
    >>> [row.verdict for row in check.rows]
    ['inside', 'inside', 'inside', 'inside']
    """
    load = _stable(rate * law.mean)
    generator = np.random.default_rng(seed)
    gaps = gamma_gaps(rate, shape, customers, generator)
    times = simulate_ttft(gaps, law.draw(customers, generator))
    exact: dict[str, float] = {}
    if shape == 1:
        exact = {"mean": mg1.mean_ttft(rate, law)} | _named(mg1.ttft_quantile(np.array(PERCENTILES), rate, law))
    elif law.variance == 0:
        waits = law.mean * gamma_wait_quantile(np.array(PERCENTILES), load, shape)
        exact = {"mean": law.mean * (1.0 + gamma_mean_wait(load, shape))} | _named(law.mean + waits)
    elif LEAST_SHAPE <= shape <= MOST_SHAPE:
        exact = {"mean": law.mean + gamma_law_mean_wait(rate, shape, law)}
        exact |= _named(gamma_law_ttft_quantile(np.array(PERCENTILES), rate, shape, law))
    return _checked(times, exact, load, 1.0 / shape + law.scv, seed, level)


def check_switching(
    arrivals: Switching, service_time: float, customers: int = 500_000, seed: int = 1, level: float = 0.95
) -> SingleServerCheck:
    """Simulate arrivals that switch between two rates, with equal prompts.

    Parameters
    ----------
    arrivals
        The two rates and how the states change.
    service_time
        Service time of a prompt [s].
    customers, seed, level
        As in :func:`check_mg1`.

    Examples
    --------
    >>> check = check_switching(Switching(0.2, 1.4, 0.05, 0.1), 1.0, level=0.999)
    >>> [row.verdict for row in check.rows]
    ['inside', 'inside', 'inside', 'inside']
    """
    load = _stable(arrivals.mean_rate * service_time)
    times = simulate_ttft(switching_gaps(arrivals, customers, np.random.default_rng(seed)), service_time)
    exact = {"mean": service_time + switching_mean_wait(arrivals, service_time)}
    exact |= _named(service_time + switching_wait_quantile(np.array(PERCENTILES), arrivals, service_time))
    return _checked(times, exact, load, arrivals.dispersion(), seed, level)


def check_batches(
    batch_rate: float,
    sizes: ListedLengths,
    service_time: float,
    customers: int = 500_000,
    seed: int = 1,
    level: float = 0.95,
) -> SingleServerCheck:
    """Simulate batches of equal prompts at Poisson times.

    Parameters
    ----------
    batch_rate
        Batches per second [1/s].
    sizes
        Numbers of prompts in a batch, with their shares.
    service_time
        Service time of a prompt [s].
    customers, seed, level
        As in :func:`check_mg1`.

    Examples
    --------
    >>> check = check_batches(0.125, ListedLengths(4), 1.0)
    >>> [row.verdict for row in check.rows]
    ['inside', 'inside', 'inside', 'inside']
    """
    second = float(sizes.shares @ sizes.lengths**2)
    load = _stable(batch_rate * sizes.mean * service_time)
    times = simulate_ttft(batch_gaps(batch_rate, sizes, customers, np.random.default_rng(seed)), service_time)
    mean = BATCH_MEAN_WAIT(
        batch_rate=batch_rate,
        batch_mean=sizes.mean,
        batch_second_moment=second,
        mean_service=service_time,
        service_variance=0.0,
    )
    waits = batch_wait_quantile(np.array(PERCENTILES), batch_rate, sizes, service_time)
    return _checked(
        times, {"mean": mean + service_time} | _named(service_time + waits), load, second / sizes.mean, seed, level
    )


def _stable(load: float) -> float:
    if not 0 < load < 1:
        raise DomainError(UNSTABLE if load >= 1 else "A simulation needs a utilization above zero.")
    return load


def _named(quantiles: Array) -> dict[str, float]:
    return {f"P{100 * p:g}": float(t) for p, t in zip(PERCENTILES, quantiles, strict=True)}


def _checked(
    times: Array, exact: Mapping[str, float], load: float, spread: float, seed: int, level: float
) -> SingleServerCheck:
    relaxation = float(relaxation_customers(load)) * max(spread, 1.0)
    found = compare(times, exact, relaxation, level)
    return SingleServerCheck(load, len(times), found.warm_up, seed, found.simulated, found.rows)
