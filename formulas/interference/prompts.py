r"""Prompts that interrupt decode steps: how long they wait for one another, and how unevenly they come and last.

All that the decode steps feel of them is their load and three indices of dispersion, over many of them: of their number, of
the time that they take, and of both together. With a squared coefficient of variation :math:`c_a^2` of the gaps between
arrivals and :math:`c^2` of the service time, and seen on a clock that stands still during interruptions, these are

.. math:: \frac{c_a^2 + \rho^2 c^2}{(1-\rho)^2}, \qquad D^2\,\frac{c_a^2 + c^2}{(1-\rho)^2},
          \qquad D\,\frac{c_a^2 + \rho\,c^2}{(1-\rho)^2};

exact for Poisson arrivals (the moments of a busy period), and the limit of long times for gamma arrivals. A stream of equal
prompts that are :math:`c_a^2 + c^2` times as long, and as many times rarer, has the same load and the same index of time:
it lends its law to the tail.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import sympy as sp
from numpy.typing import ArrayLike, NDArray

from formulas.closed_form import ClosedForm, Condition, DomainError, Step, equation, less, variable
from formulas.queueing import md1, mg1
from formulas.queueing import pollaczek_khinchine as pk
from formulas.queueing.bursts import (
    gamma_law_mean_wait,
    gamma_law_ttft_quantile,
    gamma_law_ttft_survival,
    gamma_law_wait_survival,
)
from formulas.queueing.mg1_distribution import max_rate as mg1_max_rate
from formulas.queueing.mg1_distribution import ttft_quantile, ttft_survival
from formulas.queueing.service import LognormalLengths, ServiceLaw, equal_service, service_law

Array = NDArray[np.float64]

ARRIVALS = variable("arrival_scv", "c_a^2", "", "squared coefficient of variation of the gaps between arrivals")
SERVICES = variable("service_scv", "c^2", "", "squared coefficient of variation of the time of a prompt")
NUMBER = variable("number_dispersion", "I_{N}", "", "variance over mean of the number of prompts, over a long time")
TIME = variable("time_dispersion", "I_{T}", "s^2", "variance of the time that prompts take, for each that comes")
CLOCK = variable("work_s", "w", "s", "time on the clock that stands still during prompts")

_R, _D, _CA, _CS = (v.symbol for v in (md1.RATE, md1.SERVICE, ARRIVALS, SERVICES))
_LOAD = _R * _D
_GIVEN = (md1.RATE, md1.SERVICE, ARRIVALS, SERVICES)
_STABLE = (Condition(less(_LOAD, 1), pk.UNSTABLE),)
_RENEWAL = "Cox, Renewal Theory (1962), section 4.6, for the number of arrivals; their time by the same balance"

_n, _noise, _longer = sp.symbols("n xi eta")


def _balance_steps() -> tuple[Step, ...]:
    return (
        Step("While the other clock shows w, n prompts come and take n D and a little more or less: over the real time "
             "they come at rate R, but for a noise.",
             equation(_n, _R * (CLOCK.symbol + _n * _D + _longer) + _noise)),
        Step("The noise of the gaps has the variance of a renewal process, that of the times is the prompts' own, each "
             "in proportion to the real time.", equation(_n * (1 - _LOAD), _R * CLOCK.symbol + _R * _longer + _noise)),
    )  # fmt: skip


def _number_steps() -> tuple[Step, ...]:
    return (
        *_balance_steps(),
        Step("Variance over mean.", equation(NUMBER.symbol, NUMBER_DISPERSION.expression)),
    )


def _time_steps() -> tuple[Step, ...]:
    return (
        *_balance_steps(),
        Step(
            "The time that they take is n D and what they are longer by.",
            equation(TIME.symbol, TIME_DISPERSION.expression),
        ),
    )


NUMBER_DISPERSION = ClosedForm(
    "dispersion of the number of prompts",
    NUMBER,
    (_CA + _LOAD**2 * _CS) / (1 - _LOAD) ** 2,
    _GIVEN,
    _RENEWAL,
    _STABLE,
    _number_steps,
    (CLOCK,),
)
"""Of prompts that interrupt decode steps, on the clock of those steps []: exact for Poisson arrivals.

