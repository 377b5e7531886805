"""The key-value cache: what moving it costs, what fetching it saves, and how much of it fits."""

from formulas.kv_cache.memory import (
    BOUNDARY_BYTES,
    CACHE_MEMORY,
    FETCH_BREAK_EVEN,
    LARGEST_BATCH,
    REUSE_BANDWIDTH,
    TOKENS_IN_MEMORY,
    fetch_break_even_bandwidth,
)
from formulas.kv_cache.transfer import (
    EXPOSED_TIME,
    LINK_MAX_RATE,
    LINK_MEAN_TRANSFER,
    LINK_SHARED_MEAN_TRANSFER,
    LINK_TIME,
    LINK_UNSTABLE,
    LINK_UTILIZATION,
    REQUIRED_BANDWIDTH,
    TRANSFER_FRACTION,
    TRANSFER_TIME,
    Gantt,
    gantt,
    transfer_quantile,
)

__all__ = [
    "BOUNDARY_BYTES", "CACHE_MEMORY", "EXPOSED_TIME", "FETCH_BREAK_EVEN", "LARGEST_BATCH", "LINK_MAX_RATE",
    "LINK_MEAN_TRANSFER", "LINK_SHARED_MEAN_TRANSFER", "LINK_TIME", "LINK_UNSTABLE", "LINK_UTILIZATION",
    "REQUIRED_BANDWIDTH", "REUSE_BANDWIDTH", "TOKENS_IN_MEMORY", "TRANSFER_FRACTION", "TRANSFER_TIME", "Gantt",
    "fetch_break_even_bandwidth", "gantt", "transfer_quantile",
]  # fmt: skip
