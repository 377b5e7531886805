r"""Who goes first: classes of prompts, the shortest first, and what a very long one does to those behind it.

A prompt in service is not interrupted. Under any such order, all prompts wait for what is left of the one in service,
:math:`W_0 = R\,E[S^2]/2` on average, and for the queue ahead of them. First come first served makes all wait alike. Serving the
shortest first lowers the mean, at the cost of the longest: at utilization 0.8 and log-normal prompts with a
coefficient of variation of 1 the mean wait falls from 4.0 to 1.9 services, while the P99 of the longest tenth of the prompts
goes from 24 to 63. Where the arrivals are more than the server can take, the first classes still have a steady state.

Equal prompts keep the order of their arrival. Percentiles have no closed form; :mod:`formulas.montecarlo.priority`
simulates them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from formulas.closed_form import ClosedForm, Condition, DomainError, Step, at_most, equation, less, variable
from formulas.queueing import pollaczek_khinchine as pk
from formulas.queueing.mg1_distribution import NEGATIVE
from formulas.queueing.service.law import ServiceLaw

Array = NDArray[np.float64]

RESIDUAL = variable("residual_work", "W_{0}", "s", "mean work left of the prompt in service")
LOAD_BEFORE = variable("load_before", r"\sigma_{-}", "", "utilization by prompts that go before", nonnegative=True)
LOAD_WITH = variable(
    "load_with", r"\sigma", "", "utilization by those and by prompts of the same class", nonnegative=True
)
LONG = variable("long_service", "x", "s", "service time of a very long prompt")
EXTRA = variable("extra_wait", r"\Delta W", "s", "mean extra wait of a prompt that a long one delays")
TOTAL = variable("total_extra_wait", r"\Sigma \Delta W", "s", "extra waiting of all prompts that a long one delays")
AFFECTED = variable("affected", "N", "", "prompts that a long one delays")

_W0, _BEFORE, _WITH, _X, _W, _R, _RHO = (
    v.symbol for v in (RESIDUAL, LOAD_BEFORE, LOAD_WITH, LONG, pk.MEAN, pk.RATE, pk.RHO)
)
_STABLE = (Condition(less(_RHO, 1), pk.UNSTABLE),)


def _cobham_steps() -> tuple[Step, ...]:
    earlier = sp.Symbol("W_b", positive=True)
    return (
        Step("A prompt waits for the rest of the one in service, for those queued of its class and before, and for those "
             "of the classes before that come while it waits. By Little's law the queues bring",
             equation(_W, _W0 + _BEFORE * earlier + (_WITH - _BEFORE) * _W + _BEFORE * _W)),
        Step("For the classes before, taken as one, the same says", equation(earlier, _W0 + _BEFORE * earlier)),
        Step("Put in, and solved for the wait.", equation(_W, COBHAM_WAIT.expression)),
    )  # fmt: skip


def _convoy_steps() -> tuple[Step, ...]:
    work, area = sp.symbols("v A", positive=True)
    return (
        Step("From work v on, the work present until the server is idle adds up, over time and on average, to",
             work**2 / 2 / (1 - _RHO) + _W * work / (1 - _RHO)),
        Step("A long prompt raises v by x, and the time until the server is idle by x / (1 - ρ), in which there would "
             "have been E[W] on average. Beyond that it adds, with v = E[W] on average before it,",
             equation(area, sp.Add(sp.Mul(_X**2 + 2 * _X * _W, 1 / (2 * (1 - _RHO)), evaluate=False)))),
        Step("Prompts come at rate R, and each waits for the work it finds.",
             equation(TOTAL.symbol, CONVOY_TOTAL.expression)),
    )  # fmt: skip


COBHAM_WAIT = ClosedForm(
    "mean wait of a class of prompts",
    pk.MEAN,
    _W0 / (1 - _BEFORE) / (1 - _WITH),
    (RESIDUAL, LOAD_BEFORE, LOAD_WITH),
    "Cobham, Operations Research 2 (1954) 70; Phipps 1956 for classes that are single lengths",
    (
        Condition(less(_WITH, 1), "Starved: prompts of this class and before it are more than the server can take."),
        Condition(at_most(_BEFORE, _WITH), "The load of a class cannot be negative."),
    ),
    _cobham_steps,
    (variable("W_b", "W_{-}", "s", "mean wait of the classes before, taken as one"),),
)

CONVOY_TOTAL = ClosedForm(
    "extra waiting behind a long prompt, all together",
    TOTAL,
    _R * (_X**2 / 2 + _X * _W) / (1 - _RHO),
    (pk.RATE, LONG, pk.MEAN, pk.RHO),
    "Poisson's equation of the M/G/1 workload (Asmussen, Applied Probability and Queues, 2003)",
    _STABLE,
    _convoy_steps,
    (variable("v", "v", "s", "work present"), variable("A", "A", "s^2", "extra work, added up over time")),
)  # fmt: skip
"""First come first served, on average over the moment at which the long prompt comes [s].

