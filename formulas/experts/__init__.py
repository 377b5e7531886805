"""Mixtures of experts: how many a batch touches, on how many ranks, and when their arithmetic outlasts their reads."""

from formulas.experts.clocks import checked_popularity, inclusion_probabilities, visit_probabilities
from formulas.experts.ranks import (
    DISTINCT_ON_RANK,
    EXCHANGE_BYTES,
    RANK_LOAD,
    RANK_LOAD_VARIANCE,
    Placement,
    busiest_distinct,
    busiest_load,
    place,
    ranks_visited,
)
from formulas.experts.skewed import share_with_replacement, touched_of, touched_sd, zipf_weights
from formulas.experts.threshold import (
    CRITICAL_BATCH,
    EFFECTIVE_PARAMETERS,
    EQUIVALENT_PARAMETERS,
    RIDGE_TOKENS,
    balanced_batch,
    critical_batch,
)
from formulas.experts.uniform import (
    COVERAGE,
    DISTINCT_EXPERTS,
    DISTINCT_VARIANCE,
    RATIO_TO_ONE_TOKEN,
    TOKENS_FOR_COVERAGE,
    TOKENS_PER_EXPERT,
    distinct_law,
    distinct_sd,
    tokens_for_coverage,
)

__all__ = [
    "COVERAGE", "CRITICAL_BATCH", "DISTINCT_EXPERTS", "DISTINCT_ON_RANK", "DISTINCT_VARIANCE", "EFFECTIVE_PARAMETERS",
    "EQUIVALENT_PARAMETERS", "EXCHANGE_BYTES", "RANK_LOAD", "RANK_LOAD_VARIANCE", "RATIO_TO_ONE_TOKEN", "RIDGE_TOKENS",
    "TOKENS_FOR_COVERAGE", "TOKENS_PER_EXPERT", "Placement", "balanced_batch", "busiest_distinct", "busiest_load",
    "checked_popularity", "critical_batch", "distinct_law", "distinct_sd", "inclusion_probabilities", "place", "ranks_visited",
    "share_with_replacement", "tokens_for_coverage", "touched_of", "touched_sd", "visit_probabilities", "zipf_weights",
]  # fmt: skip
