r"""How long a draft should be, and when speculation pays at all.

With independent acceptance the speedup rises with the length of the draft up to one length and falls from there on.
For whole lengths: :math:`S(\gamma + 1) \ge S(\gamma)` says that
:math:`h(\gamma) = \alpha^{\gamma+1} (c \gamma + v) - c E(\gamma)` is not negative, and
:math:`h(\gamma + 1) - h(\gamma) = -(1 - \alpha) \alpha^{\gamma+1} (c (\gamma + 1) + v)` never is positive. Between whole
lengths the same holds for the derivative, so that the best whole length is one of the two next to the best real one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp
from mpmath.libmp import prec_to_dps
from numpy.typing import ArrayLike

from formulas.bracketing import find_root
from formulas.closed_form import ClosedForm, Condition, DomainError, Step, at_most, equation, less, variable
from formulas.queueing.roots import excess
from formulas.speculative.rounds import (
    ACCEPTANCE,
    DRAFT_COST,
    DRAFT_TOKENS,
    SPEEDUP,
    VERIFY_COST,
    accepted_tokens,
    check_costs,
    speedup,
    tokens_per_round,
)

BEST = variable(
    "optimal_draft_tokens", r"\gamma^{*}", "", "draft length of the largest speedup, not rounded", real=True
)
LIMIT = variable("break_even_verify_cost", r"v^{*}", "", "cost of verification above which a draft does not pay")

ENDLESS = "No draft is too long: drafting costs nothing, or every draft is accepted, so a longer one is never worse."

_A, _G, _C, _V = (v.symbol for v in (ACCEPTANCE, DRAFT_TOKENS, DRAFT_COST, VERIFY_COST))
_FREE = 1e-200  # relative to the verification: a draft that costs less costs nothing
_TIE = 1e-12  # relative: speedups nearer than that are the same, and the shorter draft is taken


def _outer(level: Any) -> Any:
    return 1.0 + excess(level)


class OuterLambert(sp.Function):  # type: ignore[misc]
    r"""The number :math:`y \ge 1` with :math:`y - \ln y = 1 + x`: :math:`-W_{-1}(-e^{-1-x})`.

    Examples
    --------
    >>> OuterLambert(sp.Integer(1)).evalf(20)
    3.1461932206205825852
    """

    is_positive = True
    _imp_ = staticmethod(_outer)

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        """Differentiate ``y - log(y) = 1 + x`` implicitly."""
        del argindex
        return self / (self - 1)

    def _eval_rewrite_as_LambertW(self, x: sp.Expr, **_: Any) -> sp.Expr:  # noqa: N802 - SymPy looks for it
        return -sp.LambertW(-sp.exp(-1 - x), -1)

    def _eval_evalf(self, prec: int) -> sp.Expr:
        digits = prec_to_dps(prec)  # half of them are lost near the branch point
        return self.rewrite(sp.LambertW).evalf(2 * digits).evalf(digits)

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        text = rf"-W_{{-1}}\left(-e^{{{printer.doprint(-1 - self.args[0])}}}\right)"
        return rf"\left({text}\right)^{{{exp}}}" if exp else text


_LEVEL = sp.Mul(-1, _V / _C - 1, sp.log(_A))


def _best_steps() -> tuple[Step, ...]:
    y, best = sp.Symbol("y", positive=True), BEST.symbol
    slope = equation(-sp.log(_A) * _A ** (best + 1) * (_C * best + _V), _C * (1 - _A ** (best + 1)))
    return (
        *SPEEDUP.steps,
        Step("At the largest speedup its derivative in γ is zero: what a longer draft adds is what it costs.", slope),
        Step("With y = 1/α^(γ + 1), that is γ + 1 = ln y / ln(1/α), and everything divided by c.",
             equation(sp.log(y) - sp.log(_A) * (_V / _C - 1), y - 1)),
        Step("So y is a branch of Lambert's function, the one above 1.", equation(y, OuterLambert(_LEVEL))),
        Step("Back in γ.", equation(best, OPTIMAL_DRAFT_TOKENS.expression)),
    )  # fmt: skip


def _limit_steps() -> tuple[Step, ...]:
    return (
        *SPEEDUP.steps,
        Step("Set to 1 and solved for v.", equation(LIMIT.symbol, BREAK_EVEN_VERIFY_COST.expression)),
        Step("One more draft moves it by α^(γ + 1) - c. With v = 1, then, some draft pays if the first one does:",
             less(_C, _A)),
    )  # fmt: skip


OPTIMAL_DRAFT_TOKENS = ClosedForm(
    "best draft length, not rounded",
    BEST,
    -sp.log(OuterLambert(_LEVEL), evaluate=False) / sp.log(_A) - 1,
    (ACCEPTANCE, DRAFT_COST, VERIFY_COST),
    "Leviathan, Kalman, Matias (ICML 2023), theorem 3.8, its maximum solved with Lambert's function",
    (
        Condition(less(0, _A), "A draft that is never accepted is better left out."),
        Condition(less(_A, 1), ENDLESS),
        Condition(less(0, _C), ENDLESS),
        Condition(at_most(_C, _V), "A drafted token costs more than verifying it: the shortest draft is the best."),
    ),
    _best_steps,
    (*SPEEDUP.mentions, SPEEDUP.result, DRAFT_TOKENS),
)
"""Real length at which the speedup is largest []; negative where even a short draft is too long.

