r"""Transfers that share a link, one after another: by simulation, beside M/D/1.

Two streams of transfers. Poisson ones are what the closed forms assume. Those of a few prefill
instances are more regular, because an instance finishes prompts at least a prefill apart: the closed forms then err
on the safe side, and for a single instance whose transfers take less than a prefill nothing ever waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulas.closed_form import DomainError
from formulas.kv_cache import LINK_MEAN_TRANSFER, LINK_UNSTABLE, transfer_quantile
from formulas.montecarlo.agreement import PERCENTILES, CheckedValue, compare
from formulas.montecarlo.confidence import Interval
from formulas.montecarlo.lindley import simulate_waits
from formulas.montecarlo.run_length import relaxation_customers
from formulas.montecarlo.tandem import lognormal_times
from formulas.queueing import pollaczek_khinchine as pk

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LinkCheck:
    """A simulated link beside what is exactly known about it; transfer times with wait and latency, in seconds.

    Attributes
    ----------
    transfers, warm_up
        Transfers simulated, and how many of them at the start are left out.
    simulated
        Intervals of the mean and of the percentiles, by name.
    rows
        Those of them for which there is an exact value: all for equal sizes, the mean for others.
    """

    rate: float
    utilization: float
    transfers: int
    warm_up: int
    seed: int
    simulated: Mapping[str, Interval]
    rows: tuple[CheckedValue, ...]


def simulate_link(arrivals: Any, link_times: Any) -> Array:
    """Return the time from each transfer's arrival until it is through the link, in order of arrival.

    Parameters
    ----------
    arrivals
        Times of arrival, ascending [s].
    link_times
        Time that each occupies the link; a number if all are equal [s].

    Examples
    --------
    >>> simulate_link([0.0, 0.5, 3.0], 1.0)
    array([1. , 1.5, 1. ])
    """
    times = np.asarray(arrivals, dtype=float)
    waits = simulate_waits(np.append(np.diff(times), 0.0), link_times)
    return np.asarray(waits + link_times)


def prefill_departures(rate: float, prefill_s: float, instances: int, prompts: int, seed: int) -> Array:
    """Return the times at which prefill instances finish prompts, in order of time.

    Parameters
    ----------
    rate
        Prompts per second over all instances, each with its own Poisson stream [1/s].
    prefill_s
        Time of a prefill [s].
    instances
        Instances [].
    prompts
        Prompts in all; those of the instance that ends last are cut to where all still work [].
    seed
        Of the generator.

    Examples
    --------
    >>> float(np.diff(prefill_departures(8.0, 0.1, 1, 1000, seed=1)).min())
    0.1
    """
    gaps = np.random.default_rng(seed).standard_exponential((instances, ceil(prompts / instances)))
    gaps *= instances / rate
    arrivals = np.cumsum(gaps, axis=-1)
    next_gaps = np.diff(arrivals, axis=-1, append=arrivals[:, -1:])
    finished = arrivals + simulate_waits(next_gaps, prefill_s) + prefill_s
    return np.sort(finished[finished <= finished[:, -1].min()])


def check_link(
    rate: float,
    link_time_s: float,
    latency_s: float = 0.0,
    cv: float = 0.0,
    transfers: int = 500_000,
    seed: int = 1,
    level: float = 0.95,
) -> LinkCheck:
    """Simulate a link with Poisson transfers and compare it with the closed forms.

    Parameters
    ----------
    rate
        Transfers per second [1/s].
    link_time_s
        Mean time that one occupies the link [s].
    latency_s
        Latency of the link [s].
    cv
        Coefficient of variation of the sizes, log-normal [].
    transfers
        Transfers simulated, the warm-up included [].
    seed
        Of the generator.
    level
        Confidence of the intervals [].

    Examples
    --------
    >>> check = check_link(100.0, 5.24288e-3, 5e-6, transfers=100_000)
    >>> [(row.name, row.verdict) for row in check.rows]
    [('mean', 'inside'), ('P50', 'inside'), ('P90', 'inside'), ('P99', 'inside')]
    """
    utilization = rate * link_time_s
    if not 0 < utilization < 1:
        raise DomainError(LINK_UNSTABLE if utilization >= 1 else "A simulation needs a utilization above zero.")
    generator = np.random.default_rng(seed)
    arrivals = np.cumsum(generator.standard_exponential(transfers)) / rate
    times = simulate_link(arrivals, lognormal_times(link_time_s, cv, transfers, generator))
    times += latency_s
    relaxation = float(relaxation_customers(utilization)) * (1.0 + cv**2)
    found = compare(times, _exact(rate, link_time_s, latency_s, cv), relaxation, level)
    return LinkCheck(rate, utilization, transfers, found.warm_up, seed, found.simulated, found.rows)


def _exact(rate: float, link_time_s: float, latency_s: float, cv: float) -> dict[str, float]:
    if cv:
        second = link_time_s**2 * (1.0 + cv**2)
        wait = pk.MEAN_WAIT(rate=rate, mean_service=link_time_s, service_second_moment=second)
        return {"mean": latency_s + link_time_s + wait}
    mean = LINK_MEAN_TRANSFER(rate=rate, link_time_s=link_time_s, latency_s=latency_s)
    return {"mean": mean} | {f"P{100 * p:g}": transfer_quantile(p, rate, link_time_s, latency_s) for p in PERCENTILES}
