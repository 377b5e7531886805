r"""A measured curve of acceptance lengths: the one acceptance that fits it best, how badly, and the rates that it implies.

Engines report the mean acceptance length for a draft of k tokens, some with the bonus token (vLLM, SGLang), some
without (TensorRT-LLM's counter): a curve says which, and is kept with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from formulas.bracketing import find_root
from formulas.closed_form import DomainError
from formulas.speculative.positions import tokens_by_length
from formulas.speculative.rounds import tokens_per_round

Array = NDArray[np.float64]

_GRID = np.linspace(0.0, 1.0, 1001)
_NOISE = 1e-6  # in tokens: below it a curve counts as reproduced
_CERTAIN = 1e4  # weight of the certainty that something happens


@dataclass(frozen=True)
class AcceptanceCurve:
    """Mean tokens of a round, with the bonus token, for drafts of several lengths.

    Attributes
    ----------
    draft_tokens
        Lengths of the draft, rising [].
    tokens
        Tokens of a round, with the bonus token [].
    """

    draft_tokens: tuple[int, ...]
    tokens: tuple[float, ...]


@dataclass(frozen=True)
class AcceptanceFit:
    """The single acceptance nearest to a curve, in the sense of least squares over its tokens per round.

    Attributes
    ----------
    acceptance
        Independent acceptance [].
    predicted
        Tokens of a round that it predicts for each length of the curve, with the bonus token [].
    rms
        Root of the mean squared difference, in tokens [].
    worst, worst_at
        Largest difference relative to the measured tokens, predicted less measured, and its draft length [].
    """

    acceptance: float
    predicted: tuple[float, ...]
    rms: float
    worst: float
    worst_at: int


@dataclass(frozen=True)
class ImpliedRates:
    """Acceptance by position that gives a curve, or comes nearest to it.

    Attributes
    ----------
    rates
        Conditional acceptance of positions 1, 2, ... up to the longest draft of the curve [].
    tokens
        Tokens of a round that they give at each length of the curve, with the bonus token [].
    adjusted
        Lengths at which these differ from the measured ones: a longer draft never gives less, and each further position
        never more than the one before it. Curves measured in runs of their own break that by noise.
    """

    rates: tuple[float, ...]
    tokens: tuple[float, ...]
    adjusted: tuple[int, ...]


def acceptance_curve(pairs: Iterable[tuple[float, float]], *, bonus: bool) -> AcceptanceCurve:
    """Curve from measured pairs of draft length and mean acceptance length.

    Parameters
    ----------
    pairs
        Draft length k and mean acceptance length [].
    bonus
        Whether the lengths count the bonus token.

    Raises
    ------
    DomainError
        If there is no pair, a length is repeated or not a positive whole number, or a round cannot give that many tokens.

    Examples
    --------
    >>> acceptance_curve([(2, 1.4), (1, 0.8)], bonus=False)
    AcceptanceCurve(draft_tokens=(1, 2), tokens=(1.8, 2.4))
    """
    ordered = sorted(pairs)
    if not ordered:
        raise DomainError("A curve has at least one pair of draft length and acceptance length.")
    lengths = [k for k, _ in ordered]
    if any(k < 1 or k != int(k) for k in lengths) or len(set(lengths)) < len(lengths):
        raise DomainError("Draft lengths are whole numbers from 1, each given once.")
    for k, length in ordered:
        _check_length(int(k), length, bonus)
    tokens = tuple(float(length) + (0.0 if bonus else 1.0) for _, length in ordered)
    return AcceptanceCurve(tuple(int(k) for k in lengths), tokens)


def fit_acceptance(curve: AcceptanceCurve) -> AcceptanceFit:
    """Independent acceptance that comes nearest to a curve, and its misfit.

    Parameters
    ----------
    curve
        Measured tokens per round.

    Notes
    -----
    The best point of a grid of 1001 acceptances, refined where the derivative of the squared differences is zero.

    Examples
    --------
    >>> fit = fit_acceptance(acceptance_curve([(1, 1.79), (8, 2.58)], bonus=True))
    >>> fit.acceptance, fit.worst, fit.worst_at
    (0.621660, -0.094045, 1)
    """
    lengths, measured = np.array(curve.draft_tokens), np.array(curve.tokens)
    misses = tokens_per_round(_GRID[:, np.newaxis], lengths) - measured
    best = int(np.argmin((misses**2).sum(axis=1)))
    alpha = _refined(best, lengths, measured)
    predicted = tokens_per_round(alpha, lengths)
    relative = predicted / measured - 1.0
    worst = int(np.argmax(np.abs(relative)))
    rms = float(np.sqrt(np.mean((predicted - measured) ** 2)))
    return AcceptanceFit(alpha, tuple(map(float, predicted)), rms, float(relative[worst]), int(lengths[worst]))


def implied_rates(curve: AcceptanceCurve) -> ImpliedRates:
    r"""Rates of acceptance by position that give a curve; between two measured lengths the rate is constant.

    Parameters
    ----------
    curve
        Measured tokens per round.

    Notes
    -----
    If J drafts would be accepted of an endless draft, a draft of k gives :math:`E[\min(J, k)]`: a curve that rises ever
    more slowly. The measured one is replaced by the nearest such curve, in the sense of least squares. From one length
    to the next it rises by the survival so far times a geometric sum of the rate.

    Examples
    --------
    >>> implied_rates(acceptance_curve([(1, 1.8), (2, 2.4), (4, 2.85)], bonus=True)).rates
    (0.8, 0.75, 0.5, 0.5)
    """
    lengths, measured = np.array(curve.draft_tokens), np.array(curve.tokens)
    accepted = _nearest_possible(lengths, measured - 1.0)
    rates: list[float] = []
    reached, survives, before = 0, 1.0, 0.0
    for k, total in zip(curve.draft_tokens, accepted, strict=True):
        rate = _rate(total - before, survives, k - reached)
        rates += [rate] * (k - reached)
        survives *= rate ** (k - reached)
        reached, before = k, total
    tokens = tokens_by_length(rates)[lengths]
    moved = lengths[np.abs(tokens - measured) > _NOISE]
    return ImpliedRates(tuple(rates), tuple(map(float, tokens)), tuple(map(int, moved)))


def _check_length(k: int, length: float, bonus: bool) -> None:
    least, most = (1, k + 1) if bonus else (0, k)
    if not least <= length <= most:
        counted = "with" if bonus else "without"
        raise DomainError(
            f"A draft of {k} gives between {least} and {most} tokens {counted} the bonus token, not {length:g}. "
            "Check whether the lengths count it."
        )


def _refined(best: int, lengths: Array, measured: Array) -> float:
    low, high = _GRID[max(best - 1, 0)], _GRID[min(best + 1, len(_GRID) - 1)]

    def slope(alpha: Array) -> Array:
        powers = np.arange(1, int(lengths.max()) + 1)
        terms = powers * alpha[:, np.newaxis] ** (powers - 1)
        gains = np.concatenate((np.zeros((len(alpha), 1)), np.cumsum(terms, axis=1)), axis=1)[:, lengths]
        misses = tokens_per_round(alpha[:, np.newaxis], lengths) - measured
        return np.asarray((misses * gains).sum(axis=1))

    root = float(find_root(slope, np.array([low]), np.array([high]))[0])
    return float(_GRID[best]) if np.isnan(root) else root  # at 0 or 1 the slope need not vanish


def _nearest_possible(lengths: Array, accepted: Array) -> Array:
    """Nearest curve E[min(J, k)] for some law of J, by least squares over the probabilities of J."""
    from scipy.optimize import nnls  # slow to import, and needed by few

    runs = np.append(lengths, 0)
    gains = np.minimum.outer(lengths, runs).astype(float)
    whole = np.full((1, len(runs)), _CERTAIN)  # the probabilities add up to 1
    law, _ = nnls(np.vstack((gains, whole)), np.append(accepted, _CERTAIN))
    return np.asarray(gains @ law)


def _rate(gain: float, survives: float, steps: int) -> float:
    """Constant rate over `steps` positions whose survivals add up to `gain`, or the nearest one that there is."""
    if gain <= 0 or survives <= 0:
        return 0.0
    if gain >= survives * steps:
        return 1.0
    target = gain / survives
    root = find_root(lambda a: a * tokens_per_round(a, steps - 1) - target, np.zeros(1), np.ones(1))
    return float(root[0])
