r"""Decode steps between interruptions: what prefill first and chunked prefill have in common.

A request's m decode steps are a piece of work that later prompts interrupt. To that, the spread of a batch
adds: more prompts mean larger batches, hence longer steps, while the request itself is there. Its variance
comes from the same linear model as :mod:`formulas.decode_pool.averaging`, with arrivals in bunches. Requests with
few steps average over less: where the lengths spread, each length has a law of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from formulas.bracketing import find_root
from formulas.closed_form import DomainError
from formulas.decode_pool import averaging, stationary_law
from formulas.decode_pool.law import StepTime, as_function
from formulas.interference.busy_period import delay_busy_law
from formulas.interference.prompts import EVEN, Unevenness

Array = NDArray[np.float64]

PROMPTS_ALONE = "Unstable: the prompts alone take all the time, so there is no steady state."
_SHORT_WINDOW = 1e-3
_BIN_ENDS = np.array([0, 0.005, 0.015, 0.035, 0.07, 0.12, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97, 1.0])


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
    prompts
        How unevenly the interruptions come and last.
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
    prompts: Unevenness = EVEN

    @property
    def work_s(self) -> float:
        """Time of a request's decode steps [s]."""
        return self.tokens * self.step_s

    def variance(self, tokens: float | None = None, noise_s: float | None = None) -> float:
        """Variance of the time from the first step to the last of a request [s^2].

        Parameters
        ----------
        tokens
            Its decode steps; None for the mean number, if all requests have that [].
        noise_s
            Interruption that would make the time as variable as it is, if all were alike; None if they are as
            `prompts` says [s].
        """
        mean, rest = self.interruption_s, 1 - self.rate * self.interruption_s
        load, uneven = 1 - rest, self.prompts
        part = 1.0 if tokens is None else tokens / self.tokens
        share = averaging(self.ratio, "fixed") if tokens is None else _window_share((1 - self.ratio) * part)
        stay = self.slope_s * self.tokens * part
        noise = mean**2 * uneven.time if noise_s is None else noise_s**2
        joint = mean * uneven.both(load) if noise_s is None else noise_s
        each = stay**2 * share * uneven.number(load) + part * (noise + stay * joint * (1 + self.ratio * share))
        return self.batch / (1 - self.ratio) / rest**2 * each


def _window_share(x: float) -> float:
    """Variance of a mean over x correlation times of a quantity whose correlation fades exponentially, over its own []."""
    return 1 - x / 3 if x < _SHORT_WINDOW else 2 * (np.expm1(-x) + x) / x**2


def stretched(
    rate: float, tokens: float, step_time: StepTime, interruption: float, prompts: Unevenness = EVEN
) -> Stretched:
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
        Mean time that each request takes from the others [s].
    prompts
        How unevenly they come and last.

    Raises
    ------
    DomainError
        If there is no steady state.
    """
    rest = 1 - rate * interruption
    if rest <= 0:
        raise DomainError(PROMPTS_ALONE)
    plain, cap = as_function(step_time, None)

    def longer(n: Array) -> ArrayLike:
        return np.asarray(plain(n), dtype=float) / rest

    law = stationary_law(rate, tokens, longer, cap)
    ratio = law.ratio
    slope = ratio * rest / (rate * tokens)
    others = float(np.arange(law.pi.size) @ law.pi)
    bunched = (prompts.number(1 - rest) / rest**2 - 1) / (1 - ratio)
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
        prompts=prompts,
    )


def lengths_in_bins(tokens: float, lengths_cv2: float) -> tuple[Array, Array]:
    """Shares of the requests, and their decode steps, for log-normal outputs: narrow bins for the short ones.

    >>> lengths_in_bins(63.0, 0.0)
    (array([1.]), array([63.]))
    """
    from scipy.special import ndtri

    if not lengths_cv2:
        return np.ones(1), np.array([float(tokens)])
    sigma = np.sqrt(np.log1p(lengths_cv2))
    middle = ndtri((_BIN_ENDS[:-1] + _BIN_ENDS[1:]) / 2)
    lengths = (tokens + 1) * np.exp(sigma * middle - sigma**2 / 2) - 1
    return np.diff(_BIN_ENDS), np.maximum(lengths, 1.0)


def prompts_in_bins(tokens: float, lengths_cv2: float) -> tuple[Array, Array]:
    """Shares of the prompts, and the mean length in each bin, for log-normal lengths: narrow bins for the long ones.

    >>> shares, lengths = prompts_in_bins(512.0, 1.0)
    >>> float(shares @ lengths)
    512.0
    """
    from scipy.special import ndtr, ndtri

    if not lengths_cv2:
        return np.ones(1), np.array([float(tokens)])
    sigma = np.sqrt(np.log1p(lengths_cv2))
    ends = 1 - _BIN_ENDS[::-1]
    shares = np.diff(ends)
    return shares, tokens * np.diff(ndtr(ndtri(ends) - sigma)) / shares


@dataclass(frozen=True)
class TokenTimes:
    """Time per output token over the requests: of each length its share, its decode steps and the law of its time."""

    shares: Array
    tokens: Array
    times: tuple[BusyTime, ...]

    @property
    def mean(self) -> float:
        """Mean over the requests, each counted once [s]."""
        return float(sum(p * each.mean / m for p, m, each in self._each()))

    @property
    def deviation(self) -> float:
        """Standard deviation over the requests [s]."""
        square = sum(p * (each.mean**2 + each.deviation**2) / m**2 for p, m, each in self._each())
        return float(np.sqrt(square - self.mean**2))

    def share_within(self, time: ArrayLike) -> Array:
        """Share of the requests whose time per output token does not exceed `time` [s]."""
        per_token = np.asarray(time, dtype=float)
        return np.asarray(sum(p * each.share_within(m * per_token) for p, m, each in self._each()))

    def quantile(self, level: ArrayLike) -> Array:
        """Time per output token that a share `level`, in (0, 1), of the requests do not exceed [s]."""
        if self.shares.size == 1:
            return np.asarray(self.times[0].quantile(level) / self.tokens[0])
        low = min(each.lowest / m for _, m, each in self._each())
        return quantile_of(self.share_within, level, low, 2 * self.mean)

    def _each(self) -> Iterator[tuple[float, float, BusyTime]]:
        return zip(self.shares.tolist(), self.tokens.tolist(), self.times, strict=True)


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
    mean, deviation
        Mean and standard deviation of the time [s].
    """

    below: Array
    centre: float
    scale: float
    mean: float
    deviation: float

    @property
    def lowest(self) -> float:
        """Time below which there is none [s]."""
        return self.mean - self.scale * (self.centre + 0.5)

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
    deviation = float(np.sqrt(moments[1]))
    return BusyTime(np.concatenate([[0.0], np.cumsum(law)]), mean, deviation / spread, moments[0], deviation)


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
