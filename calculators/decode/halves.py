"""A step cut the other way: attention with its cache on some chips, projections and FFN on others (lecture 8.4)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import hardware_db
from calculators.decode.compute import DecodeInputs, context_of
from calculators.decode_pool import pool_of
from calculators.inputs import InputsError
from calculators.machine import machine_of
from calculators.memory import cache_of, how_many
from calculators.outputs import output
from calculators.step_load import StepContents, attention_flops, matmul_flops, step_load

ACTIVATION_BYTES = 2
"""Bytes of one element of the activations that cross: BF16."""


@dataclass(frozen=True)
class Halves:
    """How long one accelerator takes for each half of the step, as if it did nothing else."""

    accelerator: str = output("Accelerator")
    suits: str = output("Suits", "", "The half at which it gains more over the accelerator chosen")
    ridge: float = output("Ridge", "FLOP/B", "Low: bandwidth for attention. High: arithmetic for projections and FFN")
    attention_ms: float = output("Attention", "ms", "Reading the cache, or its arithmetic if that is longer")
    projections_ms: float = output("Projections and FFN", "ms", "Arithmetic, or reading the weights if that is longer")
    projections_bound: str = output("bound by", "", "compute or memory")
    sequences: int | None = output("Caches that fit", "sequences", "Without any weights, at the context given")


@dataclass(frozen=True)
class Crossing:
    """What crosses the network between the halves: activations to the FFN and back, in each layer."""

    mb_per_layer: float = output("Crosses in a layer", "MB", "There and back, the whole batch")
    mb_per_step: float = output("Crosses in a step", "MB")
    gb_s: float = output("Bandwidth for as long as the step takes now", "GB/s")


def crossing(inputs: DecodeInputs, step_ms: float) -> Crossing:
    """Return what a batch sends between attention and FFN in a step that takes ``step_ms``."""
    model = hardware_db.models()[inputs.model]
    layer = 2.0 * inputs.batch * model.hidden * ACTIVATION_BYTES
    return Crossing(layer / 1e6, model.layers * layer / 1e6, model.layers * layer / step_ms / 1e6)


def halves(inputs: DecodeInputs) -> list[Halves]:
    """Return every accelerator of the database that has the data type, the one chosen first."""
    chosen = halves_on(inputs)
    others = [
        halves_on(replace(inputs, accelerator=name), chosen)
        for name in hardware_db.accelerators()
        if name != inputs.accelerator and _has_the_type(replace(inputs, accelerator=name))
    ]
    return [chosen, *sorted(others, key=lambda one: one.attention_ms)]


def halves_on(inputs: DecodeInputs, chosen: Halves | None = None) -> Halves:
    """Return the two halves of a step on one accelerator alone, beside those on the one chosen."""
    machine = machine_of(replace(inputs, tp=1))
    contents = StepContents(sequences=inputs.batch, context_tokens=context_of(inputs, pool_of(inputs)))
    load = step_load(replace(inputs, tp=1), contents)
    compute, memory = (
        machine.compute_efficiency * machine.peak_flops,
        machine.memory_efficiency * machine.memory_bandwidth,
    )
    attention_ms = 1e3 * max(load.kv_bytes / memory, attention_flops(inputs, contents) / compute)
    arithmetic_ms, reading_ms = 1e3 * matmul_flops(inputs, contents) / compute, 1e3 * load.weight_bytes / memory
    projections_ms = max(arithmetic_ms, reading_ms)
    model, chip = hardware_db.models()[inputs.model], hardware_db.accelerators()[inputs.accelerator]
    each = cache_of(model, round(contents.context_tokens), inputs.kv_dtype).sequence_per_rank
    return Halves(
        accelerator=inputs.accelerator,
        suits=_suits(attention_ms, projections_ms, chosen),
        ridge=machine.peak_flops / machine.memory_bandwidth,
        attention_ms=float(attention_ms),
        projections_ms=float(projections_ms),
        projections_bound="compute" if arithmetic_ms >= reading_ms else "memory",
        sequences=how_many(max(inputs.memory_share * chip.memory_bytes - 1e9 * inputs.reserve_gb, 0.0), each),
    )


def _suits(attention_ms: float, projections_ms: float, chosen: Halves | None) -> str:
    if chosen is None:
        return "the one chosen"
    gain = (chosen.attention_ms / attention_ms) / (chosen.projections_ms / projections_ms) if attention_ms else 1.0
    if abs(gain - 1) < _ALIKE:
        return "either"
    return "attention" if gain > 1 else "projections and FFN"


_ALIKE = 0.02


def _has_the_type(inputs: DecodeInputs) -> bool:
    try:
        machine_of(replace(inputs, tp=1))
    except InputsError:
        return False
    return True
