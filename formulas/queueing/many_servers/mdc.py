r"""M/D/c: prompts of one length, one queue, c equal instances; exact, in units of the service time.

The same numbers hold for round robin over c instances with a queue each: when all prefills take the same time,
both start every prompt at the same moment (each instance sees every c-th arrival, :math:`E_c/D/1`).

Mean and probability of waiting come from one factorisation (:mod:`formulas.queueing.many_servers.ladder`), the
distribution from :mod:`formulas.queueing.many_servers.mdc_wait`. With one server all of it is M/D/1. A sweep of 200
utilizations with P50, P90 and P99 takes 12 ms for 8 servers and 40 ms for 256, the means alone 3 and 15 ms.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulas.bracketing import find_root
from formulas.closed_form import DomainError
from formulas.queueing.many_servers.ladder import Ladder, factorise
from formulas.queueing.many_servers.mdc_wait import Index, quantile, survival
from formulas.queueing.pollaczek_khinchine import UNSTABLE

__all__ = ["max_utilization", "mean_wait", "wait_probability", "wait_quantile", "wait_survival"]

Array = NDArray[np.float64]

MOST_SERVERS = 1024
_SMALLEST = 1e-300  # a survival that rounds to nothing, where its logarithm is compared

_LEVEL = "A percentile's level lies between 0 and 1."
_NEGATIVE = "The utilization cannot be negative."
_SERVERS = f"The number of instances is a whole number from 1 to {MOST_SERVERS}."
_LIMIT = "A limit on the wait cannot be negative or endless."


def mean_wait(servers: int, utilization: Any) -> Any:
    """Mean wait.

    Parameters
    ----------
    servers
        Instances that share the queue, 1 to 1024 [].
    utilization
        Share of the time that an instance is busy, in [0, 1) [].

    Returns
    -------
    float or ndarray
        Mean wait in units of the service time [], with a relative error below 1e-13 for up to 256 servers.
        NaN in an array where the queue is unstable.

    Raises
    ------
    DomainError
        For a number outside the domain.

    Examples
    --------
    >>> mean_wait(8, 0.8)
    0.1519538026
    """
    rho, scalar = _utilization(servers, utilization)
    return _answer(_by_row(rho, lambda inside: factorise(int(servers), inside).mean_wait), scalar)


def wait_probability(servers: int, utilization: Any) -> Any:
    """Probability that a prompt waits at all; see :func:`mean_wait`.

    Examples
    --------
    >>> wait_probability(8, 0.8)
    0.4337951187
    """
    rho, scalar = _utilization(servers, utilization)
    return _answer(_by_row(rho, lambda inside: factorise(int(servers), inside).wait_probability), scalar)


def wait_survival(t: Any, servers: int, utilization: Any) -> Any:
    """Probability that a prompt waits longer than `t`.

    Parameters
    ----------
    t
        Time, in units of the service time [].
    servers
        Instances that share the queue, 1 to 1024 [].
    utilization
        Share of the time that an instance is busy, in [0, 1) [].

    Returns
    -------
    float or ndarray
        Probability [], with a relative error below 1e-9 wherever it exceeds a millionth of the probability of
        waiting. NaN in an array where the queue is unstable.

    Examples
    --------
    >>> wait_survival(1.1695954587521224, 8, 0.8)
    0.01
    """
    rho, scalar = _utilization(servers, utilization)
    t = np.asarray(t, dtype=float)
    shape = np.broadcast_shapes(t.shape, rho.shape)
    times, rhos = (np.broadcast_to(x, shape).ravel() for x in (t, rho))
    value = np.full(times.shape, np.nan)
    inside = np.isfinite(rhos) & ~np.isnan(times)
    ladder, row = _ladder(servers, rhos[inside])
    value[inside] = survival(np.maximum(times[inside], 0.0), ladder, row)
    value[inside & (times < 0)] = 1.0
    return _answer(value.reshape(shape), scalar and not t.ndim)


def wait_quantile(level: Any, servers: int, utilization: Any) -> Any:
    r"""Wait that a share `level` of the prompts do not exceed.

    Parameters
    ----------
    level
        Share, in (0, 1): 0.99 for P99 [].
    servers
        Instances that share the queue, 1 to 1024 [].
    utilization
        Share of the time that an instance is busy, in [0, 1) [].

    Returns
    -------
    float or ndarray
        Wait in units of the service time [], 0 where a share `level` does not wait at all; relative error below
        1e-9, up to P99.99. NaN in an array outside the domain.

    Raises
    ------
    DomainError
        For a number outside the domain.

    Examples
    --------
    >>> wait_quantile(0.99, 8, 0.8)
    1.16959546
    >>> wait_quantile([0.5, 0.9, 0.99], 64, 0.95)
    array([0.02432054, 0.28613866, 0.63985724])
    """
    rho, scalar = _utilization(servers, utilization)
    level = np.asarray(level, dtype=float)
    inside = (level > 0) & (level < 1)
    if scalar and not level.ndim and not inside:
        raise DomainError(_LEVEL)
    shape = np.broadcast_shapes(level.shape, rho.shape)
    late, rhos = (np.broadcast_to(x, shape).ravel() for x in (np.where(inside, 1.0 - level, np.nan), rho))
    value = np.full(late.shape, np.nan)
    asked = np.isfinite(rhos) & np.isfinite(late)
    ladder, row = _ladder(servers, rhos[asked])
    value[asked] = quantile(late[asked], ladder, row)
    return _answer(value.reshape(shape), scalar and not level.ndim)


def max_utilization(wait_limit: Any, level: Any, servers: int) -> Any:
    """Largest utilization at which a share `level` of the prompts wait at most `wait_limit`.

    Parameters
    ----------
    wait_limit
        Wait in units of the service time, at least 0 [].
    level
        Share, in (0, 1) [].
    servers
        Instances that share the queue, 1 to 1024 [].

    Examples
    --------
    >>> max_utilization(1.0, 0.99, 8)
    0.7734
    """
    _check_servers(servers)
    limit, level = np.asarray(wait_limit, float), np.asarray(level, float)
    scalar = not (limit.ndim or level.ndim)
    inside = (level > 0) & (level < 1) & (limit >= 0) & (limit < np.inf)
    if scalar and not inside:
        raise DomainError(_LEVEL if limit >= 0 and limit < np.inf else _LIMIT)
    limit, late = np.broadcast_arrays(np.where(inside, limit, 0.0), np.where(inside, 1.0 - level, 0.5))
    times, shares = limit.ravel(), late.ravel()

    def excess(rho: Array) -> Array:
        ladder, row = _ladder(servers, rho)
        return np.asarray(np.log(np.maximum(survival(times, ladder, row), _SMALLEST) / shares))

    rho = find_root(excess, 0.5 * shares, np.full(shares.shape, 1.0 - 1e-15)).reshape(late.shape)
    return _answer(np.where(inside, rho, np.nan), scalar)


def _check_servers(servers: int) -> None:
    if not (float(servers).is_integer() and 1 <= servers <= MOST_SERVERS):
        raise DomainError(_SERVERS)


def _utilization(servers: int, utilization: Any) -> tuple[Array, bool]:
    """Return it as an array, NaN for an element outside the domain; for a number outside it, raise the sentence."""
    _check_servers(servers)
    rho = np.asarray(utilization, dtype=float)
    inside = (rho >= 0) & (rho < 1)
    if not rho.ndim and not inside:
        raise DomainError(UNSTABLE if rho >= 1 else _NEGATIVE)
    return np.where(inside, rho, np.nan), not rho.ndim


def _answer(value: Array, scalar: bool) -> Any:
    return float(value.reshape(-1)[0]) if scalar else value


def _by_row(rho: Array, function: Any) -> Array:
    value = np.full(rho.shape, np.nan)
    inside = np.isfinite(rho)
    value[inside] = function(rho[inside])
    return value


def _ladder(servers: int, rho: Array) -> tuple[Ladder, Index]:
    """Factorise once for each different utilization; return the row that belongs to each element, too."""
    different, row = np.unique(rho, return_inverse=True)
    return factorise(int(servers), different), row.reshape(-1)
