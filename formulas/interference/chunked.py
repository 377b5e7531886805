r"""Prompts in chunks, along with the tokens: a step takes every sequence and fills up to a budget with prompt.

What a prompt takes from the others is only the excess of its mixed steps over plain decode steps, and the delay
busy period holds with that excess in place of the prompt's time. How many steps a prompt needs, and how much of
it rides for free, depends on what else is in them; the prompt tokens that wait at the start of a step are a
Markov chain, solved here at the mean batch.

Errors in percent, below the simulated value if negative, against a step-by-step simulation of Llama-3.1-8B on an
H100 (512 tokens in, 64 out, three million requests each):

======  ==========  =========  =========  ========  ========
budget  requests/s  mean TTFT  mean TPOT  P90 TPOT  P99 TPOT
======  ==========  =========  =========  ========  ========
   256          10        0.4        0.0       0.1       0.5
   256          40       -0.8        0.4       0.7       0.0
   256          50       -2.8        0.5       0.0       0.0
   512          10        0.5        0.0       0.0       0.3
   512          40       -0.3        0.4       0.9       1.3
   512          50       -2.4        0.7       1.1       0.0
  1024          40       -0.1        0.0      -0.5      -2.8
  1024          50       -1.0       -0.1      -0.8      -3.3
  2048          40       -0.2       -0.2      -0.9      -4.4
  2048          50       -0.8       -0.6      -2.2      -7.8
======  ==========  =========  =========  ========  ========

At 55 requests/s the mean TTFT is 2 to 6 % low (the chain holds the batch at its mean), and P99 at a budget of 2048
11 % low. Prompts and outputs are each of one length, and decode steps never stop for want of a sequence.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil

import numpy as np
from numpy.typing import ArrayLike, NDArray

from formulas.closed_form import ClosedForm, Condition, at_most, variable
from formulas.interference.backlog import Backlog, FirstToken, MixedTime
from formulas.interference.stretched import BusyTime, Stretched, busy_time, quantile_of, stretched

Array = NDArray[np.float64]

PROMPT = variable("prompt_tokens", "p", "", "tokens of the prompt")
CHUNKS = variable("chunks", "N", "", "chunks that the prompt is cut into")
REREAD = variable("reread_tokens", "h", "", "tokens whose keys and values are read again")

_P, _N = PROMPT.symbol, CHUNKS.symbol

REREAD_TOKENS = ClosedForm(
    "tokens read again by later chunks",
    REREAD,
    _P * (_N - 1) / 2,
    (PROMPT, CHUNKS),
    "DistServe (OSDI 2024), section 2.3: chunk i reads the i - 1 before it, so that chunks of one size read a number"
    " that grows with the square of the prompt",
    (Condition(at_most(1, _N), "A prompt has at least one chunk."),),
)
"""Cached tokens of the same prompt that its chunks read, all together []; times the bytes of a token, traffic."""


@dataclass(frozen=True)
class Chunked:
    """Chunked prefill in its steady state.

    Attributes
    ----------
    steps
        The decode steps, mixed ones counted as plain; `interruption_s` is the excess per prompt.
    prompt_steps
        Steps that a prompt needs if no other waits [].
    ttft_steps
        Mean steps from a prompt's first chance to its first token, the wait behind others included [].
    mixed_share
        Share of the steps with a prompt in them [].
    mean_ttft, mean_tpot
        Mean time to first token, and per output token after it [s].
    noise_s
        Excess per prompt that would vary the time as much as the prompts do, if they came alone [s].
    longest_s
        Time of a step that fills the budget, which no percentile exceeds [s].
    first
        Law of the time to first token.
    """

    steps: Stretched
    prompt_steps: int
    ttft_steps: float
    mixed_share: float
    mean_ttft: float
    mean_tpot: float
    noise_s: float
    longest_s: float
    first: FirstToken

    @property
    def excess_s(self) -> float:
        """Time that a prompt adds to the steps it is in [s]."""
        return self.steps.interruption_s

    @property
    def mean_batch(self) -> float:
        """Mean sequences in the step that brings a token []."""
        return self.steps.seen_batch

    @property
    def tpot_deviation(self) -> float:
        """Standard deviation of the time per output token over the requests [s]."""
        return float(np.sqrt(self.steps.variance(self.noise_s)) / self.steps.tokens)

    @cached_property
    def _busy_time(self) -> BusyTime:
        m, s = self.steps.tokens, self.steps
        moments = m * self.mean_tpot, (m * self.tpot_deviation) ** 2
        return busy_time(s.work_s, s.rate, self.excess_s, np.ones(1), moments)

    def tpot_quantile(self, level: ArrayLike) -> Array:
        """Time per output token that a share `level` of the requests do not exceed [s]."""
        longest = max(self.longest_s, self.mean_tpot)
        return np.asarray(np.minimum(self._busy_time.quantile(level) / self.steps.tokens, longest))

    def tpot_share_within(self, time: ArrayLike) -> Array:
        """Share of the requests whose time per output token does not exceed `time` [s]."""
        times = np.asarray(time, dtype=float)
        longest = max(self.longest_s, self.mean_tpot)
        return np.where(times >= longest, 1.0, self._busy_time.share_within(self.steps.tokens * times))

    def ttft_share_within(self, time: ArrayLike) -> Array:
        """Share of the requests whose time to first token does not exceed `time` [s]."""
        return self.first.share_within(time)

    def ttft_quantile(self, level: ArrayLike) -> Array:
        """Time to first token that a share `level` of the requests do not exceed [s]."""
        return quantile_of(self.first.share_within, level, float(self.first.after_s.min()), 4 * self.mean_ttft)


def chunked(
    rate: float, prompt_tokens: int, tokens: float, mixed_time: MixedTime, budget: int, excess: float = 0.0
) -> Chunked:
    """Prompts of one length in chunks: every step decodes all sequences and fills the budget with prompts in turn.

    Parameters
    ----------
    rate
        Requests per second [1/s].
    prompt_tokens
        Tokens of a prompt []; several prompts may share a step.
    tokens
        Decode steps of a request: its output tokens after the first [].
    mixed_time
        Time of a step with n sequences and p prompt tokens [s]; arrays broadcast. What a prompt token attends to
        is up to it: half of the prompt, on average.
    budget
        Most tokens in a step, sequences and prompts together [].
    excess
        A first guess of what a prompt adds, from a rate nearby: it saves time [s].

    Raises
    ------
    DomainError
        If the budget leaves no room for prompts, or not enough for their rate.

    Examples
    --------
    >>> def mixed(n, p):
    ...     return 1e-3 + np.maximum(5.6e-3 + 2.66e-5 * n, 2.55e-5 * (n + p))
    >>> small = chunked(40, 512, 63, mixed, 512)
    >>> small.excess_s, small.mean_ttft, small.mean_tpot, small.prompt_steps
    (0.0068, 0.0384, 0.0101, 2)
    """
    batch = stretched(rate, tokens, lambda n: mixed_time(n, np.zeros(1)), excess).batch
    for _ in range(30):
        chain = Backlog(rate, prompt_tokens, mixed_time, batch, budget)
        excess, before = chain.excess, excess
        steps = stretched(rate, tokens, lambda n: mixed_time(n, np.zeros(1)), excess)
        batch = steps.batch
        if abs(excess - before) <= 1e-4 * excess:
            break
    noise, startup = chain.fluctuation(tokens)
    prompts = steps.batch / (1 - rate * excess) ** 2  # their variance during as many steps
    first, ttft_steps = chain.first_token()
    return Chunked(
        steps=steps,
        prompt_steps=ceil(prompt_tokens / (budget - batch)),
        ttft_steps=ttft_steps,
        mixed_share=1 - float(chain.law[0]),
        mean_ttft=first.mean,
        mean_tpot=steps.step_s / (1 - rate * excess) + startup / tokens,
        noise_s=float(np.sqrt(noise / prompts)),
        longest_s=chain.full_s,
        first=first,
    )
