r"""Mixture of experts: how many different experts a batch of tokens touches.

Every expert touched is read from memory once, whatever the number of its tokens: in decoding, that decides
the bytes of a step.
"""

import sympy as sp

from formulas.closed_form import ClosedForm, Condition, Step, at_most, equation, variable

EXPERTS = variable("experts", "N", "", "number of routed experts in a layer")
CHOSEN = variable("experts_per_token", "k", "", "experts that each token is routed to")
TOKENS = variable("tokens", "t", "", "number of tokens in the step")
DISTINCT = variable("distinct_experts", "E[X]", "", "expected number of different experts touched")

_N, _K, _T = EXPERTS.symbol, CHOSEN.symbol, TOKENS.symbol


def _steps() -> tuple[Step, ...]:
    missed, index = sp.Symbol("missed", positive=True), sp.Symbol("i", integer=True, positive=True)
    count = sp.Symbol("N", integer=True, positive=True)
    miss = (1 - _K / _N) ** _T
    total = sp.Sum(1 - missed, (index, 1, count)).doit().subs(count, _N).subs(missed, miss)
    return (
        Step("One token, routed evenly, misses a given expert with this probability.", 1 - _K / _N),
        Step("Independent tokens all miss it with this probability.", miss),
        Step(
            "The expected number of experts not missed is the sum over all N.",
            equation(DISTINCT.symbol, total),
        ),
    )


DISTINCT_EXPERTS = ClosedForm(
    "expected number of different experts",
    DISTINCT,
    _N * (1 - (1 - _K / _N) ** _T),
    (EXPERTS, CHOSEN, TOKENS),
    "Linearity of expectation, for tokens routed independently and evenly",
    (Condition(at_most(_K, _N), "A token cannot be routed to more experts than there are."),),
    _steps,
)
"""Different experts touched by `tokens` tokens [].

Real routers are uneven and neighbouring tokens alike, so this is an upper estimate.

Examples
--------
>>> DISTINCT_EXPERTS(experts=128, experts_per_token=4, tokens=11)
37.7309566
"""
