r"""What the delays of M/G/1 owe to atoms of the service time, in closed form: kinks that no inversion can follow.

In powers of the service's transform B, that of the survival of the wait W and an independent time Y after it is

.. math:: \frac{1 - W(s)\,Y(s)}{s} = \frac1s - (1-\rho) \sum_{n \ge 0} \frac{(-R)^n B(s)^n\, Y(s)}{(s-R)^{n+1}}.

The part of those who do not wait, :math:`(1-\rho)(1 - Y(s))/s`, stands apart, as it is known. An atom at a makes
:math:`B^n` contain :math:`e^{-s n a}`, a jump of the n-th derivative there. With :math:`u = 1/(s + \kappa)` each
:math:`(s-R)^{-n-1}` is a power series in u; its first terms, up to the fifth power, are taken out and given
back as polynomials times an exponential.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import comb, exp

import numpy as np
from numpy.typing import NDArray

from formulas.queueing.inversion import DAMPING, abscissae
from formulas.queueing.service.transforms import exponential_sums

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

_MOST_SUMS = 1000  # different ones, in a group
_MOST_PAIRS = 100_000
_MOST_ORDERS = 4
_POWERS = 5  # of u that are taken out, so that four derivatives are smooth
_FACTORIALS = np.array([1.0, 1.0, 2.0, 6.0, 24.0])
_SMALLEST = 1e-15  # share of a sum that is left in


@dataclass(frozen=True, eq=False)
class Kinks:
    """Kinks of a delay; times in mean services.

    Parameters
    ----------
    atoms, shares
        Atoms of the service time and their shares.
    added
        Atoms of the time after the wait and their shares; None if there is none.
    """

    atoms: Array
    shares: Array
    added: tuple[Array, Array] | None

    @cached_property
    def orders(self) -> int:
        """Number of groups of sums; zero if there is nothing to take out."""
        return len(self._sums)

    @cached_property
    def _sums(self) -> tuple[tuple[Array, Array], ...]:
        """Sums of atoms and their probabilities, a group to each number of them, as long as they stay few."""
        found: list[tuple[Array, Array]] = []
        times, chances = self.added or (np.zeros(1), np.ones(1))
        if not len(times):
            return ()
        if self.added:
            found.append((times, chances))
        while len(self.atoms) and len(found) < _MOST_ORDERS and len(times) * len(self.atoms) <= _MOST_PAIRS:
            times, chances = _together(np.add.outer(times, self.atoms), np.multiply.outer(chances, self.shares))
            if not len(times) or (len(times) > _MOST_SUMS and found):
                break
            found.append((times, chances))
        return tuple(found)

    @cached_property
    def _flat(self) -> tuple[Array, Array, NDArray[np.int64]]:
        """All sums in a row, their probabilities, and the group of each."""
        times, chances = (np.concatenate(column) for column in zip(*self._sums, strict=True))
        return times, chances, np.repeat(np.arange(self.orders), [len(times) for times, _ in self._sums])

    def survival(self, t: float, load: float) -> float:
        """Return what is taken out, at time t, with what the series makes of it at three times t."""
        return self._at(t, load) + exp(-DAMPING) * self._at(3.0 * t, load)

    def _at(self, t: float, load: float) -> float:
        times, chances, group = self._flat
        reached = times <= t * (1.0 + 1e-15)
        since = np.maximum(t - times[reached], 0.0)[:, np.newaxis]
        table = self._coefficients(load) / _FACTORIALS
        shapes = since ** np.arange(_POWERS) * table[group[reached]]
        return float((chances[reached] * np.exp(-load * since[:, 0])) @ shapes.sum(axis=1))

    def transform(self, t: float, terms: int, load: float) -> Complex:
        """Return its transform over t, at the abscissae."""
        u = 1.0 / (abscissae(terms) + load * t)
        powers = np.repeat(u[np.newaxis], _POWERS, axis=0).cumprod(axis=0)
        series = (self._coefficients(load) * t ** np.arange(_POWERS)) @ powers
        times, chances, group = self._flat
        sums = exponential_sums(times / t, chances, terms, np.searchsorted(group, np.arange(1, self.orders)))
        total: Complex = (series * sums).sum(axis=0)
        return total

    @lru_cache(maxsize=8)  # noqa: B019 - lives as long as the law that it belongs to
    def _coefficients(self, load: float) -> Array:
        """Coefficients of u, u², … in the term of each group, with kappa = R."""
        table = np.zeros((self.orders, _POWERS))
        for row in range(self.orders):
            n = row + (self.added is None)
            outside = -(1.0 - load) * (-load) ** n
            for j in range(_POWERS - n):
                # with n = 0 less 1/s, the part of those who do not wait
                table[row, n + j] = outside * (comb(n + j, n) * (2.0 * load) ** j - (load**j if n == 0 else 0.0))
        return table


def _together(times: Array, chances: Array) -> tuple[Array, Array]:
    """Flat and ascending, those equal to rounding added up."""
    order = np.argsort(times, axis=None)
    flat, weight = times.ravel()[order], chances.ravel()[order]
    new = np.concatenate([[True], np.diff(flat) > 1e-12 * flat[1:]])
    merged: Array = np.bincount(np.cumsum(new) - 1, weight).astype(float)
    keep = merged > _SMALLEST
    return flat[new][keep], merged[keep]
