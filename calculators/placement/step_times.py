"""The time of each stage: by the step-time model on real figures, or by anything else that has the same two methods."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

import hardware_db
from calculators.inputs import part_of
from calculators.machine import MachineInputs, machine_of
from calculators.placement.cluster import SearchInputs
from calculators.service_time import PrefillInputs, prefill_times_ms, stage_times_ms
from calculators.step_load import StepContents, step_load
from formulas import step_time as step
from formulas.decode_pool import micro_batch, round_times

Array = NDArray[np.float64]


class StepTimes(Protocol):
    """Times of the stages of an instance; hashable, since a search is kept by its inputs and its times."""

    def __hash__(self) -> int: ...

    def refusal(self, tp: int) -> str:
        """Why there are no times for a tensor parallel degree, or an empty string."""

    def prefill_s(self, inputs: SearchInputs, tp: int, pp: int) -> Array:
        """Time [s] of one prompt in each stage."""

    def relative_s(self, inputs: SearchInputs, tp: int, tokens: Array) -> Array:
        """Time of prompts of so many tokens over that of one of mean length, in every stage alike []."""

    def decode_s(self, inputs: SearchInputs, tp: int, pp: int, batch: Array, context_tokens: float) -> Array:
        """Time [s] of one step in each stage, along the first axis, for micro-batches of so many sequences."""


@dataclass(frozen=True)
class ModelledTimes:
    """The step-time model: whole layers in each stage, lm_head on the last, the step's overhead on every one."""

    def refusal(self, tp: int) -> str:  # noqa: ARG002 - the model's own rules say all
        """Return nothing: it has a time for every degree."""
        return ""

    def prefill_s(self, inputs: SearchInputs, tp: int, pp: int) -> Array:
        """Time [s] of one prompt in each stage."""
        return 1e-3 * np.array(stage_times_ms(part_of(PrefillInputs, inputs, tp=tp, service_ms=None), pp))

    def relative_s(self, inputs: SearchInputs, tp: int, tokens: Array) -> Array:
        """Time of prompts of so many tokens over that of one of mean length []."""
        one = part_of(PrefillInputs, inputs, tp=tp, service_ms=None)
        return np.asarray(prefill_times_ms(one, tokens) / prefill_times_ms(one, inputs.prompt_tokens))

    def decode_s(self, inputs: SearchInputs, tp: int, pp: int, batch: Array, context_tokens: float) -> Array:
        """Time [s] of one step in each stage: stages that are alike are computed once."""
        machine_inputs = part_of(MachineInputs, inputs, tp=tp)
        machine = machine_of(machine_inputs)
        contents = StepContents(sequences=batch, context_tokens=context_tokens)
        layers = [len(part) for part in np.array_split(range(hardware_db.models()[inputs.model].layers), pp)]
        kinds = [(count, place == pp - 1) for place, count in enumerate(layers)]
        times = {
            kind: np.asarray(
                step.step_time(step_load(machine_inputs, contents, kind[0], with_output=kind[1]), machine).total_s
            )
            for kind in Counter(kinds)
        }
        return np.array([np.broadcast_to(times[kind], batch.shape) for kind in kinds])


@dataclass(frozen=True)
class RoundTable:
    """Time of a token at each number of sequences in an instance, computed as far as anyone has asked."""

    times: StepTimes
    inputs: SearchInputs
    tp: int
    pp: int
    hops_s: float
    _known: list[Array] = field(default_factory=lambda: [np.empty(0)], compare=False, repr=False)

    def __call__(self, sequences: Any) -> Array:
        """Return the times [s] at whole numbers of sequences."""
        asked = np.asarray(sequences).astype(np.int64)
        most = int(asked.max())
        if most > 2**20:  # the limit of large batches, asked for once
            return self._at(asked.astype(float))
        if most > self._known[0].size:
            self._known[0] = self._at(np.arange(1.0, (1 << max(most.bit_length(), 11)) + 1))
        return np.asarray(self._known[0][asked - 1])

    def _at(self, sequences: Array) -> Array:
        batch = micro_batch(sequences, self.pp)
        stages = self.times.decode_s(self.inputs, self.tp, self.pp, batch, self.inputs.mean_context)
        return round_times(stages, self.hops_s)
