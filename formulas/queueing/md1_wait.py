r"""Exact distribution of the wait in M/D/1, in units of the service time.

Two exact forms share the work, each where float64 serves it best:

* up to :math:`t = 5`, Erlang's finite sum (1909),
  :math:`P(W \le t) = (1-\rho) \sum_{k=0}^{\lfloor t \rfloor} e^{\rho(t-k)} (-\rho(t-k))^k / k!`.
  Its terms alternate and grow like :math:`e^{\rho t}`: at t = 5 the error is 1e-14, at t = 30 it is 0.1;
* beyond, the expansion over the poles of the Pollaczek-Khinchine transform,
  :math:`P(W > t) = \sum_{k \ne 0} \frac{1-\rho}{u_k-1} e^{-(u_k-\rho)t}`, with :math:`u_k` from
  :mod:`formulas.queueing.roots`. Its terms fall like :math:`(\rho/2\pi k)^t`, so a few are enough.

The wait has an atom: it is zero with probability :math:`1-\rho`. Its distribution has a kink at every
multiple of the service time, and its density a jump at the first: they are real.
"""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulas.bracketing import find_root
from formulas.closed_form import DomainError
from formulas.queueing.pollaczek_khinchine import UNSTABLE
from formulas.queueing.roots import complex_roots, conjugate_excess

Array = NDArray[np.float64]

_SWITCH = 5.0  # service times: Erlang's sum below, poles above
_ALONE = 20.0  # service times: beyond it, at half load and more, the real pole alone is exact to 1e-13
_PAIRS = 15
_SMALLEST = 1e-300  # a survival that rounds below zero, where its logarithm is compared
_ATOM = 1e-15  # a level within this of 1 - rho is the atom's: 1 - 0.3 is not 0.7 in binary

_LEVEL = "A percentile's level lies between 0 and 1."
_NEGATIVE = "The utilization cannot be negative."


def wait_survival(t: Any, utilization: Any) -> Any:
    """Probability that a prompt waits longer than `t`.

    Parameters
    ----------
    t
        Time, in units of the service time [].
    utilization
        Utilization, in [0, 1) [].

    Returns
    -------
    float or ndarray
        Probability [], with an absolute error below 1e-12, and a relative one below
        1e-9 wherever it exceeds 1e-6.
        NaN in an array where the queue is unstable.

    Raises
    ------
    DomainError
        For a number outside the domain.

    Examples
    --------
    >>> wait_survival(4, 0.56078)
    0.01000
    """
    t, rho, scalar = _given(t, utilization)
    return _answer(_survival(t, rho), scalar)


def wait_cdf(t: Any, utilization: Any) -> Any:
    """Probability that a prompt waits at most `t`; see :func:`wait_survival`.

    Examples
    --------
    >>> wait_cdf(0, 0.8)
    0.2
    """
    t, rho, scalar = _given(t, utilization)
    early = t <= _SWITCH
    cdf = np.where(early, _erlang_cdf(np.clip(t, 0.0, _SWITCH), rho), 1.0 - _survival(t, rho))
    return _answer(np.where(t < 0, 0.0 * rho, cdf), scalar)


def wait_density(t: Any, utilization: Any) -> Any:
    r"""Density of the wait at `t` > 0, per service time; the atom :math:`1-\rho` at 0 stands apart.

    Notes
    -----
    Takács' equation for the work found, with equal service times: :math:`f(t) = \rho\,(F(t) - F(t-1))`.

    Examples
    --------
    >>> wait_density(0.5, 0.8)
    0.23869195
    """
    t, rho, scalar = _given(t, utilization)
    return _answer(np.where(t <= 0, 0.0 * rho, rho * (_survival(t - 1.0, rho) - _survival(t, rho))), scalar)


def wait_quantile(level: Any, utilization: Any) -> Any:
    r"""Wait that a share `level` of the prompts do not exceed.

    Parameters
    ----------
    level
        Share, in (0, 1): 0.99 for P99 [].
    utilization
        Utilization, in [0, 1) [].

    Returns
    -------
    float or ndarray
        Wait in units of the service time [], 0 where `level` :math:`\le 1-\rho`; relative error below 1e-9.
        NaN in an array outside the domain.

    Raises
    ------
    DomainError
        For a number outside the domain.

    Notes
    -----
    For :math:`p \le (1-\rho)e^\rho` the quantile is :math:`\ln(p/(1-\rho))/\rho`. Beyond, Newton's method
    on the logarithm of the survival, which is nearly straight, from the one-term tail.

    Examples
    --------
    >>> wait_quantile(0.99, 0.9)
    21.898237
    >>> wait_quantile(0.99, np.array([0.3, 0.8]))
    array([ 1.8908734 , 10.35588679])
    """
    level, rho, scalar = _given(level, utilization, level=True)
    shape = np.broadcast_shapes(level.shape, rho.shape)
    late = 1.0 - level
    with np.errstate(all="ignore"):
        above_atom = level - (1.0 - rho)
        t = np.where(above_atom <= _ATOM, 0.0 * rho, np.log1p(above_atom / (1.0 - rho)) / rho)
        excess = conjugate_excess(rho)
        tail = np.log((1.0 - rho) / excess / late) / (excess + (1.0 - rho))
        by_poles = (t > 1.0) & (late < 1.0 - _erlang_cdf(np.full(rho.shape, _SWITCH), rho))
        by_sum = (t > 1.0) & ~by_poles
        t[by_poles] = tail[by_poles]
        rho_each, late_each = np.broadcast_to(rho, shape), np.broadcast_to(late, shape)
        t[by_sum] = _quantile_by_sum(tail[by_sum], rho_each[by_sum], late_each[by_sum])
        near = by_poles & (tail < _ALONE)
        t[near] = _quantile_by_poles(tail[near], rho_each[near])
    return _answer(t, scalar)


