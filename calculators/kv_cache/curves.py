"""The arrays behind the figures: transfer and prefill against the prompt, cache against the context."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

import hardware_db
from calculators.kv_cache.compute import KvCacheInputs
from calculators.kv_transfer import Route, link_values, route_of
from calculators.memory import moved_bytes
from calculators.service_time import prefill_times_ms
from formulas import kv_cache as forms

Array = NDArray[np.float64]

LINKS_SHOWN = ("nvlink4", "pcie5-x16", "ib-ndr", "roce-100", "eth-25g")
"""Links that the plot draws beside the chosen one: one of each kind that people have."""

PROMPTS = np.unique(np.round(np.geomspace(64, 131_072, 80))).astype(int)


@dataclass(frozen=True)
class TransferCurve:
    """The transfer of one request against its prompt's length, over one link."""

    id: str
    name: str
    transfer_ms: Array


def prefill_curve_ms(inputs: KvCacheInputs) -> Array:
    """Return the prefill time [ms] of each prompt length of :data:`PROMPTS`."""
    return np.asarray(prefill_times_ms(inputs, PROMPTS), dtype=float)


def transfer_curves(inputs: KvCacheInputs) -> list[TransferCurve]:
    """Return the transfer against the prompt's length for the chosen link and for some of each kind."""
    chosen = route_of(inputs)
    routes = {chosen.id: chosen}
    for name in LINKS_SHOWN:
        other = replace(inputs, link=name, link_gb_s=None, link_latency_us=None)
        routes.setdefault(name, route_of(other))
    return [TransferCurve(route.id, route.name, _transfer_ms(inputs, route)) for route in routes.values()]


def _transfer_ms(inputs: KvCacheInputs, route: Route) -> Array:
    return np.asarray(
        1e3
        * forms.TRANSFER_TIME(**link_values(inputs, route, PROMPTS + inputs.cached_tokens), latency_s=route.latency_s)
    )


@dataclass(frozen=True)
class CacheCurve:
    """The cache of one sequence against its context, for one model."""

    id: str
    cache_bytes: Array


CONTEXTS = np.unique(np.round(np.geomspace(128, 1_048_576, 60))).astype(int)


def cache_curves(inputs: KvCacheInputs) -> list[CacheCurve]:
    """Return the cache against the context [bytes] for every model of the database, at the KV data type chosen."""
    return [
        CacheCurve(name, moved_bytes(model, CONTEXTS, inputs.kv_dtype)) for name, model in hardware_db.models().items()
    ]