Examples
--------
>>> OPTIMAL_DRAFT_TOKENS(acceptance=0.8, draft_cost=0.1, verify_cost=1)
5.756205
"""

BREAK_EVEN_VERIFY_COST = ClosedForm(
    "cost of verification above which a draft does not pay",
    LIMIT,
    (1 - _A ** (_G + 1)) / (1 - _A) - _C * _G,
    (ACCEPTANCE, DRAFT_TOKENS, DRAFT_COST),
    "Leviathan, Kalman, Matias (ICML 2023), theorem 3.8 set to 1",
    SPEEDUP.domain,
    _limit_steps,
    (*SPEEDUP.mentions, SPEEDUP.result, VERIFY_COST),
)
"""Largest cost of verifying a draft of that length that still pays, in plain decode steps [].

Examples
--------
>>> BREAK_EVEN_VERIFY_COST(acceptance=0.8, draft_tokens=4, draft_cost=0.1)
2.9616
"""


def optimal_draft_tokens(acceptance: Any, draft_cost: Any, verify_cost: Any = 1.0, longest: int | None = None) -> Any:
    """Whole number of draft tokens with the largest speedup; 0 where plain decoding is at least as fast.

    Parameters
    ----------
    acceptance
        Probability that a draft is accepted, in [0, 1] [].
    draft_cost
        Time to draft a token, in plain decode steps, at least 0 [].
    verify_cost
        Time to verify a draft of any length, in plain decode steps, above 0 [].
    longest
        Longest draft allowed; None is without limit [].

    Returns
    -------
    int or ndarray
        Draft tokens []; of two lengths equally good, the shorter.

    Raises
    ------
    DomainError
        If a longer draft is always better and there is no limit.

    Notes
    -----
    Looks at the two whole numbers next to :data:`OPTIMAL_DRAFT_TOKENS`; the module says why that is enough.

    Examples
    --------
    >>> optimal_draft_tokens(0.8, 0.1), optimal_draft_tokens(0.08, 0.1), optimal_draft_tokens(1.0, 0.1, longest=16)
    (6, 0, 16)
    """
    alpha, draft, verify = np.broadcast_arrays(
        np.asarray(acceptance, dtype=float), *check_costs(draft_cost, verify_cost)
    )
    real = _real_optimum(alpha, draft, verify)
    if longest is None and np.any(np.isinf(real)):
        raise DomainError(ENDLESS)
    short = np.clip(np.floor(real), 1, longest)
    long = np.clip(short + 1, 1, longest)
    gains = [speedup(alpha, length, draft, verify) for length in (short, long)]
    best = np.where(gains[1] > gains[0] * (1 + _TIE), long, short)
    chosen = np.where(np.maximum(*gains) > 1 + _TIE, best, 0).astype(np.int64)
    return chosen if chosen.ndim else int(chosen)


def optimal_speedup(acceptance: Any, draft_cost: Any, verify_cost: Any = 1.0, longest: int | None = None) -> Any:
    """Largest speedup over all draft lengths, at least the 1 of plain decoding; see :func:`optimal_draft_tokens`.

    Examples
    --------
    >>> optimal_speedup(0.8, 0.1)
    2.469640
    """
    length = np.asarray(optimal_draft_tokens(acceptance, draft_cost, verify_cost, longest))
    found = np.where(length > 0, speedup(acceptance, length, draft_cost, verify_cost), 1.0)
    return found if found.ndim else float(found)


def speculation_limit(acceptance: Any, draft_cost: Any) -> Any:
    r"""Cost of verification from which no draft pays, whatever its length, in plain decode steps [].

    Parameters
    ----------
    acceptance
        Probability that a draft is accepted, in [0, 1) [].
    draft_cost
        Time to draft a token, in plain decode steps, above 0 [].

    Returns
    -------
    float or ndarray
        :data:`BREAK_EVEN_VERIFY_COST` at its best length, the last with :math:`\alpha^\gamma > c`; 1 for
        :math:`\alpha \le c`: with a verification that costs a plain step, speculation pays if and only if the acceptance
        exceeds the cost of a draft (Leviathan et al., corollary 3.9).

    Examples
    --------
    >>> speculation_limit(0.8, 0.1), speculation_limit(0.1, 0.1)
    (3.570503, 1.0)
    """
    alpha, draft = np.broadcast_arrays(np.asarray(acceptance, dtype=float), check_costs(draft_cost, 1.0)[0])
    worth = (alpha > draft) & (alpha > 0)
    if np.any(worth & ((alpha >= 1) | (draft == 0))):
        raise DomainError(ENDLESS)
    with np.errstate(all="ignore"):
        length = np.where(worth, np.ceil(np.log(draft) / np.log(alpha)) - 1, 0)
    limit = 1.0 + accepted_tokens(alpha, length) - draft * length
    return limit if limit.ndim else float(limit)


def break_even_acceptance(draft_tokens: int, draft_cost: float, verify_cost: float = 1.0) -> float | None:
    """Smallest acceptance at which a draft of that length does not cost time, or None if none is enough [].

    Parameters
    ----------
    draft_tokens
        Tokens drafted in a round, at least 1 [].
    draft_cost, verify_cost
        In plain decode steps [].

    Examples
    --------
    >>> break_even_acceptance(4, 0.1), break_even_acceptance(4, 1.2), break_even_acceptance(1, 0.1)
    (0.287108, None, 0.1)
    """
    draft, verify = check_costs(draft_cost, verify_cost)
    cost = float(draft_tokens * draft + verify)
    if cost <= 1:
        return 0.0
    if cost > draft_tokens + 1:
        return None
    root = find_root(lambda a: tokens_per_round(a, draft_tokens) - cost, np.zeros(1), np.ones(1))
    return float(root[0])


def speedup_by_length(tokens: ArrayLike, draft_cost: Any, verify_cost: Any) -> Any:
    """Speedup of drafts of 0, 1, 2, ... tokens, whose tokens per round and verification may be of any shape.

    Parameters
    ----------
    tokens
        Tokens of a round, with the bonus token, for each length from 0 on, along the last axis [].
    draft_cost
        Time to draft a token, in plain decode steps [].
    verify_cost
        Time to verify a draft, in plain decode steps: one number, or one for each length [].

    Returns
    -------
    ndarray
        Speedups []; the first is plain decoding, 1 by definition.

    Examples
    --------
    >>> speedup_by_length([1.0, 1.8, 2.44], 0.1, [1.0, 1.0, 1.25])
    array([1.  , 1.636, 1.683])
    """
    gained = np.asarray(tokens, dtype=float)
    draft, verify = check_costs(draft_cost, verify_cost)
    gain = gained / (np.arange(gained.shape[-1]) * draft + verify)
    gain[..., 0] = 1.0
    return gain


def best_length(speedups: ArrayLike) -> Any:
    """Length with the largest of the speedups of drafts of 0, 1, 2, ... tokens; of equal ones the shortest.

    Examples
    --------
    >>> best_length([1.0, 1.6, 1.7, 1.7]), best_length([1.0, 0.9])
    (2, 0)
    """
    gain = np.asarray(speedups, dtype=float)
    best = np.argmax(gain >= gain.max(axis=-1, keepdims=True) * (1 - _TIE), axis=-1)
    return best if best.ndim else int(best)


def _real_optimum(alpha: Any, draft: Any, verify: Any) -> Any:
    """Best real length; infinite where there is none, and 0 where a shorter draft is always better."""
    free = draft < _FREE * verify
    endless = free | ((alpha == 1) & (draft < verify))
    inside = (alpha > 0) & (alpha < 1) & ~free & (draft <= verify)
    found = OPTIMAL_DRAFT_TOKENS(
        acceptance=np.where(inside, alpha, 0.5),
        draft_cost=np.where(inside, draft, 1.0),
        verify_cost=np.where(inside, verify, 1.0),
    )
    return np.where(endless & (alpha > 0), np.inf, np.where(inside, found, 0.0))
