"""Whether a simulation and an exact value agree, or the run was too short to tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, Literal

import numpy as np

from formulas.montecarlo.confidence import Interval, mean_interval, quantile_interval

Verdict = Literal["inside", "outside", "run too short"]

PERCENTILES = (0.5, 0.9, 0.99)
BATCHES = 32
RELAXATIONS_PER_BATCH = 10
_RELAXATIONS_OF_WARM_UP = 10


@dataclass(frozen=True)
class CheckedValue:
    """One statistic: its exact value, its simulated one, and whether they agree."""

    name: str
    exact: float
    simulated: Interval
    verdict: Verdict


@dataclass(frozen=True)
class Comparison:
    """What a run says after its warm-up, and where an exact value is known, whether they agree."""

    warm_up: int
    simulated: Mapping[str, Interval]
    rows: tuple[CheckedValue, ...]


def checked_value(name: str, exact: float, simulated: Interval, *, trusted: bool) -> CheckedValue:
    """Return the verdict on an exact value: "run too short" where the interval has no end or is not trusted.

    Examples
    --------
    >>> checked_value("mean", 2.0, Interval(2.1, 1.9, 2.3, 0.95), trusted=True).verdict
    'inside'
    """
    slack = 1e-9 * exact  # to rounding: at low load many percentiles are the service alone
    inside = simulated.low - slack <= exact <= simulated.high + slack
    verdict: Verdict = "inside" if inside else "outside"
    return CheckedValue(name, exact, simulated, verdict if trusted and np.isfinite(simulated.high) else "run too short")


def estimates(values: Any, percentiles: tuple[float, ...], level: float = 0.95) -> dict[str, Interval]:
    """Return the intervals of the mean and of percentiles, under their names: mean, P50, P99.

    Parameters
    ----------
    values
        Stationary values in order of time.
    percentiles
        Levels, in (0, 1) [].
    level
        Confidence, in (0, 1) [].

    Examples
    --------
    >>> list(estimates(np.arange(6400.0), (0.5, 0.999)))
    ['mean', 'P50', 'P99.9']
    """
    ordered = np.sort(values)
    found = {"mean": mean_interval(values, level, BATCHES)}
    for p in percentiles:
        found[f"P{100 * p:g}"] = quantile_interval(values, p, level, BATCHES, ordered=ordered)
    return found


def long_enough(customers: int, relaxation_customers: float) -> bool:
    """Whether each of the batches spans ten relaxation times.

    Examples
    --------
    >>> long_enough(10_000, 50.0)
    False
    """
    return customers // BATCHES >= RELAXATIONS_PER_BATCH * relaxation_customers


def compare(values: Any, exact: Mapping[str, float], relaxation_customers: float, level: float = 0.95) -> Comparison:
    """Leave out the warm-up of a run that began empty, and compare the rest with the exact values.

    Parameters
    ----------
    values
        One value of each customer, in order of time.
    exact
        Exact values by name, as :func:`estimates` names them.
    relaxation_customers
        Customers in one relaxation time; ten of them are the warm-up, but never more than half of the run [].
    level
        Confidence of the intervals, in (0, 1) [].

    Examples
    --------
    >>> compare(np.full(6400, 2.0), {"mean": 2.0}, 5.0).rows[0].verdict
    'inside'
    """
    skipped = min(ceil(_RELAXATIONS_OF_WARM_UP * relaxation_customers), len(values) // 2)
    simulated = estimates(values[skipped:], PERCENTILES, level)
    trusted = long_enough(len(values) - skipped, relaxation_customers)
    rows = tuple(checked_value(name, value, simulated[name], trusted=trusted) for name, value in exact.items())
    return Comparison(skipped, simulated, rows)
