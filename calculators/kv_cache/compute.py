"""Inputs to result: bytes of the KV cache, what fits in memory, and the transfer over a link.

Lecture 7; DistServe, section 3.3; Mooncake, equation 2. No Streamlit, no Plotly.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import hardware_db
from calculators.inputs import integer
from calculators.kv_transfer import Route, Transfer, TransferInputs, context_of, route_of, transfer
from calculators.memory import MemoryInputs, cache_of, how_many, moved_bytes, room_for_cache
from calculators.outputs import counted, output, readable, short
from calculators.scenario import Context, Simulation
from calculators.service_time import PrefillInputs, prefill_time
from formulas import kv_cache as forms


@dataclass(frozen=True, kw_only=True)
class KvCacheInputs(Simulation, PrefillInputs, MemoryInputs, Context, TransferInputs):
    """What is cached, where it is kept, and what it travels over."""

    pp: int = integer(
        "Pipeline stages",
        low=1,
        high=64,
        default=1,
        step=1,
        help="Stages of an instance: each holds the cache of its own layers.",
    )


@dataclass(frozen=True, kw_only=True)
class KvCacheResult:
    """The answer. Bytes are decimal where a unit is named: 1 GB is 1e9 bytes, 1 GiB is 2^30."""

    kv_bytes_per_token: float = output("Cache of a token", "B", "Layers that keep growing")
    window_bytes_per_token: float = output("Cache of a token in window layers", "B", "Until their window is full")
    kv_bytes_per_request: float = output("Cache of a request", "B")
    kv_gb_per_request: float = output("Cache of a request", "GB")
    kv_gib_per_request: float = output("Cache of a request", "GiB")
    state_bytes_per_request: float = output("Fixed state of linear layers", "B", "FP32; moved in a hand-off too")
    transfer_bytes: float = output("Moved for a request", "B", "Cache and fixed state")
    transfer_ms: float = output("Transfer of a request", "ms", "On an idle link, sent at the end")
    required_gb_s: float = output("Bandwidth that the rate needs", "GB/s")
    required_gbit_s: float = output("Bandwidth that the rate needs", "Gbit/s")
    max_rate_per_link: float = output("Requests that the link carries", "requests/s", "All links in use together")
    link_utilization: float = output("Utilization of the link")
    mean_transfer_ms: float | None = output("Mean transfer with the wait", "ms", "M/D/1; None if not sustainable")
    p99_transfer_ms: float | None = output("P99 transfer with the wait", "ms", "M/D/1; None if not sustainable")
    prefill_ms: float = output("Prefill", "ms")
    transfer_fraction_of_prefill: float = output("Transfer as a share of the prefill")
    exposed_ms: float = output("Exposed, sent layer by layer", "ms", "From the end of the prefill to the last byte")
    verdict: str = output("Verdict", "", "free, hidden, tight or not_sustainable")
    kv_bytes_per_token_per_rank: float = output("Cache of a token on one accelerator", "B")
    max_tokens_in_memory: int | None = output("Tokens that fit", "", "In an instance; None if the weights do not fit")
    max_batch: int | None = output("Sequences that fit", "", "At the context given; None if the weights do not fit")
    fetch_break_even_gb_s: float = output("Fetch a prefix above", "GB/s", "Below it, computing it again is faster")
    boundary_bytes: float = output("Activations between stages", "B", "All that crosses nodes where stages share one")
    warnings: tuple[str, ...] = ()


def compute(inputs: KvCacheInputs) -> KvCacheResult:
    """Return the size of the cache, what fits, and the cost of its transfer.

    Raises
    ------
    InputsError
        If the accelerator does not have the data type, or not the link that tensor parallelism needs.
    """
    prefill = prefill_time(inputs)
    model = hardware_db.models()[inputs.model]
    cache = cache_of(model, context_of(inputs), inputs.kv_dtype, inputs.tp, inputs.pp)
    context = inputs.context_tokens or context_of(inputs)
    sequence = cache_of(model, context, inputs.kv_dtype, inputs.tp, inputs.pp).sequence_per_rank
    moved = transfer(inputs, route_of(inputs), prefill.service_ms)
    room = room_for_cache(inputs, inputs.pp)
    prefix = moved_bytes(model, inputs.prompt_tokens, inputs.kv_dtype)
    return KvCacheResult(
        kv_bytes_per_token=cache.per_token,
        window_bytes_per_token=cache.window_per_token,
        kv_bytes_per_request=cache.request,
        kv_gb_per_request=cache.request / 1e9,
        kv_gib_per_request=cache.request / 2**30,
        state_bytes_per_request=cache.state,
        transfer_bytes=cache.moved,
        transfer_ms=moved.transfer_ms,
        required_gb_s=moved.required_gb_s,
        required_gbit_s=8 * moved.required_gb_s,
        max_rate_per_link=moved.max_rate,
        link_utilization=moved.utilization,
        mean_transfer_ms=moved.mean_ms,
        p99_transfer_ms=moved.p99_ms,
        prefill_ms=prefill.service_ms,
        transfer_fraction_of_prefill=moved.transfer_ms / prefill.service_ms,
        exposed_ms=moved.exposed_ms,
        verdict=moved.verdict,
        kv_bytes_per_token_per_rank=cache.per_token_per_rank,
        max_tokens_in_memory=how_many(room, cache.per_token_per_rank),
        max_batch=how_many(room, sequence),
        fetch_break_even_gb_s=forms.FETCH_BREAK_EVEN(kv_bytes=prefix, compute_s=prefill.service_ms / 1e3) / 1e9,
        boundary_bytes=forms.BOUNDARY_BYTES(
            tokens=inputs.prompt_tokens,
            hidden=model.hidden,
            element_bytes=2,
            stages=inputs.pp,
        ),
        warnings=(*prefill.remarks, *_warnings(inputs, moved, room)),
    )


def compare_links(inputs: KvCacheInputs) -> list[tuple[Route, Transfer]]:
    """Return the transfer over every link of the database, as many side by side as typed in, the fastest first."""
    prefill_ms = prefill_time(inputs).service_ms
    routes = [
        route_of(replace(inputs, link=name, link_gb_s=None, link_latency_us=None)) for name in hardware_db.links()
    ]
    found = [(route, transfer(inputs, route, prefill_ms)) for route in routes]
    return sorted(found, key=lambda each: each[1].transfer_ms)


def _warnings(inputs: KvCacheInputs, moved: Transfer, room: float | None) -> tuple[str, ...]:
    found = []
    if moved.verdict == "not_sustainable":
        found.append(
            f"Not sustainable: {readable(inputs.rate)} requests/s keep the link busy {short(moved.utilization)} times over; it "
            f"carries less than {short(moved.max_rate)} requests/s."
        )
    if room is None:
        found.append(
            f"Does not fit: with {inputs.tp * inputs.pp} × {inputs.accelerator} the weights of {inputs.model} in "
            f"{inputs.weight_dtype} and the reserve leave no memory for a cache."
        )
    layers = hardware_db.models()[inputs.model].layers
    if inputs.pp > layers:
        found.append(
            f"{counted(inputs.pp, 'stage')}, and {inputs.model} has {counted(layers, 'layer')}: no engine would run it."
        )
    if inputs.service_ms is not None:
        found.append(
            "The prefill time is typed in; the size of the cache follows from the model and the prompt length."
        )
    return tuple(found)
