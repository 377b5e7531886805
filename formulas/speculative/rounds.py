r"""A round of speculative decoding: a draft of :math:`\gamma` tokens, and the target's verification of it.

Each draft is accepted with the same probability, independently of the others, and the first one that is refused
ends the round. The target always adds one token of its own, the bonus token: in place of the draft it refused, or
after the last one. **Accepted tokens do not count it; tokens per round do.** Engines report either.

Costs are counted in plain decode steps of the target. Acceptance is not really independent: the formula is between 23 %
below and 47 % above what its authors measured (:data:`IID_ERROR`); :mod:`formulas.speculative.positions` does without.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp

from formulas.closed_form import ClosedForm, Condition, DomainError, Step, equation, less, variable

ACCEPTANCE = variable("acceptance", r"\alpha", "", "probability that a draft is accepted", nonnegative=True)
DRAFT_TOKENS = variable("draft_tokens", r"\gamma", "", "tokens drafted in a round", nonnegative=True)
DRAFT_COST = variable("draft_cost", "c", "", "time to draft a token, in plain decode steps", nonnegative=True)
VERIFY_COST = variable("verify_cost", "v", "", "time to verify a draft, in plain decode steps")
DRAFT_OPERATIONS = variable(
    "draft_operations",
    r"\hat{c}",
    "",
    "arithmetic of a drafted token, relative to one of the target's",
    nonnegative=True,
)
ACCEPTED = variable("accepted_tokens", "A", "", "expected drafts accepted in a round, without the bonus token")
TOKENS = variable("tokens_per_round", "E", "", "expected tokens of a round, with the bonus token")
SPEEDUP_ = variable("speedup", "S", "", "tokens per second, relative to plain decoding")
OPERATIONS = variable("operations_ratio", "O", "", "arithmetic per token, relative to plain decoding")

IID_ERROR = 0.3
"""Error to reckon with, relative to the speedup [].

Leviathan et al. (arXiv 2211.17192, tables 2 and 4) give twelve measured speedups on T5-XXL beside acceptance and cost:
the formula is off by -23 % to +47 %, by more than 30 % in two of them.
"""

_A, _G, _C, _V, _O = (v.symbol for v in (ACCEPTANCE, DRAFT_TOKENS, DRAFT_COST, VERIFY_COST, DRAFT_OPERATIONS))
_I, _N = sp.symbols("i n", integer=True, positive=True)
_SUM = _A * (1 - _A**_G) / (1 - _A)
_ROUND = (1 - _A ** (_G + 1)) / (1 - _A)
_LEVIATHAN = "Leviathan, Kalman, Matias (ICML 2023, arXiv 2211.17192)"
_CERTAIN = "Where every draft is accepted the sum has another form: γ accepted, γ + 1 tokens a round."
_UNCERTAIN = (Condition(less(_A, 1), _CERTAIN),)
_IMPOSSIBLE = "An acceptance is a probability: it lies between 0 and 1."


def _accepted_steps() -> tuple[Step, ...]:
    summed = sp.Sum(_A**_I, (_I, 1, _N)).doit().args[-1][0].subs(_N, _G)  # the piece for acceptance below 1
    return (
        Step("The i-th draft is accepted if it and all before it are, independently.", _A**_I),
        Step("The expected number accepted is the sum of these probabilities.",
             equation(ACCEPTED.symbol, sp.Sum(_A**_I, (_I, 1, _G)))),
        Step("A geometric series.", equation(ACCEPTED.symbol, summed)),
        Step("As it is usually written.", equation(ACCEPTED.symbol, ACCEPTED_TOKENS.expression)),
    )  # fmt: skip


def _tokens_steps() -> tuple[Step, ...]:
    return (
        *_accepted_steps(),
        Step("The target adds one token, whether it refused a draft or not.",
             equation(TOKENS.symbol, ACCEPTED.symbol + 1)),
        Step("Brought together.", equation(TOKENS.symbol, TOKENS_PER_ROUND.expression)),
    )  # fmt: skip


def _speedup_steps() -> tuple[Step, ...]:
    return (
        *_tokens_steps(),
        Step("A round drafts γ tokens one after another and verifies them together, in plain decode steps",
             _C * _G + _V),
        Step("In that time plain decoding gives as many tokens as it takes steps.",
             equation(SPEEDUP_.symbol, TOKENS.symbol / (_C * _G + _V))),
        Step("The tokens of a round put in.", equation(SPEEDUP_.symbol, SPEEDUP.expression)),
    )  # fmt: skip


def _operations_steps() -> tuple[Step, ...]:
    return (
        *_tokens_steps(),
        Step("The target processes γ + 1 tokens, the draft model γ, in units of one token of the target.",
             _O * _G + _G + 1),
        Step("Plain decoding has one for each token.",
             equation(OPERATIONS.symbol, (_O * _G + _G + 1) / TOKENS.symbol)),
        Step("The tokens of a round put in.", equation(OPERATIONS.symbol, OPERATIONS_RATIO.expression)),
    )  # fmt: skip


def _certain_steps(form: ClosedForm, certain: ClosedForm) -> tuple[Step, ...]:
    return (
        *form.steps,
        Step("Where every draft is accepted, the limit.",
             equation(form.result.symbol, sp.Limit(form.expression, _A, 1, "-"))),
        Step("Taken.", equation(form.result.symbol, certain.expression)),
    )  # fmt: skip


ACCEPTED_TOKENS = ClosedForm(
    "accepted drafts in a round, without the bonus token",
    ACCEPTED,
    _SUM,
    (ACCEPTANCE, DRAFT_TOKENS),
    f"{_LEVIATHAN}, section 3.1, equation 1 less the bonus token",
    _UNCERTAIN,
    _accepted_steps,
)
"""Drafts that the target accepts in a round, its own token not counted [].

