r"""The batch at which a mixture of experts turns from memory to arithmetic, and what its parameters amount to.

A dense matrix is read once for all tokens of the step, an expert's only for its own: the tokens of a step are spread
over the experts, and N/k times as many are needed to keep the arithmetic busy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from formulas.bracketing import find_root
from formulas.closed_form import ClosedForm, Condition, DomainError, Step, at_most, equation, variable
from formulas.experts.uniform import CHOSEN, COVERED, EXPERTS, TOKENS, TOKENS_PER_EXPERT
from formulas.step_time import BANDWIDTH, COMPUTE_EFFICIENCY, MEMORY_EFFICIENCY, PEAK

Array = NDArray[np.float64]

PARAMETER = variable("parameter_bytes", "s", "B", "bytes of one parameter in memory")
RIDGE = variable("ridge_tokens", r"t^{*}", "", "tokens on one matrix at which its arithmetic takes as long as its read")
CRITICAL = variable("critical_batch", r"b^{*}", "", "tokens in a step from which its experts are bound by arithmetic")
ALWAYS = variable("dense_params", "P_{d}", "", "parameters that every step reads", nonnegative=True)
ROUTED = variable("expert_params", "P_{e}", "", "parameters of all routed experts", nonnegative=True)
EFFECTIVE = variable("effective_params", r"P_{\text{eff}}", "", "parameters that the step reads")
EQUIVALENT = variable(
    "equivalent_params", r"P_{\text{eq}}", "", "parameters of a dense model of about the same quality"
)
ACTIVE = variable("active_params", "P_{a}", "", "parameters that a token meets")
TOTAL = variable("total_params", "P", "", "all parameters")

_N, _K, _T, _C, _RIDGE = EXPERTS.symbol, CHOSEN.symbol, TOKENS.symbol, COVERED.symbol, RIDGE.symbol
_MEGASCALE = "MegaScale-Infer (arXiv 2504.02263): the arithmetic of an expert's tokens is k/N of the batch's"


def _ridge_steps() -> tuple[Step, ...]:
    count = sp.Symbol("p", positive=True)
    compute = 2 * count * _RIDGE / (COMPUTE_EFFICIENCY.symbol * PEAK.symbol)
    memory = count * PARAMETER.symbol / (MEMORY_EFFICIENCY.symbol * BANDWIDTH.symbol)
    return (
        Step("A matrix of p parameters does 2p operations for each token, and is read once.",
             equation(compute, memory)),
        Step("Solved for the tokens: the size of the matrix cancels.", equation(_RIDGE, RIDGE_TOKENS.expression)),
    )  # fmt: skip


def _critical_steps() -> tuple[Step, ...]:
    return (
        Step("The experts are bound by arithmetic when each touched one has that many tokens.",
             equation(TOKENS_PER_EXPERT.expression, _RIDGE)),
        Step("At such batches every expert is touched, and the bracket is 1.", equation(_T * _K / _N, _RIDGE)),
        Step("Solved for the tokens.", equation(CRITICAL.symbol, CRITICAL_BATCH.expression)),
    )  # fmt: skip


RIDGE_TOKENS = ClosedForm(
    "tokens on one matrix at the ridge",
    RIDGE,
    COMPUTE_EFFICIENCY.symbol * PEAK.symbol * PARAMETER.symbol / (2 * MEMORY_EFFICIENCY.symbol * BANDWIDTH.symbol),
    (COMPUTE_EFFICIENCY, PEAK, PARAMETER, MEMORY_EFFICIENCY, BANDWIDTH),
    "Williams, Waterman, Patterson, Roofline (CACM 52, 2009)",
    (),
    _ridge_steps,
)
"""Tokens from which a matrix product is bound by arithmetic [].

Examples
--------
>>> h100 = {"peak_flops": 989e12, "memory_bandwidth": 3.35e12, "compute_efficiency": 1, "memory_efficiency": 1}
>>> RIDGE_TOKENS(parameter_bytes=2, **h100)
295.22
"""

CRITICAL_BATCH = ClosedForm(
    "batch from which experts are bound by arithmetic",
    CRITICAL,
    _RIDGE * _N / _K,
    (RIDGE, EXPERTS, CHOSEN),
    _MEGASCALE,
    (Condition(at_most(_K, _N), "A token cannot be routed to more experts than there are."),),
    _critical_steps,
    (TOKENS,),
)
"""Tokens in a step, where all experts are touched []; see :func:`critical_batch` for coverage.

