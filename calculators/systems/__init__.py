"""Three ways to serve prompts and tokens, in closed form on real figures: prefill first, chunked, disaggregated."""

from calculators.systems.base import (
    LEAST_SCV,
    MOST_SCV,
    Latency,
    ServingInputs,
    System,
    overtaking_rates,
    refuse_other_bursts,
    split_of,
)
from calculators.systems.colocated import BUDGETS, ChunkedPrefill, PrefillFirst, best_chunks
from calculators.systems.disaggregated import Disaggregated
from calculators.systems.sizing import depends_on_number, fewest_decode, fewest_prefill, fewest_sets

__all__ = [
    "BUDGETS",
    "LEAST_SCV",
    "MOST_SCV",
    "ChunkedPrefill",
    "Disaggregated",
    "Latency",
    "PrefillFirst",
    "ServingInputs",
    "System",
    "best_chunks",
    "depends_on_number",
    "fewest_decode",
    "fewest_prefill",
    "fewest_sets",
    "overtaking_rates",
    "refuse_other_bursts",
    "split_of",
]
