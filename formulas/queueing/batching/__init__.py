"""Prompts served together: what a batch costs, and the queue of a server that takes several at a time."""

from formulas.queueing.batching.formulas import (
    BATCH_CAPACITY,
    LARGEST_BATCH_OF_PROMPTS,
    PAIR_SAVING,
    TAKE_ALL_BOUND,
    TAKE_ALL_HEAVY_BOUND,
)
from formulas.queueing.batching.server import BatchServer, take_all_mean_ttft

__all__ = [
    "BATCH_CAPACITY", "LARGEST_BATCH_OF_PROMPTS", "PAIR_SAVING", "TAKE_ALL_BOUND", "TAKE_ALL_HEAVY_BOUND",
    "BatchServer", "take_all_mean_ttft",
]  # fmt: skip
