r"""Prompts before tokens: one accelerator that decodes only while no prompt waits.

A prompt waits as in M/D/1, and for the decode step that it finds running. A token waits for every prompt that
comes meanwhile: a request's decode steps are a delay busy period. It does not begin with an empty queue: the
prompts behind a request are served before its first decode step. And prompts finish in bunches, one busy period
at a time, so that a token sees a larger batch than at random arrivals.

Errors in percent, below the simulated value if negative, against a step-by-step simulation of Llama-3.1-8B on an
H100 (512 tokens in, 64 out, 2 to 20 million requests each):

==========  ===============  =========  =========  ========  ========
requests/s  load of prompts  mean TTFT  mean TPOT  P90 TPOT  P99 TPOT
==========  ===============  =========  =========  ========  ========
        10             0.14        0.1        0.1      -0.2      -0.3
        20             0.28        0.0        0.2       0.2       0.0
        30             0.42        0.0        0.3       0.2      -0.2
        40             0.56        0.0        0.5      -0.1      -0.9
        50             0.70       -0.2        0.6      -0.6      -2.9
==========  ===============  =========  =========  ========  ========

A mean context stands for the contexts in the batch. Prompts that spread, or come in bursts, wait as in M/G/1 or behind
gamma arrivals, exactly; tokens feel them through :class:`~formulas.interference.prompts.Unevenness`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from formulas.closed_form import ClosedForm, Condition, DomainError, Step, equation, less, variable
from formulas.decode_pool.affine import FIXED, SLOPE, TOKENS, TPOT
from formulas.decode_pool.law import StepTime
from formulas.interference.busy_period import BUSY_MEAN, INTERRUPTION, WORK
from formulas.interference.prompts import Prompts
from formulas.interference.stretched import (
    PROMPTS_ALONE,
    Stretched,
    TokenTimes,
    busy_time,
    lengths_in_bins,
    quantile_of,
    stretched,
)
from formulas.queueing import md1
from formulas.queueing.service import ServiceLaw, equal_service

Array = NDArray[np.float64]

RESIDUAL = variable("residual_s", "T_{r}", "s", "mean rest of the decode step that a prompt finds", nonnegative=True)
AHEAD = variable("prompts_ahead", "E[Q]", "", "mean number of prompts that are served before the first decode step")
STEP = variable("step_s", "T", "s", "mean time of a decode step that brings a token")

_R, _D, _M, _A, _B = (v.symbol for v in (md1.RATE, md1.SERVICE, TOKENS, FIXED, SLOPE))
_LEFT = _R * _D + _R**2 * _D**2 / 2 / (1 - _R * _D)
_NODES = 12
_UNSTABLE = "Unstable: prompts and tokens together ask for more time than there is, so there is no steady state."


def _ttft_steps() -> tuple[Step, ...]:
    return (
        *md1.MEAN_TTFT.steps,
        Step("Outside the prompts' busy periods a prompt finds a decode step running, and waits for its rest; by the "
             "decomposition of queues with vacations that adds to the wait of every prompt.",
             equation(md1.TTFT.symbol, PREFILL_FIRST_TTFT.expression)),
    )  # fmt: skip


def _tpot_steps() -> tuple[Step, ...]:
    busy = BUSY_MEAN.expression.subs({WORK.symbol: _M * STEP.symbol + AHEAD.symbol * _D, INTERRUPTION.symbol: _D})
    step = (1 - _R * _D) * (_A + _B / (1 - _R * _D) ** 2) / (1 - _R * _D - _R * _M * _B)
    return (
        *BUSY_MEAN.steps,
        Step("The work of a request is its decode steps and the prompts left behind its own.",
             equation(_M * TPOT.symbol, busy)),
        Step("M/D/1 leaves as many behind as it holds on average.", equation(AHEAD.symbol, _LEFT)),
        Step("The batch is that of a decode pool whose steps are stretched by 1 / (1 - R D), with "
             "arrivals in bunches whose index of dispersion is 1 / (1 - R D)².", equation(STEP.symbol, step)),
        Step("All put in.", equation(TPOT.symbol, PREFILL_FIRST_TPOT.expression)),
    )  # fmt: skip


PREFILL_FIRST_TTFT = ClosedForm(
    "mean time to first token, prefill first",
    md1.TTFT,
    md1.MEAN_TTFT.expression + RESIDUAL.symbol,
    (md1.RATE, md1.SERVICE, RESIDUAL),
    "Pollaczek-Khinchine with vacations (Fuhrmann, Cooper, Operations Research 33 (1985) 1117)",
    md1.MEAN_TTFT.domain,
    _ttft_steps,
    (*md1.MEAN_TTFT.arguments, *md1.MEAN_TTFT.mentions),
)

PREFILL_FIRST_TPOT = ClosedForm(
    "mean time per output token, prefill first",
    TPOT,
    (_A + _B / (1 - _R * _D) ** 2) / (1 - _R * _D - _R * _M * _B) + _D / _M * _LEFT / (1 - _R * _D),
    (md1.RATE, md1.SERVICE, TOKENS, FIXED, SLOPE),
    "Delay busy period of a decode pool's steps; an approximation: at most 0.6 % off up to load 0.7 of the prompts",
    (Condition(less(_R * _D + _R * _M * _B, 1), _UNSTABLE),),
    _tpot_steps,
    (*BUSY_MEAN.arguments, BUSY_MEAN.result, *BUSY_MEAN.mentions, AHEAD, STEP),
)
"""Mean time per output token where a decode step takes a + b n [s].

