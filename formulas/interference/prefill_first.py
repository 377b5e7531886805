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

Prompts and outputs are each of one length, and a mean context stands for the contexts in the batch. With geometric
output lengths the mean over tokens is still within 0.2 to 1.2 %, but a request's own mean is spread far more, as
short ones average over little: the mean over requests is 1 to 5 % above the formula and P90 3 to 9 %.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import pdtrc

from formulas.closed_form import ClosedForm, Condition, Step, equation, less, variable
from formulas.decode_pool.affine import FIXED, SLOPE, TOKENS, TPOT
from formulas.decode_pool.law import StepTime
from formulas.interference.busy_period import BUSY_MEAN, INTERRUPTION, WORK
from formulas.interference.stretched import BusyTime, Stretched, busy_time, quantile_of, stretched
from formulas.queueing import md1

Array = NDArray[np.float64]

RESIDUAL = variable("residual_s", "T_{r}", "s", "mean rest of the decode step that a prompt finds", nonnegative=True)
AHEAD = variable("prompts_ahead", "E[Q]", "", "mean number of prompts that are served before the first decode step")
STEP = variable("step_s", "T", "s", "mean time of a decode step that brings a token")

_R, _D, _M, _A, _B = (v.symbol for v in (md1.RATE, md1.SERVICE, TOKENS, FIXED, SLOPE))
_LEFT = _R * _D + _R**2 * _D**2 / 2 / (1 - _R * _D)
_NODES = 12
_ROUNDING = 1e-12
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
    prefill_s
        Time of a prompt [s].
    steps
        The decode steps between the prompts.
    ahead
        Probabilities of 0, 1, ... prompts behind one's own at the first token [].
    mean_ttft
        Mean time to first token [s].
    mean_tpot
        Mean time per output token after the first [s].
    """

    prefill_s: float
    steps: Stretched
    ahead: Array
    mean_ttft: float
    mean_tpot: float

    @property
    def mean_batch(self) -> float:
        """Mean sequences in the decode step that brings a token []."""
        return self.steps.seen_batch

    @property
    def tpot_deviation(self) -> float:
        """Standard deviation of the time per output token over the requests [s]."""
        rest, n = 1 - self.steps.rate * self.prefill_s, np.arange(self.ahead.size)
        mean = float(self.ahead @ n)
        each = self.prefill_s + self.steps.slope_s * self.steps.tokens
        number = float(self.ahead @ (n - mean) ** 2) / rest**2 + mean * (1 - rest) / rest**3
        return float(np.sqrt(self.steps.variance() + each**2 * number) / self.steps.tokens)

    @cached_property
    def _busy_time(self) -> BusyTime:
        m, s = self.steps.tokens, self.steps
        moments = m * self.mean_tpot, (m * self.tpot_deviation) ** 2
        return busy_time(s.work_s, s.rate, self.prefill_s, self.ahead, moments)

    def tpot_quantile(self, level: ArrayLike) -> Array:
        """Time per output token that a share `level` of the requests do not exceed [s]."""
        return self._busy_time.quantile(level) / self.steps.tokens

    def tpot_share_within(self, time: ArrayLike) -> Array:
        """Share of the requests whose time per output token does not exceed `time` [s]."""
        return self._busy_time.share_within(self.steps.tokens * np.asarray(time))

    def ttft_share_within(self, time: ArrayLike) -> Array:
        """Share of the requests whose time to first token does not exceed `time` [s].

        The wait of M/D/1 and the rest of a decode step are independent; the rest is uniform over a step, and nothing
        where no sequence is there.
        """
        wait = np.asarray(time, dtype=float) - self.prefill_s
        idle = 1 - self.steps.rate * self.prefill_s  # of the prompts: those who find none before them
        nodes, weights = np.polynomial.legendre.leggauss(_NODES)
        later = self._waits_within(wait[..., np.newaxis] - self._longest_rest * (nodes + 1) / 2) - idle
        after_a_rest = idle * np.clip(wait / self._longest_rest, 0.0, 1.0) + np.maximum(later, 0.0) @ (weights / 2)
        empty = self.steps.empty
        return np.asarray(empty * self._waits_within(wait) + (1 - empty) * after_a_rest)

    @property
    def _longest_rest(self) -> float:
        return 2 * self.steps.residual_s / max(1 - self.steps.empty, 1e-12)

    def _waits_within(self, wait: Array) -> Array:
        """Share of the prompts that wait at most so long for others [s]; none where the time is negative."""
        in_services = wait / self.prefill_s
        load = np.full(np.shape(wait), self.steps.rate * self.prefill_s)
        share = 1 - md1.wait_survival(np.maximum(in_services, 0.0), load)
        return np.where(in_services >= -_ROUNDING, share, 0.0)

    def ttft_quantile(self, level: ArrayLike) -> Array:
        """Time to first token that a share `level` of the requests do not exceed [s]."""
        return quantile_of(self.ttft_share_within, level, self.prefill_s, self.prefill_s + self._longest_rest)


def prefill_first(rate: float, prefill_time: float, tokens: float, step_time: StepTime) -> PrefillFirst:
    """Prompts of one length, each served alone and before any decode step.

    Parameters
    ----------
    rate
        Requests per second [1/s].
    prefill_time
        Time of a prompt [s].
    tokens
        Decode steps of a request: its output tokens after the first [].
    step_time
        Time of a decode step at n sequences [s], as for :func:`~formulas.decode_pool.law.stationary_law`.

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
    steps = stretched(rate, tokens, step_time, prefill_time)
    ttft = PREFILL_FIRST_TTFT(rate=rate, service_time=prefill_time, residual_s=steps.residual_s)
    ahead = _left_behind(rate * prefill_time)
    waiting = float(ahead @ np.arange(ahead.size)) * prefill_time
    tpot = BUSY_MEAN(rate=rate, work_s=steps.work_s + waiting, interruption_s=prefill_time) / tokens
    return PrefillFirst(prefill_time, steps, ahead, ttft, tpot)


def _left_behind(load: float) -> Array:
    """Law of the number in M/D/1, as a departing prompt leaves it: level crossing, no term negative."""
    size = int(20 + 14 / (1 - load))
    more = pdtrc(np.arange(size), load)
    law: Array = np.zeros(size)
    law[0] = 1 - load
    for n in range(1, size):
        law[n] = (law[0] * more[n - 1] + law[1:n] @ more[n - 1 : 0 : -1]) * np.exp(load)
    law /= law.sum()
    return law
