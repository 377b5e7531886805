r"""Transforms of a service law at the points where an inversion needs them, quickly and without cancellation.

At ``abscissae(terms) / t`` the exponentials of a node are powers of a single one, so a table of all of them is a product
of two small matrices. Nodes so short that :math:`|s v|` stays below 1.5 enter by their moments, in a power series;
nodes beyond :math:`6 t` have vanished.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulas.queueing.inversion import DAMPING, abscissae
from formulas.queueing.service.law import ServiceLaw

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

_SHORT = 1.5  # |s v| up to which the series is used
_ORDERS = 24  # terms of it: 1.5^24 / 25! is far below rounding
_LONG = 6.0  # times t: exp(-60) is nothing
_PHASE = 40.0  # radians within a panel that its nodes follow to rounding
_RARE = 1e-13  # share of the prompts in panels that need not be followed


@dataclass(frozen=True, eq=False)
class LawTransform:
    """A law in units of its mean, with what its transforms need."""

    law: ServiceLaw

    @cached_property
    def values(self) -> Array:
        """Nodes and atoms, ascending, over the mean []."""
        return self.law.all_values / self.law.mean

    @cached_property
    def _moments(self) -> Array:
        """Partial moments from 0 up, each over the factorial of its order, with a zero row in front."""
        values, powers = self.values[:, np.newaxis], np.arange(2, _ORDERS + 2)
        with np.errstate(over="ignore"):  # of times that are short at no t
            terms = self.law.all_weights[:, np.newaxis] * values * (values / powers).cumprod(axis=1)
        return np.concatenate([np.zeros((1, _ORDERS)), np.cumsum(terms, axis=0)])

    @cached_property
    def _above(self) -> Array:
        """Mass, and mean, of the nodes from each on, with a zero row at the end."""
        both = self.law.all_weights[:, np.newaxis] * np.stack([np.ones_like(self.values), self.values], axis=1)
        return np.concatenate([np.cumsum(both[::-1], axis=0)[::-1], np.zeros((1, 2))])

    @cached_property
    def _panels(self) -> tuple[Array, Array]:
        """Shortest time in each panel that counts, and the largest span of a panel up to there."""
        law = self.law
        values = law.values[law.weights.sum(axis=1) > _RARE]
        bottom = values.min(axis=1)
        span = values.max(axis=1) - bottom
        order = np.argsort(bottom)
        return bottom[order] / law.mean, np.maximum.accumulate(span[order]) / law.mean

    def most_terms(self, t: float) -> float:
        """Terms beyond which the nodes no longer follow the oscillations, at time t in mean services []."""
        bottom, span = self._panels
        below = int(np.searchsorted(bottom, 2.0 * t))
        return _PHASE * t / (np.pi * span[below - 1]) if below else np.inf

    def residual_complement(self, t: float, terms: int) -> Complex:
        """One less the transform of the residual service, at ``abscissae(terms) / t`` [].

        Parameters
        ----------
        t
            Time in units of the mean service [].
        terms
            Index of the last abscissa [].
        """
        st = abscissae(terms)
        first, last = np.searchsorted(self.values, (_SHORT * t / abs(st[-1]), _LONG * t))
        mass, mean = self._above[first]
        result: Complex = mean - (mass - self._exponentials(first, last, t, terms)) * (t / st)
        if first:
            result += _series(self._moments[first], st / t)
        return result

    def _exponentials(self, first: int, last: int, t: float, terms: int) -> Complex:
        return exponential_sums(self.values[first:last] / t, self.law.all_weights[first:last], terms)


def exponential_sums(shifts: Array, weights: Array, terms: int, splits: Any = ()) -> Complex:
    """Add up ``weights * exp(-s shifts)`` at the abscissae, for shifts in units of t.

    Parameters
    ----------
    shifts, weights
        Shifts and their weights.
    terms
        Index of the last abscissa.
    splits
        Indices at which a new sum begins.

    Returns
    -------
    ndarray
        A sum to each row; a single sum, without the rows, if there are no splits.

    Examples
    --------
    >>> exponential_sums(np.array([0.5]), np.array([1.0]), 3)[2].real
    np.float64(-0.00408677)
    """
    block = isqrt(terms) + 1
    turn = np.exp(-1j * np.pi * shifts)
    fine = _powers(turn, block)
    coarse = _powers(fine[-1] * turn, terms // block + 1)
    coarse *= weights * np.exp(-DAMPING / 2 * shifts)
    ends = [0, *splits, len(shifts)]
    rows = [coarse[:, a:b] @ fine[:, a:b].T for a, b in pairwise(ends)]
    sums: Complex = np.reshape(rows, (len(rows), -1))[:, : terms + 1]
    return sums if len(splits) else sums[0]


def _powers(base: Complex, count: int) -> Complex:
    """Powers 0, 1, ... of each element, each in a row of its own."""
    table = np.empty((count, len(base)), complex)
    table[0] = 1.0
    for k in range(1, count):
        np.multiply(table[k - 1], base, out=table[k])
    return table


def _series(moments: Array, s: Complex) -> Complex:
    """Power series of 1 - (1 - exp(-s v)) / (s v), times v, summed over the short nodes."""
    total = np.zeros_like(s)
    for coefficient in moments[::-1]:
        total = (coefficient - total) * s
    return total
