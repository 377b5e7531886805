"""How long one prompt occupies an instance: typed in, or from the step-time model on real figures.

This is where a calculator looks up what the formulas take as plain numbers: the model's shape, the accelerator's
rates, the link and the named assumptions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

import hardware_db
from calculators.inputs import InputError, InputsError, Integer, declared
from calculators.outputs import output
from calculators.scenario import Assumptions, Instance, Service, TensorParallel
from formulas import step_time as step
from formulas.experts import DISTINCT_EXPERTS


@dataclass(frozen=True, kw_only=True)
class PrefillInputs(Assumptions, Instance):
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


def assumptions_of(inputs: Assumptions) -> hardware_db.StepAssumptions:
    """Return the named set of assumptions with the values that the inputs override."""
    chosen = hardware_db.assumptions()[inputs.assumptions]
    overrides = {
        name: value
        for name in ("compute_efficiency", "memory_efficiency", "step_overhead_ms", "allreduce_latency_us")
        if (value := getattr(inputs, name)) is not None
    }
    return chosen.model_copy(update=overrides)


def compute_dtype_of(inputs: Service) -> str:
    """Return the data type of the matrix products: the one typed in, or the one that goes with the weights.

    Weights are not taken to be unpacked to a wider type where a chip lacks theirs: that is for the user to say.
    """
    if inputs.compute_dtype:
        return inputs.compute_dtype
    native = hardware_db.FORMATS[inputs.weight_dtype].native_compute
    available = hardware_db.accelerators()[inputs.accelerator].data_types
    return next((dtype for dtype in native if dtype in available), native[0])


def prefill_time(inputs: PrefillInputs) -> PrefillTime:
    """Return the time of one prefill on one instance.

    Raises
    ------
    InputsError
        If the accelerator does not have the data type, or not the link that the tensor parallel degree needs.
    """
    if inputs.service_ms is not None:
        return PrefillTime(inputs.service_ms)
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
    remarks = tuple(sentence for remark in _REMARKS if (sentence := remark(inputs)))
    return PrefillTime(1e3 * time.total_s, parts, _weights_fit(inputs), _misfit(inputs), remarks)


def prefill_times_ms(inputs: PrefillInputs, prompt_tokens: Any) -> Any:
    """Return the times in ms of prefills of several lengths (array, tokens), other things as in ``inputs``."""
    tokens = np.asarray(prompt_tokens, dtype=float)
    if inputs.service_ms is not None:
        return np.full(tokens.shape, inputs.service_ms)
    return 1e3 * step.step_time(prefill_load(inputs, tokens), machine_of(inputs)).total_s


def prefill_load(inputs: PrefillInputs, prompt_tokens: Any) -> step.StepLoad:
    """Return what one prefill of ``prompt_tokens`` (number or array) has to compute, read and write."""
    return _load(inputs, prompt_tokens, hardware_db.models()[inputs.model].layers, with_output=True)


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
    loads = [
        _load(inputs, inputs.prompt_tokens, count, with_output=place == stages - 1)
        for place, count in enumerate(layers)
    ]
    return tuple(1e3 * float(step.step_time(load, machine).total_s) for load in loads)


def _load(inputs: PrefillInputs, prompt_tokens: Any, layers: int, *, with_output: bool) -> step.StepLoad:
    """Return the load of ``layers`` of the model's layers, with or without the output projection."""
    model = hardware_db.models()[inputs.model]
    assumed = assumptions_of(inputs)
    parameters = model.parameters
    share = layers / model.layers
    flops = share * step.matmul_flops(parameters.matmul_active - parameters.lm_head, prompt_tokens)
    for group in model.attention_groups:
        pairs = attended_entries(group, prompt_tokens, inputs.cached_tokens)
        shape = (group.layers, group.heads, group.qk_head_dim, group.v_head_dim)
        flops = flops + share * step.attention_flops(*shape, pairs)
    weight_bytes = share * _layer_bytes_touched(model, inputs.weight_dtype, prompt_tokens)
    if with_output:
        logits = prompt_tokens if assumed.lm_head_tokens == "every" else 1
        flops = flops + step.matmul_flops(parameters.lm_head, logits)
        weight_bytes = weight_bytes + _output_bytes(model, inputs.weight_dtype)
    written = prompt_tokens if assumed.counts_kv_writes else 0
    elements = model.kv_elements(inputs.cached_tokens) + model.kv_elements_per_token * written
    return step.StepLoad(
        flops=flops,
        weight_bytes=weight_bytes,
        kv_bytes=share * hardware_db.KV_BYTES[inputs.kv_dtype] * elements,
        kv_shards=model.kv_shards(inputs.tp),
        tokens=prompt_tokens,
        hidden=model.hidden,
        layers=layers,
    )


