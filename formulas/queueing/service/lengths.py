"""Distributions of prompt lengths: log-normal, gamma, uniform, and listed lengths with their shares.

A continuous one is described by a coordinate in which it is smooth: the normal deviate of a log-normal, the
logarithm of a gamma, the length itself of a uniform. Integrals over the length are taken in that coordinate.
Two kinds of prompts, a histogram or a trace are listed lengths.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import lgamma, log, pi, sqrt
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from formulas.closed_form import DomainError

Array = NDArray[np.float64]

_SPREAD = "A distribution of lengths has a mean and a spread above zero; equal lengths are a single listed one."
_SMALLEST = 1e-18  # probability beyond the ends of the coordinate


@dataclass(frozen=True)
class Coordinate:
    """A coordinate of the lengths to integrate in.

    Parameters
    ----------
    edges
        Ends of the pieces in which it is integrated first.
    density, length
        Density and length at each point.
    sharp
        Whether the density jumps at the ends.
    """

    edges: Array
    density: Callable[[Array], Array]
    length: Callable[[Array], Array]
    sharp: bool = False


class ContinuousLengths(Protocol):
    """What a continuous distribution of lengths must offer."""

    @property
    def mean(self) -> float:
        """Mean length."""

    def cdf(self, length: Any) -> Any:
        """Share of prompts up to that length."""

    def quantile(self, level: Any) -> Any:
        """Length that a share `level` does not exceed."""

    def draw(self, size: int, generator: np.random.Generator) -> Array:
        """Random lengths."""

    def coordinate(self) -> Coordinate:
        """Say where to integrate."""


@dataclass(frozen=True)
class LognormalLengths:
    """Log-normal lengths, of no bound.

    Parameters
    ----------
    mean
        Mean length [tokens, or any unit].
    cv
        Standard deviation over mean, above zero [].

    Examples
    --------
    >>> float(LognormalLengths(1000.0, 1.0).quantile(0.99))
    4904.9
    """

    mean: float
    cv: float

    def __post_init__(self) -> None:
        if not (0 < self.mean < np.inf and 0 < self.cv < np.inf):
            raise DomainError(_SPREAD)

    @property
    def sigma(self) -> float:
        """Standard deviation of the logarithm []."""
        return sqrt(log(1.0 + self.cv**2))

    def cdf(self, length: Any) -> Any:
        """Share of prompts up to that length."""
        from scipy.special import ndtr

        return ndtr(self._deviate(length))

    def quantile(self, level: Any) -> Any:
        """Length that a share `level` does not exceed."""
        from scipy.special import ndtri

        return self._length(ndtri(level))

    def draw(self, size: int, generator: np.random.Generator) -> Array:
        """Random lengths."""
        return np.asarray(self._length(generator.standard_normal(size)))

    def coordinate(self) -> Coordinate:
        """Integrate over normal deviates, as far as the third moment of a time quadratic in the length needs."""
        edges = np.arange(-9.0, 10.0 + 6.0 * self.sigma)
        return Coordinate(edges, lambda z: np.exp(-(z**2) / 2) / sqrt(2 * pi), self._length)

    def _length(self, z: Any) -> Any:
        return self.mean * np.exp(self.sigma * z - self.sigma**2 / 2)

    def _deviate(self, length: Any) -> Any:
        with np.errstate(divide="ignore"):
            return (np.log(np.asarray(length, float) / self.mean) + self.sigma**2 / 2) / self.sigma


@dataclass(frozen=True)
class GammaLengths:
    """Gamma lengths; exponential at a coefficient of variation of 1.

    Parameters
    ----------
    mean
        Mean length [tokens, or any unit].
    cv
        Standard deviation over mean, above zero [].

    Examples
    --------
    >>> float(GammaLengths(1000.0, 1.0).quantile(0.5))
    693.14718
    """

    mean: float
    cv: float

    def __post_init__(self) -> None:
        if not (0 < self.mean < np.inf and 0 < self.cv < np.inf):
            raise DomainError(_SPREAD)

    @property
    def shape(self) -> float:
        """Shape []."""
        return self.cv**-2

    def cdf(self, length: Any) -> Any:
        """Share of prompts up to that length."""
        from scipy.special import gammainc

        return gammainc(self.shape, np.maximum(length, 0.0) * (self.shape / self.mean))

    def quantile(self, level: Any) -> Any:
        """Length that a share `level` does not exceed."""
        from scipy.special import gammaincinv

        return gammaincinv(self.shape, level) * (self.mean / self.shape)

    def draw(self, size: int, generator: np.random.Generator) -> Array:
        """Random lengths."""
        return generator.standard_gamma(self.shape, size) * (self.mean / self.shape)

    def coordinate(self) -> Coordinate:
        """Integrate over logarithms, about a standard deviation of theirs to each piece."""
        from scipy.special import gammainccinv, polygamma

        k, scale = self.shape, self.mean / self.shape
        low = min((log(_SMALLEST) + lgamma(k + 1.0)) / k, log(k) - 1.0)  # P(X < x) < x^k / Gamma(k + 1)
        high = log(gammainccinv(k, _SMALLEST**2))
        pieces = int(np.clip((high - low) / float(polygamma(1, k)) ** 0.5, 16, 256))
        return Coordinate(
            np.linspace(low, high, pieces + 1),
            lambda y: np.exp(k * y - np.exp(y) - lgamma(k)),
            lambda y: scale * np.exp(y),
        )


@dataclass(frozen=True)
class UniformLengths:
    """Lengths anywhere between two ends, equally likely.

    Parameters
    ----------
    low, high
        Shortest and longest prompt [tokens, or any unit].

    Examples
    --------
    >>> UniformLengths(100.0, 500.0).mean
    300.0
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0 <= self.low < self.high < np.inf:
            raise DomainError(_SPREAD)

    @property
    def mean(self) -> float:
        """Mean length."""
        return (self.low + self.high) / 2

    def cdf(self, length: Any) -> Any:
        """Share of prompts up to that length."""
        return np.clip((np.asarray(length, float) - self.low) / (self.high - self.low), 0.0, 1.0)

    def quantile(self, level: Any) -> Any:
        """Length that a share `level` does not exceed."""
        return self.low + np.asarray(level, float) * (self.high - self.low)

    def draw(self, size: int, generator: np.random.Generator) -> Array:
        """Random lengths."""
        return generator.uniform(self.low, self.high, size)

    def coordinate(self) -> Coordinate:
        """Integrate over the lengths themselves."""
        density = 1.0 / (self.high - self.low)
        return Coordinate(
            np.linspace(self.low, self.high, 17),
            lambda x: np.full_like(x, density),
            lambda x: x,
            sharp=True,
        )


