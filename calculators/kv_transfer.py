"""One request's cache over a link: its time, its wait, what of it stays exposed, and a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import hardware_db
from calculators.memory import moved_bytes
from calculators.scenario import Hardware, KvLink, Prompt, Traffic
from formulas import kv_cache as forms

FREE = 0.05
"""Share of the prefill below which a transfer counts as free, and what is exposed of it as hidden."""

VERDICTS = {"free": "free", "hidden": "hidden by overlap", "tight": "tight", "not_sustainable": "not sustainable"}
"""The verdicts in words; the page of the KV cache says how they are meant."""


@dataclass(frozen=True, kw_only=True)
class TransferInputs(KvLink, Hardware, Prompt, Traffic):
    """What a hand-off depends on."""


@dataclass(frozen=True)
class Route:
    """What the cache travels over: links side by side, each with its one-way bandwidth [B/s] and latency [s]."""

    id: str
    name: str
    bytes_s: float
    latency_s: float
    latency_known: bool


def context_of(inputs: TransferInputs) -> int:
    """Return the tokens whose cache a request has after its prefill: the prompt and the prefix found in a cache."""
    return inputs.prompt_tokens + inputs.cached_tokens


def route_of(inputs: TransferInputs) -> Route:
    """Return the chosen link with what is typed in instead of its own figures."""
    link = hardware_db.links()[inputs.link]
    typed = inputs.link_gb_s is not None
    latency_s = link.latency_s if inputs.link_latency_us is None else 1e-6 * inputs.link_latency_us
    return Route(
        id="" if typed else link.id,
        name=f"a link of {inputs.link_gb_s:g} GB/s" if typed else link.name,
        bytes_s=1e9 * inputs.link_gb_s if inputs.link_gb_s is not None else link.bytes_s,
        latency_s=latency_s or 0.0,
        latency_known=latency_s is not None,
    )


@dataclass(frozen=True)
class Transfer:
    """What moving one request's cache costs; a time that does not exist, on a link that cannot keep up, is None."""

    link_ms: float
    transfer_ms: float
    required_gb_s: float
    max_rate: float
    utilization: float
    mean_ms: float | None
    p99_ms: float | None
    exposed_ms: float
    verdict: str


def link_values(inputs: TransferInputs, route: Route, tokens: Any) -> dict[str, Any]:
    """Return the arguments of the transfer's formula, SI units, for contexts of so many tokens (number or array)."""
    model = hardware_db.models()[inputs.model]
    return {
        "kv_bytes": moved_bytes(model, tokens, inputs.kv_dtype),
        "link_bytes_s": route.bytes_s,
        "links": inputs.links_used,
        "link_efficiency": inputs.link_efficiency,
        "messages": model.layers * np.ceil(np.asarray(tokens) / inputs.block_tokens),
        "message_overhead_s": 1e-6 * inputs.message_overhead_us,
    }


def transfer(inputs: TransferInputs, route: Route, prefill_ms: float) -> Transfer:
    """Return the transfer of one request's cache over ``route`` beside a prefill of ``prefill_ms``."""
    values = link_values(inputs, route, context_of(inputs))
    link_s = forms.LINK_TIME(**values)
    transfer_s = forms.TRANSFER_TIME(**values, latency_s=route.latency_s)
    layers = hardware_db.models()[inputs.model].layers
    exposed_s = forms.EXPOSED_TIME(
        link_time_s=link_s, prefill_s=prefill_ms / 1e3, layers=layers, latency_s=route.latency_s
    )
    utilization = forms.LINK_UTILIZATION(rate=inputs.rate, link_time_s=link_s)
    queue = {"rate": inputs.rate, "link_time_s": link_s, "latency_s": route.latency_s}
    sustainable = utilization < 1
    wait_s = forms.LINK_MEAN_TRANSFER(**queue) - transfer_s if sustainable else 0.0
    return Transfer(
        link_ms=1e3 * link_s,
        transfer_ms=1e3 * transfer_s,
        required_gb_s=forms.REQUIRED_BANDWIDTH(rate=inputs.rate, kv_bytes=values["kv_bytes"]) / 1e9,
        max_rate=forms.LINK_MAX_RATE(link_time_s=link_s),
        utilization=utilization,
        mean_ms=1e3 * forms.LINK_MEAN_TRANSFER(**queue) if sustainable else None,
        p99_ms=1e3 * float(forms.transfer_quantile(0.99, **queue)) if sustainable else None,
        exposed_ms=1e3 * exposed_s,
        verdict=_verdict(
            sustainable, 1e3 * (transfer_s + wait_s) / prefill_ms, 1e3 * (exposed_s + wait_s) / prefill_ms
        ),
    )


def _verdict(sustainable: bool, share: float, exposed: float) -> str:
    if not sustainable:
        return "not_sustainable"
    if share <= FREE:
        return "free"
    return "hidden" if exposed <= FREE else "tight"
