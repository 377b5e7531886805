"""What a round costs in plain decode steps, for every draft length: typed in, or by the step-time model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calculators.speculative.accepted import Acceptance
from calculators.speculative.given import LONGEST, SpeculativeInputs
from calculators.speculative.machines import Side, draft_side, round_trip_s, step_parts, target_side
from formulas import speculative as forms

Array = NDArray[np.float64]

LENGTHS = np.arange(LONGEST + 1)
"""Draft lengths from none at all [tokens]."""

LARGEST_BATCH = 100_000
"""Largest batch that is looked at [sequences]."""


@dataclass(frozen=True)
class Costs:
    """A round's costs.

    Attributes
    ----------
    draft : float
        Time to draft a token, in plain decode steps.
    verify : ndarray
        Time to verify a draft of each of :data:`LENGTHS`, the round trip to the draft included, in plain decode steps.
    plain_s : float or None
        A plain decode step [s], None where both costs are typed in.
    link_in_verify_s : float
        The round trip to the draft's chips, as far as it is part of the verification [s]: not of a typed one.
    """

    draft: float
    verify: Array
    plain_s: float | None = None
    link_in_verify_s: float = 0.0

    def round(self, length: Any) -> Any:
        """Return the time of a round, in plain decode steps."""
        return length * self.draft + self.verify[length]


@dataclass(frozen=True)
class Pair:
    """Target and draft on their chips."""

    target: Side
    draft: Side
    link_s: float
    draft_cost: float | None
    verify_cost: float | None

    def costs(self, batch: Array) -> tuple[Array, Array, Array]:
        """Return the plain step [s], the draft cost and the verification at each length, for batches in a column."""
        plain_s = np.asarray(step_parts(self.target, batch).total_s)
        draft = (
            np.full(plain_s.shape, self.draft_cost) if self.draft_cost is not None else self._draft_s(batch) / plain_s
        )
        if self.verify_cost is not None:
            return plain_s, draft, np.full((*plain_s.shape[:-1], len(LENGTHS)), self.verify_cost)
        verified_s = np.asarray(step_parts(self.target, batch, LENGTHS + 1).total_s)
        return plain_s, draft, (verified_s + self.link_s) / plain_s

    def _draft_s(self, batch: Array) -> Array:
        return np.asarray(step_parts(self.draft, batch).total_s)


def pair_of(inputs: SpeculativeInputs) -> Pair | None:
    """Return target and draft on their chips, or None where both costs are typed in.

    Raises
    ------
    InputsError
        If a chip cannot compute with a format, or nothing joins so many of them.
    """
    if inputs.typed:
        return None
    target = target_side(inputs)
    return Pair(target, draft_side(inputs, target), round_trip_s(inputs), inputs.draft_cost, inputs.verify_cost)


def costs_of(inputs: SpeculativeInputs, pair: Pair | None) -> Costs:
    """Return the costs of a round at the batch given."""
    if pair is None:
        assert inputs.draft_cost is not None  # noqa: S101 - what `typed` says, for the type checker
        assert inputs.verify_cost is not None  # noqa: S101
        return Costs(inputs.draft_cost, np.full(len(LENGTHS), inputs.verify_cost))
    plain_s, draft, verify = pair.costs(np.array([[float(inputs.batch)]]))
    link_s = pair.link_s if pair.verify_cost is None else 0.0
    return Costs(float(draft[0, 0]), verify[0], float(plain_s[0, 0]), link_s)


def speedups(acceptance: Acceptance, costs: Costs) -> Array:
    """Return the speedup of each of :data:`LENGTHS`; 1 without a draft."""
    return np.asarray(forms.speedup_by_length(acceptance.tokens, costs.draft, costs.verify))


@dataclass(frozen=True)
class OverBatch:
    """What speculation gives at each batch.

    Attributes
    ----------
    batch : ndarray
        Sequences.
    best, given : ndarray
        Speedup at the best length, and at the length given.
    length : ndarray
        The best length, 0 for plain decoding.
    """

    batch: Array
    best: Array
    given: Array
    length: NDArray[np.int64]


def over_batch(pair: Pair, acceptance: Acceptance, batch: Array, given: int = 1) -> OverBatch:
    """Return the speedup at each batch, at the best of the measured lengths and at the one given."""
    _, draft, verify = pair.costs(np.asarray(batch, dtype=float)[:, np.newaxis])
    tokens = np.broadcast_to(acceptance.tokens, verify.shape)
    gain = forms.speedup_by_length(tokens, draft, verify)
    measured = gain[:, : acceptance.measured + 1]
    length = np.asarray(forms.best_length(measured))
    return OverBatch(batch, measured.max(axis=-1), gain[:, given], length)


def break_even_batch(pair: Pair, acceptance: Acceptance) -> int | None:
    """Return the batch from which on no draft pays, whatever its length; None if some pays at every batch looked at.

    Raises
    ------
    InputsError
        As for :func:`pair_of`.
    """
    if pair.verify_cost is not None:
        return None
    return _break_even(pair, tuple(acceptance.rates[: acceptance.measured]))


def next_paying_batch(pair: Pair, acceptance: Acceptance, batch: int) -> int | None:
    """Return the next larger batch at which some draft pays, for one at which none does; None if there is none.

    A mixture of experts has such a gap: a small batch touches few experts, and verification has to read more of them.
    """
    if pair.verify_cost is not None or batch >= LARGEST_BATCH:
        return None
    tried = np.unique(np.round(np.geomspace(batch, LARGEST_BATCH, 160)))[1:]
    low = float(batch)
    while len(paying := np.flatnonzero(over_batch(pair, acceptance, tried).length > 0)):
        first = int(paying[0])
        low, high = float(tried[first - 1]) if first else low, float(tried[first])
        if high - low <= 1:
            return int(high)
        tried = np.unique(np.append(np.round(np.linspace(low, high, 40))[1:], high))
    return None


@lru_cache(maxsize=256)  # it does not depend on the batch or the length, which are what a planner moves
def _break_even(pair: Pair, rates: tuple[float, ...]) -> int | None:
    known = np.concatenate((rates, np.full(LONGEST - len(rates), rates[-1])))
    acceptance = Acceptance("rates", known, len(rates))
    grid = np.unique(np.round(np.geomspace(1, LARGEST_BATCH, 160)))
    paying = np.flatnonzero(over_batch(pair, acceptance, grid).length > 0)
    if not len(paying):
        return 1
    last = int(paying[-1])
    if last == len(grid) - 1:
        return None
    low, high = grid[last], grid[last + 1]
    while high - low > 1:
        between = np.unique(np.round(np.linspace(float(low), float(high), 40)))
        place = int(np.flatnonzero(over_batch(pair, acceptance, between).length > 0)[-1])
        low, high = between[place], between[min(place + 1, len(between) - 1)]
    return int(high)