@dataclass(frozen=True)
class ListedLengths:
    """A list of lengths with their shares: equal prompts, two kinds of them, a histogram or a trace.

    Parameters
    ----------
    lengths
        Lengths, in any order; equal ones are added up [tokens, or any unit].
    shares
        Share of the prompts of each, or a number in proportion to it; equal shares if left out [].

    Examples
    --------
    >>> ListedLengths([200.0, 8000.0], [0.95, 0.05]).mean
    590.0
    """

    lengths: Any
    shares: Any = None

    def __post_init__(self) -> None:
        lengths = np.atleast_1d(np.asarray(self.lengths, dtype=float))
        shares = np.ones(lengths.shape) if self.shares is None else np.atleast_1d(np.asarray(self.shares, dtype=float))
        if lengths.ndim != 1 or lengths.shape != shares.shape or not len(lengths):
            raise DomainError("A list of lengths needs one share for each length.")
        if not (np.all((lengths >= 0) & (lengths < np.inf)) and np.all((shares >= 0) & (shares < np.inf))):
            raise DomainError("Lengths and their shares cannot be negative or endless.")
        if not shares.sum() > 0:
            raise DomainError("A list of lengths needs a share above zero.")
        different, where = np.unique(lengths, return_inverse=True)
        together = np.bincount(where, shares) / shares.sum()
        object.__setattr__(self, "lengths", different[together > 0])
        object.__setattr__(self, "shares", together[together > 0])

    @property
    def mean(self) -> float:
        """Mean length."""
        return float(self.lengths @ self.shares)

    def draw(self, size: int, generator: np.random.Generator) -> Array:
        """Random lengths."""
        return np.asarray(generator.choice(self.lengths, size, p=self.shares))


Lengths = ContinuousLengths | ListedLengths
