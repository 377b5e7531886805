"""Three ways to serve prompts and tokens, in closed form on real figures: prefill first, chunked, disaggregated."""

from calculators.systems.base import Latency, ServingInputs, System, overtaking_rates, refuse_other_bursts, split_of
from calculators.systems.colocated import BUDGETS, ChunkedPrefill, PrefillFirst, best_chunks
from calculators.systems.disaggregated import Disaggregated

__all__ = [
    "BUDGETS",
    "ChunkedPrefill",
    "Disaggregated",
    "Latency",
    "PrefillFirst",
    "ServingInputs",
    "System",
    "best_chunks",
    "overtaking_rates",
    "refuse_other_bursts",
    "split_of",
]
