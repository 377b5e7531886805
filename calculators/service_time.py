"""How long one prompt occupies an instance: typed in, or from the step-time model on real figures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import numpy as np

import hardware_db
from calculators.inputs import Integer, declared, part_of
from calculators.machine import MachineInputs, machine_of
from calculators.outputs import output
from calculators.remarks import hardware_remarks
from calculators.scenario import Hardware, Instance, Prompt, TensorParallel, TypedService
from calculators.step_load import StepContents, step_load
from formulas import step_time as step


@dataclass(frozen=True, kw_only=True)
class PrefillInputs(MachineInputs, Prompt, TypedService):
    """What the time of a prefill depends on."""


@dataclass(frozen=True)
class StepBreakdown:
    """What a computed prefill is made of, on each of the accelerators that share it."""

    compute_ms: float = output("Compute", "ms", "Matrix products and attention at the rate reached")
    memory_ms: float = output("Memory", "ms", "Weights and KV cache read and written; runs beside compute")
    collectives_ms: float = output("Collectives", "ms", "All-reduces of tensor parallelism")
    overhead_ms: float = output("Overhead", "ms", "Scheduling, launches, sampling")
    bound: str = output("Bound by", "", "Compute or memory: the longer of the two counts")
    tflop: float = output("Work", "TFLOP", "Floating-point operations of one prefill")
    weights_gb: float = output("Weights read", "GB", "Bytes of weights that one prefill touches, all ranks together")


@dataclass(frozen=True)
class PrefillTime:
    """The time of one prefill and what stands behind it.

    Attributes
    ----------
    service_ms : float
        The service time in ms.
    parts : StepBreakdown or None
        What it is made of, ``None`` if it was typed in.
    fits : bool or None
        Whether the weights fit in the memory of the accelerators, ``None`` if the service time was typed in.
    misfit : str
        The sentence that says so where they do not.
    remarks : tuple of str
        Other sentences about what a person should know before using the number.
    """

    service_ms: float
    parts: StepBreakdown | None = None
    fits: bool | None = None
    misfit: str = ""
    remarks: tuple[str, ...] = ()


def prefill_time(inputs: PrefillInputs) -> PrefillTime:
    """Return the time of one prefill on one instance.

    Raises
    ------
    InputsError
        If the accelerator does not have the data type, or not the link that the tensor parallel degree needs.
    """
    if inputs.service_ms is not None:
        return PrefillTime(inputs.service_ms)
    return _prefill_time(part_of(PrefillInputs, inputs))


@lru_cache(
    maxsize=256
)  # a page asks for some of them, and they do not depend on the rate, which is what a planner moves
def _prefill_time(inputs: PrefillInputs) -> PrefillTime:
    machine = machine_of(inputs)
    load = prefill_load(inputs, inputs.prompt_tokens)
    time = step.step_time(load, machine)
    parts = StepBreakdown(
        compute_ms=1e3 * time.compute_s,
        memory_ms=1e3 * time.memory_s,
        collectives_ms=1e3 * time.collectives_s,
        overhead_ms=1e3 * time.overhead_s,
        bound=str(time.bound),
        tflop=load.flops / 1e12,
        weights_gb=load.weight_bytes / 1e9,
    )
    remarks = hardware_remarks(inputs, inputs.prompt_tokens + inputs.cached_tokens)
    return PrefillTime(1e3 * time.total_s, parts, _weights_fit(inputs), _misfit(inputs), remarks)


def prefill_times_ms(inputs: PrefillInputs, prompt_tokens: Any) -> Any:
    """Return the times in ms of prefills of several lengths (array, tokens), other things as in ``inputs``."""
    tokens = np.asarray(prompt_tokens, dtype=float)
    if inputs.service_ms is not None:
        return np.full(tokens.shape, inputs.service_ms)
    return 1e3 * step.step_time(prefill_load(inputs, tokens), machine_of(inputs)).total_s


def prefill_load(inputs: PrefillInputs, prompt_tokens: Any) -> step.StepLoad:
    """Return what one prefill of ``prompt_tokens`` (number or array) has to compute, read and write."""
    return step_load(inputs, StepContents(prompt_tokens, inputs.cached_tokens))


def stage_times_ms(inputs: PrefillInputs, stages: int) -> tuple[float, ...]:
    """Return the time in ms of one prefill in each stage of a pipeline of whole layers.

    Where the layers do not divide, the first stages have one more. The output projection is on the last stage, and
    every stage has the step overhead, so that together they take longer than one instance would.

    Raises
    ------
    InputsError
        As for :func:`prefill_time`.
    """
    machine = machine_of(inputs)
    layers = [len(part) for part in np.array_split(range(hardware_db.models()[inputs.model].layers), stages)]
    prompt = StepContents(inputs.prompt_tokens, inputs.cached_tokens)
    loads = [step_load(inputs, prompt, count, with_output=place == stages - 1) for place, count in enumerate(layers)]
    return tuple(1e3 * float(step.step_time(load, machine).total_s) for load in loads)


def _weights_fit(inputs: Instance) -> bool:
    needed, present = _weights_and_memory_bytes(inputs)
    return needed <= inputs.tp * present


def _weights_and_memory_bytes(inputs: Hardware) -> tuple[float, int]:
    model = hardware_db.models()[inputs.model]
    return model.weight_bytes(inputs.weight_dtype), hardware_db.accelerators()[inputs.accelerator].memory_bytes


def _misfit(inputs: Instance) -> str:
    if _weights_fit(inputs):
        return ""
    needed, present = _weights_and_memory_bytes(inputs)
    degree, most = math.ceil(needed / present), int(cast("Integer", declared(TensorParallel)["tp"]).high)
    advice = (
        f"Use tp = {degree} or more, or a smaller weight format."
        if degree <= most
        else f"Not even tp = {most} would hold them: use an accelerator with more memory."
    )
    return (
        f"Does not fit: the weights of {inputs.model} take {needed / 1e9:.1f} GB in {inputs.weight_dtype}, and "
        f"{inputs.tp} × {inputs.accelerator} has {inputs.tp * present / 1e9:.1f} GB. The times are what the arithmetic "
        f"gives if it did. {advice}"
    )
