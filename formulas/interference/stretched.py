r"""Decode steps between interruptions: what prefill first and chunked prefill have in common.

A request's m decode steps are a piece of work that later prompts interrupt. To that, the spread of a batch
adds: more prompts mean larger batches, hence longer steps, while the request itself is there. Its variance
comes from the same linear model as :mod:`formulas.decode_pool.averaging`, with arrivals in bunches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
    )


def busy_quantile(
    level: float, work: float, rate: float, interruption: float, ahead: Array, moments: tuple[float, float]
) -> float:
    """Quantile of a delay busy period behind a queue, drawn to the given mean and variance.

    Parameters
    ----------
    level
        In (0, 1) [].
    work, rate, interruption
        Of the delay busy period; its number of interruptions is read between whole numbers.
    ahead
        Probabilities of 0, 1, ... interruptions that wait before the work begins [].
    moments
        Mean [s] and variance [s^2] to be drawn to.
    """
    if not 0 < level < 1:
        raise DomainError("A percentile's level lies between 0 and 1.")
    size = delay_busy_law(work + ahead.size * interruption, rate, interruption).size + ahead.size
    law = np.zeros(size)
    for k, p in enumerate(ahead):
        law[k:] += p * delay_busy_law(work + k * interruption, rate, interruption, size - k)
    n = np.arange(size)
    law /= law.sum()
    mean = law @ n
    spread = np.sqrt(law @ (n - mean) ** 2)
    at = np.interp(level, np.concatenate([[0.0], np.cumsum(law)]), np.arange(size + 1) - 0.5)
    return float(moments[0] + np.sqrt(moments[1]) * (at - mean) / spread)