Examples
--------
>>> ACCEPTED_TOKENS(acceptance=0.8, draft_tokens=4)
2.3616
"""

TOKENS_PER_ROUND = ClosedForm(
    "tokens of a round, with the bonus token",
    TOKENS,
    _ROUND,
    (ACCEPTANCE, DRAFT_TOKENS),
    f"{_LEVIATHAN}, section 3.1, equation 1",
    _UNCERTAIN,
    _tokens_steps,
    (ACCEPTED,),
)
"""Tokens that a round adds to the output, the target's own one among them [].

Examples
--------
>>> TOKENS_PER_ROUND(acceptance=0.8, draft_tokens=4)
3.3616
"""

SPEEDUP = ClosedForm(
    "speedup over plain decoding",
    SPEEDUP_,
    _ROUND / (_C * _G + _V),
    (ACCEPTANCE, DRAFT_TOKENS, DRAFT_COST, VERIFY_COST),
    f"{_LEVIATHAN}, theorem 3.8, with a verification of any cost",
    _UNCERTAIN,
    _speedup_steps,
    (ACCEPTED, TOKENS),
)
"""Tokens per second relative to plain decoding []; the bonus token counts.

Examples
--------
>>> SPEEDUP(acceptance=0.8, draft_tokens=4, draft_cost=0.1, verify_cost=1)
2.401143
"""

OPERATIONS_RATIO = ClosedForm(
    "arithmetic per token, relative to plain decoding",
    OPERATIONS,
    (1 - _A) * (_O * _G + _G + 1) / (1 - _A ** (_G + 1)),
    (ACCEPTANCE, DRAFT_TOKENS, DRAFT_OPERATIONS),
    f"{_LEVIATHAN}, theorem 3.11",
    _UNCERTAIN,
    _operations_steps,
    (ACCEPTED, TOKENS),
)
"""Arithmetic of a token relative to plain decoding []; the bonus token counts among the tokens.

