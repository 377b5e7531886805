r"""How much a request averages over: the variance of its mean step time, as a share of a single step's.

Counted in steps, the others in the batch are those who arrived within the last m steps, and they arrive at a
rate that grows with the batch, because larger batches take longer steps: a self-exciting (Hawkes) process with
ratio q, the share of a newcomer's followers that it causes itself. Its autocorrelation over the stay of a
request has a closed form for requests of one length and for geometric lengths; the batch law alone depends on
the mean length only, but this does not.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import sympy as sp

from formulas.closed_form import ClosedForm, Condition, Step, equation, less, variable

Lengths = Literal["fixed", "random", "instant"]

RATIO = variable("ratio", "q", "", "arrivals during a stay that the stay itself causes")
SHARE = variable("variance_share", r"\phi", "", "variance of a mean over a stay, relative to a single step's")

_Q = RATIO.symbol
_SMALL = 0.05  # below it the closed forms subtract numbers that are nearly equal
_NEAR_ZERO = (2 / 3, 1 / 4, 1 / 15, 1 / 72, 1 / 420, 1 / 2880)
_NEAR_ONE = tuple(2 / ((k + 1) * (k + 2)) for k in range(8))
_X = sp.Symbol("x", positive=True)
_C = sp.Function("c")(_X)
_HAWKES = "Hawkes, Biometrika 58 (1971) 83, solved for this kernel"
_STABLE = (Condition(less(_Q, 1), "Unstable: every newcomer causes at least one more, so there is no steady state."),)


def _fixed_steps() -> tuple[Step, ...]:
    correlation = (1 - (1 - _Q) * sp.exp(_Q * _X)) / _Q
    return (
        Step("Two moments of a stay apart by a share x of it: as the newcomers' own correlation is constant over "
             "a stay, the batch's obeys", equation(sp.Derivative(_C, _X), _Q * _C - 1)),
        Step("with c(0) = 1.", equation(_C, correlation)),
        Step("A mean over the whole stay counts the pairs of moments that lie x apart.",
             equation(SHARE.symbol, sp.Integral(2 * (1 - _X) * correlation, (_X, 0, 1)))),
        Step("Integrated.", equation(SHARE.symbol, FIXED_AVERAGING.expression)),
    )  # fmt: skip


def _random_steps() -> tuple[Step, ...]:
    y = sp.Symbol("y", positive=True)
    return (
        Step("Memoryless stays make the batch a birth-death chain, whose correlation falls off exponentially over "
             "x mean stays.", equation(_C, sp.exp(-(1 - _Q) * _X))),
        Step("A stay of y means averages over the pairs of moments in it; its length is exponential.",
             equation(SHARE.symbol, sp.Integral(
                 sp.exp(-y) * sp.Integral(2 * (1 - _X) * sp.exp(-(1 - _Q) * _X * y), (_X, 0, 1)), (y, 0, sp.oo)))),
        Step("Integrated.", equation(SHARE.symbol, RANDOM_AVERAGING.expression)),
    )  # fmt: skip


FIXED_AVERAGING = ClosedForm(
    "variance kept by averaging, requests of one length",
    SHARE,
    (1 - 2 * (1 - _Q) * (sp.exp(_Q) - 1 - _Q) / _Q**2) / _Q,
    (RATIO,),
    _HAWKES,
    _STABLE,
    _fixed_steps,
)
"""Two thirds at low ratios, all of it at ratio 1 [].

Examples
--------
>>> FIXED_AVERAGING(ratio=0.5)
0.8102298
"""

RANDOM_AVERAGING = ClosedForm(
    "variance kept by averaging, geometric lengths",
    SHARE,
    2 * ((2 - _Q) * sp.log(2 - _Q) / (1 - _Q) - 1) / (1 - _Q),
    (RATIO,),
    "Birth-death chain, linearised about its mean",
    _STABLE,
    _random_steps,
)
"""Four ln 2 less 2 at low ratios, all of it at ratio 1; over the requests, each of which counts once [].

Examples
--------
>>> RANDOM_AVERAGING(ratio=0.5)
0.8655812
"""


def averaging(ratio: float, lengths: Lengths) -> float:
    """Variance of a request's mean step time, as a share of a single step's [].

    Parameters
    ----------
    ratio
        In [0, 1) [].
    lengths
        "fixed" or "random" (geometric) lengths, or "instant" for a single step: no averaging at all.

    Examples
    --------
    >>> averaging(0.0, "fixed"), averaging(0.5, "fixed"), averaging(0.5, "instant")
    (0.6666667, 0.8102298, 1.0)
    """
    if lengths == "instant":
        return 1.0
    if lengths == "random":
        return float(RANDOM_AVERAGING(ratio=ratio)) if 1 - ratio > _SMALL else _series(_NEAR_ONE, ratio - 1)
    if lengths != "fixed":
        raise ValueError(f"Lengths are fixed, random or instant, not {lengths}.")
    if ratio > _SMALL:
        return float(FIXED_AVERAGING(ratio=ratio))
    return _series(_NEAR_ZERO, ratio)


def _series(coefficients: tuple[float, ...], x: float) -> float:
    return float(np.polynomial.polynomial.polyval(x, coefficients))
