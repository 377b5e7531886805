r"""The pool in closed form, where a step takes :math:`a + b n` at n sequences.

The weights give a, the cache of one sequence gives b. The batch then has a negative binomial law, and
everything the general law sums (:mod:`formulas.decode_pool.law`) has a formula.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import ArrayLike, NDArray

from formulas.closed_form import ClosedForm, Condition, DomainError, Step, equation, less, variable
from formulas.decode_pool.averaging import RATIO, Lengths, averaging
from formulas.queueing.pollaczek_khinchine import RATE

Array = NDArray[np.float64]

TOKENS = variable("tokens", "m", "", "mean number of decode steps of a request")
FIXED = variable("fixed_s", "a", "s", "time of a step before any sequence")
SLOPE = variable("slope_s", "b", "s", "time that each sequence adds to a step")
SHAPE = variable("shape", "r", "", "shape of the negative binomial law")
BATCH = variable("mean_batch", "E[N]", "", "mean number of sequences in the pool")
TPOT = variable("mean_tpot", r"E[\mathrm{TPOT}]", "s", "mean time per output token")
STEP_VARIANCE = variable("step_variance", r"\mathrm{Var}[T]", "s^2", "variance of the step time that a token sees")

UNSTABLE = "Unstable: requests arrive at least as fast as the pool can decode them, so there is no steady state."
UNLOADED = "Too slow even unloaded: a step with a single sequence takes longer than that."

_R, _M, _A, _B, _SHAPE, _Q = (v.symbol for v in (RATE, TOKENS, FIXED, SLOPE, SHAPE, RATIO))
_N = sp.Symbol("n", integer=True, positive=True)
_PI = sp.Function(r"\pi")
_GIVEN = (RATE, TOKENS, FIXED, SLOPE)
_STABLE = (Condition(less(_R * _M * _B, 1), UNSTABLE),)
_PRODUCT_FORM = "Processor sharing with a rate by state (Cohen, Acta Informatica 12 (1979) 245), its product form"
_MENTIONED = (SHAPE, RATIO, BATCH, TPOT, STEP_VARIANCE)


def _law_steps() -> tuple[Step, ...]:
    flow = equation(_R * _PI(_N - 1), _N / (_M * (_A + _B * _N)) * _PI(_N))
    return (
        Step("A step of a + b n seconds gives each of n sequences a token, of which a request wants m: "
             "as many requests come as go between two sizes of the batch.", flow),
        Step("Solved upwards from the empty pool, with r = 1 + a/b and q = R m b; the law holds for any lengths "
             "of that mean.", equation(_PI(_N), _PI(0) * _Q**_N * sp.RisingFactorial(_SHAPE, _N) / sp.factorial(_N))),
    )  # fmt: skip


def _batch_steps() -> tuple[Step, ...]:
    mean = equation(BATCH.symbol, _SHAPE * _Q / (1 - _Q))
    return (
        *_law_steps(),
        Step("That is the negative binomial law; its mean is", mean),
        Step("in the inputs", equation(BATCH.symbol, AFFINE_MEAN_BATCH.expression)),
    )


def _tpot_steps() -> tuple[Step, ...]:
    return (
        *_batch_steps(),
        Step("Little's law: a stay is the mean batch over the rate, and m tokens come in it.",
             equation(TPOT.symbol, BATCH.symbol / (_R * _M))),
        Step("The mean batch put in.", equation(TPOT.symbol, AFFINE_MEAN_TPOT.expression)),
    )  # fmt: skip


def _variance_steps() -> tuple[Step, ...]:
    return (
        *_law_steps(),
        Step("A token sees its own request and others with that law, whose variance is r q / (1 - q)².",
             equation(STEP_VARIANCE.symbol, _B**2 * _SHAPE * _Q / (1 - _Q) ** 2)),
        Step("In the inputs.", equation(STEP_VARIANCE.symbol, AFFINE_TPOT_VARIANCE.expression)),
    )  # fmt: skip


def _max_rate_steps() -> tuple[Step, ...]:
    return (*_tpot_steps(), Step("Solved for the rate.", equation(_R, AFFINE_MAX_RATE.expression)))


AFFINE_RATIO = ClosedForm(
    "ratio of the batch law", RATIO, _R * _M * _B, (RATE, TOKENS, SLOPE), _PRODUCT_FORM,
)  # fmt: skip

AFFINE_SHAPE = ClosedForm("shape of the batch law", SHAPE, 1 + _A / _B, (FIXED, SLOPE), _PRODUCT_FORM)

AFFINE_MEAN_BATCH = ClosedForm(
    "mean batch of a decode pool",
    BATCH,
    _R * _M * (_A + _B) / (1 - _R * _M * _B),
    _GIVEN,
    _PRODUCT_FORM,
    _STABLE,
    _batch_steps,
    _MENTIONED,
)
"""Mean batch over time [].

