r"""Routing by simulation: tokens that choose experts one step after another, beside the formulas.

A token's choice is that of the k earliest of exponential clocks with the popularities as rates: exactly the law of k
experts drawn one after another by popularity, without replacement. Steps are independent.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from formulas.closed_form import DomainError
from formulas.experts import busiest_distinct, busiest_load, inclusion_probabilities, touched_of, touched_sd
from formulas.montecarlo.agreement import BATCHES, CheckedValue, checked_value
from formulas.montecarlo.confidence import Interval, mean_interval

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

_CLOCKS_AT_ONCE = 2**20


@dataclass(frozen=True)
class RoutedSteps:
    """What each simulated step touched.

    Attributes
    ----------
    distinct
        Different experts of each step [].
    busiest_load, busiest_distinct
        Choices on the busiest rank of each step, and different experts on the rank that touches most [].
    chosen
        How often each expert was chosen, over all steps [].
    """

    tokens: int
    distinct: Counts
    busiest_load: Counts
    busiest_distinct: Counts
    chosen: Counts


@dataclass(frozen=True)
class RoutingCheck:
    """A simulation of the routing beside the formulas.

    Attributes
    ----------
    rows
        Mean and standard deviation of the different experts, and with several ranks the busiest one's means.
    approximate
        Names of the rows whose formula is an approximation: "outside" may then be its error rather than chance.
    counts
        Steps with each number of different experts, from 0 up [].
    chosen, probabilities
        How often each expert was chosen, over all steps, and the probability that a token chooses it [].
    """

    steps: int
    tokens: int
    seed: int
    rows: tuple[CheckedValue, ...]
    approximate: tuple[str, ...]
    counts: Counts
    chosen: Counts
    probabilities: Array


def route(
    weights: ArrayLike, experts_per_token: int, tokens: int, steps: int, seed: int, rank: ArrayLike | None = None
) -> RoutedSteps:
    """Route the tokens of many steps.

    Parameters
    ----------
    weights
        Popularity of each expert, positive [].
    experts_per_token, tokens, steps
        Choices of a token, tokens of a step, and steps [].
    seed
        Of the generator: the same seed gives the same steps.
    rank
        Rank of each expert, from 0 up; a single rank if None [].

    Examples
    --------
    >>> routed = route([1] * 128, 4, tokens=21, steps=400, seed=1)
    >>> float(routed.distinct.mean()), int(routed.chosen.sum())
    (62.2325, 33600)
    """
    popularity = np.asarray(weights, dtype=float)
    if not 1 <= experts_per_token <= popularity.size or tokens < 1 or steps < 1:
        raise DomainError("A simulation needs a step, a token, and no more experts per token than there are.")
    ranks = np.zeros(popularity.size, dtype=np.intp) if rank is None else np.asarray(rank)
    choices = _choices(popularity, experts_per_token, tokens, steps, seed)
    members = (ranks[:, np.newaxis] == np.arange(ranks.max() + 1)).astype(np.float64)  # exact, and faster than integers
    touched = choices > 0
    return RoutedSteps(
        tokens,
        touched.sum(axis=1),
        (choices @ members).max(axis=1).astype(np.int64),
        (touched @ members).max(axis=1).astype(np.int64),
        choices.sum(axis=0),
    )


def check_routing(
    weights: ArrayLike,
    experts_per_token: int,
    tokens: int,
    rank: ArrayLike | None = None,
    steps: int = 2_000,
    seed: int = 1,
    level: float = 0.95,
) -> RoutingCheck:
    """Simulate the routing and compare it with the formulas.

    Parameters
    ----------
    weights, experts_per_token, tokens, rank, steps, seed
        As in :func:`route`.
    level
        Confidence of the intervals, in (0, 1) [].

    Examples
    --------
    >>> check = check_routing([1] * 128, 4, 21)
    >>> [(row.name, row.exact, row.verdict) for row in check.rows]
    [('mean', 62.2863, 'inside'), ('standard deviation', 3.03004, 'inside')]
    """
    popularity = np.asarray(weights, dtype=float)
    routed = route(popularity, experts_per_token, tokens, steps, seed, rank)
    p = inclusion_probabilities(popularity, experts_per_token)
    rows = [
        _row("mean", touched_of(p, tokens), mean_interval(routed.distinct, level, BATCHES)),
        _row("standard deviation", touched_sd(p, tokens), sd_interval(routed.distinct, level)),
    ]
    even = np.ptp(popularity) == 0 or experts_per_token in (1, popularity.size)
    approximate = [] if even else ["standard deviation"]
    if rank is not None and np.max(rank) > 0:
        loads = mean_interval(routed.busiest_load, level, BATCHES)
        touched = mean_interval(routed.busiest_distinct, level, BATCHES)
        rows += [
            _row("load of the busiest rank", busiest_load(p, tokens, rank), loads),
            _row("experts of the busiest rank", busiest_distinct(p, tokens, rank), touched),
        ]
        approximate += [row.name for row in rows[2:]]
    counts = np.bincount(routed.distinct, minlength=popularity.size + 1)
    return RoutingCheck(steps, tokens, seed, tuple(rows), tuple(approximate), counts, routed.chosen, p)


def sd_interval(values: ArrayLike, level: float = 0.95) -> Interval:
    """Interval for the standard deviation of independent values, from that of their squared deviations.

    Parameters
    ----------
    values
        Independent values [].
    level
        Confidence, in (0, 1) [].

    Examples
    --------
    >>> sd_interval(np.tile([1.0, 3.0], 64)).estimate
    1.0039
    """
    x = np.asarray(values, dtype=float)
    squares = (x - x.mean()) ** 2 * x.size / (x.size - 1)
    found = mean_interval(squares, level, BATCHES)
    low, high = sqrt(max(found.low, 0.0)), sqrt(found.high)
    return Interval(sqrt(found.estimate), low, high, level)


def _row(name: str, exact: float, simulated: Interval) -> CheckedValue:
    # Where every step gave the same, a rarer outcome may not have been seen.
    seen = simulated.low < simulated.high or np.isclose(exact, simulated.estimate, rtol=1e-9, atol=0)
    return checked_value(name, exact, simulated, trusted=bool(seen))


def _choices(popularity: Array, chosen: int, tokens: int, steps: int, seed: int) -> Counts:
    """Return how often each expert was chosen, in each step."""
    generator, experts = np.random.default_rng(seed), popularity.size
    at_once = max(1, _CLOCKS_AT_ONCE // experts)
    found = np.zeros((steps, experts), dtype=np.int64)
    for start in range(0, steps * tokens, at_once):
        step = np.arange(start, min(start + at_once, steps * tokens)) // tokens
        clocks = generator.standard_exponential((step.size, experts), dtype=np.float32) / popularity
        first = np.argpartition(clocks, chosen - 1, axis=1)[:, :chosen]
        place = ((step - step[0])[:, np.newaxis] * experts + first).ravel()
        rows = int(step[-1] - step[0]) + 1
        found[step[0] : step[-1] + 1] += np.bincount(place, minlength=rows * experts).reshape(rows, experts)
    return found
