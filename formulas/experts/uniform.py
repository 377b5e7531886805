r"""Even routing: how many different experts a batch of tokens touches, and how that number spreads.

Every expert touched is read from memory once, whatever the number of its tokens: in decoding, that decides
the bytes of a step. The law assumes that tokens choose independently and that all experts are alike. Routers are
uneven, and the tokens of one text choose alike: both touch fewer experts.
"""

from __future__ import annotations

from math import ceil, sqrt
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from formulas.closed_form import ClosedForm, Condition, DomainError, Step, at_most, equation, less, variable

Array = NDArray[np.float64]

EXPERTS = variable("experts", "N", "", "number of routed experts in a layer")
CHOSEN = variable("experts_per_token", "k", "", "experts that each token is routed to")
TOKENS = variable("tokens", "t", "", "number of tokens in the step")
DISTINCT = variable("distinct_experts", "E[X]", "", "expected number of different experts touched")
VARIANCE = variable("distinct_variance", r"\operatorname{Var} X", "", "variance of that number", nonnegative=True)
RATIO = variable("ratio_to_one_token", r"E[X] / k", "", "experts touched relative to one token's")
COVERED = variable("coverage", "c", "", "expected share of the experts that are touched")
PER_EXPERT = variable("tokens_per_expert", r"\bar{t}", "", "tokens for each expert touched")
ENOUGH = variable("tokens_for_coverage", r"t_{c}", "", "tokens that touch that share of the experts on average")

_N, _K, _T, _C = EXPERTS.symbol, CHOSEN.symbol, TOKENS.symbol, COVERED.symbol
_MISS = (1 - _K / _N) ** _T
_PAIR_MISS = ((_N - _K) * (_N - _K - 1) / (_N * (_N - 1))) ** _T
_EVEN = "Linearity of expectation, for tokens routed independently and evenly"
_MOESD = "MoESD (arXiv 2505.19645)"
_ENOUGH_EXPERTS = Condition(at_most(_K, _N), "A token cannot be routed to more experts than there are.")
_COUNTS = (EXPERTS, CHOSEN, TOKENS)


def _mean_steps() -> tuple[Step, ...]:
    missed, index = sp.Symbol("missed", positive=True), sp.Symbol("i", integer=True, positive=True)
    count = sp.Symbol("N", integer=True, positive=True)
    total = sp.Sum(1 - missed, (index, 1, count)).doit().subs(count, _N).subs(missed, _MISS)
    return (
        Step("One token, routed evenly, misses a given expert with this probability.", 1 - _K / _N),
        Step("Independent tokens all miss it with this probability.", _MISS),
        Step(
            "The expected number of experts not missed is the sum over all N.",
            equation(DISTINCT.symbol, total),
        ),
    )


def _variance_steps() -> tuple[Step, ...]:
    n, k = sp.symbols("N k", integer=True, positive=True)
    both = sp.combsimp(sp.binomial(n - 2, k) / sp.binomial(n, k)).subs({n: _N, k: _K})
    return (
        Step("A token chooses k different experts. It misses two given ones if all of its k are among the others.",
             sp.factor(both)),
        Step("The number missed is a sum over experts, so its second moment is a sum over pairs: N of an expert with "
             "itself, N(N-1) of two.", _N * _MISS + _N * (_N - 1) * _PAIR_MISS),
        Step("Less the square of the mean, and sorted: what independent experts would spread, less what pairs exclude "
             "of each other. Experts touched and experts missed spread alike.",
             equation(VARIANCE.symbol, DISTINCT_VARIANCE.expression)),
    )  # fmt: skip


def _enough_steps() -> tuple[Step, ...]:
    return (
        Step("The share that t tokens miss.", equation(_MISS, 1 - _C)),
        Step("Its logarithm.", equation(_T * sp.log(1 - _K / _N), sp.log(1 - _C))),
        Step("Solved for the tokens.", equation(ENOUGH.symbol, TOKENS_FOR_COVERAGE.expression)),
    )


DISTINCT_EXPERTS = ClosedForm(
    "expected number of different experts",
    DISTINCT,
    _N * (1 - _MISS),
    _COUNTS,
    _EVEN,
    (_ENOUGH_EXPERTS,),
    _mean_steps,
)
"""Different experts touched by `tokens` tokens [].

Examples
--------
>>> DISTINCT_EXPERTS(experts=128, experts_per_token=4, tokens=11)
37.7309566
"""

DISTINCT_VARIANCE = ClosedForm(
    "variance of the number of different experts",
    VARIANCE,
    _N * _MISS * (1 - _MISS) - _N * (_N - 1) * (_MISS**2 - _PAIR_MISS),
    _COUNTS,
    "Pairs of experts missed together, for tokens routed independently and evenly, each without replacement",
    (
        _ENOUGH_EXPERTS,
        Condition(less(1, _N), "The spread of a single expert is not a question."),
        Condition(at_most(1, _T), "A step has at least one token."),
    ),
    _variance_steps,
)
"""Variance []; a difference of large terms, so use :func:`distinct_sd` for numbers near none."""

