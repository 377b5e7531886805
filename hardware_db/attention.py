"""Attention layers grouped by shape, with what each keeps in the cache."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hardware_db.model import Model
    from hardware_db.shapes import Mla, SharedLatent


@dataclass(frozen=True, slots=True)
class AttentionGroup:
    """Layers that attend alike.

    Attributes
    ----------
    layers, heads : int
        How many layers, and query heads in each.
    qk_head_dim, v_head_dim : int
        Width of a head in scores and in values; MLA: nope + rope, and the value's own.
    kv_heads : int
        Heads that are cached; 1 for a latent.
    window_tokens : int or None
        Where the cache stops growing; None if it does not.
    cached_elements_per_layer : int
        Elements that a token adds to one layer's cache.
    tokens_per_entry : int
        Tokens behind one cache entry; more than 1 where the sequence is compressed.
    selected_entries : int or None
        At most so many entries are attended to; None if all are. The cache keeps them all.
    latent_dim : int or None
        Width of the cached latent without its rotary part, which decoding attends in; None if there is no latent.
    """

    layers: int
    heads: int
    qk_head_dim: int
    v_head_dim: int
    kv_heads: int
    window_tokens: int | None
    cached_elements_per_layer: int
    tokens_per_entry: int = 1
    selected_entries: int | None = None
    latent_dim: int | None = None

    @property
    def decode_head_dims(self) -> tuple[int, int]:
        """Widths of a head in scores and in values while decoding: with a latent, those of the latent.

        Engines absorb the latent's expansion into the projections, so that each cached latent is read once for all
        heads (DeepSeek-V2, arXiv 2405.04434, section 2.1.2).
        """
        if self.latent_dim is None:
            return self.qk_head_dim, self.v_head_dim
        return self.cached_elements_per_layer, self.latent_dim

    @property
    def cached_elements(self) -> int:
        """Elements that a token adds to the cache of all these layers."""
        return self.layers * self.cached_elements_per_layer

    def kv_shards(self, tp: int) -> int:
        """Return over how many tensor-parallel ranks the cache of these layers divides.

        Raises
        ------
        ValueError
            If `tp` is below 1.
        """
        if tp < 1:
            raise ValueError(f"Tensor parallelism needs at least one rank, not {tp}.")
        return min(tp, self.kv_heads)


def attention_groups(model: Model) -> tuple[AttentionGroup, ...]:
    """Group a model's attention layers, growing ones first.

    Parameters
    ----------
    model : Model
        The shape.
    """
    if model.shared_latent is not None:
        return _shared_latent_groups(model, model.shared_latent)
    groups: list[AttentionGroup] = []
    if model.full_attention_layers:
        group = _latent_group(model, model.mla) if model.mla else _full_group(model)
        groups.extend(_with_selection(model, group))
    if model.window_layers:
        groups.append(_window_group(model))
    return tuple(groups)


def _with_selection(model: Model, group: AttentionGroup) -> tuple[AttentionGroup, ...]:
    selection = model.selection
    if selection is None:
        return (group,)
    sparse = replace(group, layers=group.layers - selection.full_layers, selected_entries=selection.tokens)
    if not selection.full_layers:
        return (sparse,)
    return replace(group, layers=selection.full_layers), sparse


def _latent_group(model: Model, mla: Mla) -> AttentionGroup:
    return AttentionGroup(
        layers=model.full_attention_layers,
        heads=model.heads,
        qk_head_dim=mla.qk_nope_head_dim + mla.qk_rope_head_dim,
        v_head_dim=model.v_head_dim,
        kv_heads=1,
        window_tokens=None,
        # One latent and one rotary key: no factor 2 for K and V, and no heads.
        cached_elements_per_layer=mla.kv_lora_rank + mla.qk_rope_head_dim,
        latent_dim=mla.kv_lora_rank,
    )


def _full_group(model: Model) -> AttentionGroup:
    qk, v = full_head_dims(model)
    kv_heads = model.full_layer_kv_heads or model.kv_heads or 0
    return AttentionGroup(
        layers=model.full_attention_layers,
        heads=model.heads,
        qk_head_dim=qk,
        v_head_dim=v,
        kv_heads=kv_heads,
        window_tokens=None,
        cached_elements_per_layer=kv_heads * (qk + v),
    )


def _window_group(model: Model) -> AttentionGroup:
    qk, v = model.head_dim or 0, model.v_head_dim
    kv_heads = model.window_layer_kv_heads or model.kv_heads or 0
    return AttentionGroup(
        layers=model.window_layers,
        heads=model.heads,
        qk_head_dim=qk,
        v_head_dim=v,
        kv_heads=kv_heads,
        window_tokens=model.window_tokens,
        cached_elements_per_layer=kv_heads * (qk + v),
    )


def _shared_latent_groups(model: Model, latent: SharedLatent) -> tuple[AttentionGroup, ...]:
    width = model.head_dim or 0
    growing = [
        AttentionGroup(
            layers=part.layers,
            heads=model.heads,
            qk_head_dim=width,
            v_head_dim=model.v_head_dim,
            kv_heads=1,
            window_tokens=None,
            cached_elements_per_layer=width // part.ratio,
            tokens_per_entry=part.ratio,
            selected_entries=part.selected_entries,
        )
        for part in latent.compressed
    ]
    window = AttentionGroup(
        layers=model.window_layers,
        heads=model.heads,
        qk_head_dim=width,
        v_head_dim=model.v_head_dim,
        kv_heads=1,
        window_tokens=model.window_tokens,
        cached_elements_per_layer=width,
    )
    return (*growing, window)


def full_head_dims(model: Model) -> tuple[int, int]:
    """Return the score and value widths of a head in full-attention layers."""
    if model.full_layer_head_dim is not None:
        return model.full_layer_head_dim, model.full_layer_head_dim
    return model.head_dim or 0, model.v_head_dim
