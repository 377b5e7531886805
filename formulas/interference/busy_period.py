r"""A piece of work that later arrivals interrupt: the delay busy period.

Work w is done with breaks: interruptions of length D arrive at random, at rate R, also during one another, and
each is served before the work goes on. The number N of them until the work is done has Consul's generalized
Poisson law (Borel's and Tanner's, for a queue that starts with that much work),

.. math:: P(N = n) = \frac{R w (R (w + n D))^{n-1} e^{-R (w + n D)}}{n!},

and the work takes w + N D.
"""

from __future__ import annotations

import numpy as np
import sympy as sp
from numpy.typing import ArrayLike, NDArray

from formulas.closed_form import ClosedForm, Condition, DomainError, Step, equation, less, variable
from formulas.queueing import pollaczek_khinchine as pk

Array = NDArray[np.float64]

WORK = variable("work_s", "w", "s", "time of the work without interruptions")
INTERRUPTION = variable("interruption_s", "D", "s", "time of an interruption")
DURATION = variable("mean_duration", "E[B]", "s", "mean time until the work is done")
SPREAD = variable("duration_variance", r"\mathrm{Var}[B]", "s^2", "variance of the time until the work is done")
NUMBER = variable("interruptions", "N", "", "number of interruptions")

_R, _W, _D, _B = (v.symbol for v in (pk.RATE, WORK, INTERRUPTION, DURATION))
_STABLE = (Condition(less(_R * _D, 1), pk.UNSTABLE),)
_CONSUL = "Consul, Jain, Technometrics 15 (1973) 791; Tanner, Biometrika 40 (1953) 58"
_n = sp.Symbol("n", integer=True, nonnegative=True)


def _law_step() -> Step:
    all_work = _R * (_W + _n * _D)
    law = _R * _W * all_work ** (_n - 1) * sp.exp(-all_work) / sp.factorial(_n)
    return Step("The number of interruptions has the generalized Poisson law.", equation(sp.Function("P")(_n), law))


def _mean_steps() -> tuple[Step, ...]:
    return (
        _law_step(),
        Step("Interruptions come at rate R over the whole time.", equation(_B, _W + _R * _B * _D)),
        Step("Solved for the mean time.", equation(_B, BUSY_MEAN.expression)),
    )


def _variance_steps() -> tuple[Step, ...]:
    number = sp.Function("Var")(NUMBER.symbol)
    return (
        _law_step(),
        Step("Its variance is", equation(number, _R * _W / (1 - _R * _D) ** 3)),
        Step("and each takes D.", equation(SPREAD.symbol, BUSY_VARIANCE.expression)),
    )


BUSY_MEAN = ClosedForm(
    "mean of a delay busy period",
    DURATION,
    _W / (1 - _R * _D),
    (pk.RATE, WORK, INTERRUPTION),
    _CONSUL,
    _STABLE,
    _mean_steps,
)

BUSY_VARIANCE = ClosedForm(
    "variance of a delay busy period",
    SPREAD,
    _R * _W * _D**2 / (1 - _R * _D) ** 3,
    (pk.RATE, WORK, INTERRUPTION),
    _CONSUL,
    _STABLE,
    _variance_steps,
    (DURATION, NUMBER),
)


def delay_busy_law(work: float, rate: float, interruption: float, size: int | None = None) -> Array:
    """Probability of each number of interruptions, from 0 up [].

    Parameters
    ----------
    work
        Time of the work [s].
    rate
        Interruptions per second [1/s].
    interruption
        Time of each [s].
    size
        How many probabilities; None for as many as leave out less than about 1e-12.

    Examples
    --------
    >>> delay_busy_law(1.0, 0.5, 1.0, 3)
    array([0.60653066, 0.18393972, 0.08367381])
    """
    from scipy.special import gammaln

    load = rate * interruption
    if load >= 1:
        raise DomainError(pk.UNSTABLE)
    if work < 0 or rate <= 0 or interruption < 0:
        raise DomainError("The work and the interruption cannot be negative, and the rate is positive.")
    if size is None:
        mean, spread = rate * work / (1 - load), np.sqrt(rate * work / (1 - load) ** 3)
        decay = load - 1 - np.log(load) if load > 0 else np.inf
        size = int(mean + 10 * spread + 40 / decay) + 30
    if work == 0:
        none: Array = np.eye(1, size)[0]
        return none
    n = np.arange(size)
    served = rate * (work + n * interruption)
    law: Array = np.exp(np.log(rate * work) + (n - 1) * np.log(served) - served - gammaln(n + 1))
    return law


def delay_busy_quantile(level: ArrayLike, work: float, rate: float, interruption: float) -> Array | float:
    """Time until the work is done that is not exceeded with probability `level`, by summing the law [s].

    Parameters
    ----------
    level
        In (0, 1); any shape [].
    work, rate, interruption
        As in :func:`delay_busy_law`.

    Examples
    --------
    >>> delay_busy_quantile([0.5, 0.7, 0.9], 1.0, 0.5, 1.0)
    array([1., 2., 4.])
    """
    levels = np.asarray(level, dtype=float)
    if not ((levels > 0) & (levels < 1)).all():
        raise DomainError("A percentile's level lies between 0 and 1.")
    below = np.cumsum(delay_busy_law(work, rate, interruption))
    times = work + interruption * np.minimum(np.searchsorted(below, levels), below.size - 1)
    return times if levels.ndim else float(times)
