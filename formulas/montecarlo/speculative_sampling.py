r"""Tokens really sampled from two models: speculative decoding leaves the target's distribution as it is.

The formulas take two things for granted that are shown here: refusing drafts as Leviathan et al. do gives the target's
own distribution, and a share :math:`\sum_x \min(p(x), q(x))` of the drafts is accepted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from formulas.bracketing import find_root
from formulas.closed_form import DomainError
from formulas.montecarlo.agreement import BATCHES, CheckedValue, Verdict, checked_value
from formulas.montecarlo.confidence import mean_interval

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

_OUTSIDE = 1  # a token that the target never says


@dataclass(frozen=True)
class SamplingCheck:
    """Tokens sampled by drafting from q and verifying with p, beside what p alone would give.

    Attributes
    ----------
    tokens, drafted
        Tokens sampled, and drafts that the target looked at for them.
    chi_square, degrees, p_value
        Pearson's test of the tokens against p.
    verdict
        "inside" where the p-value is at least one less the level: the target's distribution is not distinguishable.
    acceptance
        Share of the drafts looked at that were accepted, beside the sum of min(p, q).
    target, draft, sampled
        Shares of each token: p, q, and what came out.
    """

    tokens: int
    drafted: int
    seed: int
    chi_square: float
    degrees: int
    p_value: float
    verdict: Verdict
    acceptance: CheckedValue
    target: Array
    draft: Array
    sampled: Array


def sample_tokens(
    target: ArrayLike, draft: ArrayLike, draft_tokens: int, rounds: int, seed: int
) -> tuple[Counts, Counts]:
    """Sample rounds of speculative decoding where target and draft have the same two distributions at every position.

    Parameters
    ----------
    target, draft
        Probabilities p and q of each token; both add up to 1 [].
    draft_tokens
        Tokens drafted in a round [].
    rounds
        Rounds [].
    seed
        Of the generator.

    Returns
    -------
    ndarray, ndarray
        All tokens in order, and the drafts accepted in each round, without the bonus token.

    Notes
    -----
    Leviathan et al. (arXiv 2211.17192), algorithm 1: a draft x from q is accepted with probability min(1, p(x)/q(x)); the
    first that is refused is replaced by a token from max(0, p - q), scaled to 1; after a whole draft one comes from p.

    Examples
    --------
    >>> tokens, accepted = sample_tokens([0.5, 0.5], [1.0, 0.0], 3, 1000, seed=1)
    >>> len(tokens) - int(accepted.sum())
    1000
    """
    p, q = _distribution(target), _distribution(draft)
    generator = np.random.default_rng(seed)
    drafts = _draw(generator, q, (rounds, draft_tokens))
    keep = np.divide(p, q, out=np.zeros_like(p), where=q > 0)
    kept = generator.random((rounds, draft_tokens)) < keep[drafts]
    accepted = np.where(kept.all(axis=1), draft_tokens, kept.argmin(axis=1)) if draft_tokens else np.zeros(rounds, int)
    left = np.maximum(p - q, 0.0)
    residual = left / left.sum() if left.sum() > 0 else p  # equal distributions refuse nothing
    last = np.where(accepted < draft_tokens, _draw(generator, residual, rounds), _draw(generator, p, rounds))
    written = np.concatenate((drafts, last[:, np.newaxis]), axis=1)
    written[np.arange(rounds), accepted] = last
    emitted = np.arange(draft_tokens + 1) <= accepted[:, np.newaxis]
    return written[emitted], accepted


def check_sampling(
    target: ArrayLike,
    draft: ArrayLike,
    draft_tokens: int,
    rounds: int = 50_000,
    seed: int = 1,
    level: float = 0.95,
) -> SamplingCheck:
    """Sample tokens by speculative decoding and test whether they come from the target's distribution.

    Parameters
    ----------
    target, draft, draft_tokens, rounds, seed
        As in :func:`sample_tokens`.
    level
        Confidence of the interval and of the test [].

    Examples
    --------
    >>> check = check_sampling([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], 4)
    >>> check.verdict, check.acceptance.verdict, round(check.acceptance.exact, 6)
    ('inside', 'inside', 0.7)
    """
    p, q = _distribution(target), _distribution(draft)
    tokens, accepted = sample_tokens(p, q, draft_tokens, rounds, seed)
    counts = np.bincount(tokens, minlength=len(p))
    statistic, degrees, chance = chi_square(counts, p)
    seen = np.minimum(accepted + 1, draft_tokens)  # drafts looked at, the refused one among them
    share = np.repeat([1.0, 0.0], [accepted.sum(), (seen - accepted).sum()])
    np.random.default_rng(seed).shuffle(share)  # independent trials: their order is free
    acceptance = checked_value(
        "acceptance", float(np.minimum(p, q).sum()), mean_interval(share, level, BATCHES), trusted=True
    )
    verdict: Verdict = "inside" if chance >= 1.0 - level else "outside"
    return SamplingCheck(
        len(tokens), len(share), seed, statistic, degrees, chance, verdict, acceptance, p, q, counts / len(tokens)
    )


def chi_square(counts: ArrayLike, probabilities: ArrayLike) -> tuple[float, int, float]:
    """Pearson's statistic of counts against probabilities, its degrees of freedom, and the chance of a larger one.

    Parameters
    ----------
    counts
        How often each token came [].
    probabilities
        Of each token []. One that is impossible and came makes the statistic infinite; tokens expected fewer than five
        times are counted together.

    Examples
    --------
    >>> chi_square([48, 52], [0.5, 0.5])
    (0.16, 1, 0.689157)
    """
    from scipy.special import chdtrc  # slow to import, and needed by few

    observed, p = np.asarray(counts, dtype=float), np.asarray(probabilities, dtype=float)
    if observed[p == 0].any():
        return float("inf"), int(np.count_nonzero(p)), 0.0
    expected = p * observed.sum()
    rare = (expected < 5) & (p > 0)
    usual = (p > 0) & ~rare
    cells = np.append(observed[usual], observed[rare].sum()), np.append(expected[usual], expected[rare].sum())
    filled = cells[1] > 0
    statistic = float((((cells[0] - cells[1]) ** 2)[filled] / cells[1][filled]).sum())
    degrees = max(int(np.count_nonzero(filled)) - 1, 1)
    return statistic, degrees, float(chdtrc(degrees, statistic))


def models_with_acceptance(acceptance: float, vocabulary: int = 40, exponent: float = 1.2) -> tuple[Array, Array]:
    """Two distributions of which a share `acceptance` of the drafts is accepted.

    Parameters
    ----------
    acceptance
        Sum of the smaller of the two probabilities, in [0, 1] [].
    vocabulary
        Tokens that the target may say; the draft knows one more, which the target never says [].
    exponent
        Of the target's Zipf law [].

    Returns
    -------
    ndarray, ndarray
        Target p: Zipf's law. Draft q: p mixed with p in reverse order and, for still lower acceptance, with the token
        that the target never says.

    Examples
    --------
    >>> p, q = models_with_acceptance(0.8)
    >>> float(np.minimum(p, q).sum())
    0.8
    """
    if not 0 <= acceptance <= 1:
        raise DomainError("An acceptance is a probability: it lies between 0 and 1.")
    law = np.arange(1, vocabulary + 1.0) ** -exponent
    p = np.append(law / law.sum(), np.zeros(_OUTSIDE))
    reverse = np.append(p[:vocabulary][::-1], np.zeros(_OUTSIDE))
    outside = np.append(np.zeros(vocabulary), np.ones(_OUTSIDE))

    def draft(mix: Any) -> Array:
        near, far = np.clip(mix, 0, 1)[:, np.newaxis], np.clip(mix - 1, 0, 1)[:, np.newaxis]
        return np.asarray((1 - far) * ((1 - near) * p + near * reverse) + far * outside)

    def excess(mix: Array) -> Array:
        return np.asarray(np.minimum(p, draft(mix)).sum(axis=1) - acceptance)

    mix = find_root(excess, np.zeros(1), np.full(1, 2.0)) if 0 < acceptance < 1 else np.array([2.0 - 2.0 * acceptance])
    return p, np.asarray(draft(mix)[0])


def _distribution(probabilities: ArrayLike) -> Array:
    p = np.asarray(probabilities, dtype=float)
    if np.any(p < 0) or abs(p.sum() - 1.0) > 1e-9:
        raise DomainError("The probabilities of the tokens add up to 1, and none is negative.")
    return np.asarray(p / p.sum())


def _draw(generator: np.random.Generator, p: Array, shape: Any) -> Counts:
    steps = np.cumsum(p)
    last = int(np.flatnonzero(p)[-1])  # the sum may end just below 1
    found = np.searchsorted(steps, generator.random(shape), side="right")
    return np.asarray(np.minimum(found, last), dtype=np.int64)
