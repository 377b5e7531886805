r"""The exact percentiles of M/D/1 beside a simulation of it, and what a run too short would have said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulas.montecarlo.agreement import BATCHES, CheckedValue, Verdict, checked_value, long_enough
from formulas.montecarlo.confidence import mean_interval, quantile_interval
from formulas.montecarlo.lindley import md1_waits
from formulas.montecarlo.run_length import relaxation_customers, warm_up
from formulas.queueing.md1 import MEAN_WAIT, wait_quantile

__all__ = ["PERCENTILES", "CheckedValue", "Md1Check", "ShortRuns", "Verdict", "check_md1", "short_run_percentiles"]

Array = NDArray[np.float64]

PERCENTILES = (0.5, 0.9, 0.95, 0.99)


@dataclass(frozen=True)
class Md1Check:
    """A simulation of M/D/1 with its size and seed, compared row by row; times in units of the service time.

    Attributes
    ----------
    customers, warm_up
        Customers simulated, and how many of them at the start are left out.
    rows
        The mean and the percentiles of TTFT.
    counts, edges
        Histogram of the simulated TTFT; the last bin ends at its largest value.
    """

    utilization: float
    customers: int
    warm_up: int
    seed: int
    rows: tuple[CheckedValue, ...]
    counts: NDArray[np.int64]
    edges: Array


@dataclass(frozen=True)
class ShortRuns:
    """Estimates of one percentile of TTFT by runs of different lengths, each repeated many times.

    Attributes
    ----------
    customers, replicas
        Length and number of the runs.
    low, median, high
        5 %, 50 % and 95 % points of the estimates, in units of the service time.
    exact
        What they estimate.
    """

    utilization: float
    level: float
    seed: int
    customers: tuple[int, ...]
    replicas: tuple[int, ...]
    low: tuple[float, ...]
    median: tuple[float, ...]
    high: tuple[float, ...]
    exact: float


def check_md1(
    utilization: float, customers: int = 1_000_000, seed: int = 1, level: float = 0.95, bins: int = 60
) -> Md1Check:
    """Simulate M/D/1 and compare its mean and percentiles of TTFT with the exact ones.

    Parameters
    ----------
    utilization
        In (0, 1) [].
    customers
        Customers simulated, the warm-up included [].
    seed
        Of the generator.
    level
        Confidence of the intervals [].
    bins
        Bins of the histogram [].

    Returns
    -------
    Md1Check
        A row is "run too short" where a batch is under ten relaxation times, or the percentile has no upper
        bound: the interval could not be trusted, so nothing is said. Otherwise it says whether
        the exact value is "inside" the interval or "outside", which happens to one row in twenty at 95 %.

    Examples
    --------
    >>> check = check_md1(0.5, customers=100_000)
    >>> [(row.name, row.verdict) for row in check.rows]
    [('mean', 'inside'), ('P50', 'inside'), ('P90', 'inside'), ('P95', 'inside'), ('P99', 'inside')]
    """
    waits = md1_waits(utilization, customers, seed)
    skipped = min(warm_up(utilization), customers // 2)
    ttft = waits[skipped:]
    ttft += 1.0
    ordered = np.sort(ttft)
    trusted = long_enough(len(ttft), relaxation_customers(utilization))
    exact_mean = 1.0 + MEAN_WAIT(rate=utilization, service_time=1.0)
    rows = [checked_value("mean", exact_mean, mean_interval(ttft, level, BATCHES), trusted=trusted)]
    for p, wait in zip(PERCENTILES, wait_quantile(np.array(PERCENTILES), utilization), strict=True):
        interval = quantile_interval(ttft, p, level, BATCHES, ordered=ordered)
        rows.append(checked_value(f"P{100 * p:g}", 1.0 + float(wait), interval, trusted=trusted))
    counts, edges = _histogram(ordered, bins)
    return Md1Check(utilization, customers, skipped, seed, tuple(rows), counts, edges)


def short_run_percentiles(
    utilization: float,
    customers: tuple[int, ...] = (300, 1_000, 3_000, 10_000, 100_000),
    level: float = 0.99,
    replicas: int | None = None,
    seed: int = 1,
) -> ShortRuns:
    """Spread of a percentile of TTFT as runs of different lengths, started empty, estimate it.

    Parameters
    ----------
    utilization
        In (0, 1) [].
    customers
        Lengths of the runs [].
    level
        Of the percentile [].
    replicas
        Runs of each length; None gives as many as half a million customers allow, between 12 and 300.
    seed
        Of the generator; each length has its own stream.

    Notes
    -----
    At utilization 0.9 the exact P99 is 22.898 service times; a run of 300 customers says about half of that.

    Examples
    --------
    >>> runs = short_run_percentiles(0.9, customers=(300, 10_000))
    >>> runs.median[0] < runs.median[1] < runs.exact
    True
    """
    counts, points = [], []
    for offset, length in enumerate(customers):
        count = replicas or int(np.clip(500_000 // length, 12, 300))
        waits = md1_waits(utilization, length, seed + offset, count)
        kth = int(np.ceil(level * length)) - 1
        estimates = 1.0 + np.partition(waits, kth, axis=-1)[:, kth]
        counts.append(count)
        points.append([float(x) for x in np.quantile(estimates, (0.05, 0.5, 0.95))])
    low, median, high = (tuple(column) for column in zip(*points, strict=True))
    exact = 1.0 + wait_quantile(level, utilization)
    return ShortRuns(utilization, level, seed, tuple(customers), tuple(counts), low, median, high, exact)


def _histogram(ordered: Array, bins: int) -> tuple[NDArray[np.int64], Array]:
    edges = np.linspace(1.0, max(float(ordered[-1]), 1.0 + 1e-9), bins + 1)
    inner: Any = np.searchsorted(ordered, edges[1:-1], side="left")
    return np.diff(np.concatenate(([0], inner, [len(ordered)]))).astype(np.int64), edges
