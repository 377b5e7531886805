"""What a step with experts reads and how long it takes, on real records; and the same as a dense model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import hardware_db
from calculators.experts.routing import Routing
from calculators.machine import machine_of
from calculators.step_load import StepContents, step_load
from formulas import experts as forms
from formulas import step_time as step

if TYPE_CHECKING:
    from calculators.experts.compute import ExpertsInputs


@dataclass(frozen=True)
class Sequences:
    """The tokens of a step, and how many of them belong to each sequence."""

    tokens: int
    tokens_each: float

    def contents(self, tokens: Any, context: float) -> StepContents:
        """Return a step of ``tokens`` (number or array), so many for each sequence as here."""
        return StepContents(sequences=tokens / self.tokens_each, context_tokens=context, new_tokens=self.tokens_each)


def sequences_of(inputs: ExpertsInputs) -> Sequences:
    """Return the tokens of the step: those typed in, over the sequences of the batch, or one for each sequence."""
    tokens = inputs.batch if inputs.tokens is None else inputs.tokens
    return Sequences(tokens, tokens / min(inputs.batch, tokens))


def context_of(inputs: ExpertsInputs) -> float:
    """Return the context of a sequence: typed in, or the prompt and half of the output."""
    if inputs.context_tokens is not None:
        return inputs.context_tokens
    return inputs.prompt_tokens + inputs.cached_tokens + inputs.output_tokens / 2


def expert_bytes(inputs: ExpertsInputs, touched: Any) -> Any:
    """Return the bytes of so many routed experts in each of the model's layers that have them."""
    model = hardware_db.models()[inputs.model]
    return model.moe_layers * touched * model.expert_bytes(inputs.weight_dtype)


def load_of(inputs: ExpertsInputs, routing: Routing | None, tokens: Any) -> step.StepLoad:
    """Return what a step of ``tokens`` (number or array) does on one instance."""
    load = step_load(inputs, sequences_of(inputs).contents(tokens, context_of(inputs)))
    if routing is None or routing.even:
        return load  # it counts evenly routed experts itself
    dense = hardware_db.models()[inputs.model].dense_weight_bytes(inputs.weight_dtype)
    return replace(load, weight_bytes=dense + expert_bytes(inputs, routing.touched(tokens)))


def as_dense(inputs: ExpertsInputs, tokens: Any, each: int) -> step.StepLoad:
    """Return the load of the same model with one FFN of the width of ``each`` experts in their place."""
    model = hardware_db.models()[inputs.model]
    load = step_load(inputs, sequences_of(inputs).contents(tokens, context_of(inputs)))
    more = model.moe_layers * model.parameters.one_expert * (each - model.experts_per_token)
    return replace(
        load,
        flops=load.flops + step.matmul_flops(more, tokens) if more else load.flops,
        weight_bytes=model.dense_weight_bytes(inputs.weight_dtype) + expert_bytes(inputs, each) + 0 * tokens,
    )


def time_of(inputs: ExpertsInputs, load: step.StepLoad) -> step.StepTime:
    """Return the time of a load on one instance.

    Raises
    ------
    InputsError
        If the accelerator does not have the data type, or not the link that tensor parallelism needs.
    """
    return step.step_time(load, machine_of(inputs))


def ridge_values(inputs: ExpertsInputs, *, at_peaks: bool = False) -> dict[str, float]:
    """Return the values of :data:`formulas.experts.RIDGE_TOKENS` for a matrix of the routed experts.

    With the efficiencies assumed, or at the chip's own peaks.
    """
    machine = machine_of(inputs)
    if at_peaks:
        machine = replace(machine, compute_efficiency=1.0, memory_efficiency=1.0)
    return {
        "compute_efficiency": machine.compute_efficiency,
        "peak_flops": machine.peak_flops,
        "parameter_bytes": hardware_db.FORMATS[inputs.weight_dtype].expert_bytes,
        "memory_efficiency": machine.memory_efficiency,
        "memory_bandwidth": machine.memory_bandwidth,
    }


def critical_tokens(inputs: ExpertsInputs, routing: Routing, *, at_peaks: bool = False) -> float | None:
    """Return the tokens from which the routed experts are bound by arithmetic: exact for even routing and uneven."""
    ridge = forms.RIDGE_TOKENS(**ridge_values(inputs, at_peaks=at_peaks))
    if routing.even:
        return forms.critical_batch(routing.experts, routing.chosen, ridge)
    return forms.balanced_batch(lambda t: t * routing.chosen, lambda t: ridge * routing.touched(t))


def whole_step_critical_tokens(inputs: ExpertsInputs, routing: Routing | None) -> float | None:
    """Return the tokens from which the whole step is bound by arithmetic; ``None`` where it never is.

    The arithmetic is proportional to the tokens, and so is the cache that is read.
    """
    machine, model = machine_of(inputs), hardware_db.models()[inputs.model]
    one = step_load(inputs, sequences_of(inputs).contents(1.0, context_of(inputs)))
    alone = step.step_time(replace(one, weight_bytes=0.0), machine)
    dense = replace(one, flops=0.0, kv_bytes=0.0, weight_bytes=model.dense_weight_bytes(inputs.weight_dtype))
    expert = replace(dense, weight_bytes=expert_bytes(inputs, 1.0))
    dense_s, expert_s = (step.step_time(load, machine).weights_s for load in (dense, expert))

    def memory_s(tokens: Any) -> Any:
        touched = routing.touched(tokens) if routing else 0.0
        return dense_s + expert_s * touched + alone.kv_s * tokens

    return forms.balanced_batch(lambda tokens: alone.compute_s * tokens, memory_s)
