"""Nodes and weights that integrate over the service times which a distribution of lengths produces.

Gauss-Legendre panels in the coordinate of the lengths, halved until three things hold in each: the service time is
a polynomial to rounding, it spans a small part of its own size (so that the oscillations of a transform are
followed), or the panel holds next to nothing. A kink or a jump of the service time is thus closed in on without
being told of; a stretch on which it is constant becomes an atom.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulas.closed_form import DomainError
from formulas.queueing.service.lengths import Coordinate

Array = NDArray[np.float64]

_NODES = 24
_SPAN = 0.1  # of a panel's service times, relative to the longest of them
_FLOOR = 0.002  # of the mean: shorter service times need not be told apart
_NEAR = 8.0  # times a kink: up to there panels are short
_ROUGH = 1e-3  # shortest over longest panel below which the service time has a kink or a jump
_ROUNDING = 1e-12  # of the last Legendre coefficients
_NOTHING = 1e-13  # share of the prompts that a panel may get wrong
_MOST = 6000  # panels
GAUSS, GAUSS_WEIGHTS = np.polynomial.legendre.leggauss(_NODES)
_TO_LEGENDRE = np.linalg.inv(np.polynomial.legendre.legvander(GAUSS, _NODES - 1)).T

TOO_ROUGH = "The service time has too many jumps over the lengths to integrate it: give the lengths as a list."


@dataclass(frozen=True)
class Panels:
    """Service times at the nodes of each panel with their weights, and atoms with their shares."""

    values: Array
    weights: Array
    atoms: Array
    shares: Array


def service_panels(coordinate: Coordinate, service_time: Callable[[Any], Any]) -> Panels:
    """Integrate over lengths; the panels of a rough service time or density are four times as short.

    Parameters
    ----------
    coordinate
        Coordinate of the lengths with their density.
    service_time
        Service time of a prompt of given length, increasing; takes an array [s].

    Returns
    -------
    Panels
        Panels in the order of lengths; the weights and shares add up to one.
    """
    widths, values, weights = _panels(coordinate, service_time, 0.0)
    rough = np.inf if coordinate.sharp else values[widths < _ROUGH * widths.max()].max(initial=0.0)
    if rough > 0:
        _, values, weights = _panels(coordinate, service_time, _NEAR * rough)
    return _with_atoms(values, weights / weights.sum())


def _panels(coordinate: Coordinate, service_time: Callable[[Any], Any], near: float) -> tuple[Array, Array, Array]:
    """Widths, service times and weights of the panels in order; those of times below `near` are short."""
    low, high = coordinate.edges[:-1], coordinate.edges[1:]
    kept: list[tuple[Array, Array, Array, Array]] = []
    mean = 0.0
    while len(low):
        half = (high - low)[:, np.newaxis] / 2
        x = low[:, np.newaxis] + half * (1.0 + GAUSS)
        weights = half * GAUSS_WEIGHTS * coordinate.density(x)
        values = checked_times(service_time(coordinate.length(x)), x.shape)
        mean = mean or float((weights * values).sum())
        done = _resolved(values, weights, mean, near) | (high - low <= 4e-16 * np.abs(high))
        kept.append((low[done], high[done] - low[done], values[done], weights[done]))
        middle = (low + high)[~done] / 2
        low, high = np.concatenate([low[~done], middle]), np.concatenate([middle, high[~done]])
        if len(low) > _MOST:
            raise DomainError(TOO_ROUGH)
    starts, widths, values, weights = (np.concatenate(parts) for parts in zip(*kept, strict=True))
    order = np.argsort(starts)
    return widths[order], values[order], weights[order]


def checked_times(times: Any, shape: tuple[int, ...]) -> Array:
    """Service times as an array, or the sentence that says what is wrong with them."""
    values = np.broadcast_to(np.asarray(times, dtype=float), shape)
    if not np.all((values >= 0) & (values < np.inf)):
        raise DomainError("A service time is a finite number that is not negative.")
    return values


def _resolved(values: Array, weights: Array, mean: float, near: float) -> NDArray[np.bool_]:
    top, mass = np.maximum(values.max(axis=1), _FLOOR * mean), weights.sum(axis=1)
    span = np.ptp(values, axis=1)
    smooth = np.abs(values @ _TO_LEGENDRE)[:, -3:].max(axis=1) <= _ROUNDING * top
    narrow = span <= np.where(top < near, _SPAN / 4, _SPAN) * top
    done: NDArray[np.bool_] = (smooth & narrow) | (mass <= _NOTHING)
    return done


def _with_atoms(values: Array, weights: Array) -> Panels:
    """Set apart the panels on which the service time is constant."""
    flat = np.ptp(values, axis=1) <= 1e-14 * values.max(axis=1)
    times, where = np.unique(values[flat].max(axis=1), return_inverse=True)
    shares = np.bincount(where, weights[flat].sum(axis=1), minlength=len(times)).astype(float)
    real = shares > 1e-12
    keep = ~flat
    for time in times[~real]:  # what is left of a kink, not an atom
        keep |= flat & (values.max(axis=1) == time)
    return Panels(values[keep], weights[keep], times[real], shares[real])
