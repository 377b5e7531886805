r"""How many tokens a verification needs until a mixture of experts reads nearly all of its experts anyway.

Below it every further draft reads experts of its own and verification grows with the draft; from it on further drafts
read little more, and a longer draft costs little.
"""

import sympy as sp

from formulas.closed_form import ClosedForm, Condition, Step, equation, less, variable
from formulas.experts import CHOSEN, DISTINCT, DISTINCT_EXPERTS, EXPERTS, TOKENS

COVERAGE = variable("coverage", r"\tau", "", "share of the experts that the tokens of a step touch")
THRESHOLD = variable("threshold_tokens", r"t^{*}", "", "tokens of a step that touch that share")

_N, _K, _TAU = EXPERTS.symbol, CHOSEN.symbol, COVERAGE.symbol


def _steps() -> tuple[Step, ...]:
    t = THRESHOLD.symbol
    return (
        *DISTINCT_EXPERTS.steps,
        Step("Set to the share τ of all.", equation(1 - (1 - _K / _N) ** t, _TAU)),
        Step("Solved for the tokens.", equation(t, THRESHOLD_TOKENS.expression)),
    )


THRESHOLD_TOKENS = ClosedForm(
    "tokens that touch a share of the experts",
    THRESHOLD,
    sp.log(1 - _TAU) / sp.log(1 - _K / _N),
    (EXPERTS, CHOSEN, COVERAGE),
    "MoESD (arXiv 2505.19645), section 3, not rounded up",
    (
        Condition(less(_K, _N), "Where a token touches all experts, one token is enough."),
        Condition(less(_TAU, 1), "All experts are touched for certain by no number of tokens: the share lies below 1."),
    ),
    _steps,
    (DISTINCT, TOKENS),
)
"""Tokens of a step, batch times draft, that touch a share of the experts [].

Examples
--------
>>> THRESHOLD_TOKENS(experts=256, experts_per_token=8, coverage=0.95)
94.36
"""
