r"""Arrivals that switch between calm and busy spells (MMPP/D/1): equal prompts, two Poisson rates.

The rate of arrivals is that of a state which changes at random: a Markov-modulated Poisson process with rates
:math:`\lambda_1, \lambda_2` and rates :math:`q_1, q_2` of leaving the states. Spells that overload the server for a while make
waits that no variation of single gaps describes: at utilization 0.73, spells at twice the capacity for 50 services after
100 quiet ones mean a wait of 110 services, where Poisson arrivals wait 1.4.

With :math:`Q` the matrix of the changes of state and :math:`\Lambda` the diagonal one of the rates, in units of the service
time, the wait of an arrival has the transform

.. math:: W(s) = \frac{(1-\rho)\,s}{\bar\lambda}\; g\, \big[sI + Q - \Lambda (1 - e^{-s})\big]^{-1} \lambda .

The vector g says in which state an idle server finds the arrivals. It is usually got from a matrix equation, whose
iteration takes thousands of steps for slow changes. With two states it is the solution of one equation in one
unknown: the determinant has a single zero s > 0, where the numerator must vanish too
(:mod:`formulas.queueing.bursts.switching_queue`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import sympy as sp

from formulas.closed_form import ClosedForm, Condition, DomainError, Step, at_most, equation, less, variable
from formulas.queueing import md1
from formulas.queueing import pollaczek_khinchine as pk

FIRST = variable("first_rate", r"\lambda_{1}", "1/s", "arrival rate in the first state", nonnegative=True)
SECOND = variable("second_rate", r"\lambda_{2}", "1/s", "arrival rate in the second state", nonnegative=True)
LEAVE_FIRST = variable("leave_first", "q_{1}", "1/s", "rate of leaving the first state")
LEAVE_SECOND = variable("leave_second", "q_{2}", "1/s", "rate of leaving the second state")
IDLE_FIRST = variable("idle_first", "g_{1}", "", "share of the idle time that is in the first state", nonnegative=True)
WINDOW = variable("window", "t", "s", "length of time in which arrivals are counted")
DISPERSION = variable("dispersion", r"\mathrm{IDC}(t)", "", "variance of a count over its mean")
MEAN_RATE = variable("mean_rate", r"\bar{\lambda}", "1/s", "mean arrival rate")

_L1, _L2, _Q1, _Q2, _G1, _T, _D = (
    v.symbol for v in (FIRST, SECOND, LEAVE_FIRST, LEAVE_SECOND, IDLE_FIRST, WINDOW, md1.SERVICE)
)
_Q = _Q1 + _Q2
_MEAN = (_Q2 * _L1 + _Q1 * _L2) / _Q
_PROCESS = (FIRST, SECOND, LEAVE_FIRST, LEAVE_SECOND)
_COOKBOOK = "Fischer, Meier-Hellstern, Performance Evaluation 18 (1993) 149"


def _dispersion_steps() -> tuple[Step, ...]:
    apart = sp.Symbol("x", positive=True)
    covariance = _Q1 * _Q2 * (_L1 - _L2) ** 2 / _Q**2 * sp.exp(-_Q * apart)
    return (
        Step("The mean rate, by the shares of time in the states.", equation(MEAN_RATE.symbol, _MEAN)),
        Step("The rates at two moments x apart are correlated: their covariance is", covariance),
        Step("A count has the Poisson variance, its mean, and twice the integral of that over pairs of moments.",
             equation(DISPERSION.symbol, 1 + 2 / MEAN_RATE.symbol / _T
                      * sp.Integral((_T - apart) * covariance, (apart, 0, _T)))),
        Step("Integrated.", equation(DISPERSION.symbol, SWITCHING_DISPERSION.expression)),
    )  # fmt: skip


def _mean_wait_steps() -> tuple[Step, ...]:
    s = sp.Symbol("s", positive=True)
    g2 = 1 - _G1
    first = (1 - _L1 * _D) * s
    second = (1 - _L2 * _D) * s
    return (
        Step("To the first order in s, the matrix of the transform is",
             sp.Matrix([[first - _Q1, _Q1], [_Q2, second - _Q2]])),
        Step("The shares of idle time, times its adjoint, times the rates is to that order",
             -_Q * MEAN_RATE.symbol + s * (_G1 * (1 - _L2 * _D) * _L1 + g2 * (1 - _L1 * _D) * _L2)),
        Step("and its determinant, to the next,",
             -s * _Q * (1 - MEAN_RATE.symbol * _D)
             + s**2 * ((1 - _L1 * _D) * (1 - _L2 * _D) - _Q * MEAN_RATE.symbol * _D**2 / 2)),
        Step("The mean wait is the slope of the transform at zero, with its sign changed.",
             equation(pk.MEAN.symbol, SWITCHING_MEAN_WAIT.expression)),
    )  # fmt: skip


SWITCHING_RATE = ClosedForm(
    "mean arrival rate of two states",
    MEAN_RATE,
    _MEAN,
    _PROCESS,
    "Shares of time of a two-state chain",
)

SWITCHING_DISPERSION = ClosedForm(
    "index of dispersion for counts",
    DISPERSION,
    1 + 2 * _Q1 * _Q2 * (_L1 - _L2) ** 2 / _Q**3 / _MEAN * (1 - (1 - sp.exp(-_Q * _T)) / _Q / _T),
    (*_PROCESS, WINDOW),
    _COOKBOOK + ", section 2",
    (),
    _dispersion_steps,
    (MEAN_RATE,),
)

SWITCHING_MEAN_WAIT = ClosedForm(
    "mean wait with two states of arrivals",
    pk.MEAN,
    (_G1 * _L1 * (1 - _L2 * _D) + (1 - _G1) * _L2 * (1 - _L1 * _D)) / _Q / _MEAN
    - ((1 - _L1 * _D) * (1 - _L2 * _D) / _Q - _MEAN * _D**2 / 2) / (1 - _MEAN * _D),
    (*_PROCESS, md1.SERVICE, IDLE_FIRST),
    _COOKBOOK + ", section 3; Heffes, Lucantoni, IEEE JSAC 4 (1986) 856",
    (
        Condition(less(_MEAN * _D, 1), pk.UNSTABLE),
        Condition(at_most(_G1, 1), "A share of the idle time lies between 0 and 1."),
    ),
    _mean_wait_steps,
    (MEAN_RATE,),
)


@dataclass(frozen=True)
class Switching:
    """Arrivals with two rates.

    Parameters
    ----------
    first_rate, second_rate
        Arrival rates in the two states, not both zero [1/s].
    leave_first, leave_second
        Rates of leaving them, above zero: one over the mean length of a spell [1/s].

    Examples
    --------
    >>> calm_and_busy = Switching(0.1, 2.0, 0.01, 0.02)
    >>> calm_and_busy.mean_rate
    0.7333333
    >>> calm_and_busy.dispersion()
    73.9292929
    """

    first_rate: float
    second_rate: float
    leave_first: float
    leave_second: float

    def __post_init__(self) -> None:
        rates, leaves = (self.first_rate, self.second_rate), (self.leave_first, self.leave_second)
        if not (min(rates) >= 0 and max(rates) > 0 and min(leaves) > 0 and max(*rates, *leaves) < np.inf):
            raise DomainError("Rates are not negative nor both zero, and each state is left at a rate above zero.")

    @property
    def mean_rate(self) -> float:
        """Mean arrival rate [1/s]."""
        return float(SWITCHING_RATE(**vars(self)))

    def dispersion(self, window: float = np.inf) -> float:
        """Variance of the number of arrivals in a window of time [s], over its mean []."""
        if window == np.inf:
            total = self.leave_first + self.leave_second
            window = 1e18 / total
        return float(SWITCHING_DISPERSION(window=window, **vars(self)))

    def scaled(self, factor: float) -> Switching:
        """Return the process with both arrival rates multiplied, the spells as they are."""
        return Switching(self.first_rate * factor, self.second_rate * factor, self.leave_first, self.leave_second)


def burst_process(rate: float, ratio: float, share: float, spell: float) -> Switching:
    """Arrivals of a mean rate, with busy spells.

    Parameters
    ----------
    rate
        Mean arrival rate [1/s].
    ratio
        Rate in a busy spell over that in a calm one, at least 1 [].
    share
        Share of the time that is busy, in (0, 1) [].
    spell
        Mean length of a busy spell [s].

    Examples
    --------
    >>> burst_process(10.0, 5.0, 0.2, 60.0).second_rate
    27.7777778
    """
    if not (0 < share < 1 and ratio >= 1 and spell > 0 and rate > 0):
        raise DomainError("A busy spell has a ratio of at least 1, a share of the time between 0 and 1, and a length.")
    calm = rate / (1.0 + (ratio - 1.0) * share)
    return Switching(calm, ratio * calm, share / (1.0 - share) / spell, 1.0 / spell)