Examples
--------
>>> NUMBER_DISPERSION(rate=30, service_time=0.01, arrival_scv=1, service_scv=1)
2.2245
"""

TIME_DISPERSION = ClosedForm(
    "dispersion of the time of prompts",
    TIME,
    _D**2 * (_CA + _CS) / (1 - _LOAD) ** 2,
    _GIVEN,
    _RENEWAL,
    _STABLE,
    _time_steps,
    (CLOCK,),
)

_EQUAL = 1e-12
_LEAST_LONG = 0.05
_ROUNDING = 1e-12
_LEAST_LOAD, _PRECISION = 1e-4, 1e-6


@dataclass(frozen=True)
class Unevenness:
    """How much more than equal prompts at random times the real ones vary.

    Attributes
    ----------
    arrivals, services
        Squared coefficients of variation of the gaps and of the service time [].
    """

    arrivals: float = 1.0
    services: float = 0.0

    def number(self, load: float) -> float:
        """Index of dispersion of the number of prompts, over that of equal ones at random times []."""
        return self.arrivals + load**2 * self.services

    def both(self, load: float) -> float:
        """Joint index of their number and time, over that of equal ones at random times []."""
        return self.arrivals + load * self.services

    @property
    def time(self) -> float:
        """Index of dispersion of the time that they take, over that of equal ones at random times []."""
        return self.arrivals + self.services

    @property
    def alike(self) -> float:
        """How many times as long, and as rare, equal prompts at random times are that vary as much []."""
        return max(self.time, _LEAST_LONG)

    def alike_to_wait_for(self, load: float) -> float:
        """Return the same of equal prompts at random times that keep one waiting as long as these at a load []."""
        if self.arrivals == 1:
            return self.alike
        loads, factors = _wait_factors(self.arrivals, round(self.services, 4))
        return max(float(np.interp(load, loads, factors)), _LEAST_LONG)


@lru_cache(maxsize=64)
def _wait_factors(arrivals: float, services: float) -> tuple[Array, Array]:
    """Return loads, and how many times as long one waits behind gamma arrivals as behind equal prompts at random times."""
    loads = np.linspace(0.05, 0.95, 10)
    law = service_law(LognormalLengths(1.0, services**0.5), _of_length) if services else equal_service(1.0)
    waits = gamma_law_mean_wait(loads, 1 / arrivals, law)
    return loads, np.asarray(waits * 2 * (1 - loads) / loads)


def _of_length(length: ArrayLike) -> Array:
    return np.asarray(length, dtype=float)


EVEN = Unevenness()
"""Equal prompts at random times."""


@dataclass(frozen=True, eq=False)
class Prompts:
    """A stream of prompts that are served one at a time.

    Attributes
    ----------
    rate
        Prompts per second [1/s].
    law
        Distribution of the service time.
    arrival_scv
        Squared coefficient of variation of the gaps, which are gamma distributed: 1 for Poisson arrivals [].
    """

    rate: float
    law: ServiceLaw
    arrival_scv: float = 1.0

    def __post_init__(self) -> None:
        if self.load >= 1:
            raise DomainError(pk.UNSTABLE)

    @property
    def load(self) -> float:
        """Utilization by prompts []."""
        return self.rate * self.law.mean

    @cached_property
    def unevenness(self) -> Unevenness:
        """Their indices of dispersion."""
        return Unevenness(self.arrival_scv, 0.0 if self._equal else self.law.scv)

    @cached_property
    def mean_wait(self) -> float:
        """Mean wait for prompts before one's own [s]."""
        if self.arrival_scv != 1:
            return float(gamma_law_mean_wait(self.rate, 1 / self.arrival_scv, self.law))
        return float(mg1.mean_wait(self.rate, self.law))

    @cached_property
    def no_wait(self) -> float:
        """Share of the prompts that find none before them []."""
        if self.arrival_scv != 1:
            return 1 - float(gamma_law_wait_survival(0.0, self.rate, 1 / self.arrival_scv, self.law))
        return 1 - self.load

    @cached_property
    def _wait_variance(self) -> float:
        if self.arrival_scv == 1:
            return float(mg1.wait_variance(self.rate, self.law))
        # Of those who wait, the wait is nearly exponential.
        waits = max(1 - self.no_wait, _ROUNDING)
        return self.mean_wait**2 * (2 / waits - 1)

    @cached_property
    def left_behind(self) -> tuple[float, float]:
        """Mean [s] and variance [s^2] of the work that a finished prompt leaves behind: what came during its stay.

        Of bursts, with those that still come of its own: half of what their dispersion exceeds that of random times by.
        """
        stay, variance = self.mean_wait + self.law.mean, self._wait_variance + self.law.variance
        more = (self.arrival_scv - 1) / 2 * self.law.mean
        return self.load * stay + more, self.rate * self.law.second_moment * stay + self.load**2 * variance

    @cached_property
    def number_behind(self) -> tuple[float, float]:
        """Mean and variance of the number of prompts left behind []."""
        stay, variance = self.mean_wait + self.law.mean, self._wait_variance + self.law.variance
        return self.rate * stay, self.rate * stay + self.rate**2 * variance

    def finished_within(self, time: ArrayLike) -> Array:
        """Share of the prompts whose wait for others and service take at most `time` [s]."""
        times = np.asarray(time, dtype=float)
        if self.arrival_scv != 1:
            after = gamma_law_ttft_survival(np.maximum(times, 0.0), self.rate, 1 / self.arrival_scv, self.law)
            return np.asarray(1 - after)
        if not self._equal:
            return np.asarray(1 - ttft_survival(np.maximum(times, 0.0), self.rate, self.law))
        in_services = times / self.law.mean - 1
        share = 1 - md1.wait_survival(np.maximum(in_services, 0.0), np.full(times.shape, self.load))
        return np.where(in_services >= -_ROUNDING, share, 0.0)

    def finished_quantile(self, level: ArrayLike) -> Array:
        """Wait for others and service that a share `level`, in (0, 1), of the prompts do not exceed [s]."""
        levels = np.asarray(level, dtype=float)
        if self.arrival_scv != 1:
            return np.asarray(gamma_law_ttft_quantile(levels, self.rate, 1 / self.arrival_scv, self.law))
        if not self._equal:
            return np.asarray(ttft_quantile(levels, self.rate, self.law))
        return np.asarray(self.law.mean * (1 + md1.wait_quantile(levels, self.load)))

    def served_within(self, time: ArrayLike) -> Array:
        """Share of the prompts whose service alone takes at most `time` [s]."""
        times = np.asarray(time, dtype=float)
        if self._equal:
            return np.where(times >= self.law.mean * (1 - _ROUNDING), 1.0, 0.0)
        return np.asarray(self.law.cdf(times))

    @property
    def _equal(self) -> bool:
        return self.law.scv < _EQUAL