RATIO_TO_ONE_TOKEN = ClosedForm(
    "experts touched relative to one token's",
    RATIO,
    _N / _K * (1 - _MISS),
    _COUNTS,
    _EVEN,
    (_ENOUGH_EXPERTS,),
)

COVERAGE = ClosedForm(
    "share of the experts touched",
    COVERED,
    1 - _MISS,
    _COUNTS,
    _EVEN,
    (_ENOUGH_EXPERTS,),
)

TOKENS_PER_EXPERT = ClosedForm(
    "tokens for each expert touched",
    PER_EXPERT,
    _T * _K / (_N * (1 - _MISS)),
    _COUNTS,
    f"{_MOESD}: choices over experts touched",
    (_ENOUGH_EXPERTS,),
)

TOKENS_FOR_COVERAGE = ClosedForm(
    "tokens that touch a share of the experts",
    ENOUGH,
    sp.log(1 - _C) / sp.log(1 - _K / _N),
    (EXPERTS, CHOSEN, COVERED),
    f"{_MOESD}; 1 - (1 - k/N)^t solved for t",
    (
        Condition(less(_K, _N), "Where a token goes to every expert, one token touches all."),
        Condition(less(_C, 1), "No number of tokens is sure to touch every expert: ask for a share below 1."),
    ),
    _enough_steps,
    (TOKENS,),
)
"""Tokens that touch a share of the experts on average []; see :func:`tokens_for_coverage` for whole tokens.

Examples
--------
>>> TOKENS_FOR_COVERAGE(experts=256, experts_per_token=8, coverage=0.95)
94.36
"""


def distinct_sd(experts: Any, experts_per_token: Any, tokens: Any) -> Any:
    """Spread of the number of different experts under even routing: its standard deviation [].

    Parameters
    ----------
    experts, experts_per_token, tokens
        As in :data:`DISTINCT_VARIANCE`, at least one token; arrays broadcast [].

    Notes
    -----
    Exact. What rounding leaves of a variance that is none (one token, or all experts chosen) is cut.

    Examples
    --------
    >>> distinct_sd(128, 4, 21)
    3.03004
    >>> distinct_sd(128, 4, 1)
    0.0
    """
    sure = np.equal(tokens, 1) | np.equal(experts_per_token, experts)
    if np.ndim(sure) == 0:
        return 0.0 if sure else sqrt(max(DISTINCT_VARIANCE(**_named(experts, experts_per_token, tokens)), 0.0))
    variance = DISTINCT_VARIANCE(**_named(experts, experts_per_token, tokens))
    return np.where(sure, 0.0, np.sqrt(np.maximum(variance, 0.0)))


def distinct_law(experts: int, experts_per_token: int, tokens: int) -> Array:
    r"""Probability of each number of different experts, under even routing.

    Parameters
    ----------
    experts, experts_per_token, tokens
        Whole numbers; none of the tokens is allowed [].

    Returns
    -------
    ndarray
        Probabilities of 0, 1, ..., `experts` [].

    Notes
    -----
    Exact: where j experts are touched, the next token adds a new ones with the hypergeometric probability
    :math:`\binom{N-j}{a}\binom{j}{k-a} / \binom{N}{k}`.

    Examples
    --------
    >>> distinct_law(4, 2, 2)
    array([0. , 0. , 0.16666667, 0.66666667, 0.16666667])
    """
    if not 1 <= experts_per_token <= experts or tokens < 0:
        raise DomainError("A token is routed to at least one expert, and to no more than there are.")
    from scipy.stats import hypergeom  # slow to import, and needed by few

    touched, added = np.arange(experts + 1), np.arange(experts_per_token + 1)[:, np.newaxis]
    chance = hypergeom.pmf(added, experts, experts - touched, experts_per_token)
    law: Array = (touched == 0).astype(float)
    for _ in range(tokens):
        law = _one_more_token(law, chance)
        if law[-1] == 1.0:
            break
    return law


def tokens_for_coverage(experts: int, experts_per_token: int, share: float) -> int:
    """Least whole number of tokens that touch at least a share of the experts on average [].

    Parameters
    ----------
    experts, experts_per_token
        Whole numbers [].
    share
        In (0, 1) [].

    Examples
    --------
    >>> tokens_for_coverage(256, 8, 0.95), tokens_for_coverage(64, 8, 0.95)
    (95, 23)
    """
    if not 0 < share < 1:
        raise DomainError("Ask for a share of the experts between 0 and 1.")
    if experts == experts_per_token:
        return 1
    tokens: float = TOKENS_FOR_COVERAGE(experts=experts, experts_per_token=experts_per_token, coverage=share)
    return max(1, ceil(tokens * (1 - 1e-14)))  # a share reached exactly is reached, whatever the logarithm's last digit


def _named(experts: Any, experts_per_token: Any, tokens: Any) -> dict[str, Any]:
    return {"experts": experts, "experts_per_token": experts_per_token, "tokens": tokens}


def _one_more_token(law: Array, chance: Array) -> Array:
    after = np.zeros_like(law)
    for added, probability in enumerate(chance):
        after[added:] += (law * probability)[: law.size - added]
    return after
