r"""Expert parallelism: whole experts dealt out over ranks, and the rank that everyone waits for.

A token chooses k of all N experts, wherever they are: on a rank with n of them it finds k n / N on average. Taking k
out of the n local ones counts every rank's work as if it were the whole layer's.

Every layer waits for its busiest rank. The mean load of a rank is exact, and so is its variance under even
routing. The expected maximum over ranks has no closed form; see :func:`busiest_load` for the approximation.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from formulas.closed_form import ClosedForm, Condition, DomainError, at_most, variable
from formulas.experts.skewed import exclusion_factors
from formulas.experts.uniform import CHOSEN, EXPERTS, TOKENS

Array = NDArray[np.float64]
_REACH = 10.0  # standard deviations
_MOST_POINTS = 400  # of a distribution function; farther apart, it is smooth between them
_POISSON = 1e-9  # mean and variance differ by less: the binomial has become Poisson
Placement = Literal["shuffled", "balanced", "by popularity"]

RANKS = variable("ranks", "r", "", "ranks over which the experts are dealt out")
ON_RANK = variable("distinct_on_rank", r"E[X_{r}]", "", "expected different experts touched on a rank")
LOAD = variable("rank_load", r"E[L]", "", "expected choices that fall on a rank")
LOAD_VARIANCE = variable("rank_load_variance", r"\operatorname{Var} L", "", "variance of the choices on a rank")
COPIES = variable("ranks_visited", "v", "", "ranks that a token visits on average")
OWN_TOKENS = variable("tokens_per_rank", r"t_{r}", "", "tokens that come from each rank")
HIDDEN = variable("hidden", "d", "", "elements of a token's activation")
ELEMENT = variable("element_bytes", "s", "B", "bytes of one element")
SENT = variable("sent_bytes", "V", "B", "bytes that a rank sends in one direction of one layer's exchange")

_N, _K, _T, _R = EXPERTS.symbol, CHOSEN.symbol, TOKENS.symbol, RANKS.symbol
_DOMAIN = (
    Condition(at_most(_K, _N), "A token cannot be routed to more experts than there are."),
    Condition(at_most(_R, _N), "There are more ranks than experts: some would have none."),
    Condition(at_most(1, _R), "There is at least one rank."),
)

DISTINCT_ON_RANK = ClosedForm(
    "different experts touched on a rank",
    ON_RANK,
    _N / _R * (1 - (1 - _K / _N) ** _T),
    (EXPERTS, CHOSEN, TOKENS, RANKS),
    "Linearity of expectation; the tokens are those of all ranks, and each chooses among all experts",
    _DOMAIN,
)
"""Different experts touched on one of equal ranks, by the tokens of all ranks together [].

Examples
--------
>>> DISTINCT_ON_RANK(experts=256, experts_per_token=8, tokens=32, ranks=32)
5.1032
"""

RANK_LOAD = ClosedForm(
    "choices that fall on a rank",
    LOAD,
    _T * _K / _R,
    (CHOSEN, TOKENS, RANKS),
    "Every token makes k choices",
    (Condition(at_most(1, _R), "There is at least one rank."),),
)

RANK_LOAD_VARIANCE = ClosedForm(
    "variance of the choices on a rank",
    LOAD_VARIANCE,
    _T * _K / _R * (1 - 1 / _R) * (_N - _K) / (_N - 1),
    (EXPERTS, CHOSEN, TOKENS, RANKS),
    "Each token's choices on a rank are hypergeometric: k draws without replacement, N/r of N",
    (*_DOMAIN, Condition(at_most(2, _R), "With a single rank there is nothing to spread.")),
)

EXCHANGE_BYTES = ClosedForm(
    "bytes that a rank sends to the others",
    SENT,
    OWN_TOKENS.symbol * COPIES.symbol * (1 - 1 / _R) * HIDDEN.symbol * ELEMENT.symbol,
    (OWN_TOKENS, COPIES, RANKS, HIDDEN, ELEMENT),
    "One copy for each rank that a token visits, of which one in r is its own",
    (Condition(at_most(1, _R), "There is at least one rank."),),
)
"""Bytes that a rank sends before the experts of one layer, and about as many after them [B].

