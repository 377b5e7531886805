"""The parts of a model's shape that only some models have: latent attention, linear mixers, experts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from hardware_db.records import Count, CountOrZero, Table


class Mla(Table):
    """Multi-head latent attention: one latent and one rotary key for each token, whatever the heads."""

    q_lora_rank: Count | None = None
    kv_lora_rank: Count
    qk_rope_head_dim: Count
    qk_nope_head_dim: Count


class CompressedLayers(Table):
    """Layers that keep one entry for `ratio` tokens and attend to at most `selected_entries` of them."""

    layers: Count
    ratio: Count
    selected_entries: Count | None = None


class SharedLatent(Table):
    """DeepSeek-V4 attention: one vector is both key and value, compressed along the sequence."""

    q_rank: Count
    rope_dim: Count
    output_groups: Count
    output_rank: Count
    compressed: Annotated[tuple[CompressedLayers, ...], Field(min_length=1)]


class Selection(Table):
    """Sparse attention that reads at most `tokens` of the context, except in the first `full_layers`.

    An indexer chooses them, where there is one.
    """

    tokens: Count
    full_layers: CountOrZero = 0
    indexer_heads: Count | None = None
    indexer_head_dim: Count | None = None


class LinearMixer(Table):
    """A linear-attention or state-space mixer: a state of fixed size for each sequence."""

    kind: Literal["gated-delta", "kimi-delta", "lightning", "mamba2"]
    key_heads: Count
    value_heads: Count
    key_dim: Count
    value_dim: Count


class Moe(Table):
    """Mixture of experts: counts for each MoE layer and widths of one expert."""

    experts: Count
    experts_per_token: Count
    shared_experts: CountOrZero
    expert_width: Count
    shared_width: Count | None = None
    first_dense_layers: CountOrZero
    moe_layers: Count
    every: Count = 1
    latent_width: Count | None = None
