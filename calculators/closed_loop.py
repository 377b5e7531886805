"""A closed loop on real figures: what a load generator measures with a fixed number of requests in flight."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from calculators.inputs import integer
from calculators.machine import MachineInputs, machine_of
from calculators.scenario import Output, Prompt
from calculators.step_load import StepContents, step_load
from formulas import step_time as step
from formulas.interference.closed_loop import ClosedLoop, Company, company, means


@dataclass(frozen=True, kw_only=True)
class ClosedLoopInputs(MachineInputs, Output, Prompt):
    """What the times in a closed loop depend on."""

    in_flight: int = integer(
        "Requests in flight",
        low=1,
        high=100_000,
        default=32,
        step=8,
        symbol="n",
        help="Requests that one instance has at any time: as soon as one is done the next one comes.",
    )
    chunk_tokens: int = integer(
        "Tokens in a step",
        unit="tokens",
        low=1,
        high=1_000_000,
        default=8192,
        step=1024,
        help="Most tokens in one step, those of the sequences and of prompts together; a longer prompt comes in chunks.",
    )


@dataclass(frozen=True)
class LoopSteps:
    """The steps of a closed loop, whatever they run on: with a token of one request, and with a chunk of its prompt."""

    company: Company
    decoding: step.StepLoad
    prefilling: step.StepLoad


def steps_of(inputs: ClosedLoopInputs) -> LoopSteps:
    """Return what the steps of a closed loop hold.

    Raises
    ------
    DomainError
        If no token comes after the first, or the budget of a step leaves prompts less room than they need.
    """
    tokens = inputs.output_tokens - 1
    others = company(inputs.in_flight, inputs.prompt_tokens, tokens, inputs.chunk_tokens)
    prompts, sequences = others.others_prompts, others.others_decoding
    return LoopSteps(
        others,
        _load(inputs, sequences + 1, prompts, others.chunks),
        _load(inputs, sequences, prompts + 1, others.chunks),
    )


def _load(inputs: ClosedLoopInputs, sequences: Any, prompts: Any, chunks: int) -> step.StepLoad:
    """Return what steps hold with so many sequences and chunks; each chunk attends to its own prompt alone."""
    chunk = inputs.prompt_tokens / chunks
    before = inputs.cached_tokens + (inputs.prompt_tokens - chunk) / 2
    context = inputs.cached_tokens + inputs.prompt_tokens + inputs.output_tokens / 2
    decoding = StepContents(sequences=sequences, context_tokens=context)
    alone, one = step_load(inputs, decoding), step_load(inputs, StepContents(chunk, before))
    together = step_load(inputs, replace(decoding, prompt_tokens=prompts * chunk))
    return replace(
        together,
        flops=alone.flops + prompts * one.flops,
        kv_bytes=alone.kv_bytes + prompts * one.kv_bytes,
    )


def closed_loop_of(
    inputs: ClosedLoopInputs, machine: step.Machine | None = None, steps: LoopSteps | None = None
) -> ClosedLoop:
    """Return the mean times in a closed loop.

    Parameters
    ----------
    inputs
        Model, accelerator, lengths and requests in flight.
    machine
        What the steps run on, if not what the inputs say: a fit tries many.
    steps
        The steps, if they are known from before.

    Raises
    ------
    InputsError
        As for :func:`~calculators.machine.machine_of`.
    DomainError
        As for :func:`steps_of`.
    """
    machine, steps = machine or machine_of(inputs), steps or steps_of(inputs)
    decoding, prefilling = (step.step_time(load, machine).total_s for load in (steps.decoding, steps.prefilling))
    return means(inputs.in_flight, inputs.output_tokens - 1, steps.company, decoding, prefilling)
