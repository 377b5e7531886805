"""Prompts and tokens on the same accelerators: who waits for whom, and for how long."""

from formulas.interference.busy_period import (
    BUSY_MEAN,
    BUSY_VARIANCE,
    delay_busy_law,
    delay_busy_quantile,
)
from formulas.interference.chunked import REREAD_TOKENS, Chunked, chunked
from formulas.interference.mixed_step import FREE_TOKENS, SLOWDOWN, SPARE_FLOPS
from formulas.interference.prefill_first import PREFILL_FIRST_TPOT, PREFILL_FIRST_TTFT, PrefillFirst, prefill_first

__all__ = [
    "BUSY_MEAN", "BUSY_VARIANCE", "FREE_TOKENS", "PREFILL_FIRST_TPOT", "PREFILL_FIRST_TTFT", "REREAD_TOKENS",
    "SLOWDOWN", "SPARE_FLOPS", "Chunked", "PrefillFirst", "chunked", "delay_busy_law", "delay_busy_quantile",
    "prefill_first",
]  # fmt: skip
