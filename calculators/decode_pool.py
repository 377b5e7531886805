"""A pool of decoding sequences on real figures: the step time against the batch, the slots, the law of the batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calculators.decode_step import step_times_s
from calculators.inputs import part_of
from calculators.machine import MachineInputs
from calculators.memory import MemoryInputs, sequences_that_fit
from calculators.scenario import Output, OutputSpread, Prompt
from formulas import decode_pool as forms
from formulas.closed_form import DomainError

Array = NDArray[np.float64]

_LONGEST_TABLE = 2**17
"""Batches beyond which each step time is computed when it is asked for."""


@dataclass(frozen=True, kw_only=True)
class PoolInputs(MachineInputs, MemoryInputs, OutputSpread, Output, Prompt):
    """What a decode pool depends on, beside the rate and the target."""


@dataclass(frozen=True)
class StepTable:
    """The step time at each batch, computed as far as anyone has asked."""

    inputs: MachineInputs
    context_tokens: float
    _times_s: list[Array] = field(default_factory=lambda: [np.empty(0)], compare=False, repr=False)

    def __call__(self, sequences: Any) -> Array:
        """Return the step times [s] of so many sequences."""
        asked = np.asarray(sequences)
        most = int(asked.max())
        if asked.size > _LONGEST_TABLE:
            raise DomainError(f"So close to its capacity that the batch exceeds {_LONGEST_TABLE:,} sequences.")
        if most > _LONGEST_TABLE:
            return step_times_s(self.inputs, asked.astype(float), self.context_tokens)
        if most > self._times_s[0].size:
            size = 1 << most.bit_length()
            self._times_s[0] = step_times_s(self.inputs, np.arange(1.0, size + 1), self.context_tokens)
        return np.asarray(self._times_s[0][asked.astype(int) - 1])


@lru_cache(maxsize=64)  # it does not depend on the rate, which is what a planner moves
def _table(inputs: MachineInputs, context_tokens: float) -> StepTable:
    return StepTable(inputs, context_tokens)


@dataclass(frozen=True)
class Pool:
    """A decode pool: everything but the rate.

    Attributes
    ----------
    step_time : StepTable
        Time of a step [s] at each batch, at the mean context.
    context_tokens : float
        Mean context of a sequence while it is decoded.
    steps : int
        Decode steps of a request: its output tokens after the first, which the prefill brings.
    slots : int or None
        Sequences for which memory can be set aside whole; ``None`` where the weights do not fit.
    lengths_cv2 : float
        Squared coefficient of variation of the output lengths.
    """

    step_time: StepTable
    context_tokens: float
    steps: int
    slots: int | None
    lengths_cv2: float

    @property
    def serves(self) -> bool:
        """Whether there is something to decode, and room for a sequence."""
        return self.steps > 0 and bool(self.slots)

    @property
    def alone_ms(self) -> float:
        """Time [ms] of a step of one sequence: no token comes sooner."""
        return 1e3 * float(self.step_time(np.ones(1))[0])

    @property
    def capacity(self) -> float:
        """Rate [requests/s] that is never reached."""
        return forms.capacity(self.steps, self.step_time, self.slots)

    def law(self, rate: float) -> forms.PoolLaw | None:
        """Return the law of the batch at a rate [requests/s], or ``None`` where there is no steady state."""
        if not self.serves or rate >= self.capacity:
            return None
        try:
            return forms.stationary_law(rate, self.steps, self.step_time, self.slots)
        except DomainError:  # so close to the capacity that nobody would run it there
            return None

    def max_rate(self, tpot_slo_ms: float, attainment: float | None) -> float | None:
        """Return the largest rate [requests/s] within the target, or ``None`` if no rate is.

        The target holds for a share ``attainment`` of the requests, or for the mean if that is ``None``.
        """
        return _max_rate(self, tpot_slo_ms, attainment) if self.serves else None

    def context_share(self, sequences: float) -> float:
        """Return which part of what one more sequence adds to a step of so many is due to its context, from 0 to 1."""
        return _context_share(self, max(round(float(f"{sequences:.2g}")), 1))

    def __hash__(self) -> int:
        return hash((self.step_time.inputs, self.context_tokens, self.steps, self.slots, self.lengths_cv2))


@lru_cache(maxsize=1024)
def _context_share(pool: Pool, sequences: int) -> float:
    batch, inputs = np.array([sequences, sequences + 1.0]), pool.step_time.inputs
    here, one_more = step_times_s(inputs, batch, pool.context_tokens)
    longer = step_times_s(inputs, batch[:1], 1.1 * pool.context_tokens)[0]
    added = float(one_more - here)
    return min(max(10 * float(longer - here) / sequences / added, 0.0), 1.0) if added > 0 else 0.0


@lru_cache(maxsize=4096)
def _max_rate(pool: Pool, tpot_slo_ms: float, attainment: float | None) -> float | None:
    if pool.alone_ms >= tpot_slo_ms:
        return None
    try:
        return forms.max_rate(
            1e-3 * tpot_slo_ms,
            pool.steps,
            pool.step_time,
            level=attainment,
            cap=pool.slots,
            lengths_cv2=pool.lengths_cv2,
        )
    except DomainError:  # the target is met up to batches for which the law is not summed: one of the rates before that
        rates = (share * pool.capacity for share in _SHARES)
        return next((rate for rate in rates if _within(pool, rate, tpot_slo_ms, attainment)), None)


_SHARES = (0.95, 0.9, 0.8, 0.6, 0.4, 0.2, 0.1, 0.01)


def _within(pool: Pool, rate: float, tpot_slo_ms: float, attainment: float | None) -> bool:
    law = pool.law(rate)
    return law is not None and 1e3 * law.tpot_from_arrival(attainment, pool.lengths_cv2) <= tpot_slo_ms


def pool_of(inputs: PoolInputs) -> Pool:
    """Return the decode pool of one instance.

    Raises
    ------
    InputsError
        As for :func:`~calculators.machine.machine_of`.
    """
    steps, cv2 = inputs.output_tokens - 1, inputs.output_cv**2
    prompt = inputs.prompt_tokens + inputs.cached_tokens
    # Of a request's m steps the j-th has j tokens of its own; over all tokens, long outputs count more.
    context = prompt + (steps * (1 + cv2) + 1) / 2
    return Pool(
        step_time=_table(part_of(MachineInputs, inputs), context),
        context_tokens=context,
        steps=steps,
        slots=sequences_that_fit(inputs, prompt + steps),
        lengths_cv2=cv2,
    )
