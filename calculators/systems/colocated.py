"""Prompts and tokens on the same instance: prompts before tokens, or prompts in chunks along with the tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calculators.clock import ServingClock, clock_of
from calculators.lengths import spread_of
from calculators.scenario import ServiceLevels
from calculators.systems.base import Latency, System
from formulas import interference as forms
from formulas.closed_form import DomainError

Array = NDArray[np.float64]

NEAR_SATURATION = 0.95
"""Load of the prompts from which prefill first has no answer."""

BUDGETS = (128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 4096, 8192)
"""Budgets of chunked prefill that are tried where the best is looked for [tokens]."""

EVENEST = 0.5
"""Squared coefficient of variation of gaps that more even ones are taken for in chunks. At 0.25 and tight targets the form's goodput
was up to 29 % too high by itself, and is within 13 % so."""

MOST_WAITING = 160
"""Prompts whose tokens a step is ever asked to take together."""


@dataclass(frozen=True)
class ColocatedLatency(Latency):
    """Times of prefill first or of chunked prefill."""

    law: forms.PrefillFirst | forms.Chunked

    @property
    def mean_ttft_s(self) -> float:
        """Mean time to first token."""
        return self.law.mean_ttft

    @property
    def mean_tpot_s(self) -> float:
        """Mean time per output token."""
        return self.law.mean_tpot

    @property
    def mean_batch(self) -> float:
        """Mean sequences in the step that brings a token."""
        return self.law.mean_batch

    def ttft_quantile_s(self, level: Any) -> Array:
        """Time to first token that a share `level` of the requests do not exceed."""
        return self.law.ttft_quantile(level)

    def tpot_quantile_s(self, level: Any) -> Array:
        """Time per output token that a share `level` of the requests do not exceed."""
        return self.law.tpot_quantile(level)

    def ttft_share_within(self, time_s: float) -> float:
        """Share of the requests whose first token comes within a time."""
        return float(self.law.ttft_share_within(time_s))

    def tpot_share_within(self, time_s: float) -> float:
        """Share of the requests whose tokens come within a time each."""
        return float(self.law.tpot_share_within(time_s))


@dataclass(frozen=True)
class PrefillFirst(System):
    """Prompts one at a time, before any decode step."""

    name = "Prefill first"
    key = "prefill_first"

    @property
    def accelerators(self) -> float:
        """Accelerators of one instance."""
        return self.inputs.tp

    @property
    def bound(self) -> float:
        """A rate [requests/s] above every one that has a steady state."""
        return 1 / (self.prefill_s + 1 / self.pool.capacity)

    def latency(self, rate: float) -> ColocatedLatency:
        """Return the times at a rate [requests/s]."""
        pool = self.pool
        if rate * self.prefill_s > NEAR_SATURATION:
            raise DomainError("So close to saturation that hundreds of prompts wait: no answer there.")
        law = forms.prefill_first(
            rate,
            self.prefill_law,
            pool.steps,
            pool.step_time,
            arrival_scv=self.arrival_scv(),
            lengths_cv2=pool.lengths_cv2,
        )
        return _within_memory(self, law)


@dataclass(frozen=True)
class ChunkedPrefill(System):
    """Every step takes all sequences, and prompts up to a budget of tokens.

    Attributes
    ----------
    budget
        Most tokens of a step, sequences and prompts together.
    mixed_efficiency
        Share of the arithmetic rate that a step with both prompts and sequences reaches.
    """

    budget: int
    mixed_efficiency: float = 1.0

    name = "Chunked prefill"
    key = "chunked"

    @property
    def accelerators(self) -> float:
        """Accelerators of one instance."""
        return self.inputs.tp

    @property
    def bound(self) -> float:
        """A rate [requests/s] above every one that has a steady state: prompts alone, in full steps."""
        full_s = float(self._mixed(np.zeros(1), np.array([float(self.budget)]))[0])
        return self.budget / (self.inputs.prompt_tokens * full_s)

    @cached_property
    def _clock(self) -> ServingClock:
        prompt = self._typical_prompt
        contexts = (prompt, prompt + self.inputs.output_tokens)
        most = min(2 * self.budget, MOST_WAITING * prompt + (self.pool.slots or 1))
        clock = clock_of(self.inputs, most, contexts, self.inputs.cached_tokens)
        return replace(clock, mixed_efficiency=self.mixed_efficiency)

    def _mixed(self, sequences: Array, prompt_tokens: Array) -> Array:
        context = self.pool.context_tokens - self.inputs.cached_tokens
        return self._clock.mixed_s(sequences, context, prompt_tokens, self._typical_prompt)

    @property
    def _typical_prompt(self) -> int:
        """Tokens of the prompt that a prompt token is in: more than the mean where they spread."""
        return round(self.inputs.prompt_tokens * (1 + spread_of(self.inputs) ** 2))

    def latency(self, rate: float) -> ColocatedLatency:
        """Return the times at a rate [requests/s]."""
        if rate >= self.bound:
            raise DomainError("Prompts arrive at least as fast as full steps take them.")
        law = forms.chunked(
            rate,
            self.inputs.prompt_tokens,
            self.pool.steps,
            self._mixed,
            self.budget,
            prompts=forms.Unevenness(max(self.arrival_scv(), EVENEST), spread_of(self.inputs) ** 2),
            lengths_cv2=self.pool.lengths_cv2,
        )
        return _within_memory(self, law)


def _within_memory(system: System, law: forms.PrefillFirst | forms.Chunked) -> ColocatedLatency:
    """Return the times, where memory holds the mean batch: the forms know of no limit, and beyond it none is steady."""
    if law.mean_batch >= (system.pool.slots or 0):
        raise DomainError("The batch would be more than memory holds.")
    return ColocatedLatency(law)


def best_chunks(made: Callable[[int], ChunkedPrefill], targets: ServiceLevels) -> ChunkedPrefill | None:
    """Return chunked prefill with the budget that carries most within the targets, or ``None`` if none carries any."""
    best, most = None, 0.0
    for budget in sorted(BUDGETS, key=lambda each: abs(each - 512)):
        system = made(budget)
        if not system.pool.serves or most >= system.bound:
            continue
        times = system.at(most) if most else None
        if most and (times is None or times.attainment(targets) < targets.attainment):
            continue  # it does not reach what another does: no need to know how much less
        rate = system.goodput(targets)
        if rate is not None and rate > most:
            best, most = system, rate
    return best
