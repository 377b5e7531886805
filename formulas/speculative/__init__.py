"""Speculative decoding: what a draft gives, how long it should be, and what measured acceptance says about it."""

from formulas.speculative.curve import (
    AcceptanceCurve,
    AcceptanceFit,
    ImpliedRates,
    acceptance_curve,
    fit_acceptance,
    implied_rates,
)
from formulas.speculative.length import (
    BREAK_EVEN_VERIFY_COST,
    ENDLESS,
    OPTIMAL_DRAFT_TOKENS,
    best_length,
    break_even_acceptance,
    optimal_draft_tokens,
    optimal_speedup,
    speculation_limit,
    speedup_by_length,
)
from formulas.speculative.positions import (
    accepted_by_length,
    accepted_distribution,
    best_by_position,
    conditional_rates,
    survival,
    tokens_by_length,
)
from formulas.speculative.rounds import (
    ACCEPTED_TOKENS,
    CERTAIN_SPEEDUP,
    CERTAIN_TOKENS_PER_ROUND,
    IID_ERROR,
    OPERATIONS_RATIO,
    SPEEDUP,
    TOKENS_PER_ROUND,
    accepted_tokens,
    operations_ratio,
    speedup,
    tokens_per_round,
)

__all__ = [
    "ACCEPTED_TOKENS", "BREAK_EVEN_VERIFY_COST", "CERTAIN_SPEEDUP", "CERTAIN_TOKENS_PER_ROUND", "ENDLESS", "IID_ERROR",
    "OPERATIONS_RATIO", "OPTIMAL_DRAFT_TOKENS", "SPEEDUP", "TOKENS_PER_ROUND", "AcceptanceCurve",
    "AcceptanceFit", "ImpliedRates", "acceptance_curve", "accepted_by_length", "accepted_distribution",
    "accepted_tokens", "best_by_position", "best_length", "break_even_acceptance", "conditional_rates",
    "fit_acceptance", "implied_rates", "operations_ratio", "optimal_draft_tokens", "optimal_speedup",
    "speculation_limit", "speedup", "speedup_by_length", "survival", "tokens_by_length", "tokens_per_round",
]  # fmt: skip
