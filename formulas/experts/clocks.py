r"""How often a token chooses each expert, or each rank, where experts are not equally popular.

Each expert has a popularity w, and a token chooses k different ones: the first by popularity, the next by popularity
among the rest, and so on. That is the law of the k largest of :math:`\log w_i` plus Gumbel noise, and of the k
earliest of exponential clocks with the popularities as rates.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from formulas.closed_form import DomainError

Array = NDArray[np.float64]

_FIRST_NODES, _BLOCK, _HALVINGS = 32, 64, 8
_LEFT, _RIGHT = -4.2, 4.6  # where the integrand has fallen below rounding
_LARGEST_RATIO = 1e15
_TOO_DIFFERENT = "Popularities may differ by 15 orders of magnitude, not by more."
_CLOSE = 1e-7  # of two rules, the second with twice the nodes: its own error is the square


def inclusion_probabilities(weights: ArrayLike, experts_per_token: int) -> Array:
    """Probability that a token chooses each expert, k different ones by popularity.

    Parameters
    ----------
    weights
        Popularity of each expert, positive; only ratios count [].
    experts_per_token
        k, from 1 to the number of experts [].

    Returns
    -------
    ndarray
        Probabilities, in the order of the weights; they add up to k [].

    Raises
    ------
    DomainError
        If a popularity is not positive, or if they differ by more than 15 orders of magnitude.

    Notes
    -----
    Exact to 1e-13; see :func:`visit_probabilities`, of which this is the case of one expert in each group. Takes
    5 to 30 ms for 128 to 256 experts, 0.1 to 0.25 s for 896.

    Examples
    --------
    >>> inclusion_probabilities([3, 2, 1], 2)
    array([0.85      , 0.73333333, 0.41666667])
    """
    popularity = checked_popularity(weights, experts_per_token)
    if np.ptp(popularity) == 0:
        return np.full(popularity.size, experts_per_token / popularity.size)
    return visit_probabilities(popularity, experts_per_token, np.arange(popularity.size))


def visit_probabilities(weights: ArrayLike, experts_per_token: int, group: ArrayLike) -> Array:
    r"""Probability that a token chooses at least one expert of each group, as of those on one rank.

    Parameters
    ----------
    weights, experts_per_token
        As in :func:`inclusion_probabilities`.
    group
        Group of each expert, from 0 up [].

    Returns
    -------
    ndarray
        Probability for each group [].

    Notes
    -----
    Exact. Expert i has a clock that rings after an exponential time of rate :math:`w_i`; a token chooses the k
    earliest. A group's first ring has the rate of its sum, W, and is among them if fewer than k others
    ring before it:

    .. math:: p = \int_0^\infty W e^{-W x}\, P\Big(\sum_{j \notin G} [T_j < x] \le k - 1\Big)\, dx.

    The count of others is Poisson-binomial, built up from both ends, so that all terms are positive. The
    trapezoidal rule in :math:`u`, where :math:`\log x = u - e^{-u}` plus a constant, converges exponentially.

    Examples
    --------
    >>> visit_probabilities([1, 1, 1, 1], 2, [0, 0, 1, 1])
    array([0.83333333, 0.83333333])
    """
    popularity, groups = checked_popularity(weights, experts_per_token), np.asarray(group)
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(groups.max() + 2))
    if groups.size != popularity.size or np.diff(starts).min() < 1:
        raise ValueError("Every expert has a group, and every group an expert.")
    if experts_per_token == popularity.size:
        return np.diff(starts).astype(float).clip(max=1.0)
    return _settled(popularity[order], experts_per_token, starts).clip(max=1.0)


def checked_popularity(weights: ArrayLike, experts_per_token: int) -> Array:
    """Return popularities that add up to 1.

    Examples
    --------
    >>> checked_popularity([3, 1], 1)
    array([0.75, 0.25])
    """
    popularity = np.asarray(weights, dtype=float)
    if not (np.isfinite(popularity).all() and (popularity > 0).all()):
        raise DomainError("Popularities are positive numbers.")
    if popularity.max() > _LARGEST_RATIO * popularity.min():
        raise DomainError(_TOO_DIFFERENT)
    if not 1 <= experts_per_token <= popularity.size:
        raise DomainError("A token is routed to at least one expert, and to no more than there are.")
    return np.asarray(popularity / popularity.sum())


def sign_change(function: Callable[[float], float], low: float) -> float:
    """Return a point above `low` where a function passes zero; `low` itself if it is zero to rounding everywhere.

    Examples
    --------
    >>> sign_change(lambda x: x**2 - 9, 1.0)
    3.0
    """
    from scipy.optimize import brentq  # slow to import, and needed by few

    start = function(low)
    for high in low * 2.0 ** np.arange(1, 100):
        if function(high) * start <= 0:
            return float(brentq(function, low, high, xtol=1e-14, rtol=1e-14))
    return low


def _settled(popularity: Array, chosen: int, starts: NDArray[np.intp]) -> Array:
    """Trapezoidal rule with ever more nodes, each time at the middles only; its error squares when they double."""
    center = _typical_time(popularity, chosen)
    step = (_RIGHT - _LEFT) / _FIRST_NODES
    value = step * _integral(popularity, chosen, starts, center, np.arange(_LEFT, _RIGHT, step))
    for _ in range(_HALVINGS):
        middles = np.arange(_LEFT + step / 2, _RIGHT, step)
        better = value / 2 + step / 2 * _integral(popularity, chosen, starts, center, middles)
        if np.abs(better - value).max() < _CLOSE:
            return np.asarray(better)
        value, step = better, step / 2
    raise DomainError(_TOO_DIFFERENT)


def _typical_time(popularity: Array, chosen: int) -> float:
    """Logarithm of the time by which `chosen` clocks have rung on average."""
    # 1 - exp(-w x) is at most w x: by `chosen`, no more than that many have rung on average.
    return float(np.log(sign_change(lambda x: float(-np.expm1(-popularity * x).sum()) - chosen, float(chosen))))


def _integral(popularity: Array, chosen: int, starts: NDArray[np.intp], center: float, nodes: Array) -> Array:
    blocks = (nodes[i : i + _BLOCK] for i in range(0, nodes.size, _BLOCK))
    return np.asarray(sum(_block(popularity, chosen, starts, center, block) for block in blocks))


def _block(popularity: Array, chosen: int, starts: NDArray[np.intp], center: float, u: Array) -> Array:
    x = np.exp(center + 1.0 + u - np.exp(-u))
    weight = x * (1.0 + np.exp(-u))  # of dx in du
    silent = np.exp(-np.outer(popularity, x))
    groups = np.split(silent, starts[1:-1])
    rate = np.add.reduceat(popularity, starts[:-1])[:, np.newaxis]
    return np.asarray((rate * np.exp(-rate * x) * _fewer_others(groups, chosen)) @ weight)


def _fewer_others(groups: list[Array], chosen: int) -> Array:
    """Probability, for each group and time, that fewer than `chosen` of the other groups' members have rung."""
    before = np.empty((len(groups), chosen, groups[0].shape[1]))  # law of how many have rung, cut at `chosen`
    law = _none_rung(before.shape[1:])
    for place, group in enumerate(groups):
        before[place] = law
        law = _with(law, group)
    few = np.empty((len(groups), groups[0].shape[1]))
    law = _none_rung(before.shape[1:])
    for place in range(len(groups) - 1, -1, -1):
        few[place] = np.einsum("cx,cx->x", before[place], np.cumsum(law, axis=0)[::-1])
        law = _with(law, groups[place])
    return few


def _none_rung(shape: tuple[int, ...]) -> Array:
    law = np.zeros(shape)
    law[0] = 1.0
    return law


def _with(law: Array, members: Array) -> Array:
    """Law of the count with further clocks, given the probability that each is silent."""
    law = law.copy()
    for silent in members:
        rings = law[:-1] * (1.0 - silent)
        law *= silent
        law[1:] += rings
    return law