def max_utilization(wait_limit: Any, level: Any) -> Any:
    """Largest utilization at which a share `level` of the prompts wait at most `wait_limit`.

    Parameters
    ----------
    wait_limit
        Wait in units of the service time, at least 0 [].
    level
        Share, in (0, 1) [].

    Examples
    --------
    >>> max_utilization(4, 0.99)
    0.56078
    """
    limit, level = np.asarray(wait_limit, float), np.asarray(level, float)
    scalar = not (limit.ndim or level.ndim)
    inside = (level > 0) & (level < 1) & (limit >= 0) & (limit < np.inf)
    if scalar and not inside:
        raise DomainError(_LEVEL if limit >= 0 else "A limit on the wait cannot be negative or endless.")
    limit, late = np.broadcast_arrays(np.where(inside, limit, 0.0), np.where(inside, 1.0 - level, 0.5))
    with np.errstate(all="ignore"):
        rho = find_root(
            lambda x: np.log(np.maximum(_survival(limit, x), _SMALLEST) / late),
            0.5 * late,
            np.full(late.shape, 1.0 - 1e-15),
        )
    return _answer(np.where(inside, rho, np.nan), scalar)


def _given(x: Any, utilization: Any, *, level: bool = False) -> tuple[Array, Array, bool]:
    """Both as arrays, NaN for an element outside the domain; for two numbers outside it, the sentence."""
    x, rho = np.asarray(x, dtype=float), np.asarray(utilization, dtype=float)
    problems = ((rho >= 1, UNSTABLE), (~(rho >= 0), _NEGATIVE), (level & ~((x > 0) & (x < 1)), _LEVEL))
    if not (x.ndim or rho.ndim):
        for broken, sentence in problems:
            if broken:
                raise DomainError(sentence)
        return x[np.newaxis], rho[np.newaxis], True
    x = np.where(problems[2][0], np.nan, x)
    return x, np.where((rho >= 0) & (rho < 1), rho, np.nan), False


def _answer(value: Array, scalar: bool) -> Any:
    return float(value.reshape(-1)[0]) if scalar else value


def _survival(t: Array, rho: Array) -> Array:
    """P(W > t) for arrays; NaN where the utilization is."""
    t, rho = np.broadcast_arrays(t, rho)
    with np.errstate(all="ignore"):
        first = -np.expm1(rho * np.minimum(t, 1.0) + np.log1p(-rho))
        value = np.where(t < 0, 1.0 + 0.0 * rho, first)
        middle, late = (t >= 1.0) & (t <= _SWITCH), t > _SWITCH
        value[middle] = 1.0 - _erlang_cdf(t[middle], rho[middle])
        value[late] = _pole_survival(t[late], rho[late])[0]
    return value


def _erlang_cdf(t: Array, rho: Array) -> Array:
    """Erlang's sum, for 0 <= t <= 5."""
    total = np.ones(np.broadcast_shapes(t.shape, rho.shape))
    step = -rho * np.exp(-rho)
    for k in range(1, int(_SWITCH)):
        base = term = step * np.maximum(t - k, 0.0)
        for _ in range(k - 1):  # several times faster than a power
            term = term * base
        total += term / factorial(k)
    return (1.0 - rho) * np.exp(rho * t) * total


def _pole_survival(t: Array, rho: Array) -> tuple[Array, Array]:
    """Survival and density by the poles, for t >= 5 or so and vectors of one length."""
    excess = conjugate_excess(rho)
    rate = excess + (1.0 - rho)
    survival = (1.0 - rho) / excess * np.exp(-rate * t)
    density = rate * survival
    near = (t < _ALONE) | (rho < 0.5)
    if near.any():
        roots = _roots(rho[near])
        rates = roots - rho[near, np.newaxis]
        terms = 2.0 * (1.0 - rho[near, np.newaxis]) / (roots - 1.0) * np.exp(-rates * t[near, np.newaxis])
        survival[near] += terms.real.sum(axis=-1)
        density[near] += (rates * terms).real.sum(axis=-1)
    return survival, density


def _roots(rho: Array) -> NDArray[np.complex128]:
    """Complex roots for each element, computed once for each different utilization."""
    different, index = np.unique(rho, return_inverse=True)
    return complex_roots(different, _PAIRS)[index]


def _quantile_by_sum(t: Array, rho: Array, late: Array) -> Array:
    """Newton's method on log P(W > t) between 1 and the switch."""
    for _ in range(6):
        t = np.clip(t, 1.0, _SWITCH)
        cdf = _erlang_cdf(t, rho)
        density = rho * (cdf - _erlang_cdf(t - 1.0, rho))
        t = t + (1.0 - cdf) / density * np.log((1.0 - cdf) / late)
    return t


def _quantile_by_poles(t: Array, rho: Array) -> Array:
    """Newton's method on log P(W > t) from the one-term tail, which is off by less than 1e-4."""
    excess, roots = conjugate_excess(rho)[:, np.newaxis], _roots(rho)
    rates = roots - rho[:, np.newaxis]
    weights = 2.0 * excess / (roots - 1.0)
    excess, rate = excess[:, 0], excess[:, 0] + (1.0 - rho)
    start = t
    for _ in range(2):
        terms = weights * np.exp((rate[:, np.newaxis] - rates) * t[:, np.newaxis])
        ratio = 1.0 + terms.real.sum(axis=-1)
        slope = rate - ((rate[:, np.newaxis] - rates) * terms).real.sum(axis=-1) / ratio
        t = t + (np.log(ratio) - rate * (t - start)) / slope
    return t
