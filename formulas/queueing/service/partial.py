"""Shares, means and densities of the service times up to any time, from the panels of a law."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from formulas.queueing.service.quadrature import GAUSS, GAUSS_WEIGHTS

Array = NDArray[np.float64]

_LEGENDRE = np.polynomial.legendre
_NODES = len(GAUSS)
_TO_SERIES = np.linalg.inv(_LEGENDRE.legvander(GAUSS, _NODES - 1))
_INTEGRAL = _LEGENDRE.legvander(GAUSS, _NODES) @ _LEGENDRE.legint(_TO_SERIES, lbnd=-1, axis=0)
_SLOPE = _LEGENDRE.legvander(GAUSS, _NODES - 2) @ _LEGENDRE.legder(_TO_SERIES, axis=0)
_ENDS = _LEGENDRE.legvander(np.array([-1.0, 1.0]), _NODES - 1) @ _TO_SERIES
_BARYCENTRIC = (-1.0) ** np.arange(_NODES) * np.sqrt((1.0 - GAUSS**2) * GAUSS_WEIGHTS)


@dataclass(frozen=True, eq=False)
class PanelTables:
    """Panels of service times, each a polynomial of a coordinate between -1 and 1.

    Parameters
    ----------
    values, weights
        Nodes and weights, a panel to each row.
    """

    values: Array
    weights: Array

    @cached_property
    def _ends(self) -> tuple[Array, Array]:
        bottom, top = (self.values @ _ENDS.T).T if len(self.values) else np.empty((2, 0))
        return bottom, top

    @cached_property
    def _totals(self) -> tuple[Array, Array]:
        return self.weights.sum(axis=1), (self.weights * self.values).sum(axis=1)

    def means_below(self) -> Array | None:
        """Part of the mean below each node, if every panel begins where the one before it ends; else None."""
        if np.any(np.diff(self.values.ravel()) < 0):
            return None
        within = (self.weights / GAUSS_WEIGHTS * self.values) @ _INTEGRAL.T
        before = np.cumsum(self._totals[1]) - self._totals[1]
        return np.asarray(before[:, np.newaxis] + within)

    def below(self, time: float) -> tuple[float, float, float]:
        """Share of the prompts whose service takes at most `time`, their part of the mean, and the density there."""
        bottom, top = self._ends
        whole = top <= time
        share, mean, density = float(self._totals[0][whole].sum()), float(self._totals[1][whole].sum()), 0.0
        for panel in np.flatnonzero((bottom < time) & ~whole):
            values, masses = self.values[panel], self.weights[panel] / GAUSS_WEIGHTS
            where, slope = _inverse(values, time)
            part = _at(where, np.stack([_INTEGRAL @ masses, _INTEGRAL @ (masses * values), masses]))
            share, mean, density = share + float(part[0]), mean + float(part[1]), density + float(part[2]) / slope
        return share, mean, density


def _inverse(values: Array, time: float) -> tuple[float, float]:
    """Coordinate at which an increasing panel takes a value, and its slope there, by Newton's method."""
    where = float(np.interp(time, values, GAUSS))
    both = np.stack([values, _SLOPE @ values])
    for _ in range(4):
        value, slope = _at(where, both)
        step = (time - value) / slope if slope > 0 else 0.0
        where = min(max(where + step, -1.0), 1.0)
        if abs(step) < 1e-9:
            break
    return where, max(float(slope), 1e-300)


def _at(where: float, table: Array) -> Array:
    """Interpolate the rows of a table of values at the nodes."""
    distance = where - GAUSS
    if not distance.all():
        return np.asarray(table[:, int(np.argmin(np.abs(distance)))])
    factor = _BARYCENTRIC / distance
    return np.asarray(table @ factor / factor.sum())
