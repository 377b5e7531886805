r"""A closed loop: a fixed number of requests in flight, each followed by the next as soon as it is done.

Load generators measure this way. Nobody arrives; the steps themselves are the clock. Of the :math:`m + N` steps of a
request N take its prompt, in chunks, and m bring a token. So another request is in any step of mine with a chunk of
its prompt with probability :math:`N / (m + N)`, and else with a token: the chunks in my step have a binomial law. A
prompt that is served alone, before the next decode step, is in nobody's step but between two of them.

That another request may be anywhere in its life holds where lengths differ a little and the beginning is forgotten.
Requests of equal length that begin together stay together, and the formulas do not hold for them.

Errors in percent, below the simulated value if negative, against a step-by-step simulation of Llama-3.1-8B on an
H100, prompts and outputs each uniform between 0.8 and 1 of the lengths named, a budget of 8192 tokens a step:

=========  ======  ======  ==========  ==========  ===========  ===========
in flight  prompt  output  mixed TPOT  mixed TTFT  before TPOT  before TTFT
=========  ======  ======  ==========  ==========  ===========  ===========
        4     512      64         0.0        -1.5          0.0         -1.7
       16     512      64        -0.3        -1.4         -0.1          0.5
       64     512      64        -1.3        -4.5          0.1         -2.0
       16    1024     256        -0.1         0.3         -0.1          0.0
       64    1024     256        -0.3        -2.7          0.0         -1.5
      128    1024     256        -1.0        -4.9         -0.1         -2.2
       64    1024    1024         0.0        -0.5          0.0         -0.4
       16    8192     256        -0.3         2.3         -0.3         -0.1
       64    8192     256         0.7         0.7          0.0         -1.5
       64    4096     128        -2.0        -5.9          0.1         -2.1
=========  ======  ======  ==========  ==========  ===========  ===========

That is over a hundred requests for each one in flight. Over the first ten, as load generators run, that all begin
together still shows: TPOT is within 2.5 %, TTFT up to 19 % low.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from formulas.closed_form import ClosedForm, Condition, DomainError, Step, at_most, equation, variable
from formulas.decode_pool.affine import TOKENS, TPOT
from formulas.interference.backlog import MixedTime
from formulas.interference.chunked import CHUNKS
from formulas.queueing.md1 import TTFT

Array = NDArray[np.float64]

IN_FLIGHT = variable("in_flight", "n", "", "requests in flight")
BATCH = variable("batch", "b", "", "mean sequences in a step that brings a token")
STEP = variable("step_s", "T", "s", "time of a decode step of that batch")
EXCESS = variable("excess_s", "E", "s", "time that a prompt adds to the steps it is in", nonnegative=True)
THROUGHPUT = variable("throughput", "X", "1/s", "requests done per second")
PROMPT_TIME = variable("prompt_s", "D", "s", "time of a prompt that is served alone", nonnegative=True)

_N, _M, _C, _T, _E, _D, _TPOT = (v.symbol for v in (IN_FLIGHT, TOKENS, CHUNKS, STEP, EXCESS, PROMPT_TIME, TPOT))
_RARE = 1e-9
_SOURCE = "A step as the clock: each request is at any of its own steps with the same probability"
_SOMEBODY = Condition(at_most(1, _N), "A closed loop has at least one request in flight.")
_WHOLE = Condition(at_most(1, _C), "A prompt has at least one chunk.")
_TOKEN = Condition(at_most(1, _M), "Without a decode step there is no time per output token.")


def _batch_steps() -> tuple[Step, ...]:
    share = sp.Symbol("s", positive=True)
    return (
        Step("Of the steps of a request this share brings a token, and the others take its prompt.",
             equation(share, _M / (_M + _C))),
        Step("In a step of mine each of the others decodes with that probability.",
             equation(BATCH.symbol, CLOSED_LOOP_BATCH.expression)),
    )  # fmt: skip


def _tpot_steps() -> tuple[Step, ...]:
    return (
        *_batch_steps(),
        Step("A chunk adds E / N to its step, and each of the others has one there with probability N / (m + N).",
             equation(_TPOT, _T + (_N - 1) * (_C / (_M + _C)) * (_E / _C))),
        Step("The number of chunks cancels.", equation(_TPOT, CLOSED_LOOP_TPOT.expression)),
    )  # fmt: skip


def _ttft_steps() -> tuple[Step, ...]:
    return (
        *_tpot_steps(),
        Step("The prompt takes N such steps, and adds its own excess to them.",
             equation(TTFT.symbol, CLOSED_LOOP_TTFT.expression)),
    )  # fmt: skip


def _before_steps() -> tuple[Step, ...]:
    return (
        Step("The prompts of those who ended are served between two decode steps, so that all n take part in every "
             "step. In m steps each of the others ends once, and its successor's prompt delays me; only where it ends "
             "at the same step as I did, its prompt comes before mine as often as after.",
             equation(_M * _TPOT, _M * _T + (_N - 1) * ((1 - 1 / _M) * _D + 1 / _M * _D / 2))),
        Step("Put together.", equation(_TPOT, PROMPT_BEFORE_TPOT.expression)),
    )  # fmt: skip


CLOSED_LOOP_BATCH = ClosedForm(
    "mean batch in a closed loop",
    BATCH,
    1 + (_N - 1) * _M / (_M + _C),
    (IN_FLIGHT, TOKENS, CHUNKS),
    _SOURCE,
    (_SOMEBODY, _WHOLE, _TOKEN),
    _batch_steps,
)

CLOSED_LOOP_TPOT = ClosedForm(
    "mean time per output token in a closed loop",
    TPOT,
    _T + (_N - 1) * _E / (_M + _C),
    (IN_FLIGHT, TOKENS, CHUNKS, STEP, EXCESS),
    _SOURCE,
    (_SOMEBODY, _WHOLE, _TOKEN),
    _tpot_steps,
    (BATCH,),
)
"""Mean time per output token [s] where prompts are served along with the tokens, each adding as much.

