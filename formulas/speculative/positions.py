r"""Acceptance by position: what a round gives where later drafts are accepted more or less often than the first.

Two ways to state it, and engines print the second. The **rate** of position i is its probability of being accepted given
that all before it were; the **survival** of position i is the share of rounds that accept it, and hence all before it:
:math:`s_i = a_1 a_2 \cdots a_i`, which never rises. vLLM's "per-position acceptance rate" is the survival.

The drafts accepted in a round are the sum of the survivals, whatever the dependence between positions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from formulas.closed_form import DomainError
from formulas.speculative.length import best_length, speedup_by_length

Array = NDArray[np.float64]


def survival(rates: ArrayLike) -> Array:
    """Share of rounds that accept each position, from the rates given that all before it were accepted.

    Parameters
    ----------
    rates
        Conditional acceptance of positions 1, 2, ..., in [0, 1] [].

    Examples
    --------
    >>> survival([0.8, 0.75, 0.5])
    array([0.8, 0.6, 0.3])
    """
    return np.asarray(np.cumprod(_shares(rates)))


def conditional_rates(shares: ArrayLike) -> Array:
    """Conditional acceptance of each position, from the share of rounds that accept it.

    Parameters
    ----------
    shares
        Share of rounds that accept positions 1, 2, ..., in [0, 1] and never rising, as vLLM and llama.cpp print them [].

    Returns
    -------
    ndarray
        Conditional rates []; 0 where no round comes that far.

    Raises
    ------
    DomainError
        If a share exceeds the one before it.

    Examples
    --------
    >>> conditional_rates([0.8, 0.6, 0.3, 0.0, 0.0])
    array([0.8 , 0.75, 0.5 , 0.  , 0.  ])
    """
    share = _shares(shares)
    before = np.concatenate(([1.0], share[:-1]))
    if np.any(share > before):
        raise DomainError(
            "The share of rounds that accept a position cannot rise along the draft: a draft counts only if all before "
            "it do. Perhaps these are rates given that the ones before were accepted."
        )
    return np.divide(share, before, out=np.zeros_like(share), where=before > 0)


def accepted_by_length(rates: ArrayLike) -> Array:
    """Drafts accepted in a round of 0, 1, 2, ... drafted tokens, without the bonus token [].

    Parameters
    ----------
    rates
        Conditional acceptance of positions 1, 2, ..., in [0, 1] [].

    Returns
    -------
    ndarray
        One more element than there are rates; the first is 0.

    Examples
    --------
    >>> accepted_by_length([0.8, 0.75, 0.5])
    array([0. , 0.8, 1.4, 1.7])
    """
    return np.concatenate(([0.0], np.cumsum(survival(rates))))


def tokens_by_length(rates: ArrayLike) -> Array:
    """Tokens of a round of 0, 1, 2, ... drafted tokens, with the bonus token []; see :func:`accepted_by_length`.

    Examples
    --------
    >>> tokens_by_length([0.8, 0.75, 0.5])
    array([1. , 1.8, 2.4, 2.7])
    """
    return accepted_by_length(rates) + 1.0


def accepted_distribution(rates: ArrayLike) -> Array:
    """Probability that 0, 1, ..., k drafts of k are accepted [].

    Parameters
    ----------
    rates
        Conditional acceptance of the k positions, in [0, 1] [].

    Examples
    --------
    >>> accepted_distribution([0.8, 0.75, 0.5])
    array([0.2, 0.2, 0.3, 0.3])
    """
    reached = np.concatenate(([1.0], survival(rates), [0.0]))
    return -np.diff(reached)


def best_by_position(rates: ArrayLike, draft_cost: float, verify_cost: Any = 1.0) -> tuple[int, float]:
    """Best length of a draft, and its speedup; no longer than there are rates.

    Parameters
    ----------
    rates
        Conditional acceptance of positions 1, 2, ..., in [0, 1] [].
    draft_cost
        Time to draft a token, in plain decode steps [].
    verify_cost
        Time to verify a draft, in plain decode steps: one number, or one for each length from 0 on [].

    Returns
    -------
    int, float
        Draft tokens, 0 for plain decoding, and the speedup [].

    Notes
    -----
    The survivals never rise, so that with a verification of constant cost there is one peak, whatever the rates. Where
    verification grows with the draft there can be several: every length is looked at.

    Examples
    --------
    >>> best_by_position([0.8, 0.75, 0.5, 0.1], 0.1)
    (3, 2.076923)
    """
    gain = speedup_by_length(tokens_by_length(rates), draft_cost, verify_cost)
    length = best_length(gain)
    return length, float(gain[length])


def _shares(values: ArrayLike) -> Array:
    shares = np.asarray(values, dtype=float)
    if shares.ndim != 1 or not len(shares):
        raise DomainError("At least one position is needed.")
    if not np.all((shares >= 0) & (shares <= 1)):
        raise DomainError("An acceptance is a probability: it lies between 0 and 1.")
    return shares