def max_rate(limit: float, level: float, law: ServiceLaw, arrival_scv: float = 1.0) -> float | None:
    """Largest rate at which a share of the prompts wait for others and are served within a limit [1/s].

    Parameters
    ----------
    limit
        Of the wait and the service [s].
    level
        Share of the prompts, in (0, 1) [].
    law, arrival_scv
        As for :class:`Prompts`.

    Returns
    -------
    float or None
        None where not even prompts that meet no others are in time.

    Examples
    --------
    >>> from formulas.queueing.service import equal_service
    >>> max_rate(0.1, 0.9, equal_service(0.014066))
    59.14
    """
    from scipy.optimize import brentq

    if law.scv < _EQUAL:
        if limit < law.mean:
            return None
        highest = float(md1.max_utilization(limit / law.mean - 1, level)) / law.mean
    else:
        if float(law.quantile(level)) >= limit:
            return None
        highest = float(mg1_max_rate(limit, level, law))
    if arrival_scv == 1 or not highest:
        return highest or None

    def excess(load: float) -> float:
        return float(Prompts(load / law.mean, law, arrival_scv).finished_within(limit)) - level

    low, high = _LEAST_LOAD, 1 - _LEAST_LOAD
    if excess(low) < 0:
        return None
    if excess(high) >= 0:
        return high / law.mean
    return float(brentq(excess, low, high, xtol=_PRECISION)) / law.mean