Examples
--------
>>> CLOSED_LOOP_TPOT(in_flight=64, tokens=127, chunks=1, step_s=8.0e-3, excess_s=0.014)
0.01489
"""

CLOSED_LOOP_TTFT = ClosedForm(
    "mean time to first token in a closed loop",
    TTFT,
    _C * _TPOT + _E,
    (CHUNKS, TPOT, EXCESS),
    _SOURCE,
    (_WHOLE,),
    _ttft_steps,
    (IN_FLIGHT, TOKENS, BATCH, STEP),
)

CLOSED_LOOP_THROUGHPUT = ClosedForm(
    "throughput of a closed loop",
    THROUGHPUT,
    _N / (TTFT.symbol + _M * _TPOT),
    (IN_FLIGHT, TOKENS, TTFT, TPOT),
    "Little's law: the requests in flight over the stay of one",
    (_SOMEBODY,),
)

PROMPT_BEFORE_TPOT = ClosedForm(
    "mean time per output token in a closed loop, prompts first",
    TPOT,
    _T + (_N - 1) * _D / _M * (1 - 1 / (2 * _M)),
    (IN_FLIGHT, TOKENS, STEP, PROMPT_TIME),
    _SOURCE,
    (_SOMEBODY, _TOKEN),
    _before_steps,
)
"""Mean time per output token [s] where prompts are served one at a time, before any decode step, which all n share.

