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
11 % low. Decode steps never stop for want of a sequence.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import ArrayLike, NDArray

from formulas.closed_form import ClosedForm, Condition, at_most, variable
from formulas.interference.backlog import Backlog, FirstToken, MixedTime
from formulas.interference.prompts import EVEN, Unevenness
from formulas.interference.stretched import (
    Stretched,
    TokenTimes,
    busy_time,
    lengths_in_bins,
    prompts_in_bins,
    quantile_of,
    stretched,
)

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
    mean_ttft
        Mean time to first token [s].
    longest_s
        Time of a step that fills the budget, which no percentile exceeds [s].
    token_times
        Law of the time per output token.
    first
        Law of the time to first token.
    """

    steps: Stretched
    prompt_steps: int
    ttft_steps: float
    mixed_share: float
    mean_ttft: float
    longest_s: float
    token_times: TokenTimes
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
    def mean_tpot(self) -> float:
        """Mean time per output token after the first, over the requests [s]."""
        return self.token_times.mean

    def tpot_quantile(self, level: ArrayLike) -> Array:
        """Time per output token that a share `level` of the requests do not exceed [s]."""
        longest = max(self.longest_s, self.mean_tpot)
        return np.asarray(np.minimum(self.token_times.quantile(level), longest))

    def tpot_share_within(self, time: ArrayLike) -> Array:
        """Share of the requests whose time per output token does not exceed `time` [s]."""
        times = np.asarray(time, dtype=float)
        longest = max(self.longest_s, self.mean_tpot)
        return np.where(times >= longest, 1.0, self.token_times.share_within(times))

    def ttft_share_within(self, time: ArrayLike) -> Array:
        """Share of the requests whose time to first token does not exceed `time` [s]."""
        return self.first.share_within(time)

    def ttft_quantile(self, level: ArrayLike) -> Array:
        """Time to first token that a share `level` of the requests do not exceed [s]."""
        return quantile_of(self.first.share_within, level, float(self.first.after_s.min()), 4 * self.mean_ttft)


def chunked(
    rate: float,
    prompt_tokens: float,
    tokens: float,
    mixed_time: MixedTime,
    budget: int,
    excess: float = 0.0,
    *,
    prompts: Unevenness = EVEN,
    lengths_cv2: float = 0.0,
) -> Chunked:
    """Prompts in chunks: every step decodes all sequences and fills the budget with prompts in turn.

    Parameters
    ----------
    rate
        Requests per second [1/s].
    prompt_tokens
        Mean tokens of a prompt []; several prompts may share a step.
    tokens
        Decode steps of a request, on average: its output tokens after the first [].
    mixed_time
        Time of a step with n sequences and p prompt tokens [s]; arrays broadcast. What a prompt token attends to
        is up to it: half of the prompt, on average.
    budget
        Most tokens in a step, sequences and prompts together [].
    excess
        A first guess of what a prompt adds, from a rate nearby: it saves time [s].
    prompts
        How unevenly prompts come, and how their lengths spread, log-normal. Those that wait are taken for equal ones
        that vary as much; the prompt itself has its own length.
    lengths_cv2
        Squared coefficient of variation of the output lengths, log-normal if it is not 0 [].

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

    def plain(n: Array) -> Array:
        return mixed_time(n, np.zeros(1))

    batch = stretched(rate, tokens, plain, excess, prompts).batch
    for _ in range(30):
        alike = prompts.alike_to_wait_for(_load(rate, prompt_tokens, mixed_time, batch, budget))
        chain = Backlog(rate / alike, prompt_tokens * alike, mixed_time, batch, budget)
        excess, before = chain.excess / alike, excess
        steps = stretched(rate, tokens, plain, excess, prompts)
        batch = steps.batch
        if abs(excess - before) <= 1e-4 * excess:
            break
    shares, own_tokens = prompts_in_bins(prompt_tokens, prompts.services)
    first, ttft_steps = chain.first_token(shares, own_tokens)
    return Chunked(
        steps=steps,
        prompt_steps=ceil(prompt_tokens / (budget - batch)),
        ttft_steps=ttft_steps,
        mixed_share=1 - float(chain.law[0]),
        mean_ttft=first.mean,
        longest_s=chain.full_s,
        token_times=_token_times(steps, chain, lengths_cv2),
        first=first,
    )


def _load(rate: float, prompt_tokens: float, mixed_time: MixedTime, batch: float, budget: int) -> float:
    """Utilization by prompts in steps that fill the budget; 1 where there is no room for any."""
    room = budget - batch
    if room <= 0:
        return 1.0
    full_s = float(mixed_time(np.array([batch]), np.array([room]))[0])
    return min(rate * prompt_tokens * full_s / room, 1.0)


def _token_times(steps: Stretched, chain: Backlog, lengths_cv2: float) -> TokenTimes:
    """Law of the time per output token: of each length, a delay busy period with the excess of the mixed steps."""
    rest, alike = 1 - steps.rate * steps.interruption_s, steps.prompts.alike
    shares, lengths = lengths_in_bins(steps.tokens, lengths_cv2)
    noise, startups = chain.fluctuation(np.append(lengths, steps.tokens))
    noise_s = float(np.sqrt(noise[-1] * rest**2 / steps.batch))
    # Of long prompts among short ones the chain leaves too much behind, as all of its own are long.
    startups = startups[:-1] * steps.prompts.arrivals / steps.prompts.alike
    times = []
    for m, startup in zip(lengths.tolist(), startups.tolist(), strict=True):
        work = m * steps.step_s
        moments = work / rest + startup, steps.variance(m if lengths_cv2 else None, noise_s)
        times.append(busy_time(work, steps.rate / alike, steps.interruption_s * alike, np.ones(1), moments))
    return TokenTimes(shares, lengths, tuple(times))
