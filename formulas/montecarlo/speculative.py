r"""Rounds of accepted and refused drafts, by chance, beside the formula."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from formulas.montecarlo.agreement import BATCHES, CheckedValue, checked_value
from formulas.montecarlo.confidence import mean_interval
from formulas.speculative import accepted_distribution

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

_CELLS = 4_000_000  # draws at a time, to bound the memory


@dataclass(frozen=True)
class RoundsCheck:
    """Simulated rounds beside the formula.

    Attributes
    ----------
    rows
        Accepted tokens (without the bonus token), tokens per round (with it), speedup, and the share of rounds whose draft
        is accepted whole; the rounds are independent, so every interval is trusted.
    counts
        Rounds with 0, 1, ..., k drafts accepted.
    expected
        What the formula expects of them.
    """

    draft_tokens: int
    rounds: int
    seed: int
    rows: tuple[CheckedValue, ...]
    counts: Counts
    expected: Array


def simulate_rounds(rates: ArrayLike, rounds: int, seed: int) -> Counts:
    """Drafts accepted in each of many rounds, without the bonus token.

    Parameters
    ----------
    rates
        Acceptance of each position of the draft, given that all before it were accepted, in [0, 1] [].
    rounds
        Rounds [].
    seed
        Of the generator.

    Examples
    --------
    >>> simulate_rounds([1.0, 1.0, 0.0], 4, seed=1)
    array([2, 2, 2, 2])
    """
    rate = np.asarray(rates, dtype=float)
    generator = np.random.default_rng(seed)
    accepted = np.empty(rounds, dtype=np.int64)
    size = max(1, _CELLS // max(len(rate), 1))
    for start in range(0, rounds, size):
        part = accepted[start : start + size]
        drawn = generator.random((len(part), len(rate))) < rate
        part[:] = np.where(drawn.all(axis=1), len(rate), drawn.argmin(axis=1))  # position of the first refusal
    return accepted


def check_rounds(
    rates: ArrayLike,
    draft_cost: float,
    verify_cost: float = 1.0,
    rounds: int = 200_000,
    seed: int = 1,
    level: float = 0.95,
) -> RoundsCheck:
    """Simulate rounds and compare them with the formula.

    Parameters
    ----------
    rates
        Acceptance of each position, given that all before it were accepted; all equal for the independent model [].
    draft_cost, verify_cost
        In plain decode steps [].
    rounds
        Rounds simulated, at least 32 [].
    seed
        Of the generator.
    level
        Confidence of the intervals [].

    Examples
    --------
    >>> check = check_rounds([0.8] * 4, 0.1)
    >>> [(row.name, round(row.exact, 4), row.verdict) for row in check.rows]
    [('accepted tokens', 2.3616, 'inside'), ('tokens per round', 3.3616, 'inside'),
     ('speedup', 2.4011, 'inside'), ('whole draft accepted', 0.4096, 'inside')]
    """
    rate = np.asarray(rates, dtype=float)
    law = accepted_distribution(rate)
    accepted = simulate_rounds(rate, rounds, seed)
    cost = len(rate) * draft_cost + verify_cost
    mean = float(np.arange(len(law)) @ law)
    values = {
        "accepted tokens": (mean, accepted),
        "tokens per round": (mean + 1.0, accepted + 1),
        "speedup": ((mean + 1.0) / cost, (accepted + 1) / cost),
        "whole draft accepted": (float(law[-1]), accepted == len(rate)),
    }
    rows = tuple(
        checked_value(name, exact, mean_interval(found, level, BATCHES), trusted=True)
        for name, (exact, found) in values.items()
    )
    counts = np.bincount(accepted, minlength=len(law)).astype(np.int64)
    return RoundsCheck(len(rate), rounds, seed, rows, counts, law * rounds)
