"""The clock of the event simulation on real figures: the step-time model, fast enough to be asked for every step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import floor

import numpy as np
from numpy.typing import NDArray

from calculators.inputs import part_of
from calculators.machine import MachineInputs, machine_of
from calculators.step_load import StepContents, step_load
from formulas import step_time as step
from formulas.montecarlo.serving import Run

Array = NDArray[np.float64]

_GRAIN = 4096
"""Tokens by which the tables grow."""


@dataclass(frozen=True)
class ServingClock:
    """Time of any step of an instance: what depends on the number of tokens in tables, the rest in proportion.

    Attributes
    ----------
    compute_prompt_s, weights_s, collectives_s : list of float
        Arithmetic of a prompt of so many tokens, all new; reading the weights for so many tokens in all; reducing them.
    compute_sequence_s, compute_context_s, compute_pair_s : float
        Arithmetic for each sequence, each token of their contexts, each pair of a prompt token and a cached one.
    memory_sequence_s, memory_context_s, memory_cached_s, memory_token_s : float
        Reading and writing the cache, likewise; the last for each token of the step, where writing counts.
    prefix_s : float
        Reading the prefix that every prompt has in the cache, for a step with a prompt in it.
    overhead_s : float
        Of a step.
    mixed_efficiency : float
        Share of the arithmetic rate that a step reaches that holds both prompts and sequences.

    Notes
    -----
    Exact where attention is to everything before. Where layers have a window, or select what they attend to, the
    shares are the secants between the shortest and the longest context that was named.
    """

    compute_prompt_s: list[float]
    weights_s: list[float]
    collectives_s: list[float]
    compute_sequence_s: float
    compute_context_s: float
    compute_pair_s: float
    memory_sequence_s: float
    memory_context_s: float
    memory_cached_s: float
    memory_token_s: float
    prefix_s: float
    overhead_s: float
    mixed_efficiency: float = 1.0

    def __call__(self, prompt_tokens: float, cached_tokens: float, decoding: float, context_sum: float) -> float:
        """Time of a step [s]: see :data:`formulas.montecarlo.serving.StepTime`."""
        prompt, tokens = int(prompt_tokens), int(prompt_tokens + decoding)
        compute = (
            self.compute_prompt_s[prompt]
            + self.compute_pair_s * prompt_tokens * cached_tokens
            + self.compute_sequence_s * decoding
            + self.compute_context_s * context_sum
        )
        if prompt and decoding:
            compute /= self.mixed_efficiency
        memory = (
            self.weights_s[tokens]
            + self.memory_cached_s * max(cached_tokens, 0.0)
            + (self.prefix_s if prompt else 0.0)
            + self.memory_sequence_s * decoding
            + self.memory_context_s * context_sum
            + self.memory_token_s * tokens
        )
        return max(compute, memory) + self.collectives_s[tokens] + self.overhead_s

    def mixed_s(self, sequences: Array, context_tokens: float, prompt_tokens: Array, whole_prompt: int) -> Array:
        """Time [s] of steps with a part of a prompt in them; arrays broadcast.

        Parameters
        ----------
        sequences, context_tokens
            Decoding sequences and the context of each; fractions are interpolated.
        prompt_tokens
            Tokens of prompts in the step, of which each attends to half of the whole prompt on average.
        whole_prompt
            Tokens of a prompt.
        """
        before = (whole_prompt - prompt_tokens) / 2
        tokens, context_sum = prompt_tokens + sequences, sequences * context_tokens
        prompts, weights, collectives = self._tables
        compute = (
            _read(prompts, prompt_tokens)
            + self.compute_pair_s * prompt_tokens * before
            + self.compute_sequence_s * sequences
            + self.compute_context_s * context_sum
        )
        if self.mixed_efficiency < 1:
            compute = compute / np.where((prompt_tokens > 0) & (sequences > 0), self.mixed_efficiency, 1.0)
        memory = (
            _read(weights, tokens)
            + (self.memory_cached_s * np.maximum(before, 0.0) + self.prefix_s) * (prompt_tokens > 0)
            + self.memory_sequence_s * sequences
            + self.memory_context_s * context_sum
            + self.memory_token_s * tokens
        )
        return np.asarray(np.maximum(compute, memory) + _read(collectives, tokens) + self.overhead_s)

    @cached_property
    def _tables(self) -> tuple[Array, Array, Array]:
        return np.array(self.compute_prompt_s), np.array(self.weights_s), np.array(self.collectives_s)

    def decode_run(self, decoding: int, context_sum: int, steps: int) -> Run:
        """Return decode steps of one batch, as many as the same side of the roofline bounds."""
        rest = self.collectives_s[decoding] + self.overhead_s
        memory = (
            self.weights_s[decoding]
            + (self.memory_sequence_s + self.memory_token_s) * decoding
            + self.memory_context_s * context_sum
        )
        compute = self.compute_sequence_s * decoding + self.compute_context_s * context_sum
        sides = (memory, self.memory_context_s * decoding), (compute, self.compute_context_s * decoding)
        (first, growth), (other, faster) = sides if memory >= compute else sides[::-1]
        if faster > growth:
            steps = min(steps, floor((first - other) / (faster - growth)) + 1)
        return Run(first + rest, growth, steps)


def _read(table: Array, at: Array) -> Array:
    """Return a table's values between its whole numbers, by straight lines: what numpy.interp does for any table."""
    low = np.minimum(at.astype(int), table.size - 2)
    return np.asarray(table[low] + (at - low) * (table[low + 1] - table[low]))