Examples
--------
>>> AFFINE_MEAN_BATCH(rate=200, tokens=64, fixed_s=6.6e-3, slope_s=2.66e-5)
128.609
"""

AFFINE_MEAN_TPOT = ClosedForm(
    "mean time per output token of a decode pool",
    TPOT,
    (_A + _B) / (1 - _R * _M * _B),
    _GIVEN,
    f"{_PRODUCT_FORM}, and Little's law",
    _STABLE,
    _tpot_steps,
    _MENTIONED,
)
"""Mean time per output token [s]; the wait for the step in progress at the arrival is not in it.

Examples
--------
>>> AFFINE_MEAN_TPOT(rate=200, tokens=64, fixed_s=6.6e-3, slope_s=2.66e-5)
0.0100476
"""

AFFINE_MAX_RATE = ClosedForm(
    "largest rate for a mean time per output token",
    RATE,
    (1 - (_A + _B) / TPOT.symbol) / (_M * _B),
    (TPOT, TOKENS, FIXED, SLOPE),
    "The mean time per output token, solved for the rate",
    (Condition(less(_A + _B, TPOT.symbol), UNLOADED),),
    _max_rate_steps,
    _MENTIONED,
)

AFFINE_TPOT_VARIANCE = ClosedForm(
    "variance of the step time that a token sees",
    STEP_VARIANCE,
    _R * _M * _B**2 * (_A + _B) / (1 - _R * _M * _B) ** 2,
    _GIVEN,
    _PRODUCT_FORM,
    _STABLE,
    _variance_steps,
    _MENTIONED,
)
"""Variance of a single step's time [s^2]; a request's own mean over its steps varies less (`averaging`)."""


def affine_batch_law(
    sequences: ArrayLike, *, rate: float, tokens: float, fixed_s: float, slope_s: float
) -> tuple[Array, Array]:
    """Probability of each batch, and of at most that batch [].

    Parameters
    ----------
    sequences
        Whole numbers of sequences [].
    rate, tokens, fixed_s, slope_s
        As in :data:`AFFINE_MEAN_TPOT`; `slope_s` above 0.

    Examples
    --------
    >>> law, below = affine_batch_law([0, 1], rate=1, tokens=1, fixed_s=0.5, slope_s=0.5)
    >>> law, below
    (array([0.25, 0.25]), array([0.25, 0.5 ]))
    """
    from scipy.special import betainc, gammaln

    q = _stable_ratio(rate, tokens, slope_s)
    r, n = 1 + fixed_s / slope_s, np.asarray(sequences, dtype=float)
    log = gammaln(n + r) - gammaln(r) - gammaln(n + 1) + n * np.log(q) + r * np.log1p(-q)
    return np.exp(log), np.asarray(betainc(r, n + 1, 1 - q))


def affine_tpot_quantile(
    level: float, *, rate: float, tokens: float, fixed_s: float, slope_s: float, lengths: Lengths = "fixed"
) -> float:
    """Time per output token that a share `level` of the requests do not exceed [s].

    Parameters
    ----------
    level
        Share, in (0, 1): 0.9 for P90 [].
    rate, tokens, fixed_s, slope_s
        As in :data:`AFFINE_MEAN_TPOT`; `slope_s` above 0.
    lengths
        What a request averages over, see :meth:`~formulas.decode_pool.law.PoolLaw.tpot_quantile`.

    Examples
    --------
    >>> affine_tpot_quantile(0.9, rate=200, tokens=64, fixed_s=6.6e-3, slope_s=2.66e-5)
    0.0104675
    """
    q = _stable_ratio(rate, tokens, slope_s)
    shape = 1 + fixed_s / slope_s
    mean = AFFINE_MEAN_TPOT(rate=rate, tokens=tokens, fixed_s=fixed_s, slope_s=slope_s)
    others = alone_or_more(_continuous_quantile(level, shape, q))
    seen = fixed_s + slope_s * (1 + others)
    return float(mean + np.sqrt(averaging(q, lengths)) * (seen - mean))


def alone_or_more(others: Any) -> Any:
    """Others in the batch, read between whole numbers: those who are alone stay alone, and from one other on nothing moves.

    Examples
    --------
    >>> alone_or_more(np.array([-0.5, 0.4, 0.75, 1.0, 7.3]))
    array([0. , 0. , 0.5, 1. , 7.3])
    """
    return np.where(others < 0.5, 0.0, np.minimum(others, 2 * others - 1))


def _stable_ratio(rate: float, tokens: float, slope_s: float) -> float:
    q: float = AFFINE_RATIO(rate=rate, tokens=tokens, slope_s=slope_s)
    if not 0 < q < 1:
        raise DomainError(UNSTABLE if q >= 1 else "The rate, the tokens and the slope are positive.")
    return q


def _continuous_quantile(level: float, shape: float, q: float) -> float:
    """Quantile of the law whose cdf joins the points (n + 1/2, P(N <= n)) by straight lines."""
    from scipy.special import betainc

    if not 0 < level < 1:
        raise DomainError("A percentile's level lies between 0 and 1.")
    low, high = -1, 1
    while betainc(shape, high + 1, 1 - q) < level:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if betainc(shape, middle + 1, 1 - q) >= level else (middle, high)
    below: Any = betainc(shape, low + 1, 1 - q) if low >= 0 else 0.0
    return float(low + 0.5 + (level - below) / (betainc(shape, high + 1, 1 - q) - below))