Examples
--------
>>> PROMPT_BEFORE_TPOT(in_flight=64, tokens=127, step_s=8.0e-3, prompt_s=0.0141)
0.014967
"""

PROMPT_BEFORE_TTFT = ClosedForm(
    "mean time to first token in a closed loop, prompts first",
    TTFT,
    _D * (1 + (_N - 1) / (2 * _M)),
    (IN_FLIGHT, TOKENS, PROMPT_TIME),
    _SOURCE,
    (_SOMEBODY, _TOKEN),
)


@dataclass(frozen=True)
class ClosedLoop:
    """A closed loop whose prompts are served along with the tokens.

    Parameters
    ----------
    chunks
        Steps that a prompt takes [].
    mean_batch
        Mean sequences in a step that brings a token [].
    mean_tpot, mean_ttft
        Mean time per output token, and to the first token [s].
    throughput
        Requests done per second [1/s].
    """

    chunks: int
    mean_batch: float
    mean_tpot: float
    mean_ttft: float
    throughput: float


@dataclass(frozen=True)
class Company:
    """Who may be in a step with one of the requests in flight.

    Parameters
    ----------
    chunks
        Steps that a prompt takes [].
    others_prompts, probability
        How many of the others have a chunk of their prompt in the step, and how often [].
    others_decoding
        How many of them bring a token meanwhile [].
    """

    chunks: int
    others_prompts: Array
    probability: Array
    others_decoding: Array


def company(in_flight: int, prompt_tokens: int, tokens: float, budget: int) -> Company:
    """Who may be in a step with one of the requests in flight; what is rarer than 1e-9 is left out.

    Parameters
    ----------
    in_flight
        Requests in flight [].
    prompt_tokens
        Tokens of a prompt [].
    tokens
        Decode steps of a request: its output tokens after the first, at least one [].
    budget
        Most tokens in a step, sequences and prompts together [].

    Raises
    ------
    DomainError
        If the budget leaves less room for prompts than they need.

    Examples
    --------
    >>> company(3, 512, 63, 8192).probability
    array([0.96899414, 0.03076172, 0.00024414])
    """
    if in_flight >= budget:
        raise DomainError("With as many sequences in a step as it has tokens there is no room for a prompt.")
    chunks = ceil(prompt_tokens / (budget - in_flight))
    batch = CLOSED_LOOP_BATCH(in_flight=in_flight, tokens=tokens, chunks=chunks)
    if in_flight * prompt_tokens / (tokens + chunks) + batch > budget:
        raise DomainError("The prompts ask for more tokens a step than the budget leaves them: they queue for it.")
    others = np.arange(in_flight, dtype=float)
    probability = _binomial(others, in_flight - 1, chunks / (tokens + chunks))
    some = probability > _RARE
    return Company(chunks, others[some], probability[some], in_flight - 1 - others[some])


def _binomial(number: Array, of: int, share: float) -> Array:
    from scipy.special import gammaln, xlog1py, xlogy

    ways = gammaln(of + 1) - gammaln(number + 1) - gammaln(of - number + 1)
    return np.asarray(np.exp(ways + xlogy(number, share) + xlog1py(of - number, -share)))


def closed_loop(in_flight: int, prompt_tokens: int, tokens: float, mixed_time: MixedTime, budget: int) -> ClosedLoop:
    """Means of a closed loop whose prompts are served along with the tokens.

    Parameters
    ----------
    in_flight
        Requests in flight [].
    prompt_tokens
        Tokens of a prompt [].
    tokens
        Decode steps of a request: its output tokens after the first, at least one [].
    mixed_time
        Time of a step with n sequences and p prompt tokens [s], arrays alike, as for
        :func:`~formulas.interference.chunked.chunked`.
    budget
        Most tokens in a step, sequences and prompts together [].

    Raises
    ------
    DomainError
        As for :func:`company`.

    Examples
    --------
    >>> loop = closed_loop(64, 512, 127, lambda n, p: 1e-3 + np.maximum(5.6e-3 + 2.66e-5 * n, 2.55e-5 * (n + p)), 8192)
    >>> loop.mean_batch, loop.mean_tpot, loop.mean_ttft, loop.throughput
    (63.508, 0.012505, 0.022076, 39.746)
    """
    others = company(in_flight, prompt_tokens, tokens, budget)
    chunk = prompt_tokens / others.chunks
    prompts = others.others_prompts * chunk
    decoding = mixed_time(others.others_decoding + 1, prompts)
    prefilling = mixed_time(others.others_decoding, prompts + chunk)
    return means(in_flight, tokens, others, decoding, prefilling)


def means(in_flight: int, tokens: float, others: Company, decoding_s: Array, prefilling_s: Array) -> ClosedLoop:
    """Means of a closed loop from the times of its steps: with a token of mine, and with a chunk of my prompt [s]."""
    tpot = float(others.probability @ decoding_s)
    ttft = others.chunks * float(others.probability @ prefilling_s)
    batch = CLOSED_LOOP_BATCH(in_flight=in_flight, tokens=tokens, chunks=others.chunks)
    throughput = CLOSED_LOOP_THROUGHPUT(in_flight=in_flight, tokens=tokens, mean_tpot=tpot, mean_ttft=ttft)
    return ClosedLoop(others.chunks, batch, tpot, ttft, throughput)
