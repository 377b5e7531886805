r"""The key-value cache at rest: what fits in memory, and when a cached prefix is worth fetching."""

from __future__ import annotations

from typing import Any

import sympy as sp

from formulas.closed_form import ClosedForm, Condition, Step, at_most, equation, variable
from formulas.kv_cache.transfer import BYTES, LAYERS

COMPUTE_TIME = variable("compute_s", "T", "s", "time to compute the prefix again")
BREAK_EVEN = variable("break_even_bytes_s", r"B^{*}", "B/s", "bandwidth above which fetching is faster")
TOKENS = variable("tokens", "p", "", "tokens of the prefix")
HIDDEN = variable("hidden", "d", "", "hidden size")
ELEMENT = variable("element_bytes", "s", "B", "bytes of one element")
GQA = variable("gqa", "g", "", "query heads per KV head")
ATTENTION = variable("attention_factor", "a", "", "operations of attention per layer, token pair and hidden unit")
LINEAR = variable("linear_factor", "b", "", "operations of matrix products per layer, token and hidden size squared")
FLOPS_S = variable("flops_s", "G", "FLOP/s", "arithmetic of the instance, all accelerators together")
MEMORY = variable("memory_bytes", "M", "B", "memory of one accelerator")
SHARE = variable("memory_share", "u", "", "share of the memory that the server may use")
WEIGHTS = variable("weight_bytes", "w", "B", "weights on one accelerator", nonnegative=True)
RESERVE = variable("reserve_bytes", "r", "B", "reserve for activations, graphs and fragments", nonnegative=True)
CACHE = variable("cache_bytes", "c", "B", "memory left for the cache on one accelerator", nonnegative=True)
TOKEN_BYTES = variable("bytes_per_token_per_rank", "q", "B", "cache of one token on one accelerator")
SEQUENCE_BYTES = variable("bytes_per_sequence_per_rank", "q", "B", "cache of one sequence on one accelerator")
MAX_TOKENS = variable("max_tokens", "N", "", "tokens that fit in memory")
MAX_BATCH = variable("max_batch", "B", "", "sequences that fit in memory")
STAGES = variable("stages", "k", "", "pipeline stages, each with prefill and decode on one node")
CROSSING = variable("crossing_bytes", "a", "B", "activations that cross nodes")

_V, _L = BYTES.symbol, LAYERS.symbol
_P, _D, _S, _G, _ATT, _LIN, _FLOPS = (v.symbol for v in (TOKENS, HIDDEN, ELEMENT, GQA, ATTENTION, LINEAR, FLOPS_S))
_MOONCAKE = "Mooncake (FAST 2025), section 3"
_BUDGET = "Memory less what else it holds, over the size of one"


def _reuse_steps() -> tuple[Step, ...]:
    size = 2 * _P * _L * _D * _S / _G
    work = _L * (_ATT * _P**2 * _D + _LIN * _P * _D**2)
    return (
        Step("Keys and values of p tokens in L layers, one KV head for g query heads.", equation(_V, size)),
        Step("Operations to compute them again (equation 1), over the rate at which they are done.",
             equation(COMPUTE_TIME.symbol, work / _FLOPS)),
        Step("Fetching takes as long at the bandwidth", equation(BREAK_EVEN.symbol, _V / COMPUTE_TIME.symbol)),
        Step("in which the layers cancel.", equation(BREAK_EVEN.symbol, REUSE_BANDWIDTH.expression)),
    )  # fmt: skip


FETCH_BREAK_EVEN = ClosedForm(
    "bandwidth above which fetching beats computing",
    BREAK_EVEN,
    _V / COMPUTE_TIME.symbol,
    (BYTES, COMPUTE_TIME),
    f"{_MOONCAKE}, equation 2, with any size and any time",
)

REUSE_BANDWIDTH = ClosedForm(
    "bandwidth above which a prefix is better fetched than computed",
    BREAK_EVEN,
    2 * _D * _S * _FLOPS / (_G * (_ATT * _P * _D + _LIN * _D**2)),
    (TOKENS, HIDDEN, ELEMENT, GQA, ATTENTION, LINEAR, FLOPS_S),
    f"{_MOONCAKE}, equation 2 times G",
    (Condition(at_most(1, _G), "A KV head serves at least one query head."),),
    _reuse_steps,
    (BYTES, LAYERS, COMPUTE_TIME),
)
"""Bandwidth B of Mooncake's inequality B/G > 2 d s / (g (a p d + b d²)) [B/s].

For LLaMA3-70B the paper has a = 4 and b = 22. Its 6 and 19 GB/s at 8192 tokens follow with G the dense 16-bit
peaks of eight accelerators, reached in full; where a share of the peak is reached, so much bandwidth is enough.

Examples
--------
>>> model = {"tokens": 8192, "hidden": 8192, "element_bytes": 2, "gqa": 8, "attention_factor": 4, "linear_factor": 22}
>>> REUSE_BANDWIDTH(flops_s=8 * 312e12, **model) / 1e9
5.86
"""

CACHE_MEMORY = ClosedForm(
    "memory left for the cache",
    CACHE,
    MEMORY.symbol * SHARE.symbol - WEIGHTS.symbol - RESERVE.symbol,
    (MEMORY, SHARE, WEIGHTS, RESERVE),
    "Memory of one accelerator, less what else it holds",
    (
        Condition(at_most(SHARE.symbol, 1), "A share of the memory is at most 1."),
        Condition(
            at_most(WEIGHTS.symbol + RESERVE.symbol, MEMORY.symbol * SHARE.symbol),
            "Does not fit: the weights and the reserve take more than the memory.",
        ),
    ),
)

TOKENS_IN_MEMORY = ClosedForm(
    "tokens that fit in memory",
    MAX_TOKENS,
    sp.floor(CACHE.symbol / TOKEN_BYTES.symbol),
    (CACHE, TOKEN_BYTES),
    _BUDGET,
)
"""Tokens of a model whose cache grows by the same bytes with every token; of the fullest rank [].

Examples
--------
>>> TOKENS_IN_MEMORY(cache_bytes=40e9, bytes_per_token_per_rank=131072)
305175.0
"""

LARGEST_BATCH = ClosedForm(
    "largest batch",
    MAX_BATCH,
    sp.floor(CACHE.symbol / SEQUENCE_BYTES.symbol),
    (CACHE, SEQUENCE_BYTES),
    _BUDGET,
)
"""Sequences of one context that fit at once []; for windows and fixed states, too."""

BOUNDARY_BYTES = ClosedForm(
    "activations that cross nodes",
    CROSSING,
    _P * _D * _S * (STAGES.symbol - 1),
    (TOKENS, HIDDEN, ELEMENT, STAGES),
    "DistServe (OSDI 2024), section 4.2: stages that match share a node, so that only activations leave it",
    (Condition(at_most(1, STAGES.symbol), "A pipeline has at least one stage."),),
)
"""Bytes of one request between the stages of a pipeline, where its cache stays on each stage's node [B]."""


def fetch_break_even_bandwidth(kv_bytes: Any, compute_time: Any) -> Any:
    """Bandwidth above which fetching `kv_bytes` takes less than computing them again [B/s].

    Examples
    --------
    >>> fetch_break_even_bandwidth(262144000, 0.054)
    4854518518.5
    """
    return FETCH_BREAK_EVEN(kv_bytes=kv_bytes, compute_s=compute_time)
