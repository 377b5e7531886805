"""Several accelerators for decoding: in tensor, as a pipeline, or apart; latency against throughput.

DistServe, figure 5: tensor parallelism shortens the step with diminishing returns, a pipeline multiplies the throughput.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

import hardware_db
from calculators.decode.compute import DecodeInputs, context_of
from calculators.decode_pool import pool_of
from calculators.degrees import pipeline_degrees, tensor_degrees
from calculators.inputs import InputsError
from calculators.machine import machine_of
from calculators.memory import sequences_that_fit
from calculators.outputs import output
from calculators.step_load import StepContents, step_load
from formulas import step_time as step

DEGREES = (1, 2, 4, 8)


@dataclass(frozen=True)
class Way:
    """One way to use several accelerators, each batch of the size given; a pipeline has one batch in each stage."""

    way: str = output("Way", "", "tensor, pipeline or replicas")
    degree: int = output("Degree")
    accelerators: int = output("Accelerators")
    tpot_ms: float | None = output("Time per token", "ms", "Of each sequence, in a batch of the size given")
    tokens_per_second: float | None = output("Tokens", "1/s", "All sequences together")
    per_accelerator: float | None = output("Tokens of each accelerator", "1/s")
    max_batch: int | None = output("Largest batch", "sequences", "In memory, all stages together")
    remark: str = output("Remark", "", "What the model or the link says against it")


def ways(inputs: DecodeInputs) -> list[Way]:
    """Return one, two, four and eight times the accelerators of an instance, in tensor, as a pipeline and apart."""
    found = [_tensor(inputs, degree) for degree in DEGREES]
    found += [_pipeline(inputs, degree) for degree in DEGREES[1:]]
    return found + [_replicas(inputs, found[0], degree) for degree in DEGREES[1:]]


def _contents(inputs: DecodeInputs) -> StepContents:
    return StepContents(sequences=inputs.batch, context_tokens=context_of(inputs, pool_of(inputs)))


def _tensor(inputs: DecodeInputs, degree: int) -> Way:
    several = replace(inputs, tp=degree)
    try:
        time_ms = 1e3 * float(step.step_time(step_load(several, _contents(inputs)), machine_of(several)).total_s)
    except InputsError as refused:
        return Way("tensor", degree, degree, None, None, None, None, refused.errors[0].sentence)
    (rule,) = tensor_degrees(several, (degree,))
    rate = 1e3 * inputs.batch / time_ms
    context = round(_contents(inputs).context_tokens)
    fitting = sequences_that_fit(several, context)
    return Way("tensor", degree, degree, time_ms, rate, rate / degree, fitting, "; ".join(rule.reasons))


def _pipeline(inputs: DecodeInputs, stages: int) -> Way:
    chips = stages * inputs.tp
    (rule,) = pipeline_degrees(inputs, (stages,))
    layers = hardware_db.models()[inputs.model].layers
    if stages > layers:
        return Way("pipeline", stages, chips, None, None, None, None, "; ".join(rule.reasons))
    contents, machine = _contents(inputs), machine_of(inputs)
    times_ms = [
        1e3
        * float(
            step.step_time(step_load(inputs, contents, len(part), with_output=place == stages - 1), machine).total_s
        )
        for place, part in enumerate(np.array_split(range(layers), stages))
    ]
    # A batch in each stage: each waits for the slowest stage before it moves on.
    round_ms = stages * max(times_ms)
    rate = 1e3 * inputs.batch / max(times_ms)
    fitting = sequences_that_fit(inputs, round(contents.context_tokens), stages)
    return Way("pipeline", stages, chips, round_ms, rate, rate / chips, fitting, "; ".join(rule.reasons))


def _replicas(inputs: DecodeInputs, one: Way, count: int) -> Way:
    if inputs.tp != 1:
        one = _tensor(inputs, inputs.tp)
    if one.tpot_ms is None or one.tokens_per_second is None:
        return replace(one, way="replicas", degree=count, accelerators=count * inputs.tp)
    fitting = None if one.max_batch is None else count * one.max_batch
    return Way(
        "replicas",
        count,
        count * inputs.tp,
        one.tpot_ms,
        count * one.tokens_per_second,
        one.per_accelerator,
        fitting,
        one.remark,
    )
