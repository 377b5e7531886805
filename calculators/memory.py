"""What an instance keeps in memory: the bytes of the cache, for every kind of attention, and how much of it fits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

import hardware_db
from calculators.scenario import Instance, Memory
from calculators.step_load import STATE_BYTES
from formulas import kv_cache as forms
from formulas.closed_form import DomainError


@dataclass(frozen=True)
class Cache:
    """The cache of one request, in bytes.

    Attributes
    ----------
    per_token, window_per_token : float
        What a token adds in layers that keep growing, and in window layers until their window is full.
    request : float
        Keys and values of the request's tokens.
    state : float
        Fixed state of linear layers.
    per_token_per_rank : float
        What a token adds on one rank, in layers that keep growing.
    sequence_per_rank : float
        The request's cache and state on one rank.
    """

    per_token: float
    window_per_token: float
    request: float
    state: float
    per_token_per_rank: float
    sequence_per_rank: float

    @property
    def moved(self) -> float:
        """What a hand-off between pools moves: the cache and the fixed state."""
        return self.request + self.state


def cache_of(model: hardware_db.Model, tokens: int, kv_dtype: str, tp: int = 1, pp: int = 1) -> Cache:
    """Return the cache of a request of ``tokens`` on an instance; with ``pp`` stages, on the fullest of them.

    KV heads divide over the ranks down to one and are replicated beyond; a latent is on every rank. ``head_dim`` is
    read from the record, never derived.
    """
    element = hardware_db.KV_BYTES[kv_dtype]
    fullest = -(-model.layers // pp) / model.layers
    growing = sum(
        group.cached_elements / group.kv_shards(tp) for group in model.attention_groups if group.window_tokens is None
    )
    state = STATE_BYTES * model.state_elements_per_sequence
    return Cache(
        per_token=element * model.kv_elements_per_token,
        window_per_token=element * model.window_kv_elements_per_token,
        request=element * model.kv_elements(tokens),
        state=state,
        per_token_per_rank=element * growing * fullest,
        sequence_per_rank=(element * model.kv_elements_per_rank(tokens, tp) + state / tp) * fullest,
    )


def moved_bytes(model: hardware_db.Model, tokens: Any, kv_dtype: str) -> Any:
    """Return what a hand-off moves for requests of ``tokens`` (number or array): cache and fixed state, in bytes."""
    cache = cache_of(model, 1, kv_dtype)
    in_window = np.minimum(tokens, model.window_tokens or 0)
    return cache.per_token * tokens + cache.window_per_token * in_window + cache.state


@dataclass(frozen=True, kw_only=True)
class MemoryInputs(Memory, Instance):
    """What the room for a cache depends on."""


def room_for_cache(inputs: MemoryInputs, pp: int = 1) -> float | None:
    """Return the bytes of one accelerator that are left for the cache, or ``None`` if the weights do not fit.

    With ``pp`` stages it is an accelerator of the fullest, which holds the weights of its layers' share of the model.
    """
    model = hardware_db.models()[inputs.model]
    fullest = -(-model.layers // pp) / model.layers
    try:
        return float(
            forms.CACHE_MEMORY(
                memory_bytes=hardware_db.accelerators()[inputs.accelerator].memory_bytes,
                memory_share=inputs.memory_share,
                weight_bytes=model.weight_bytes(inputs.weight_dtype) * fullest / inputs.tp,
                reserve_bytes=inputs.reserve_gb * 1e9,
            )
        )
    except DomainError:
        return None


def sequences_that_fit(inputs: MemoryInputs, context_tokens: int, pp: int = 1) -> int | None:
    """Return how many sequences of that context fit in an instance, or ``None`` if the weights do not."""
    model = hardware_db.models()[inputs.model]
    return how_many(
        room_for_cache(inputs, pp), cache_of(model, context_tokens, inputs.kv_dtype, inputs.tp, pp).sequence_per_rank
    )


def how_many(room: float | None, bytes_each: float) -> int | None:
    """Return how many of a size fit into a room of bytes, or ``None`` where there is none to speak of."""
    return None if room is None or bytes_each == 0 else math.floor(room / bytes_each)