def attended_entries(group: hardware_db.AttentionGroup, new_tokens: Any, cached_tokens: float) -> Any:
    """Return how many pairs of a query and a cache entry a layer of the group computes."""
    limits = [group.window_tokens] if group.window_tokens else []
    limits += [group.selected_entries * group.tokens_per_entry] if group.selected_entries else []
    pairs = step.attended_pairs(new_tokens, cached_tokens, min(limits, default=None))
    return pairs / group.tokens_per_entry


def _output_bytes(model: hardware_db.Model, weight_dtype: str) -> float:
    return hardware_db.FORMATS[weight_dtype].kept_bytes * model.parameters.lm_head


def _layer_bytes_touched(model: hardware_db.Model, weight_dtype: str, tokens: Any) -> Any:
    """Return the bytes of the layers that a step of ``tokens`` reads: all dense weights, the distinct experts."""
    dense = model.dense_weight_bytes(weight_dtype) - _output_bytes(model, weight_dtype)
    if not model.experts:
        return dense + 0 * tokens
    touched = DISTINCT_EXPERTS(experts=model.experts, experts_per_token=model.experts_per_token, tokens=tokens)
    return dense + model.moe_layers * touched * model.expert_bytes(weight_dtype)


def machine_of(inputs: PrefillInputs) -> step.Machine:
    """Return the accelerators that share one instance, with the assumptions on what they reach.

    Raises
    ------
    InputsError
        As for :func:`prefill_time`.
    """
    accelerator = hardware_db.accelerators()[inputs.accelerator]
    assumed = assumptions_of(inputs)
    try:
        peak_flops = accelerator.peak_flops(compute_dtype_of(inputs))
    except hardware_db.UnsupportedDataType as error:
        name = "compute_dtype" if inputs.compute_dtype else "weight_dtype"
        advice = "" if inputs.compute_dtype else " Weights stored in it can be computed in another: set compute_dtype."
        raise InputsError([InputError(name, getattr(inputs, name), f"{error}{advice}")]) from None
    return step.Machine(
        peak_flops=peak_flops,
        memory_bandwidth=accelerator.memory_bandwidth_bytes_s,
        tp=inputs.tp,
        link_bytes_s=_link_bytes_s(inputs, accelerator),
        compute_efficiency=assumed.compute_efficiency,
        memory_efficiency=assumed.memory_efficiency,
        allreduce_latency_s=1e-6 * assumed.allreduce_latency_us,
        overhead_s=1e-3 * assumed.step_overhead_ms,
        link_efficiency=assumed.link_efficiency,
    )


def _link_bytes_s(inputs: PrefillInputs, accelerator: hardware_db.Accelerator) -> float | None:
    if inputs.tp == 1:
        return None
    if inputs.tp_link is not None:
        return hardware_db.links()[inputs.tp_link].bytes_s
    own = accelerator.group_bandwidth_bytes_s(inputs.tp)
    if own is not None:
        return own
    if accelerator.scale_up_gb_s is None:
        host = f", say {accelerator.host_link_id}" if accelerator.host_link_id else ""
        sentence = f"{accelerator.name} has no scale-up link; name what joins them with tp_link{host}, or use tp = 1"
    else:
        sentence = (
            f"the scale-up link of {accelerator.name} joins {accelerator.scale_up_domain} accelerators; use at most so "
            "many, or name the link that joins more with tp_link"
        )
    raise InputsError([InputError("tp", inputs.tp, sentence)])


def _weights_fit(inputs: Instance) -> bool:
    needed, present = _weights_and_memory_bytes(inputs)
    return needed <= inputs.tp * present


def _weights_and_memory_bytes(inputs: Service) -> tuple[float, int]:
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


def _tier_remark(inputs: Service) -> str:
    accelerator = hardware_db.accelerators()[inputs.accelerator]
    if not accelerator.memory_tiers:
        return ""
    return (
        f"{accelerator.name} has several memories; the time uses the one of {accelerator.memory_bytes / 1e9:g} GB at "
        f"{accelerator.memory_bandwidth_gb_s:,g} GB/s."
    )


def _announced_remark(inputs: Service) -> str:
    accelerator = hardware_db.accelerators()[inputs.accelerator]
    if not accelerator.announced:
        return ""
    return f"{accelerator.name} is announced; its figures rest on announcements, not on measurements."


def _context_remark(inputs: Service) -> str:
    model = hardware_db.models()[inputs.model]
    context = inputs.prompt_tokens + inputs.cached_tokens
    if context <= model.max_context:
        return ""
    return f"{model.id} takes at most {model.max_context:,} tokens of context; this is {context:,}."


def _heads_remark(inputs: Instance) -> str:
    heads = sorted({group.heads for group in hardware_db.models()[inputs.model].attention_groups})
    if not any(count % inputs.tp for count in heads):
        return ""
    return f"tp = {inputs.tp} does not divide the {' and '.join(map(str, heads))} attention heads of {inputs.model}."


_REMARKS: tuple[Callable[[Instance], str], ...] = (_tier_remark, _announced_remark, _context_remark, _heads_remark)
