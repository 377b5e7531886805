"""The answer in a sentence and four numbers, and what the tables say."""

from __future__ import annotations

from collections.abc import Sequence

import hardware_db
from calculators import checks
from calculators.kv_cache.check import KvCacheCheck
from calculators.kv_cache.compute import KvCacheInputs, KvCacheResult
from calculators.kv_transfer import FREE, VERDICTS, Route, Transfer, context_of, route_of
from calculators.outputs import counted, readable, short

ICONS = {
    "free": ":green[:material/check_circle:]",
    "hidden": ":green[:material/check_circle:]",
    "tight": ":orange[:material/warning:]",
    "not_sustainable": ":red[:material/trending_up:]",
}


def answer(inputs: KvCacheInputs, result: KvCacheResult) -> str:
    """Return the answer to the page's question, in Markdown, with the icon of its verdict in front."""
    route = route_of(inputs)
    prefix = f" after {inputs.cached_tokens:,} cached" if inputs.cached_tokens else ""
    tokens = f"{counted(inputs.prompt_tokens, 'token')}"
    size = f"A prompt of {tokens}{prefix} leaves **{bytes_of(result.transfer_bytes)}** of cache"
    fraction = result.transfer_fraction_of_prefill
    share = f"{short(100 * fraction)} % of the prefill" if fraction < 1 else f"{short(fraction)} times the prefill"
    if result.verdict == "not_sustainable":
        said = (
            f"{size}, and {readable(inputs.rate)} requests/s need {short(result.required_gb_s, 'GB/s')}: more than "
            f"{route.name} carries, **{short(result.max_rate_per_link)} requests/s**."
        )
    else:
        said = (
            f"{size}; over {route.name} it takes **{short(result.transfer_ms, 'ms')}**, {share}, of which "
            f"{short(result.exposed_ms, 'ms')} stay exposed when it is sent layer by layer{_queued(result)}."
        )
    return f"{ICONS[result.verdict]} {said}"


def _queued(result: KvCacheResult) -> str:
    """Return what waiting for the link adds, where it is more than a tenth of the transfer."""
    if result.mean_transfer_ms is None or result.mean_transfer_ms < 1.1 * result.transfer_ms:
        return ""
    return f"; with the wait for the link it takes **{short(result.mean_transfer_ms, 'ms')}** on average"


def bytes_of(value: float) -> str:
    """Return a number of bytes in the decimal unit that suits it.

    >>> bytes_of(262144000)
    '262.1 MB'
    """
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= size:
            return short(value / size, unit)
    return short(value, "B")


def metrics(result: KvCacheResult) -> list[tuple[str, str, str]]:
    """Return label, value and explanation of the four numbers under the sentence."""
    return [
        (
            "Cache of a token",
            bytes_of(result.kv_bytes_per_token),
            f"{readable(result.kv_bytes_per_token)} bytes in the layers that keep growing.",
        ),
        (
            "Bandwidth needed",
            short(result.required_gb_s, "GB/s"),
            f"{short(result.required_gbit_s)} Gbit/s on average, for all requests together.",
        ),
        (
            "Link carries",
            short(result.max_rate_per_link, "/s"),
            "Requests per second that are never reached; near it transfers queue.",
        ),
        (
            "Largest batch",
            readable(result.max_batch),
            "Sequences of the context given whose cache fits beside the weights, on one instance.",
        ),
    ]


def caption(inputs: KvCacheInputs) -> str:
    """Return for which scenario a figure is, in plain text."""
    chips = f"{inputs.tp} × {inputs.accelerator}" if inputs.tp > 1 else inputs.accelerator
    return f"{inputs.model} on {chips}, cache in {inputs.kv_dtype}; assumptions: {inputs.assumptions}"


def links_table(found: Sequence[tuple[Route, Transfer]], prefill_ms: float) -> dict[str, list[object]]:
    """Return every link with its transfer and its verdict, by column title."""
    return {
        "Link": [route.id for route, _ in found],
        "Verdict": [VERDICTS[moved.verdict] for _, moved in found],
        "Name": [route.name for route, _ in found],
        "One way (GB/s)": [route.bytes_s / 1e9 for route, _ in found],
        "Transfer (ms)": [moved.transfer_ms for _, moved in found],
        "Share of the prefill": [moved.transfer_ms / prefill_ms for _, moved in found],
        "Exposed (ms)": [moved.exposed_ms for _, moved in found],
        "Utilization": [moved.utilization for _, moved in found],
        "P99 with the wait (ms)": [moved.p99_ms for _, moved in found],
        "Latency known": [route.latency_known for route, _ in found],
    }


def on_links() -> str:
    """Return how the verdicts are meant, in Markdown."""
    return (
        f"A transfer is *free* where it takes at most {FREE:.0%} of the prefill, the mean wait for the link included; it "
        "is *hidden* where at most so much stays exposed when each layer is sent as soon as it is computed; beyond that "
        "it is *tight*. Where the link is busy all the time, the rate is *not sustainable*. Each row takes the link's own "
        "bandwidth and latency, and this page's efficiency, number of links and overhead of a message."
    )


def on_reuse(inputs: KvCacheInputs, result: KvCacheResult) -> str:
    """Return when a cached prefix is worth fetching, and what crosses nodes in the low-affinity placement."""
    reuse = (
        f"A cached prefix of this length is worth fetching over anything faster than "
        f"**{short(result.fetch_break_even_gb_s, 'GB/s')}**; below that, computing it again takes less time."
    )
    if inputs.pp == 1:
        return reuse
    compared = "less" if result.boundary_bytes < result.transfer_bytes else "more"
    return (
        f"{reuse} Where matching stages of prefill and decode share a node, the cache stays there and activations cross "
        f"nodes: **{bytes_of(result.boundary_bytes)}** a request, {compared} than the {bytes_of(result.transfer_bytes)} "
        "of cache."
    )


def on_memory(inputs: KvCacheInputs, result: KvCacheResult) -> str:
    """Return what fits in memory, in Markdown."""
    if result.max_tokens_in_memory is None:
        return "The weights and the reserve leave no memory for a cache."
    context = inputs.context_tokens or context_of(inputs)
    model = hardware_db.models()[inputs.model]
    shards = model.kv_shards(inputs.tp)
    replicated = f" The cache divides over {shards} of the {counted(inputs.tp, 'rank')} and is replicated beyond." * (
        shards < inputs.tp
    )
    return (
        f"One accelerator keeps {bytes_of(result.kv_bytes_per_token_per_rank)} of each token. Beside the weights and the "
        f"reserve an instance holds **{counted(result.max_tokens_in_memory, 'token')}**, or "
        f"**{counted(result.max_batch, 'sequence')}** of {counted(context, 'token')}.{replicated}"
    )


def agreement(check: KvCacheCheck) -> str:
    """Return in plain words whether the simulation supports the formulas, in Markdown."""
    method = checks.method(check.customers, check.warm_up, check.seed, len(check.rows))
    return (
        f"{checks.verdict(check.rows)} {method} Requests reach the link as a Poisson stream; those of a few prefill "
        "instances are more regular, so the formulas err on the safe side."
    )
