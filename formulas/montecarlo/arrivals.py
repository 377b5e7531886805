"""Gaps between arrivals of many kinds, a million at a time: what a first-come-first-served simulation is fed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from formulas.closed_form import DomainError
from formulas.queueing.bursts.switching import Switching
from formulas.queueing.service import ListedLengths

Array = NDArray[np.float64]


def gamma_gaps(rate: float, shape: float, arrivals: int, generator: np.random.Generator) -> Array:
    """Return gaps with a gamma distribution; Poisson arrivals at a shape of 1, equal gaps at infinity.

    Parameters
    ----------
    rate
        Arrivals per second [1/s].
    shape
        One over the squared coefficient of variation of the gaps, above zero [].
    arrivals
        How many [].
    generator
        Of random numbers.

    Examples
    --------
    >>> gamma_gaps(4.0, np.inf, 3, np.random.default_rng(1))
    array([0.25, 0.25, 0.25])
    """
    if not (rate > 0 and shape > 0):
        raise DomainError("A simulation needs a rate and a shape of the gaps above zero.")
    if shape == np.inf:
        return np.full(arrivals, 1.0 / rate)
    if shape == 1:
        return generator.standard_exponential(arrivals) / rate
    return generator.standard_gamma(shape, arrivals) / (shape * rate)


def switching_gaps(process: Switching, arrivals: int, generator: np.random.Generator) -> Array:
    """Return gaps of arrivals whose rate switches between two values.

    Parameters
    ----------
    process
        The two rates and how the states change.
    arrivals
        How many [].
    generator
        Of random numbers.

    Notes
    -----
    Spell by spell: their lengths, the number of arrivals in each, and those at uniform times in it. The process starts
    in its long-run mix of states.

    Examples
    --------
    >>> gaps = switching_gaps(Switching(1.0, 9.0, 0.5, 0.5), 100_000, np.random.default_rng(1))
    >>> round(float(gaps.mean()), 2)
    0.2
    """
    rates = np.array([process.first_rate, process.second_rate])
    leaves = np.array([process.leave_first, process.leave_second])
    both = float((rates / leaves).sum())  # mean arrivals in a spell of each kind
    spells = 2 * int((arrivals + 1) / both + 10 * ((arrivals + 1) / both) ** 0.5 + 10)
    first = generator.random() < leaves[1] / leaves.sum()
    state = (np.arange(spells) + (not first)) % 2
    lengths = generator.standard_exponential(spells) / leaves[state]
    counts = generator.poisson(lengths * rates[state])
    if counts.sum() > 4 * arrivals + 1000:  # spells so long that not all of their arrivals are needed
        counts, lengths = _as_far_as_needed(counts, lengths, arrivals + 1, generator)
    starts = np.concatenate([[0.0], np.cumsum(lengths)[:-1]])
    times = np.repeat(starts, counts) + np.repeat(lengths, counts) * generator.random(int(counts.sum()))
    if len(times) <= arrivals:  # the spells were unusually quiet
        return switching_gaps(process, arrivals, generator)
    times.sort()
    return np.diff(times)[:arrivals]


def _as_far_as_needed(
    counts: Array, lengths: Array, needed: int, generator: np.random.Generator
) -> tuple[Array, Array]:
    """Return the spells up to so many arrivals and one more, the last spell cut off at that one.

    Of n arrivals at uniform times the k-th comes after a share of the spell that has a beta distribution; those before
    it are uniform again.
    """
    last = int(np.searchsorted(np.cumsum(counts), needed))
    counts, lengths = counts[: last + 1], lengths[: last + 1].copy()
    left = needed + 1 - int(counts[:last].sum())
    if counts[last] > left:
        lengths[last] *= generator.beta(left, counts[last] - left + 1)
        counts = np.append(counts[:last], left - 1)
    return counts, lengths


def batch_gaps(batch_rate: float, sizes: ListedLengths, arrivals: int, generator: np.random.Generator) -> Array:
    """Return gaps of prompts that come in batches at Poisson times: zero within a batch.

    Parameters
    ----------
    batch_rate
        Batches per second [1/s].
    sizes
        Numbers of prompts in a batch, with their shares.
    arrivals
        Prompts, at least; the last batch is complete [].
    generator
        Of random numbers.

    Examples
    --------
    >>> gaps = batch_gaps(2.0, ListedLengths(3), 7, np.random.default_rng(1))
    >>> (gaps > 0).tolist()
    [False, False, True, False, False, True, False, False, True]
    """
    if not batch_rate > 0:
        raise DomainError("A simulation needs a rate above zero.")
    counts = sizes.draw(arrivals, generator).astype(np.int64)
    counts = counts[: int(np.searchsorted(np.cumsum(counts), arrivals)) + 1]
    gaps = np.zeros(int(counts.sum()))
    gaps[np.cumsum(counts) - 1] = generator.standard_exponential(len(counts)) / batch_rate
    return gaps
