r"""Service times as the numerics of many servers need them: mean, spread, mean excess and quantiles.

The mean excess :math:`E[(S - x)^+]` puts a distribution on a lattice without moving its mean, and over the mean
service it is the survival of what is left of a service in progress.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import exp, log, sqrt
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from formulas.closed_form import DomainError
from formulas.queueing.service import ServiceLaw

Array = NDArray[np.float64]

_MEAN = "A service takes a mean time above zero."


class ServiceTimes(Protocol):
    """Distribution of a prompt's service time."""

    @property
    def mean(self) -> float:
        """Mean [s]."""

    @property
    def cv(self) -> float:
        """Coefficient of variation []."""

    def excess(self, x: Any) -> Array:
        """Mean of what a service takes beyond `x`, counted as nothing for a shorter one [s]."""

    def quantile(self, level: Any) -> Array:
        """Time that a share `level` of the services do not exceed [s]."""


@dataclass(frozen=True)
class Constant:
    """Prompts of one length.

    Parameters
    ----------
    mean
        Service time, above zero [s].

    Examples
    --------
    >>> Constant(2.0).excess([0.0, 0.5, 3.0])
    array([2. , 1.5, 0. ])
    """

    mean: float

    def __post_init__(self) -> None:
        _check(self.mean > 0, _MEAN)

    @property
    def cv(self) -> float:
        """Coefficient of variation: none []."""
        return 0.0

    def excess(self, x: Any) -> Array:
        """Mean excess over `x` [s]."""
        return np.maximum(self.mean - np.asarray(x, dtype=float), 0.0)

    def quantile(self, level: Any) -> Array:
        """Quantile: the time itself [s]."""
        return np.full(np.shape(level), self.mean)


@dataclass(frozen=True)
class LognormalTimes:
    """Log-normal service times.

    Parameters
    ----------
    mean
        Mean, above zero [s].
    cv
        Standard deviation over mean, above zero [].

    Examples
    --------
    >>> LognormalTimes(1.0, 1.0).excess([0.0, 1.0])
    array([1.       , 0.3227929])
    >>> LognormalTimes(1.0, 1.0).quantile([0.5])
    array([0.70710678])
    """

    mean: float
    cv: float

    def __post_init__(self) -> None:
        _check(self.mean > 0, _MEAN)
        _check(self.cv > 0, "A log-normal service time has a coefficient of variation above zero.")

    @property
    def sigma(self) -> float:
        """Standard deviation of the logarithm []."""
        return sqrt(log(1.0 + self.cv**2))

    @property
    def median(self) -> float:
        """Median [s]."""
        return self.mean * exp(-(self.sigma**2) / 2)

    def excess(self, x: Any) -> Array:
        """Mean excess over `x` [s]."""
        from scipy.special import ndtr  # slow to import, and needed by few

        x = np.asarray(x, dtype=float)
        with np.errstate(divide="ignore"):
            z = np.log(x / self.median) / self.sigma
        return np.asarray(self.mean * ndtr(self.sigma - z) - x * ndtr(-z))

    def quantile(self, level: Any) -> Array:
        """Quantile [s]."""
        from scipy.special import ndtri

        return np.asarray(self.median * np.exp(self.sigma * ndtri(np.asarray(level, dtype=float))))


@dataclass(frozen=True, eq=False)
class ObservedTimes:
    """Service times as they were observed, or computed from the lengths of a trace.

    Parameters
    ----------
    values
        Service times, at least one, all above zero [s].

    Examples
    --------
    >>> hit_or_miss = ObservedTimes([0.1, 0.1, 0.1, 1.7])
    >>> hit_or_miss.mean, hit_or_miss.excess([0.0, 0.1, 1.0])
    (0.5, array([0.5  , 0.4  , 0.175]))
    """

    values: Any

    def __post_init__(self) -> None:
        times = self._ascending
        _check(times.size > 0 and bool(np.all(np.isfinite(times))) and times[0] > 0, _MEAN)

    @property
    def mean(self) -> float:
        """Mean [s]."""
        return float(self._ascending.mean())

    @property
    def cv(self) -> float:
        """Coefficient of variation []."""
        return float(self._ascending.std() / self._ascending.mean())

    def excess(self, x: Any) -> Array:
        """Mean excess over `x` [s]."""
        x = np.asarray(x, dtype=float)
        first = np.searchsorted(self._ascending, x, side="right")
        longer = self._ascending.size - first
        return np.asarray(np.maximum(self._sum_from[first] - longer * x, 0.0) / self._ascending.size)

    def quantile(self, level: Any) -> Array:
        """Quantile [s]."""
        return np.asarray(np.quantile(self._ascending, level, method="inverted_cdf"))

    @cached_property
    def _ascending(self) -> Array:
        return np.sort(np.asarray(self.values, dtype=float).ravel())

    @cached_property
    def _sum_from(self) -> Array:
        return np.append(np.cumsum(self._ascending[::-1])[::-1], 0.0)


@dataclass(frozen=True, eq=False)
class LawTimes:
    """A law of service times (:mod:`formulas.queueing.service`) as the numerics of many servers ask for it."""

    law: ServiceLaw

    @property
    def mean(self) -> float:
        """Mean [s]."""
        return self.law.mean

    @property
    def cv(self) -> float:
        """Coefficient of variation []."""
        return float(self.law.scv**0.5)

    def excess(self, x: Any) -> Any:
        """Mean of what a service takes beyond `x`, counted as nothing for a shorter one [s]."""
        x = np.asarray(x, float)
        values, weights = self.law.all_values, self.law.all_weights
        longer = np.append(np.cumsum(weights[::-1])[::-1], 0.0)
        rest = np.append(np.cumsum((weights * values)[::-1])[::-1], 0.0)
        first = np.searchsorted(values, x, side="right")
        return np.maximum(rest[first] - x * longer[first], 0.0)

    def quantile(self, level: Any) -> Any:
        """Time that a share `level` of the services do not exceed [s]."""
        level = np.asarray(level, float)
        if not level.ndim:
            return np.asarray(self.law.quantile(float(level)))
        return self.law.quantile(np.clip(level, 1e-300, 1 - 1e-16))


def draw_times(service: ServiceTimes, shape: Any, generator: np.random.Generator) -> Array:
    """Return random service times [s].

    Examples
    --------
    >>> draw_times(Constant(2.0), 3, np.random.default_rng(1))
    array([2., 2., 2.])
    """
    return service.quantile(generator.random(shape))


def _check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise DomainError(otherwise)
