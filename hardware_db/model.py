"""Language models: the shape as published, and what follows from it.

Nothing here is guessed from a name: `head_dim` is read, KV heads are read, layers are counted by kind. What
can be derived (parameters, KV size) is derived when asked for and checked against the published figures.
"""

from __future__ import annotations

from functools import cached_property
from typing import Literal, Self

from pydantic import model_validator

from hardware_db.attention import AttentionGroup, attention_groups
from hardware_db.dtypes import FORMATS, weight_format
from hardware_db.parameters import ParameterCount, count_parameters
from hardware_db.records import Count, CountOrZero, Positive, Record, Text, broken_rule
from hardware_db.shapes import LinearMixer, Mla, Moe, Selection, SharedLatent


class Model(Record):
    """One model's shape. Sizes are numbers of elements unless a unit is named.

    Attributes
    ----------
    full_attention_layers, window_layers, linear_layers : int
        Layers whose cache grows with the context, stops at `window_tokens`, or is a fixed state.
    kv_heads, head_dim, v_head_dim : int
        As the config gives them; None for latent attention, which has no KV heads.
    full_layer_kv_heads, full_layer_head_dim, window_layer_kv_heads : int or None
        Where full and window layers differ.
    ffn_width, ffn_matrices : int
        Width of a dense FFN, and 3 matrices with a gate or 2 without.
    block_layout : str
        ``paired``: each layer is a mixer and an FFN. ``separate``: each layer is one or the other.
    native_format, native_weights : str
        Id of the format the published weights come in (see `hardware_db.dtypes`), and what the card says.
    published_total_b, published_active_b : float or None
        Parameters as announced, in billions [1e9].
    parameter_note : str or None
        Why the recomputed total differs from the published one by more than 1.5 %.
    kv_bytes_per_token_bf16, window_kv_bytes_per_token_bf16 : int
        Cache growth in BF16 [B/token]; checked against the shape when the record is loaded.
    linear_state_elements : int
        Fixed state of all linear layers for one sequence; often kept in FP32.
    """

    hf_repo: Text
    kind: Literal["dense", "moe"]
    layers: Count
    hidden: Count
    vocab: Count
    tied_embeddings: bool
    tied_basis: Literal["config", "inferred-from-count", "from-memory"]
    heads: Count
    kv_heads: Count | None = None
    head_dim: Count | None = None
    head_dim_explicit: bool = False
    v_head_dim: Count
    attention: Text
    full_attention_layers: CountOrZero
    window_layers: CountOrZero = 0
    window_tokens: Count | None = None
    linear_layers: CountOrZero = 0
    full_layer_kv_heads: Count | None = None
    full_layer_head_dim: Count | None = None
    window_layer_kv_heads: Count | None = None
    output_gate: bool = False
    key_is_value: bool = False
    mla: Mla | None = None
    shared_latent: SharedLatent | None = None
    selection: Selection | None = None
    linear_mixer: LinearMixer | None = None
    ffn_width: Count | None = None
    ffn_matrices: Literal[2, 3]
    block_layout: Literal["paired", "separate"] = "paired"
    learned_positions: Count | None = None
    moe: Moe | None = None
    native_format: Text
    native_weights: Text
    max_context: Count
    published_total_b: Positive | None = None
    published_active_b: Positive | None = None
    parameter_note: Text | None = None
    kv_bytes_per_token_bf16: CountOrZero
    window_kv_bytes_per_token_bf16: CountOrZero = 0
    linear_state_elements: CountOrZero = 0

    # --- experts -------------------------------------------------------------------------------------------

    @property
    def moe_layers(self) -> int:
        """Layers with routed experts; 0 for a dense model."""
        return self.moe.moe_layers if self.moe else 0

    @property
    def experts(self) -> int:
        """Routed experts in one MoE layer; 0 for a dense model."""
        return self.moe.experts if self.moe else 0

    @property
    def experts_per_token(self) -> int:
        """Routed experts that one token visits in one MoE layer; 0 for a dense model."""
        return self.moe.experts_per_token if self.moe else 0

    # --- parameters and weights ----------------------------------------------------------------------------

    @cached_property
    def parameters(self) -> ParameterCount:
        """Parameters by role, counted from the shape."""
        return count_parameters(self)

    def weight_bytes(self, weight_format_id: str) -> float:
        """Return all weights in memory, tied embeddings once [B].

        Parameters
        ----------
        weight_format_id : str
            See `hardware_db.dtypes.FORMATS`; the policy there says which weights it covers.

        Raises
        ------
        UnknownFormat
            If there is no such format.
        """
        form, count = weight_format(weight_format_id), self.parameters
        kept = count.input_embedding + count.router + count.other + (0 if count.tied else count.lm_head)
        return (
            form.kept_bytes * kept
            + form.layer_bytes * count.quantizable_dense
            + form.expert_bytes * count.routed_experts
        )

    def dense_weight_bytes(self, weight_format_id: str) -> float:
        """Return what every step reads whatever the routing [B].

        Attention, dense FFN, shared experts, router, mixers and ``lm_head`` (also where it is tied); not the
        input embedding, not routed experts, not norms (below 0.01 %).

        Raises
        ------
        UnknownFormat
            If there is no such format.
        """
        form, count = weight_format(weight_format_id), self.parameters
        return form.kept_bytes * (count.lm_head + count.router) + form.layer_bytes * count.quantizable_dense

    def expert_bytes(self, weight_format_id: str) -> float:
        """Return one routed expert in one layer [B]; 0 for a dense model.

        Raises
        ------
        UnknownFormat
            If there is no such format.
        """
        return weight_format(weight_format_id).expert_bytes * self.parameters.one_expert

    # --- attention and its cache ---------------------------------------------------------------------------

    @cached_property
    def attention_groups(self) -> tuple[AttentionGroup, ...]:
        """Layers with attention, grouped by shape; linear layers are not among them."""
        return attention_groups(self)

    @cached_property
    def kv_elements_per_token(self) -> int:
        """Elements that a token adds to the cache in layers that keep growing."""
        return sum(group.cached_elements for group in self.attention_groups if group.window_tokens is None)

    @cached_property
    def window_kv_elements_per_token(self) -> int:
        """Elements that a token adds in window layers, until `window_tokens` are reached."""
        return sum(group.cached_elements for group in self.attention_groups if group.window_tokens is not None)

    @property
    def state_elements_per_sequence(self) -> int:
        """Elements of the fixed state of linear layers, to be moved in a hand-off too."""
        return self.linear_state_elements

    def kv_elements(self, tokens: int) -> int:
        """Return the cache of one sequence: growing layers in full, window layers up to their window.

        Parameters
        ----------
        tokens : int
            Tokens in the context. The fixed state of linear layers is not included.
        """
        windowed = min(tokens, self.window_tokens) if self.window_tokens is not None else 0
        return tokens * self.kv_elements_per_token + windowed * self.window_kv_elements_per_token

    def kv_shards(self, tp: int) -> int:
        """Return over how many tensor-parallel ranks the cache divides; beyond that it is replicated.

        The latent of MLA and of DeepSeek-V4 is on every rank: 1. Where layers differ (Gemma 4, MiMo-V2)
        this is the smallest of their KV heads, so that a rank is never understated; `kv_elements_per_rank`
        is exact.

        Parameters
        ----------
        tp : int
            Tensor-parallel ranks, at least 1; heads are taken to divide evenly, as engines require.
        """
        return min((group.kv_shards(tp) for group in self.attention_groups), default=1)

    def kv_elements_per_rank(self, tokens: int, tp: int) -> float:
        """Return the cache of one sequence on one tensor-parallel rank, each kind of layer divided as it can.

        Parameters
        ----------
        tokens : int
            Tokens in the context.
        tp : int
            Tensor-parallel ranks, at least 1.
        """
        return sum(
            min(tokens, group.window_tokens or tokens) * group.cached_elements / group.kv_shards(tp)
            for group in self.attention_groups
        )

    # --- rules ---------------------------------------------------------------------------------------------

    @model_validator(mode="after")
    def _kind_has_its_parts(self) -> Self:
        if (self.kind == "moe") != (self.moe is not None):
            raise broken_rule("kind", f"is '{self.kind}'; a 'moe' record has a moe table and a 'dense' one has none")
        if self.native_format not in FORMATS:
            raise broken_rule("native_format", f"'{self.native_format}' is not one of {', '.join(FORMATS)}")
        if self.mla is None and (self.kv_heads is None or self.head_dim is None):
            raise broken_rule(
                "kv_heads" if self.kv_heads is None else "head_dim", "is needed unless there is an mla table"
            )
        if self.mla is not None and self.kv_heads is not None:
            raise broken_rule("kv_heads", "must be absent with an mla table: the latent has no heads")
        return self

    @model_validator(mode="after")
    def _heads_divide(self) -> Self:
        for field in ("kv_heads", "full_layer_kv_heads", "window_layer_kv_heads"):
            kv_heads = getattr(self, field)
            if kv_heads is not None and self.heads % kv_heads:
                raise broken_rule(field, f"{kv_heads} does not divide heads = {self.heads}")
        if self.head_dim is not None and not self.head_dim_explicit and self.head_dim * self.heads != self.hidden:
            raise broken_rule(
                "head_dim_explicit",
                f"must be true: head_dim {self.head_dim} x heads {self.heads} is not hidden = {self.hidden}",
            )
        return self

    @model_validator(mode="after")
    def _layers_add_up(self) -> Self:
        if (self.window_layers > 0) != (self.window_tokens is not None):
            raise broken_rule("window_tokens", "must be given exactly when there are window_layers")
        if self.shared_latent is not None:
            compressed = sum(part.layers for part in self.shared_latent.compressed)
            if self.window_layers != self.layers or compressed != self.full_attention_layers:
                raise broken_rule(
                    "shared_latent.compressed",
                    "with a shared latent every layer has a window, "
                    "and the compressed layers sum to full_attention_layers",
                )
            return self
        separate_ffn = self.moe_layers if self.block_layout == "separate" else 0
        total = self.full_attention_layers + self.window_layers + self.linear_layers + separate_ffn
        if total != self.layers:
            raise broken_rule(
                "full_attention_layers",
                f"full + window + linear{' + MoE' if separate_ffn else ''} layers are {total}, "
                f"but layers = {self.layers}",
            )
        return self

    @model_validator(mode="after")
    def _experts_add_up(self) -> Self:
        moe = self.moe
        if moe is None:
            if self.ffn_width is None:
                raise broken_rule("ffn_width", "is needed in a dense model")
            return self
        if moe.experts_per_token > moe.experts:
            raise broken_rule("moe.experts_per_token", f"{moe.experts_per_token} exceeds experts = {moe.experts}")
        if (moe.shared_experts > 0) != (moe.shared_width is not None):
            raise broken_rule("moe.shared_width", "must be given exactly when there are shared_experts")
        if self.block_layout == "separate":
            return self
        if moe.first_dense_layers + moe.moe_layers * moe.every != self.layers:
            raise broken_rule(
                "moe.moe_layers",
                f"first_dense_layers {moe.first_dense_layers} + moe_layers {moe.moe_layers} "
                f"x every {moe.every} is not layers = {self.layers}",
            )
        if moe.moe_layers < self.layers and self.ffn_width is None:
            raise broken_rule("ffn_width", "is needed for the dense layers")
        return self

    @model_validator(mode="after")
    def _state_follows_from_the_mixer(self) -> Self:
        mixer = self.linear_mixer
        if (mixer is not None) != (self.linear_layers > 0):
            raise broken_rule("linear_mixer", "must be given exactly when there are linear_layers")
        state = self.linear_layers * mixer.value_heads * mixer.key_dim * mixer.value_dim if mixer else 0
        if state != self.linear_state_elements:
            raise broken_rule(
                "linear_state_elements",
                f"{self.linear_state_elements} is not the {state} of the mixer's shape",
            )
        return self

    @model_validator(mode="after")
    def _cache_follows_from_the_shape(self) -> Self:
        for field, elements in (
            ("kv_bytes_per_token_bf16", self.kv_elements_per_token),
            ("window_kv_bytes_per_token_bf16", self.window_kv_elements_per_token),
        ):
            if getattr(self, field) != 2 * elements:
                raise broken_rule(field, f"{getattr(self, field)} is not the {2 * elements} that the shape gives")
        return self