Examples
--------
>>> CONVOY_TOTAL(rate=16, long_service=2.0, mean_wait=0.1, utilization=0.8)
176.0
"""

CONVOY_AFFECTED = ClosedForm(
    "prompts delayed by a long one",
    AFFECTED,
    _R * (_X + _W) / (1 - _RHO),
    (pk.RATE, LONG, pk.MEAN, pk.RHO),
    "Mean busy period that begins with the long prompt and the work before it; Takács 1962",
    _STABLE,
)

CONVOY_EXTRA_WAIT = ClosedForm(
    "extra wait behind a long prompt",
    EXTRA,
    _X * (_X + 2 * _W) / 2 / (_X + _W),
    (LONG, pk.MEAN),
    "All extra waiting over the prompts delayed: between a half and the whole of the long prompt",
)


def priority_mean_waits(rates: Any, laws: Sequence[ServiceLaw]) -> Array:
    """Mean wait of each class of prompts, served in the order of the classes.

    Parameters
    ----------
    rates
        Prompts per second of each class, those that go first first [1/s].
    laws
        Distribution of the service time of each class.

    Returns
    -------
    ndarray
        Mean waits; NaN for a class that is starved, because it and those before it are more than the server can take [s].

    Examples
    --------
    >>> from formulas.queueing.service import equal_service
    >>> priority_mean_waits([0.4, 0.3], [equal_service(1.0), equal_service(1.0)])
    array([0.58333333, 1.94444444])
    """
    rate = np.asarray(rates, float)
    if rate.shape != (len(laws),) or not np.all(rate >= 0):
        raise DomainError("Each class of prompts needs a rate, and rates cannot be negative.")
    means, seconds = np.array([law.mean for law in laws]), np.array([law.second_moment for law in laws])
    return _class_waits(rate * means, seconds / means)


def shortest_first_wait(time: Any, rate: float, law: ServiceLaw) -> Any:
    """Mean wait of prompts that take `time`, if the shortest in the queue is always served first.

    Parameters
    ----------
    time
        Service time of the prompts asked about [s].
    rate
        Prompts per second of all lengths [1/s].
    law
        Distribution of the service time.

    Returns
    -------
    float or ndarray
        Mean wait; NaN where prompts of that length are starved [s].

    Examples
    --------
    >>> from formulas.queueing.service import LognormalLengths, service_law
    >>> law = service_law(LognormalLengths(1.0, 1.0), lambda length: length)
    >>> shortest_first_wait([0.1, 1.0, 10.0], 0.8, law)
    array([ 0.80093701,  1.50485739, 18.57653313])
    """
    _check(rate)
    times = np.asarray(time, float)
    residual = _residual(rate, law)
    value = np.full(times.shape, np.nan)
    for index in np.ndindex(times.shape):
        before, within = (rate * law.below(float(times[index]) * side)[1] for side in (1.0 - 2e-15, 1.0))
        if within < 1:
            value[index] = COBHAM_WAIT(residual_work=residual, load_before=min(before, within), load_with=within)
    return value if value.ndim else float(value)


def shortest_first_mean_wait(rate: float, law: ServiceLaw) -> float:
    """Mean wait of all prompts together, if the shortest in the queue is always served first.

    Parameters
    ----------
    rate
        Prompts per second [1/s].
    law
        Distribution of the service time.

    Notes
    -----
    An integral over the service times, to a relative error of 1e-11; 2e-6 for kinds of prompts whose times overlap.

    Examples
    --------
    >>> from formulas.queueing.service import LognormalLengths, service_law
    >>> shortest_first_mean_wait(0.8, service_law(LognormalLengths(1.0, 1.0), lambda length: length))
    1.92291
    """
    _check(rate)
    if rate * law.mean >= 1:
        raise DomainError(pk.UNSTABLE)
    below = law.tables.means_below()
    if below is None:  # kinds of prompts that overlap: every node a class of its own
        waits = _class_waits(rate * law.all_weights * law.all_values, law.all_values)
        return float(law.all_weights @ waits)
    before = np.array([law.below(atom * (1.0 - 2e-15))[1] for atom in law.atoms])
    sooner = below + np.where(law.atoms < law.values[..., np.newaxis], law.atoms * law.shares, 0.0).sum(axis=-1)
    served = float((law.weights / (1.0 - rate * sooner) ** 2).sum())
    served += float((law.shares / (1.0 - rate * before) / (1.0 - rate * (before + law.atoms * law.shares))).sum())
    return rate * law.second_moment / 2.0 * served


def _class_waits(loads: Array, seconds: Array) -> Array:
    """Mean waits of classes with loads, and second moments over means; what exceeds the server is not served."""
    through = np.minimum(np.cumsum(loads), 1.0)
    served = np.diff(through, prepend=0.0)
    residual = float(served @ seconds) / 2.0
    stable = np.cumsum(loads) < 1.0
    before = through - served
    return np.where(stable, residual / np.where(stable, (1.0 - before) * (1.0 - through), 1.0), np.nan)


def _residual(rate: float, law: ServiceLaw) -> float:
    """Mean work left of the prompt in service, of those that are served."""
    served = np.diff(np.minimum(np.cumsum(rate * law.all_weights * law.all_values), 1.0), prepend=0.0)
    return float(served @ law.all_values) / 2.0


def _check(rate: float) -> None:
    if not rate >= 0:
        raise DomainError(NEGATIVE)
