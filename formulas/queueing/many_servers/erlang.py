r"""M/M/c: Erlang's formulas for c servers with one queue, exact for exponential service times.

They are the yardstick of the approximations for other service times (:mod:`formulas.queueing.many_servers.mgc`).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import sympy as sp

from formulas.closed_form import ClosedForm, Condition, DomainError, Step, at_most, equation, less, variable
from formulas.queueing import pollaczek_khinchine as pk

RATE, MEAN_SERVICE, RHO, MEAN = pk.RATE, pk.MEAN_SERVICE, pk.RHO, pk.MEAN
SERVERS = variable("servers", "c", "", "instances that share the prompts")
DELAYED = variable("wait_probability", "C", "", "probability that a prompt waits", nonnegative=True)
LEVEL = variable("level", "p", "", "share of prompts, 0.99 for P99")
QUANTILE = variable("wait_quantile", "t_{p}", "s", "wait that a share p of the prompts do not exceed")

_R, _S, _C, _P, _RHO = RATE.symbol, MEAN_SERVICE.symbol, DELAYED.symbol, LEVEL.symbol, RHO.symbol
_c = SERVERS.symbol
_STABLE = Condition(less(_RHO, 1), pk.UNSTABLE)
_ERLANG = "Erlang 1917; Kleinrock, Queueing Systems I (1975), section 3.5"
_log = partial(sp.log, evaluate=False)  # deciding what it could simplify to takes SymPy a while


def _mean_wait_steps() -> tuple[Step, ...]:
    drain = _c / _S - _R
    return (
        Step("While all c servers are busy, prompts leave at c / E[S]; R of them arrive.", drain),
        Step("So who waits does so for an exponential time with that rate.", equation(MEAN.symbol, _C / drain)),
        Step("With ρ = R E[S] / c.", equation(MEAN.symbol, MMC_MEAN_WAIT.expression)),
    )


def _quantile_steps() -> tuple[Step, ...]:
    t = QUANTILE.symbol
    tail = equation(_C * sp.exp(-_c * (1 - _RHO) * t / _S), 1 - _P)
    return (
        Step("The wait of those who wait is exponential with mean E[S] / (c (1 - ρ)); set to the share later.", tail),
        Step("Solved for the wait.", equation(t, MMC_QUANTILE.expression)),
    )


ROUTED_UTILIZATION = ClosedForm(
    "utilization of each instance",
    RHO,
    _R * _S / _c,
    (RATE, MEAN_SERVICE, SERVERS),
    "Little's law, applied to the instances",
)

MMC_MEAN_WAIT = ClosedForm(
    "mean wait of M/M/c",
    MEAN,
    _C * _S / _c / (1 - _RHO),
    (DELAYED, SERVERS, RHO, MEAN_SERVICE),
    _ERLANG,
    (_STABLE,),
    _mean_wait_steps,
    (RATE,),
)

MMC_QUANTILE = ClosedForm(
    "percentile of the wait of M/M/c",
    QUANTILE,
    _S * _log(_C / (1 - _P)) / _c / (1 - _RHO),
    (LEVEL, DELAYED, SERVERS, RHO, MEAN_SERVICE),
    _ERLANG,
    (
        _STABLE,
        Condition(less(_P, 1), "A percentile's level lies below 1: the wait has no upper limit."),
        Condition(at_most(1 - _P, _C), "A share 1 - C of the prompts do not wait: this percentile is zero."),
    ),
    _quantile_steps,
)


def erlang_b(servers: int, load: Any) -> Any:
    """Probability that a prompt is turned away by c servers without a queue (Erlang B).

    Parameters
    ----------
    servers
        Servers, at least 1 [].
    load
        Arrival rate times mean service time, at least 0 [].

    Notes
    -----
    :math:`B_k = a B_{k-1} / (k + a B_{k-1})` from :math:`B_0 = 1`: no factorials, no subtraction.

    Examples
    --------
    >>> erlang_b(8, 6.4)
    0.14439389
    """
    if not (float(servers).is_integer() and servers >= 1):
        raise DomainError("The number of instances is a whole number from 1.")
    load = np.asarray(load, dtype=float)
    if np.any(load < 0):
        raise DomainError("The load cannot be negative.")
    blocked = np.ones(load.shape)
    for k in range(1, int(servers) + 1):
        blocked = load * blocked / (k + load * blocked)
    return blocked if blocked.ndim else float(blocked)


def erlang_c(servers: int, utilization: Any) -> Any:
    """Probability that a prompt waits for one of c servers with a queue (Erlang C).

    Parameters
    ----------
    servers
        Servers, at least 1 [].
    utilization
        Share of the time that each is busy, in [0, 1) []. NaN in an array outside the domain.

    Raises
    ------
    DomainError
        For a number outside the domain.

    Examples
    --------
    >>> erlang_c(8, 0.8)
    0.45764493
    """
    rho = np.asarray(utilization, dtype=float)
    if not rho.ndim and not 0 <= rho < 1:
        raise DomainError(pk.UNSTABLE if rho >= 1 else "The utilization cannot be negative.")
    inside = (rho >= 0) & (rho < 1)
    rho = np.where(inside, rho, 0.5)
    blocked = erlang_b(servers, servers * rho)
    value = np.where(inside, blocked / (1.0 - rho * (1.0 - blocked)), np.nan)
    return value if value.ndim else float(value)
