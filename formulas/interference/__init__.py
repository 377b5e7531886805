"""Prompts and tokens on the same accelerators: who waits for whom, and for how long."""

from formulas.interference.busy_period import (
    BUSY_MEAN,
    BUSY_VARIANCE,
    delay_busy_law,
    delay_busy_quantile,
)
from formulas.interference.chunked import REREAD_TOKENS, Chunked, chunked
from formulas.interference.closed_loop import (
    CLOSED_LOOP_BATCH,
    CLOSED_LOOP_THROUGHPUT,
    CLOSED_LOOP_TPOT,
    CLOSED_LOOP_TTFT,
    PROMPT_BEFORE_TPOT,
    PROMPT_BEFORE_TTFT,
    ClosedLoop,
    closed_loop,
)
from formulas.interference.mixed_step import FREE_TOKENS, SLOWDOWN, SPARE_FLOPS
from formulas.interference.pooled import PooledPrompts, pooled_max_rate
from formulas.interference.prefill_first import PREFILL_FIRST_TPOT, PREFILL_FIRST_TTFT, PrefillFirst, prefill_first
from formulas.interference.prompts import EVEN, NUMBER_DISPERSION, TIME_DISPERSION, Prompts, Unevenness

__all__ = [
    "BUSY_MEAN",
    "BUSY_VARIANCE",
    "CLOSED_LOOP_BATCH",
    "CLOSED_LOOP_THROUGHPUT",
    "CLOSED_LOOP_TPOT",
    "CLOSED_LOOP_TTFT",
    "EVEN",
    "FREE_TOKENS",
    "NUMBER_DISPERSION",
    "PREFILL_FIRST_TPOT",
    "PREFILL_FIRST_TTFT",
    "PROMPT_BEFORE_TPOT",
    "PROMPT_BEFORE_TTFT",
    "REREAD_TOKENS",
    "SLOWDOWN",
    "SPARE_FLOPS",
    "TIME_DISPERSION",
    "Chunked",
    "ClosedLoop",
    "PooledPrompts",
    "PrefillFirst",
    "Prompts",
    "Unevenness",
    "chunked",
    "closed_loop",
    "delay_busy_law",
    "delay_busy_quantile",
    "pooled_max_rate",
    "prefill_first",
]  # fmt: skip