Examples
--------
>>> OPERATIONS_RATIO(acceptance=0.8, draft_tokens=5, draft_operations=0)
1.626334
"""

CERTAIN_TOKENS_PER_ROUND: ClosedForm = ClosedForm(
    "tokens of a round where every draft is accepted, with the bonus token",
    TOKENS,
    _G + 1,
    (DRAFT_TOKENS,),
    f"{_LEVIATHAN}, equation 1 in the limit",
    (),
    lambda: _certain_steps(TOKENS_PER_ROUND, CERTAIN_TOKENS_PER_ROUND),
    (ACCEPTED, ACCEPTANCE),
)

CERTAIN_SPEEDUP: ClosedForm = ClosedForm(
    "speedup where every draft is accepted",
    SPEEDUP_,
    (_G + 1) / (_C * _G + _V),
    (DRAFT_TOKENS, DRAFT_COST, VERIFY_COST),
    f"{_LEVIATHAN}, theorem 3.8 in the limit",
    (),
    lambda: _certain_steps(SPEEDUP, CERTAIN_SPEEDUP),
    (ACCEPTED, TOKENS, ACCEPTANCE),
)


def accepted_tokens(acceptance: Any, draft_tokens: Any) -> Any:
    """Drafts accepted in a round, without the bonus token, at any acceptance from 0 to 1.

    Parameters
    ----------
    acceptance
        Probability that a draft is accepted, in [0, 1] [].
    draft_tokens
        Tokens drafted in a round, at least 0 [].

    Returns
    -------
    float or ndarray
        Expected drafts accepted [].

    Raises
    ------
    DomainError
        Outside these ranges.

    Notes
    -----
    Leviathan et al., equation 1 less the bonus token. To full precision near acceptance 1 too, where the closed form
    subtracts nearly equal numbers.

    Examples
    --------
    >>> accepted_tokens(0.8, 4), accepted_tokens(1.0, 4), accepted_tokens(0.0, 4)
    (2.3616, 4.0, 0.0)
    """
    alpha, gamma = _checked(acceptance, draft_tokens)
    total = alpha * _series(alpha, gamma)
    return total if total.ndim else float(total)


def tokens_per_round(acceptance: Any, draft_tokens: Any) -> Any:
    """Tokens of a round, with the bonus token, at any acceptance from 0 to 1; arguments as in :func:`accepted_tokens`.

    Examples
    --------
    >>> tokens_per_round(0.8, 4), tokens_per_round(1.0, 4), tokens_per_round(0.93, 1)
    (3.3616, 5.0, 1.93)
    """
    alpha, gamma = _checked(acceptance, draft_tokens)
    total = _series(alpha, gamma + 1.0)
    return total if total.ndim else float(total)


def speedup(acceptance: Any, draft_tokens: Any, draft_cost: Any, verify_cost: Any = 1.0) -> Any:
    """Speedup over plain decoding, at any acceptance from 0 to 1.

    Parameters
    ----------
    acceptance, draft_tokens
        As in :func:`accepted_tokens`.
    draft_cost
        Time to draft a token, in plain decode steps, at least 0 [].
    verify_cost
        Time to verify a draft, in plain decode steps, above 0 [].

    Examples
    --------
    >>> speedup(0.8, 4, 0.1)
    2.401143
    """
    draft, verify = check_costs(draft_cost, verify_cost)
    ratio = tokens_per_round(acceptance, draft_tokens) / (np.asarray(draft_tokens) * draft + verify)
    return ratio if np.ndim(ratio) else float(ratio)


def operations_ratio(acceptance: Any, draft_tokens: Any, draft_operations: Any) -> Any:
    """Arithmetic of a token relative to plain decoding, at any acceptance from 0 to 1.

    Parameters
    ----------
    acceptance, draft_tokens
        As in :func:`accepted_tokens`.
    draft_operations
        Arithmetic of a drafted token, relative to one of the target's, at least 0 [].

    Examples
    --------
    >>> operations_ratio(0.8, 5, 0.0), operations_ratio(1.0, 4, 0.1)
    (1.626334, 1.08)
    """
    extra = np.asarray(draft_operations, dtype=float)
    if not np.all(extra >= 0):
        raise DomainError("The arithmetic of the draft cannot be negative.")
    gamma = np.asarray(draft_tokens, dtype=float)
    ratio = (gamma * extra + gamma + 1.0) / tokens_per_round(acceptance, draft_tokens)
    return ratio if np.ndim(ratio) else float(ratio)


def check_costs(draft_cost: Any, verify_cost: Any) -> tuple[Any, Any]:
    """Return both costs as arrays of floats, or refuse them."""
    draft, verify = np.asarray(draft_cost, dtype=float), np.asarray(verify_cost, dtype=float)
    if not (np.all(draft >= 0) and np.all(np.isfinite(draft))):
        raise DomainError("The cost of a draft cannot be negative.")
    if not (np.all(verify > 0) and np.all(np.isfinite(verify))):
        raise DomainError("A verification takes time: its cost is above zero.")
    return draft, verify


def _checked(acceptance: Any, draft_tokens: Any) -> tuple[Any, Any]:
    alpha, gamma = np.asarray(acceptance, dtype=float), np.asarray(draft_tokens, dtype=float)
    if not np.all((alpha >= 0) & (alpha <= 1)):
        raise DomainError(_IMPOSSIBLE)
    if not (np.all(gamma >= 0) and np.all(np.isfinite(gamma))):
        raise DomainError("A draft cannot have fewer than zero tokens.")
    return alpha, gamma


def _series(alpha: Any, terms: Any) -> Any:
    """Sum of the first `terms` powers of alpha, from the zeroth."""
    certain = alpha == 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        power = np.where(terms == 0.0, 0.0, terms * np.log1p(alpha - 1.0))
        total = -np.expm1(power) / np.where(certain, 1.0, 1.0 - alpha)
    return np.where(certain, terms, total)
