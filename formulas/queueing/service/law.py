r"""Service times that a distribution of prompt lengths produces, through any increasing time of a length.

A law is a set of nodes with weights for its continuous part, and atoms with their shares: moments and transforms
are sums over both. What the queue needs is the transform of the residual service,
:math:`B_e(s) = (1 - B(s)) / (s\,E[S])`; one less it is computed here without the cancellation at small s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulas.closed_form import DomainError
from formulas.queueing.service.lengths import Lengths, ListedLengths
from formulas.queueing.service.partial import PanelTables
from formulas.queueing.service.quadrature import checked_times, service_panels

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]
TimeOfLength = Callable[[Any], Any]

_DECREASING = "The service time of a prompt cannot fall with its length."
_NO_TIME = "Prompts need a mean service time above zero."


@dataclass(frozen=True)
class Part:
    """Prompts of one distribution of lengths and their service time; `share` of all prompts."""

    lengths: Lengths
    service_time: TimeOfLength
    share: float

    def quantile(self, level: Array) -> Array:
        """Time that a share `level` of these prompts do not exceed."""
        if isinstance(self.lengths, ListedLengths):
            cumulative = np.cumsum(self.lengths.shares)
            index = np.minimum(np.searchsorted(cumulative, level - 1e-15), len(cumulative) - 1)
            return np.asarray(self.service_time(self.lengths.lengths), float)[index]
        return np.asarray(self.service_time(self.lengths.quantile(level)), float)


@dataclass(frozen=True, eq=False)
class ServiceLaw:
    """Distribution of a service time.

    Parameters
    ----------
    parts
        Distributions of lengths with their service times and shares.
    values, weights
        Nodes of the continuous part, ascending, a panel to each row, and their weights [s], [].
    atoms, shares
        Times that a positive share of the prompts take, and those shares [s], [].
    """

    parts: tuple[Part, ...]
    values: Array
    weights: Array
    atoms: Array
    shares: Array

    def __post_init__(self) -> None:
        if not self.mean > 0:
            raise DomainError(_NO_TIME)

    @cached_property
    def mean(self) -> float:
        """Mean service time [s]."""
        return self.moment(1)

    @cached_property
    def second_moment(self) -> float:
        """Second moment [s^2]."""
        return self.moment(2)

    @cached_property
    def third_moment(self) -> float:
        """Third moment [s^3]."""
        return self.moment(3)

    @property
    def variance(self) -> float:
        """Variance [s^2]; zero for equal prompts."""
        return float(self.all_weights @ (self.all_values - self.mean) ** 2)

    @property
    def scv(self) -> float:
        """Squared coefficient of variation []."""
        return self.variance / self.mean**2

    def moment(self, order: int) -> float:
        """Moment of any order [s^order]."""
        return float(self.all_weights @ self.all_values**order)

    @cached_property
    def all_values(self) -> Array:
        """Nodes and atoms together, ascending [s]."""
        return np.concatenate([self.values.ravel(), self.atoms])[self._order]

    @cached_property
    def all_weights(self) -> Array:
        """Weights of :attr:`all_values` []."""
        return np.concatenate([self.weights.ravel(), self.shares])[self._order]

    @cached_property
    def _order(self) -> NDArray[np.int64]:
        return np.argsort(np.concatenate([self.values.ravel(), self.atoms]), kind="stable")

    def cdf(self, time: Any) -> Any:
        """Share of prompts whose service takes at most `time` [s].

        Examples
        --------
        >>> service_law(ListedLengths([1.0, 3.0], [0.9, 0.1]), lambda length: 0.02 * length).cdf(0.05)
        0.9
        """
        t = np.asarray(time, float)
        shares = [self.below(float(x))[0] for x in t.ravel()]
        return np.reshape(shares, t.shape) if t.ndim else shares[0]

    def below(self, time: float) -> tuple[float, float, float]:
        """Share of the prompts that take at most `time`, their part of the mean [s], and the density there [1/s].

        Examples
        --------
        >>> from formulas.queueing.service import GammaLengths
        >>> service_law(GammaLengths(1.0, 1.0), lambda length: length).below(1.0)
        (0.63212056, 0.26424112, 0.36787944)
        """
        atoms = self.atoms <= time * (1.0 + 1e-15)
        share, mean, density = self.tables.below(time)
        return share + float(self.shares[atoms].sum()), mean + float(self.atoms[atoms] @ self.shares[atoms]), density

    @cached_property
    def tables(self) -> PanelTables:
        """Tables of the continuous part."""
        return PanelTables(self.values, self.weights)

    def quantile(self, level: Any) -> Any:
        """Service time that a share `level` of the prompts do not exceed [s].

        Examples
        --------
        >>> from formulas.queueing.service import GammaLengths
        >>> service_law(GammaLengths(1000.0, 1.0), lambda length: 1e-3 + 2e-5 * length).quantile(0.5)
        0.01486294
        """
        p = np.asarray(level, float)
        if not np.all((p > 0) & (p < 1)):
            raise DomainError("A percentile's level lies between 0 and 1.")
        levels = np.atleast_1d(p).ravel()
        times = np.stack([part.quantile(levels) for part in self.parts])
        low, high = times.min(axis=0), times.max(axis=0)
        if len(self.parts) > 1:
            low, high = self._between(levels, low, high)
        return high.reshape(p.shape) if p.ndim else float(high[0])

    def _between(self, level: Array, low: Array, high: Array) -> tuple[Array, Array]:
        """Bounds of a quantile, brought together by halving, and then to an atom that is equal to rounding."""
        for _ in range(60):
            middle = (low + high) / 2
            reached = self.cdf(middle) >= level - 1e-15
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        if len(self.atoms):
            nearest = self.atoms[np.abs(self.atoms - high[:, np.newaxis]).argmin(axis=1)]
            high = np.where(np.abs(nearest - high) <= 1e-12 * nearest, nearest, high)
        return low, high

    def laplace(self, s: Any) -> Any:
        """Transform E[exp(-s S)] at complex s with Re s >= 0 [].

        Examples
        --------
        >>> service_law(ListedLengths(2.0), lambda length: length).laplace(0.5)
        (0.36787944+0j)
        """
        s = np.asarray(s, complex)
        value = np.exp(-s[..., np.newaxis] * self.all_values) @ self.all_weights
        return value if s.ndim else complex(value)

    def draw(self, size: int, generator: np.random.Generator) -> Array:
        """Random service times [s]."""
        if len(self.parts) == 1:
            return self._draw_part(0, size, generator)
        which = generator.choice(len(self.parts), size, p=[part.share for part in self.parts])
        times = np.empty(size)
        for index in range(len(self.parts)):
            times[which == index] = self._draw_part(index, int((which == index).sum()), generator)
        return times

    def _draw_part(self, index: int, size: int, generator: np.random.Generator) -> Array:
        part = self.parts[index]
        return np.array(checked_times(part.service_time(part.lengths.draw(size, generator)), (size,)))


def service_law(lengths: Lengths, service_time: TimeOfLength) -> ServiceLaw:
    """Distribution of the service time of prompts.

    Parameters
    ----------
    lengths
        Distribution of their lengths.
    service_time
        Service time of a prompt of given length, increasing: a function from an array of lengths to one of times [s].

    Returns
    -------
    ServiceLaw
        Kinks and jumps of the service time are found. A stretch of lengths with one service time is an atom.

    Examples
    --------
    >>> from formulas.queueing.service import LognormalLengths
    >>> law = service_law(LognormalLengths(1000.0, 1.0), lambda length: 2e-3 + 2e-5 * length)
    >>> law.mean, law.scv
    (0.022, 0.826446)
    """
    if isinstance(lengths, ListedLengths):
        times = checked_times(service_time(lengths.lengths), lengths.lengths.shape)
        if np.any(np.diff(times) < -1e-12 * times[-1]):
            raise DomainError(_DECREASING)
        atoms, where = np.unique(times, return_inverse=True)
        nothing = np.empty((0, 1))
        return ServiceLaw(
            (Part(lengths, service_time, 1.0),),
            nothing,
            nothing,
            atoms,
            np.bincount(where, lengths.shares).astype(float),
        )
    panels = service_panels(lengths.coordinate(), service_time)
    in_order = np.diff(panels.values.ravel())
    if len(in_order) and np.any(in_order < -1e-12 * panels.values.max()):
        raise DomainError(_DECREASING)
    return ServiceLaw((Part(lengths, service_time, 1.0),), panels.values, panels.weights, panels.atoms, panels.shares)


def equal_service(time: float) -> ServiceLaw:
    """Law of prompts that all take one time [s].

    Examples
    --------
    >>> equal_service(0.05).second_moment
    0.0025
    """
    return service_law(ListedLengths(1.0), lambda length: time * length)


def scaled(law: ServiceLaw, factor: float) -> ServiceLaw:
    """Law of service times that are all so many times as long [].

    Examples
    --------
    >>> scaled(equal_service(0.05), 2.0).mean
    0.1
    """
    parts = tuple(replace(part, service_time=_times(part.service_time, factor)) for part in law.parts)
    return ServiceLaw(parts, factor * law.values, law.weights, factor * law.atoms, law.shares)


def _times(service_time: TimeOfLength, factor: float) -> TimeOfLength:
    return lambda length: factor * np.asarray(service_time(length), float)


def mixed_service(laws: Any, shares: Any) -> ServiceLaw:
    """Law of prompts of several kinds: cache hits and misses, chats and documents.

    Parameters
    ----------
    laws
        Law of each kind.
    shares
        Share of the prompts of each kind, or a number in proportion to it [].

    Examples
    --------
    >>> mixed_service([equal_service(0.01), equal_service(0.5)], [0.9, 0.1]).mean
    0.059
    """
    parts = np.asarray(shares, float)
    if len(parts) != len(laws) or not np.all(parts >= 0) or not parts.sum() > 0:
        raise DomainError("Each kind of prompts needs a share, and they cannot be negative or all zero.")
    parts = parts / parts.sum()
    pairs = [(law, float(share)) for law, share in zip(laws, parts, strict=True) if share > 0]
    atoms, where = np.unique(np.concatenate([law.atoms for law, _ in pairs]), return_inverse=True)
    masses = np.bincount(
        where, np.concatenate([share * law.shares for law, share in pairs]), minlength=len(atoms)
    ).astype(float)
    width = max(law.values.shape[1] for law, _ in pairs)
    solid = [(law, share) for law, share in pairs if law.values.size]
    values = np.concatenate([law.values for law, _ in solid]) if solid else np.empty((0, width))
    weights = np.concatenate([share * law.weights for law, share in solid]) if solid else np.empty((0, width))
    kinds = tuple(Part(p.lengths, p.service_time, p.share * share) for law, share in pairs for p in law.parts)
    return ServiceLaw(kinds, values, weights, atoms, masses)