def clock_of(inputs: MachineInputs, tokens: int, contexts: tuple[int, int], cached_tokens: int = 0) -> ServingClock:
    """Return the clock of an instance.

    Parameters
    ----------
    inputs
        The instance and its assumptions.
    tokens
        Most tokens in one step, prompts and sequences together.
    contexts
        The shortest and the longest context that a sequence has, a cached prefix left out.
    cached_tokens
        Prefix that every prompt has in the cache. The simulation knows nothing of it: it counts a request's own tokens.

    Raises
    ------
    InputsError
        As for :func:`~calculators.machine.machine_of`.
    """
    size = -(-(tokens + 1) // _GRAIN) * _GRAIN
    return _clock(part_of(MachineInputs, inputs), size, contexts, cached_tokens)


@lru_cache(maxsize=32)
def _clock(inputs: MachineInputs, size: int, contexts: tuple[int, int], cached: int) -> ServingClock:
    machine = replace(machine_of(inputs), overhead_s=0.0)
    low, high = contexts[0], max(contexts[1], contexts[0] + 1)

    def time(**contents: object) -> step.StepTime:
        return step.step_time(step_load(inputs, StepContents(**contents)), machine)

    prompts = time(prompt_tokens=np.arange(size, dtype=float), cached_tokens=cached)
    none, short, long = (time(sequences=n, context_tokens=c + cached) for n, c in ((0, 0), (1, low), (1, high)))
    compute_context = (long.compute_s - short.compute_s) / (high - low)
    memory_context = (long.kv_s - short.kv_s) / (high - low)
    fresh, after = (time(prompt_tokens=high, cached_tokens=h) for h in (0, high))
    written = time(prompt_tokens=1).kv_s
    return ServingClock(
        compute_prompt_s=prompts.compute_s.tolist(),
        weights_s=prompts.weights_s.tolist(),
        collectives_s=np.broadcast_to(prompts.collectives_s, (size,)).tolist(),
        compute_sequence_s=short.compute_s - compute_context * low - none.compute_s,
        compute_context_s=compute_context,
        compute_pair_s=(after.compute_s - fresh.compute_s) / high**2,
        memory_sequence_s=short.kv_s - memory_context * low - written,
        memory_context_s=memory_context,
        memory_cached_s=(after.kv_s - fresh.kv_s) / high,
        memory_token_s=written,
        prefix_s=time(prompt_tokens=1, cached_tokens=cached).kv_s - written,
        overhead_s=machine_of(inputs).overhead_s,
    )
