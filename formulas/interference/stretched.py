r"""Decode steps between interruptions: what prefill first and chunked prefill have in common.

A request's m decode steps are a piece of work that later prompts interrupt. To that, the spread of a batch
adds: more prompts mean larger batches, hence longer steps, while the request itself is there. Its variance
comes from the same linear model as :mod:`formulas.decode_pool.averaging`, with arrivals in bunches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from formulas.bracketing import find_root
from formulas.closed_form import DomainError
from formulas.decode_pool import averaging, stationary_law
from formulas.decode_pool.law import StepTime, as_function
from formulas.interference.busy_period import delay_busy_law

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Stretched:
    """A decode pool whose steps are stretched by interruptions.

    Attributes
    ----------
    batch
        Mean sequences in a decode step, empty pool included [].
    seen_batch
        Mean sequences in the step that brings a token []: more than `batch`, as prompts finish in bunches.
    step_s
        Mean time of the decode step that brings a token, interruptions not counted [s].
    slope_s
        Time that each sequence adds to a step [s].
    ratio
        Arrivals that one more sequence in the batch causes during its stay [].
    residual_s
        Mean rest of a decode step that an arrival finds running, if no interruption is [s].
    empty
        Share of the time, interruptions left out, without a sequence [].
    """

    rate: float
    tokens: float
    interruption_s: float
    batch: float
    seen_batch: float
    step_s: float
    slope_s: float
    ratio: float
    residual_s: float
    empty: float

    @property
    def work_s(self) -> float:
        """Time of a request's decode steps [s]."""
        return self.tokens * self.step_s

    def variance(self, noise_s: float | None = None) -> float:
        """Variance of the time from the first step to the last [s^2], for requests of one length.

        Parameters
        ----------
        noise_s
            Interruption that would make the time as variable as it is, if all were alike; None if they are [s].
        """
        d = self.interruption_s if noise_s is None else noise_s
        stay = self.slope_s * self.tokens
        share = averaging(self.ratio, "fixed")
        bunching = 1 / (1 - self.rate * self.interruption_s) ** 2
        each = stay**2 * share + d**2 + stay * d * (1 + self.ratio * share)
        return bunching * self.batch / (1 - self.ratio) * each


def stretched(rate: float, tokens: float, step_time: StepTime, interruption: float) -> Stretched:
    """Decode pool whose steps are stretched by interruptions, one of them per request.

    Parameters
    ----------
    rate
        Requests per second [1/s].
    tokens
        Decode steps of a request [].
    step_time
        Time of a step at n sequences [s], as for :func:`~formulas.decode_pool.law.stationary_law`.
    interruption
        Time that each request takes from the others [s].

    Raises
    ------
    DomainError
        If there is no steady state.
    """
    rest = 1 - rate * interruption
    if rest <= 0:
        raise DomainError("Unstable: the prompts alone take all the time, so there is no steady state.")
    plain, cap = as_function(step_time, None)

    def longer(n: Array) -> ArrayLike:
        return np.asarray(plain(n), dtype=float) / rest

    law = stationary_law(rate, tokens, longer, cap)
    ratio = law.ratio
    slope = ratio * rest / (rate * tokens)
    others = float(np.arange(law.pi.size) @ law.pi)
    bunched = (1 / rest**2 - 1) / (1 - ratio)
    return Stretched(
        rate=rate,
        tokens=tokens,
        interruption_s=interruption,
        batch=max(others + 1 - 1 / (1 - ratio), 0.0),
        seen_batch=others + 1 + bunched,
        step_s=law.mean_tpot * rest + slope * bunched,
        slope_s=slope,
        ratio=ratio,
        residual_s=law.boundary_wait * rest,
        empty=float(law.pi[0]),
    )


@dataclass(frozen=True)
class BusyTime:
    """A delay busy period behind a queue, drawn to a given mean and variance.

    The number of interruptions is read between whole numbers.

    Attributes
    ----------
    below
        Probability of fewer than 0, 1, 2, ... interruptions [].
    centre, scale
        Mean of their number [], and the time that one more of them stands for [s].
    mean
        Mean time [s].
    """

    below: Array
    centre: float
    scale: float
    mean: float

    def quantile(self, level: ArrayLike) -> Array:
        """Time that is not exceeded with that probability, in (0, 1) [s]."""
        levels = np.asarray(level, dtype=float)
        if not ((levels > 0) & (levels < 1)).all():
            raise DomainError("A percentile's level lies between 0 and 1.")
        at = np.interp(levels, self.below, np.arange(self.below.size) - 0.5)
        return np.asarray(self.mean + self.scale * (at - self.centre))

    def share_within(self, time: ArrayLike) -> Array:
        """Probability that the time is not exceeded []."""
        at = self.centre + (np.asarray(time, dtype=float) - self.mean) / self.scale
        return np.asarray(np.interp(at, np.arange(self.below.size) - 0.5, self.below))


def busy_time(work: float, rate: float, interruption: float, ahead: Array, moments: tuple[float, float]) -> BusyTime:
    """Return the law of a delay busy period behind a queue.

    Parameters
    ----------
    work, rate, interruption
        Of the delay busy period.
    ahead
        Probabilities of 0, 1, ... interruptions that wait before the work begins [].
    moments
        Mean [s] and variance [s^2] to be drawn to.
    """
    size = delay_busy_law(work + ahead.size * interruption, rate, interruption).size + ahead.size
    law = np.zeros(size)
    for k, p in enumerate(ahead):
        law[k:] += p * delay_busy_law(work + k * interruption, rate, interruption, size - k)
    law /= law.sum()
    n = np.arange(size)
    mean = float(law @ n)
    spread = float(np.sqrt(law @ (n - mean) ** 2))
    return BusyTime(np.concatenate([[0.0], np.cumsum(law)]), mean, float(np.sqrt(moments[1])) / spread, moments[0])


def quantile_of(share_within: Callable[[Array], Array], level: ArrayLike, low: float, high: float) -> Array:
    """Return the times at which a distribution function reaches the given levels [s].

    Parameters
    ----------
    share_within
        The distribution function of a time [s].
    level
        In (0, 1); any shape [].
    low, high
        The shortest time there is, and one from which to look for a longer one [s].
    """
    levels = np.asarray(level, dtype=float)
    if not ((levels > 0) & (levels < 1)).all():
        raise DomainError("A percentile's level lies between 0 and 1.")
    top = np.full(levels.shape, high)
    for _ in range(60):
        short = share_within(top) < levels
        if not short.any():
            break
        top = np.where(short, low + 2 * (top - low), top)
    start = np.full(levels.shape, low)
    lowest = share_within(start)
    found = find_root(lambda times: share_within(times) - levels, start, top, tolerance=1e-9)
    return np.where(lowest >= levels, low, found)
