"""Whether a simulation and an exact value agree, or the run was too short to tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from formulas.montecarlo.confidence import Interval, mean_interval, quantile_interval

Verdict = Literal["inside", "outside", "run too short"]

BATCHES = 32
RELAXATIONS_PER_BATCH = 10


@dataclass(frozen=True)
class CheckedValue:
    """One statistic: its exact value, its simulated one, and whether they agree."""

    name: str
    exact: float
    simulated: Interval
    verdict: Verdict


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