Examples
--------
>>> PREFILL_FIRST_TPOT(rate=40, service_time=0.014066, tokens=63, fixed_s=6.6005e-3, slope_s=2.6557e-5)
0.018650
"""


@dataclass(frozen=True)
class PrefillFirst:
    """Prefill first in its steady state.

    Attributes
    ----------
    prompts
        The prompts.
    steps
        The decode steps between them.
    mean_ttft
        Mean time to first token [s].
    token_times
        Law of the time per output token.
    """

    prompts: Prompts
    steps: Stretched
    mean_ttft: float
    token_times: TokenTimes

    @property
    def mean_batch(self) -> float:
        """Mean sequences in the decode step that brings a token []."""
        return self.steps.seen_batch

    @property
    def mean_tpot(self) -> float:
        """Mean time per output token after the first, over the requests [s]."""
        return self.token_times.mean

    def tpot_quantile(self, level: ArrayLike) -> Array:
        """Time per output token that a share `level` of the requests do not exceed [s]."""
        return self.token_times.quantile(level)

    def tpot_share_within(self, time: ArrayLike) -> Array:
        """Share of the requests whose time per output token does not exceed `time` [s]."""
        return self.token_times.share_within(time)

    def ttft_share_within(self, time: ArrayLike) -> Array:
        """Share of the requests whose time to first token does not exceed `time` [s].

        The wait for prompts and the rest of a decode step are independent; the rest is uniform over a step, and nothing
        where no sequence is there.
        """
        times, prompts = np.asarray(time, dtype=float), self.prompts
        idle, law = prompts.no_wait, prompts.law
        nodes, weights = np.polynomial.legendre.leggauss(_NODES)
        earlier = times[..., np.newaxis] - self._longest_rest * (nodes + 1) / 2
        later = prompts.finished_within(earlier) - idle * prompts.served_within(earlier)
        at_once = np.clip((times[..., np.newaxis] - law.all_values) / self._longest_rest, 0.0, 1.0) @ law.all_weights
        after_a_rest = idle * at_once + np.maximum(later, 0.0) @ (weights / 2)
        empty = self.steps.empty
        return np.asarray(empty * prompts.finished_within(times) + (1 - empty) * after_a_rest)

    @property
    def _longest_rest(self) -> float:
        return 2 * self.steps.residual_s / max(1 - self.steps.empty, 1e-12)

    def ttft_quantile(self, level: ArrayLike) -> Array:
        """Time to first token that a share `level` of the requests do not exceed [s]."""
        shortest = float(self.prompts.law.all_values[0])
        return quantile_of(self.ttft_share_within, level, shortest, self.mean_ttft + self._longest_rest)


def prefill_first(
    rate: float,
    prefill_time: float | ServiceLaw,
    tokens: float,
    step_time: StepTime,
    *,
    arrival_scv: float = 1.0,
    lengths_cv2: float = 0.0,
) -> PrefillFirst:
    """Prompts that are served one at a time and before any decode step.

    Parameters
    ----------
    rate
        Requests per second [1/s].
    prefill_time
        Time of a prompt, or its distribution [s].
    tokens
        Decode steps of a request, on average: its output tokens after the first [].
    step_time
        Time of a decode step at n sequences [s], as for :func:`~formulas.decode_pool.law.stationary_law`.
    arrival_scv
        Squared coefficient of variation of the gaps between arrivals, gamma distributed: 1 for Poisson arrivals [].
    lengths_cv2
        Squared coefficient of variation of the output lengths, log-normal if it is not 0 [].

    Raises
    ------
    DomainError
        If prompts and tokens ask for more time than there is.

    Examples
    --------
    >>> both = prefill_first(40, 0.014066, 63, lambda n: 6.6005e-3 + 2.6557e-5 * n)
    >>> both.mean_ttft, both.mean_tpot, float(both.tpot_quantile(0.9)), both.mean_batch
    (0.0270, 0.01866, 0.0241, 51.07)
    """
    law = prefill_time if isinstance(prefill_time, ServiceLaw) else equal_service(prefill_time)
    if rate * law.mean >= 1:
        raise DomainError(PROMPTS_ALONE)
    prompts = Prompts(rate, law, arrival_scv)
    steps = stretched(rate, tokens, step_time, law.mean, prompts.unevenness)
    ttft = prompts.mean_wait + law.mean + steps.residual_s
    return PrefillFirst(prompts, steps, ttft, _token_times(prompts, steps, lengths_cv2))


def _token_times(prompts: Prompts, steps: Stretched, lengths_cv2: float) -> TokenTimes:
    """Law of the time per output token: of each length, a delay busy period behind the prompts left behind."""
    rest, alike = 1 - prompts.load, prompts.unevenness.alike
    ahead = _left_behind(prompts.load)
    mean_left, _ = prompts.left_behind
    shares, lengths = lengths_in_bins(steps.tokens, lengths_cv2)
    times = []
    for m in lengths:
        work = m * steps.step_s
        own = steps.variance(float(m) if lengths_cv2 else None)
        moments = (work + mean_left) / rest, own + _variance_of_what_is_left(prompts, steps.slope_s * m)
        times.append(busy_time(work, prompts.rate / alike, prompts.law.mean * alike, ahead, moments))
    return TokenTimes(shares, lengths, tuple(times))


def _variance_of_what_is_left(prompts: Prompts, longer_s: float) -> float:
    """Variance of the time that the prompts left behind take, and of what they add to all later steps [s^2]."""
    load, rest, uneven = prompts.load, 1 - prompts.load, prompts.unevenness
    work, work_variance = prompts.left_behind
    number, number_variance = prompts.number_behind
    taken = work_variance / rest**2 + work * load * prompts.law.mean * uneven.time / rest**3
    joined = number_variance / rest**2 + number * load * uneven.both(load) / rest**3
    return float((np.sqrt(taken) + longer_s * np.sqrt(joined)) ** 2)


def _left_behind(load: float) -> Array:
    """Law of the number in M/D/1, as a departing prompt leaves it: level crossing, no term negative."""
    from scipy.special import pdtrc

    size = int(20 + 14 / (1 - load))
    more = pdtrc(np.arange(size), load)
    law: Array = np.zeros(size)
    law[0] = 1 - load
    for n in range(1, size):
        law[n] = (law[0] * more[n - 1] + law[1:n] @ more[n - 1 : 0 : -1]) * np.exp(load)
    law /= law.sum()
    return law
