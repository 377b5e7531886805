"""Confidence intervals from one long run, whose successive values are correlated: batch means."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """An estimate and the interval that holds the true value in a share `level` of all runs."""

    estimate: float
    low: float
    high: float
    level: float

    def contains(self, value: float) -> bool:
        """Whether a value lies inside, ends included.

        Examples
        --------
        >>> Interval(2.0, 1.9, 2.1, 0.95).contains(2.05)
        True
        """
        return self.low <= value <= self.high


def mean_interval(x: Any, level: float = 0.95, batches: int = 32) -> Interval:
    """Interval for the mean of a stationary sequence.

    Parameters
    ----------
    x
        Values in order of time; as few as needed for batches of equal length are left out at the start.
    level
        Confidence, in (0, 1) [].
    batches
        Number of batches; each should span many relaxation times [].

    Notes
    -----
    Means of long batches are nearly independent and normal, so that Student's t applies to them
    (Law, Simulation Modeling and Analysis, section 9.5.3).

    Examples
    --------
    >>> mean_interval(np.tile([1.0, 3.0], 64))
    Interval(estimate=2.0, low=2.0, high=2.0, level=0.95)
    """
    means = _batched(np.asarray(x, dtype=float), batches).mean(axis=1)
    center, half = float(means.mean()), _half_width(means, level)
    return Interval(center, center - half, center + half, level)


def quantile_interval(
    x: Any, p: float, level: float = 0.95, batches: int = 32, *, ordered: Array | None = None
) -> Interval:
    """Interval for a quantile of a stationary sequence.

    Parameters
    ----------
    x
        Values in order of time.
    p
        Level of the quantile, in (0, 1) [].
    level
        Confidence, in (0, 1) [].
    batches
        Number of batches [].
    ordered
        The same values sorted, if the caller has them.

    Returns
    -------
    Interval
        Its upper end is infinite where the run is too short to bound the quantile.

    Notes
    -----
    The share of values up to the estimate is a mean, with an interval by batches; the empirical
    distribution turns its ends into values. Nothing is assumed about the density.

    Examples
    --------
    >>> quantile_interval(np.tile(np.arange(100.0), 64), 0.9).estimate
    89.0
    """
    values = np.asarray(x, dtype=float)
    ordered = np.sort(values) if ordered is None else ordered
    estimate = _order_statistic(ordered, p)
    below = _batched(values, batches) <= estimate
    least = sqrt(p * (1.0 - p) / len(values))  # if all were independent: correlation only widens it
    half = _half_width(np.count_nonzero(below, axis=1) / below.shape[1], level, least)
    return Interval(estimate, _order_statistic(ordered, p - half), _order_statistic(ordered, p + half, up=True), level)


def _order_statistic(ordered: Array, p: float, *, up: bool = False) -> float:
    """Smallest value with a share p of the values up to it; with `up`, the next one."""
    n = len(ordered)
    index = floor(p * n) if up else ceil(p * n) - 1
    return float(np.inf) if index >= n else float(ordered[max(index, 0)])


def _batched(values: Array, batches: int) -> Array:
    length = len(values) // batches
    if length < 1:
        raise ValueError(f"{len(values)} values are too few for {batches} batches.")
    return values[len(values) - batches * length :].reshape(batches, length)


def _half_width(means: Array, level: float, least_error: float = 0.0) -> float:
    from scipy.special import stdtrit  # slow to import, and needed by few

    error = max(float(means.std(ddof=1)) / sqrt(len(means)), least_error)
    return float(stdtrit(len(means) - 1, 0.5 + level / 2)) * error