Examples
--------
>>> EXCHANGE_BYTES(tokens_per_rank=128, ranks_visited=ranks_visited(256, 8, 8), ranks=8, hidden=7168, element_bytes=1)
4260757.9
"""


def ranks_visited(experts: int, experts_per_token: int, ranks: int) -> float:
    r"""Ranks that a token visits on average, under even routing [].

    Parameters
    ----------
    experts, experts_per_token
        Whole numbers [].
    ranks
        A divisor of `experts` [].

    Notes
    -----
    Exact: :math:`r \left(1 - \binom{N - N/r}{k} / \binom{N}{k}\right)`. For other popularities, the sum of
    :func:`~formulas.experts.clocks.visit_probabilities`. Choices that meet on a rank travel there once.

    Examples
    --------
    >>> ranks_visited(256, 8, 32)
    7.2668
    """
    _check(experts, experts_per_token, ranks)
    local = experts // ranks
    factors = np.arange(experts_per_token)
    missed = np.prod(np.maximum(experts - local - factors, 0) / (experts - factors))
    return float(ranks * (1.0 - missed))


def place(weights: ArrayLike, ranks: int, placement: Placement, seed: int = 0) -> NDArray[np.intp]:
    """Rank of each expert, as many on each.

    Parameters
    ----------
    weights
        Popularity of each expert [].
    ranks
        A divisor of their number [].
    placement
        "shuffled": at random, as where nobody looked at popularity. "balanced": the most popular expert left goes to
        the rank with the least so far, as a balancer does. "by popularity": in order, the worst.
    seed
        Of the shuffle.

    Examples
    --------
    >>> place([4, 3, 2, 1], 2, "balanced").tolist()
    [0, 1, 1, 0]
    """
    popularity = np.asarray(weights, dtype=float)
    _check(popularity.size, 1, ranks)
    rank = np.empty(popularity.size, dtype=np.intp)
    if placement == "balanced":
        return _balanced(popularity, ranks, rank)
    if placement == "shuffled":
        order = np.random.default_rng(seed).permutation(popularity.size)
    else:
        order = np.argsort(-popularity, kind="stable")
    rank[order] = np.arange(popularity.size) // (popularity.size // ranks)
    return rank


def busiest_load(probabilities: ArrayLike, tokens: float, rank: ArrayLike) -> float:
    r"""Choices on the busiest rank, on average [].

    Parameters
    ----------
    probabilities
        Probability that a token chooses each expert [].
    tokens
        Tokens of all ranks together [].
    rank
        Rank of each expert, from 0 up [].

    Notes
    -----
    Approximate. The loads of ranks add up to the tokens' choices, and so are correlated. Without that
    condition they would be independent, with variances larger by what the sum would spread: those of
    :math:`t\,C\,\sum_{i \in r} c_i` with the factors of :func:`~formulas.experts.skewed.exclusion_factors` and
    their sum C. Each is taken as the binomial of its mean and variance, and the maximum of independent ones is exact.

    Against 58 simulations, 8 to 256 experts, 1 to 8 per token, 2 to 64 ranks, 1 to 64 tokens, even routing and Zipf
    exponents up to 2: within 1.4 % where the choices are twice the ranks or more, and within 6 % where they are fewer.

    Examples
    --------
    >>> busiest_load([4 / 128] * 128, 21, place([1] * 128, 8, "shuffled"))
    15.252
    """
    p: Array = np.asarray(probabilities, dtype=float)
    ranks = np.asarray(rank)
    factors = exclusion_factors(p)
    mean, variance = np.bincount(ranks, p), factors.sum() * np.bincount(ranks, factors)
    found = _expected_maximum(np.asarray(tokens * mean, float), np.asarray(tokens * variance, float))
    most = tokens * min(float(p.sum()), float(np.bincount(ranks).max()))  # a token's choices are different experts
    return float(np.clip(found, min(tokens, 1.0), most))  # and one of them is somewhere


def busiest_distinct(probabilities: ArrayLike, tokens: float, rank: ArrayLike) -> float:
    """Different experts touched on the rank that touches most, on average [].

    Parameters
    ----------
    probabilities, tokens, rank
        As in :func:`busiest_load`.

    Notes
    -----
    Approximate: experts count as touched or not independently of one another, each with its exact probability.
    Against the same simulations within 1.4 % and 6 %, too.

    Examples
    --------
    >>> busiest_distinct([4 / 128] * 128, 21, place([1] * 128, 8, "shuffled"))
    10.605
    """
    touched, ranks = 1.0 - (1.0 - np.asarray(probabilities, dtype=float)) ** tokens, np.asarray(rank)
    order = np.argsort(ranks, kind="stable")
    most = int(np.bincount(ranks).max())
    chance = np.zeros((int(ranks.max()) + 1, most))
    chance[ranks[order], np.concatenate([np.arange(n) for n in np.bincount(ranks)])] = touched[order]
    law = np.zeros((chance.shape[0], most + 1))
    law[:, 0] = 1.0
    for probability in chance.T[:, :, np.newaxis]:
        law[:, 1:] = law[:, 1:] * (1.0 - probability) + law[:, :-1] * probability
        law[:, :1] *= 1.0 - probability
    return max(float((1.0 - np.cumsum(law, axis=1).clip(max=1.0).prod(axis=0)).sum()), min(tokens, 1.0))


def _expected_maximum(mean: Array, variance: Array) -> float:
    """Mean of the largest of independent binomials (Poisson where mean and variance are equal)."""
    from scipy.special import betainc, pdtr  # slow to import, and needed by few

    laws, times = np.unique(np.round(np.stack([mean, variance]), 12), axis=1, return_counts=True)
    (mean, variance), sd = laws[:, :, np.newaxis], np.sqrt(laws[1])
    low = max(0, int((laws[0] - _REACH * sd).max()))
    stride = max(1, int((laws[0] + _REACH * (sd + 1) - low).max() / _MOST_POINTS))
    points = np.arange(low, (laws[0] + _REACH * (sd + 1)).max() + stride, stride) + (stride - 1) / 2
    share = 1.0 - variance / mean
    left = mean / np.where(share > _POISSON, share, 1.0) - points
    binomial = np.where(left > 0, betainc(np.maximum(left, 1e-300), points + 1, 1.0 - share), 1.0)
    below = np.where(share > _POISSON, binomial, pdtr(points, mean))
    return float(low + stride * (1.0 - (below ** times[:, np.newaxis]).prod(axis=0)).sum())


def _balanced(popularity: Array, ranks: int, rank: NDArray[np.intp]) -> NDArray[np.intp]:
    load, room = np.zeros(ranks), np.full(ranks, popularity.size // ranks)
    for expert in np.argsort(-popularity, kind="stable"):
        lightest = int(np.argmin(np.where(room > 0, load, np.inf)))
        rank[expert] = lightest
        load[lightest] += popularity[expert]
        room[lightest] -= 1
    return rank


def _check(experts: int, experts_per_token: int, ranks: int) -> None:
    if not 1 <= experts_per_token <= experts:
        raise DomainError("A token is routed to at least one expert, and to no more than there are.")
    if ranks < 1 or experts % ranks:
        raise DomainError(f"{experts} experts do not divide over {ranks} ranks.")
