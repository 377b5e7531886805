"""A prompt in a step of decoding sequences: how much of it is free, and what longer prompts cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calculators.decode_step import step_of
from calculators.machine import MachineInputs, machine_of
from calculators.outputs import output
from calculators.step_load import StepContents, step_load
from formulas import step_time as step
from formulas.bracketing import find_root

Array = NDArray[np.float64]

LONGEST = 2.0**21
"""Tokens beyond which no prompt is looked for."""

ROUNDING = 1e-9
"""Share by which a step may grow before it counts as longer."""


def free_prompt_tokens(inputs: MachineInputs, sequences: int, context_tokens: float) -> float:
    """Return the largest prompt [tokens] that makes a step no longer: its arithmetic hides behind what the step reads.

    With experts any prompt touches more of them, and with several ranks there is more to reduce: none is free then.
    """
    machine = machine_of(inputs)

    def step_s(prompt: Array) -> Array:
        contents = StepContents(prompt_tokens=prompt, sequences=sequences, context_tokens=context_tokens)
        return np.asarray(step.step_time(step_load(inputs, contents), machine).total_s)

    longest_s = (1 + ROUNDING) * step_s(np.zeros(1))
    low, high = np.zeros(1), np.array([LONGEST])
    if step_s(high)[0] <= longest_s[0]:
        return LONGEST
    free = float(find_root(lambda prompt: step_s(prompt) - longest_s, low, high, tolerance=1e-12)[0])
    return free if free >= 1 else 0.0


@dataclass(frozen=True)
class MixedCurve:
    """The time of a step against the prompt in it."""

    prompt_tokens: Array = output("Prompt in the step", "tokens")
    mixed_step_ms: Array = output("Step", "ms")
    late_ms: Array = output("Each token is late by", "ms")


def mixed_curve(inputs: MachineInputs, sequences: int, context_tokens: float, longest: int) -> MixedCurve:
    """Return the time of a step of ``sequences`` with prompts up to ``longest`` tokens in it, none cached before."""
    prompts = np.unique(np.round(np.concatenate([[0.0], np.geomspace(16, longest, 60)])))
    steps = step_of(
        inputs, StepContents(prompt_tokens=prompts, sequences=float(sequences), context_tokens=context_tokens)
    )
    times = np.asarray(steps.step_ms)
    return MixedCurve(prompts, times, times - times[0])