Examples
--------
>>> CRITICAL_BATCH(ridge_tokens=156, experts=8, experts_per_token=2)
624.0
"""

EFFECTIVE_PARAMETERS = ClosedForm(
    "parameters that a step reads",
    EFFECTIVE,
    ALWAYS.symbol + _C * ROUTED.symbol,
    (ALWAYS, ROUTED, COVERED),
    "All that is not routed, and the share of the experts that the step touches",
    (Condition(at_most(_C, 1), "No more than all experts are touched."),),
)

EQUIVALENT_PARAMETERS = ClosedForm(
    "dense model of about the same quality",
    EQUIVALENT,
    sp.sqrt(ACTIVE.symbol * TOTAL.symbol),
    (ACTIVE, TOTAL),
    "Rule of thumb, not derived: the geometric mean of what a token meets and of all",
    (Condition(at_most(ACTIVE.symbol, TOTAL.symbol), "A token meets no more than all parameters."),),
)


def critical_batch(experts: float, experts_per_token: float, ridge_tokens: float) -> float:
    r"""Batch at which the experts' arithmetic takes as long as reading those that it touches [].

    Parameters
    ----------
    experts, experts_per_token
        Routed experts, and those of a token [].
    ridge_tokens
        Tokens on one matrix at its ridge, from :data:`RIDGE_TOKENS` [].

    Returns
    -------
    float
        The b at which :math:`b k / (N (1 - (1 - k/N)^b))` is the ridge; 1 where a single token is
        already bound by arithmetic, with a ridge of at most 1 [].

    Notes
    -----
    Exact under even routing. :data:`CRITICAL_BATCH` takes every expert as touched and is never lower: for 256 experts
    and 8 per token by 24 % at a ridge of 2 tokens, 0.6 % at 5, and less than 1e-8 above 20.

    Examples
    --------
    >>> critical_batch(256, 8, 295.22), critical_batch(256, 8, 2.0)
    (9447.04, 51.5393)
    """
    highest: float = CRITICAL_BATCH(ridge_tokens=ridge_tokens, experts=experts, experts_per_token=experts_per_token)
    if ridge_tokens <= 1 or experts == experts_per_token:
        return max(1.0, highest)

    def excess(batch: Array) -> Array:
        per_expert = TOKENS_PER_EXPERT(experts=experts, experts_per_token=experts_per_token, tokens=batch)
        return np.asarray(per_expert - ridge_tokens)

    return float(find_root(excess, np.ones(1), np.array([highest * (1 + 1e-12)]))[0])


def balanced_batch(
    compute_s: Callable[[Array], Any], memory_s: Callable[[Array], Any], most: float = 2.0**30
) -> float | None:
    """Batch from which a whole step is bound by arithmetic.

    Parameters
    ----------
    compute_s, memory_s
        Times of the arithmetic and of the memory traffic at an array of batches [s]. The first is proportional to the
        batch; the second begins above zero and grows ever more slowly, as weights and caches do.
    most
        Largest batch sought [].

    Returns
    -------
    float or None
        None where the step stays bound by memory up to `most`, as with long contexts, whose caches are read for
        each sequence []; 1 where one sequence is already bound by arithmetic.

    Examples
    --------
    >>> balanced_batch(lambda b: 2e-5 * b, lambda b: 5e-3 + 1e-5 * b)
    500.0
    >>> balanced_batch(lambda b: 2e-5 * b, lambda b: 5e-3 + 2e-5 * b) is None
    True
    """

    def excess(batch: Array) -> Array:
        return np.asarray(compute_s(batch) - memory_s(batch), dtype=float)

    # The excess is convex and negative at none: it changes sign once at most.
    low, high = np.ones(1), np.array([float(most)])
    if not (np.isfinite(excess(low)).all() and most >= 1):
        raise DomainError("A step takes a finite time at every batch.")
    if excess(low)[0] >= 0:
        return 1.0
    return float(find_root(excess, low, high, tolerance=1e-12)[0]) if excess(high)[0] > 0 else None
