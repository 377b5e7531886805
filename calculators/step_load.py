"""What a step has to compute, read and write: of a model's record, for a prompt, decoding sequences, or both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import hardware_db
from calculators.machine import MachineInputs, assumptions_of
from formulas import step_time as step
from formulas.experts import DISTINCT_EXPERTS

STATE_BYTES = 4
"""Bytes of one element of a linear layer's state: FP32, as engines keep it."""


@dataclass(frozen=True)
class StepContents:
    """What one step processes. Each may be an array; they broadcast.

    Attributes
    ----------
    prompt_tokens, cached_tokens
        Tokens of a prompt, and those before them that are cached: attended to, not computed again.
    sequences, context_tokens
        Decoding sequences, and the context that each attends to.
    new_tokens
        Tokens of each sequence in the step: 1 to decode, more to verify a draft.
    """

    prompt_tokens: Any = 0
    cached_tokens: Any = 0
    sequences: Any = 0
    context_tokens: Any = 0
    new_tokens: Any = 1

    @property
    def decoding_tokens(self) -> Any:
        """Tokens of the decoding sequences."""
        return self.sequences * self.new_tokens

    @property
    def tokens(self) -> Any:
        """All tokens of the step."""
        return self.prompt_tokens + self.decoding_tokens


def step_load(
    inputs: MachineInputs, contents: StepContents, layers: int | None = None, *, with_output: bool = True
) -> step.StepLoad:
    """Return what a step does on an instance.

    Parameters
    ----------
    inputs
        Model, data types, tensor parallel degree and assumptions.
    contents
        What the step processes.
    layers
        How many of the model's layers, in a pipeline's stage; all of them if not given.
    with_output
        Whether the output projection is among them.
    """
    model = hardware_db.models()[inputs.model]
    count = model.layers if layers is None else layers
    share = count / model.layers
    kv_bytes, kv_bytes_per_rank = _kv_bytes(inputs, contents)
    some = np.asarray(kv_bytes_per_rank) > 0
    shards = np.where(some, kv_bytes / np.where(some, kv_bytes_per_rank, 1.0), model.kv_shards(inputs.tp))
    return step.StepLoad(
        flops=matmul_flops(inputs, contents, share, with_output=with_output)
        + share * attention_flops(inputs, contents),
        weight_bytes=share * _layer_bytes_touched(model, inputs.weight_dtype, contents.tokens)
        + (_output_bytes(model, inputs.weight_dtype) if with_output else 0),
        kv_bytes=share * kv_bytes,
        kv_shards=shards if shards.ndim else float(shards),
        tokens=contents.tokens,
        hidden=model.hidden,
        layers=count,
    )


def matmul_flops(inputs: MachineInputs, contents: StepContents, share: float = 1.0, *, with_output: bool = True) -> Any:
    """Return the arithmetic of the matrix products of a share of the layers [FLOP]."""
    parameters = hardware_db.models()[inputs.model].parameters
    flops = share * step.matmul_flops(parameters.matmul_active - parameters.lm_head, contents.tokens)
    return flops + step.matmul_flops(parameters.lm_head, _logits(inputs, contents)) if with_output else flops


def _logits(inputs: MachineInputs, contents: StepContents) -> Any:
    """Return for how many tokens the output projection is computed: each decoding one, and those of the prompt."""
    if assumptions_of(inputs).lm_head_tokens == "every":
        return contents.tokens
    return np.minimum(contents.prompt_tokens, 1) + contents.decoding_tokens


def attention_flops(inputs: MachineInputs, contents: StepContents) -> Any:
    """Return the arithmetic of attention, all layers together [FLOP].

    A prompt's heads attend in their own width. Decoding sequences with a latent attend in the latent, whose
    expansion is absorbed into the projections: more arithmetic for a pair, and only the latent is read.
    """
    total: Any = 0.0
    for group in hardware_db.models()[inputs.model].attention_groups:
        pairs = attended_entries(group, contents.prompt_tokens, contents.cached_tokens)
        total = total + step.attention_flops(group.layers, group.heads, group.qk_head_dim, group.v_head_dim, pairs)
        # of g tokens each attends to those before it: g c + g (g - 1) / 2 pairs
        pairs = contents.sequences * attended_entries(group, contents.new_tokens, contents.context_tokens - 0.5)
        total = total + step.attention_flops(group.layers, group.heads, *group.decode_head_dims, pairs)
    return total


def attended_entries(group: hardware_db.AttentionGroup, new_tokens: Any, cached_tokens: Any) -> Any:
    """Return how many pairs of a query and a cache entry a layer of the group computes."""
    return step.attended_pairs(new_tokens, cached_tokens, _most_tokens(group)) / group.tokens_per_entry


def _most_tokens(group: hardware_db.AttentionGroup) -> int | None:
    """Return the most tokens that a query of the group attends to: its window, or what is selected for it."""
    limits = [group.window_tokens] if group.window_tokens else []
    limits += [group.selected_entries * group.tokens_per_entry] if group.selected_entries else []
    return min(limits, default=None)


def _kv_bytes(inputs: MachineInputs, contents: StepContents) -> tuple[Any, Any]:
    """Return the bytes of cache that a step reads, and writes where that counts: once, and on one rank."""
    model, element = hardware_db.models()[inputs.model], hardware_db.KV_BYTES[inputs.kv_dtype]
    written = contents.tokens if assumptions_of(inputs).counts_kv_writes else 0
    whole: Any = 0.0
    rank: Any = 0.0
    for group in model.attention_groups:
        window, most = group.window_tokens, _most_tokens(group)
        prefix = contents.cached_tokens if window is None else np.minimum(contents.cached_tokens, window)
        context = contents.context_tokens if most is None else np.minimum(contents.context_tokens, most)
        tokens = prefix + contents.sequences * context + (written if window is None else 0)
        whole = whole + element * group.cached_elements * tokens
        rank = rank + element * group.cached_elements * tokens / group.kv_shards(inputs.tp)
    state = STATE_BYTES * model.state_elements_per_sequence * contents.sequences
    return whole + state, rank + state / inputs.tp


def _output_bytes(model: hardware_db.Model, weight_dtype: str) -> float:
    return hardware_db.FORMATS[weight_dtype].kept_bytes * model.parameters.lm_head


def _layer_bytes_touched(model: hardware_db.Model, weight_dtype: str, tokens: Any) -> Any:
    """Return the bytes of the layers that a step of ``tokens`` reads: all dense weights, the distinct experts."""
    dense = model.dense_weight_bytes(weight_dtype) - _output_bytes(model, weight_dtype)
    if not model.experts:
        return dense + 0 * tokens
    touched = DISTINCT_EXPERTS(experts=model.experts, experts_per_token=model.experts_per_token, tokens=tokens)
    return dense + model.moe_layers * touched * model.expert_bytes(weight_dtype)
