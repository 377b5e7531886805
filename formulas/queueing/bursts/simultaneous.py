r"""Prompts that come together: a burst on an idle pool, and batches at Poisson times.

The two are kept apart. A single burst of b requests has no steady state: what it waits is a matter of its size and of the
servers, and it is over once it is served. Batches that keep coming (agents that fan out, documents cut in pieces) do have
one: the first of a batch waits like a customer whose service is the whole batch's, and the others wait for those
before them too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp

from formulas.closed_form import ClosedForm, Condition, DomainError, Step, at_most, equation, less, variable
from formulas.queueing import md1
from formulas.queueing import pollaczek_khinchine as pk
from formulas.queueing.mg1_distribution import delay_quantile, delay_survival
from formulas.queueing.service import ListedLengths, ServiceLaw, service_law

BURST = variable("burst", "b", "", "requests that come at once")
SERVERS = variable("servers", "c", "", "instances that serve one prompt at a time")
ROUNDS = variable("full_rounds", "q", "", "rounds in which every instance serves one of them", nonnegative=True)
BATCH_RATE = variable("batch_rate", r"\nu", "1/s", "batches per second")
BATCH_MEAN = variable("batch_mean", "E[X]", "", "mean number of prompts in a batch")
BATCH_SECOND = variable("batch_second_moment", "E[X^{2}]", "", "second moment of the number of prompts in a batch")
DRAIN = variable("drain_time", "T_{b}", "s", "mean time from a burst on an idle server until it is idle again")
SERVICE_VARIANCE = variable(
    "service_variance", r"\mathrm{Var}[S]", "s^2", "variance of a prompt's service time", nonnegative=True
)

_B, _C, _FULL, _D, _R = (v.symbol for v in (BURST, SERVERS, ROUNDS, md1.SERVICE, pk.RATE))
_NU, _X1, _X2, _S, _V = (v.symbol for v in (BATCH_RATE, BATCH_MEAN, BATCH_SECOND, pk.MEAN_SERVICE, SERVICE_VARIANCE))
_ONE = Condition(at_most(1, _B), "A burst has at least one request.")


def _burst_steps() -> tuple[Step, ...]:
    k = sp.Symbol("k", integer=True, positive=True)
    waits = sp.Sum(_C * _D * (k - 1), (k, 1, _FULL)) + (_B - _FULL * _C) * _FULL * _D
    return (
        Step("The requests are served c at a time. Those of the k-th round wait for k - 1 services, and there are q "
             "full rounds: all wait together for", waits),
        Step("Added up, over the number of requests.", equation(pk.MEAN.symbol, BURST_MEAN_WAIT.expression)),
    )  # fmt: skip


def _drain_steps() -> tuple[Step, ...]:
    drain = DRAIN.symbol
    return (
        Step("Its prompts, and those that come until all are served, are served one by one.",
             equation(drain, _B * _D + _R * _D * drain)),
        Step("Solved.", equation(drain, BURST_DRAIN.expression)),
    )  # fmt: skip


def _batch_steps() -> tuple[Step, ...]:
    first = _NU * (_X1 * _V + _X2 * _S**2) / 2 / (1 - _NU * _X1 * _S)
    ahead = (_X2 / _X1 - 1) / 2
    return (
        *pk.MEAN_WAIT.steps,
        Step("The service of a batch as a whole has the second moment", _X1 * _V + _X2 * _S**2),
        Step("so that the first of a batch waits", first),
        Step("A prompt taken at random sits in a batch in proportion to its size, anywhere: ahead of it are", ahead),
        Step("Each of those takes a service.", equation(pk.MEAN.symbol, BATCH_MEAN_WAIT.expression)),
    )


BURST_MEAN_WAIT = ClosedForm(
    "mean wait in a burst on an idle pool",
    pk.MEAN,
    _FULL * _D * (1 - _C * (_FULL + 1) / 2 / _B),
    (BURST, SERVERS, ROUNDS, md1.SERVICE),
    "Counting rounds",
    (_ONE, Condition(at_most(1, _C), "A pool has at least one instance.")),
    _burst_steps,
)
"""Equal prompts, first come first served; (b - 1) D / 2 with a single instance [s]; see :func:`burst_mean_wait`."""

BURST_DRAIN = ClosedForm(
    "time until a burst is forgotten",
    DRAIN,
    _B * _D / (1 - _R * _D),
    (BURST, pk.RATE, md1.SERVICE),
    "Mean busy period that begins with b prompts; Takács 1962",
    (_ONE, Condition(less(_R * _D, 1), pk.UNSTABLE)),
    _drain_steps,
)

BATCH_MEAN_WAIT = ClosedForm(
    "mean wait with batches at Poisson times",
    pk.MEAN,
    _NU * (_X1 * _V + _X2 * _S**2) / 2 / (1 - _NU * _X1 * _S) + (_X2 / _X1 - 1) * _S / 2,
    (BATCH_RATE, BATCH_MEAN, BATCH_SECOND, pk.MEAN_SERVICE, SERVICE_VARIANCE),
    "Burke, Operations Research 23 (1975) 830; Pollaczek-Khinchine for the batches",
    (Condition(less(_NU * _X1 * _S, 1), pk.UNSTABLE), Condition(at_most(_X1**2, _X2), "A second moment is at least the square of the mean.")),
    _batch_steps,
    (pk.QUEUED, pk.RATE, pk.SECOND_MOMENT),
)  # fmt: skip


def burst_mean_wait(burst: Any, servers: Any, service_time: Any) -> Any:
    """Mean wait in a burst on an idle pool.

    Parameters
    ----------
    burst
        Requests that come at once [].
    servers
        Instances [].
    service_time
        Service time of a prompt [s].

    Examples
    --------
    >>> burst_mean_wait(9, 1, 0.05), burst_mean_wait(9, 4, 0.05)
    (0.2, 0.0333333)
    """
    full = np.floor(np.asarray(burst, float) / np.maximum(servers, 1.0))
    return BURST_MEAN_WAIT(burst=burst, servers=servers, full_rounds=full, service_time=service_time)


def burst_quantile(level: Any, burst: Any, servers: Any, service_time: Any) -> Any:
    """Time to first token that a share `level` of a burst on an idle pool do not exceed.

    Parameters
    ----------
    level
        Share, in (0, 1] [].
    burst
        Requests that come at once [].
    servers
        Instances [].
    service_time
        Service time of a prompt [s].

    Examples
    --------
    >>> burst_quantile([0.5, 0.9, 1.0], 10, 2, 0.05)
    array([0.15, 0.25, 0.25])
    """
    within = np.ceil(np.asarray(level, float) * burst * (1.0 - 1e-12))
    if not (np.all(within >= 1) and np.all(np.asarray(level) <= 1) and np.all(np.asarray(servers) >= 1)):
        raise DomainError("A burst has at least one request, a pool one instance, and a level lies between 0 and 1.")
    time = np.ceil(within / servers) * service_time
    return time if np.ndim(time) else float(time)


def largest_burst(limit: float, level: float, servers: int, service_time: float) -> int:
    """Most requests at once on an idle pool of which a share `level` have their first token within a limit.

    Parameters
    ----------
    limit
        Of the time to first token [s].
    level
        Share, in (0, 1] [].
    servers
        Instances [].
    service_time
        Service time of a prompt [s].

    Returns
    -------
    int
        0 if not even one request does [].

    Examples
    --------
    >>> largest_burst(0.2, 0.9, 4, 0.05), largest_burst(0.2, 1.0, 4, 0.05), largest_burst(0.04, 0.9, 4, 0.05)
    (17, 16, 0)
    """
    if not (0 < level <= 1 and servers >= 1 and service_time > 0):
        raise DomainError("A burst has a level between 0 and 1, a pool one instance, and a service takes a time.")
    within = servers * np.floor(limit / service_time * (1.0 + 1e-12))
    return int(np.floor(within / level * (1.0 + 1e-12)))


def batch_wait_survival(t: Any, batch_rate: Any, sizes: ListedLengths, service_time: float) -> Any:
    """Probability that a prompt waits longer than `t`, in batches of equal prompts at Poisson times.

    Parameters
    ----------
    t
        Time [s].
    batch_rate
        Batches per second [1/s].
    sizes
        Numbers of prompts in a batch, with their shares.
    service_time
        Service time of a prompt [s].

    Examples
    --------
    >>> batch_wait_survival([0.0, 3.0], 0.125, ListedLengths(4), 1.0)
    array([0.875     , 0.39097934])
    """
    return delay_survival(t, batch_rate, *_laws(sizes, service_time))


def batch_wait_quantile(level: Any, batch_rate: Any, sizes: ListedLengths, service_time: float) -> Any:
    """Wait that a share `level` of the prompts do not exceed [s].

    Parameters
    ----------
    level
        Share, in (0, 1) [].
    batch_rate, sizes, service_time
        As in :func:`batch_wait_survival`.

    Examples
    --------
    >>> batch_wait_quantile(0.9, 0.125, ListedLengths(4), 1.0)
    7.69314356
    """
    return delay_quantile(level, batch_rate, *_laws(sizes, service_time))


def _laws(sizes: ListedLengths, service_time: float) -> tuple[ServiceLaw, ServiceLaw | None]:
    """Law of a batch's service, and of that of the prompts ahead of a random one in its batch, if there can be any."""
    if np.any(sizes.lengths % 1) or np.any(sizes.lengths < 1):
        raise DomainError("A batch holds a whole number of prompts, at least one.")
    ahead = np.arange(int(sizes.lengths[-1]))
    larger = np.array([float(sizes.shares[sizes.lengths > n].sum()) for n in ahead])

    def time(count: Any) -> Any:
        return service_time * count

    return service_law(sizes, time), service_law(ListedLengths(ahead, larger), time) if len(ahead) > 1 else None
