"""Parameters counted from a shape, by the role they play in a step.

Weight matrices are counted exactly. Biases, attention sinks and small gates are left out (below 0.3 %), and
so are multi-token-prediction heads and vision towers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hardware_db.attention import full_head_dims

if TYPE_CHECKING:
    from hardware_db.model import Model
    from hardware_db.shapes import Mla, SharedLatent

_CONVOLUTION_WIDTH = 4


@dataclass(frozen=True, slots=True)
class ParameterCount:
    """Numbers of parameters.

    Attributes
    ----------
    input_embedding, lm_head : int
        Both vocabulary tables in full, also where they are one table (`tied`).
    attention, dense_ffn, linear_mixers : int
        All layers together.
    routed_experts, shared_experts : int
        All experts of all layers.
    router : int
        Routers, and the projections into and out of a latent width where experts have one.
    other : int
        Norms and learned positions: in memory, in no matrix product.
    tied : bool
        Whether `lm_head` is the input embedding.
    one_expert : int
        One routed expert in one layer; 0 for a dense model.
    experts, experts_per_token : int
        For the active share; 0 for a dense model.
    """

    input_embedding: int
    lm_head: int
    attention: int
    dense_ffn: int
    routed_experts: int
    shared_experts: int
    router: int
    linear_mixers: int
    other: int
    tied: bool
    one_expert: int
    experts: int
    experts_per_token: int

    @property
    def quantizable_dense(self) -> int:
        """Layer weights that every token uses: attention, dense FFN, shared experts, linear mixers."""
        return self.attention + self.dense_ffn + self.shared_experts + self.linear_mixers

    @property
    def active_experts(self) -> int:
        """Parameters of the routed experts that one token visits, in all layers."""
        # Exact: routed_experts is moe_layers * experts * one_expert.
        return self.routed_experts * self.experts_per_token // self.experts if self.experts else 0

    @property
    def total(self) -> int:
        """All parameters in memory; a tied table once."""
        return self._always + self.routed_experts

    @property
    def active(self) -> int:
        """Parameters that one token touches, both vocabulary tables included; a tied table once."""
        return self._always + self.active_experts

    @property
    def matmul_active(self) -> int:
        """Parameters in matrix products for one token: no input embedding, ``lm_head`` even if tied."""
        return self.quantizable_dense + self.router + self.lm_head + self.active_experts

    @property
    def _always(self) -> int:
        vocabulary = self.input_embedding + (0 if self.tied else self.lm_head)
        return vocabulary + self.quantizable_dense + self.router + self.other


def count_parameters(model: Model) -> ParameterCount:
    """Count a model's parameters from its shape.

    Parameters
    ----------
    model : Model
        The shape.
    """
    table = model.vocab * model.hidden
    moe = model.moe
    one_expert = routed = shared = router = 0
    if moe is not None:
        width = moe.latent_width or model.hidden
        one_expert = model.ffn_matrices * width * moe.expert_width
        routed = moe.moe_layers * moe.experts * one_expert
        shared = moe.moe_layers * moe.shared_experts * model.ffn_matrices * model.hidden * (moe.shared_width or 0)
        latent_projections = 2 * model.hidden * moe.latent_width if moe.latent_width else 0
        router = moe.moe_layers * (moe.experts * model.hidden + latent_projections)
    # In a separate layout a layer is a mixer or an FFN, and all FFNs are MoE: there is no dense one.
    dense_layers = model.layers - model.moe_layers if model.block_layout == "paired" else 0
    norms_per_layer = 2 if model.block_layout == "paired" else 1
    return ParameterCount(
        input_embedding=table,
        lm_head=table,
        attention=_attention(model),
        dense_ffn=dense_layers * model.ffn_matrices * model.hidden * (model.ffn_width or 0),
        routed_experts=routed,
        shared_experts=shared,
        router=router,
        linear_mixers=_linear_mixers(model),
        other=model.hidden * (norms_per_layer * model.layers + 1 + (model.learned_positions or 0)),
        tied=model.tied_embeddings,
        one_expert=one_expert,
        experts=model.experts,
        experts_per_token=model.experts_per_token,
    )


def _attention(model: Model) -> int:
    if model.shared_latent is not None:
        return model.layers * _shared_latent_layer(model, model.shared_latent)
    if model.mla is not None:
        return model.full_attention_layers * _mla_layer(model, model.mla)
    qk, v = full_head_dims(model)
    kv_heads = model.kv_heads or 0
    full = _head_layer(model, model.full_layer_kv_heads or kv_heads, qk, v, key_is_value=model.key_is_value)
    window = _head_layer(
        model,
        model.window_layer_kv_heads or kv_heads,
        model.head_dim or 0,
        model.v_head_dim,
        key_is_value=False,
    )
    return model.full_attention_layers * full + model.window_layers * window


def _head_layer(model: Model, kv_heads: int, qk: int, v: int, *, key_is_value: bool) -> int:
    query = model.heads * qk * (2 if model.output_gate else 1)
    key = kv_heads * qk
    value = 0 if key_is_value else kv_heads * v
    return model.hidden * (query + key + value + model.heads * v)


def _mla_layer(model: Model, mla: Mla) -> int:
    head = mla.qk_nope_head_dim + mla.qk_rope_head_dim
    if mla.q_lora_rank is None:
        query = model.hidden * model.heads * head
    else:
        query = mla.q_lora_rank * (model.hidden + model.heads * head)
    latent = model.hidden * (mla.kv_lora_rank + mla.qk_rope_head_dim)
    expand = mla.kv_lora_rank * model.heads * (mla.qk_nope_head_dim + model.v_head_dim)
    # An output gate is one more projection of the size of the output's.
    output = (2 if model.output_gate else 1) * model.heads * model.v_head_dim * model.hidden
    return query + latent + expand + output + _indexer_layer(model, mla)


def _indexer_layer(model: Model, mla: Mla) -> int:
    selection = model.selection
    if selection is None or selection.indexer_heads is None or selection.indexer_head_dim is None:
        return 0
    heads, width = selection.indexer_heads, selection.indexer_head_dim
    return (mla.q_lora_rank or model.hidden) * heads * width + model.hidden * (width + heads)


def _shared_latent_layer(model: Model, latent: SharedLatent) -> int:
    width = model.head_dim or 0
    query = latent.q_rank * (model.hidden + model.heads * width)
    key_value = model.hidden * width
    # The output is projected group by group to a small rank first.
    output = latent.output_rank * (model.heads * model.v_head_dim + latent.output_groups * model.hidden)
    return query + key_value + output


def _linear_mixers(model: Model) -> int:
    mixer = model.linear_mixer
    if mixer is None:
        return 0
    keys, values = mixer.key_heads * mixer.key_dim, mixer.value_heads * mixer.value_dim
    # Query, key, value, gate and output projections.
    layer = model.hidden * (2 * keys + 3 * values)
    if mixer.kind in {"gated-delta", "mamba2"}:
        step_inputs = 2 if mixer.kind == "gated-delta" else 1
        layer += step_inputs * mixer.value_heads * model.hidden + _CONVOLUTION_WIDTH * (2 * keys + values)
    return model.linear_layers * layer
