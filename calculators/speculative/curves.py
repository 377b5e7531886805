"""The arrays behind the figures: speedup over draft length, over acceptance and cost, over the batch; a round in time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calculators.outputs import counted
from calculators.speculative.accepted import Acceptance, acceptance_of
from calculators.speculative.costs import LENGTHS, OverBatch, costs_of, over_batch, pair_of, speedups
from calculators.speculative.given import LONGEST, SpeculativeInputs
from calculators.speculative.machines import step_parts
from formulas import speculative as forms

Array = NDArray[np.float64]

ACCEPTANCES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""Acceptances that are drawn beside the user's own."""

BATCHES = np.unique(np.round(np.geomspace(1, 8192, 90)))


@dataclass(frozen=True)
class LengthCurve:
    """Speedup against the length of the draft.

    Attributes
    ----------
    name : str
        What it is drawn as.
    mine : bool
        Whether it is the user's own.
    speedup : ndarray
        For drafts of 0, 1, 2, … tokens.
    best : int
        The best of the lengths shown, 0 for plain decoding.
    """

    name: str
    mine: bool
    speedup: Array
    best: int


def length_curves(inputs: SpeculativeInputs) -> list[LengthCurve]:
    """Return the speedup for the acceptance at hand and for others, at the costs at hand; the user's own last."""
    acceptance, costs = acceptance_of(inputs), costs_of(inputs, pair_of(inputs))
    mine = speedups(acceptance, costs)
    shown = _longest_shown(inputs, acceptance, mine)
    measured = acceptance.kind != "one"
    curves = []
    for alpha in ACCEPTANCES if not measured else (acceptance.independent,):
        if alpha != inputs.acceptance or measured:
            gain = forms.speedup_by_length(forms.tokens_per_round(alpha, LENGTHS), costs.draft, costs.verify)
            name = f"independent, α = {alpha:.3g}" if measured else f"α = {alpha:g}"
            curves.append(_curve(name, False, gain[: shown + 1]))
    end = min(shown, acceptance.measured) if measured else shown
    name = "as measured" if measured else f"α = {inputs.acceptance:g}, yours"
    return [*curves, _curve(name, True, mine[: end + 1])]


def _curve(name: str, mine: bool, speedup: Array) -> LengthCurve:
    return LengthCurve(name, mine, speedup, int(forms.best_length(speedup)))


def _longest_shown(inputs: SpeculativeInputs, acceptance: Acceptance, mine: Array) -> int:
    """Return how far the axis goes: past the best length, the user's own and what was measured."""
    best = int(forms.best_length(mine))
    measured = acceptance.measured if acceptance.kind != "one" else 0
    return int(min(LONGEST, max(16, 2 * best if best < LONGEST else 32, 1.25 * inputs.draft_tokens, measured)))


def arithmetic_bound_from(inputs: SpeculativeInputs) -> int | None:
    """Return the shortest draft whose verification takes longer to compute than to read, None if there is none."""
    pair = pair_of(inputs)
    if pair is None or pair.verify_cost is not None:
        return None
    parts = step_parts(pair.target, float(inputs.batch), LENGTHS + 1)
    bound = np.flatnonzero(parts.compute_s > parts.weights_s + parts.cache_s)
    return int(bound[0]) if len(bound) else None


@dataclass(frozen=True)
class CostMap:
    """The best speedup over acceptance and draft cost, a row for each cost.

    Attributes
    ----------
    acceptance, draft_cost : ndarray
        The axes.
    speedup : ndarray
        At the best length.
    length : ndarray
        The best length, 0 for plain decoding.
    pays_below : ndarray
        Draft cost below which some draft pays, for each acceptance; NaN where none is low enough.
    """

    acceptance: Array
    draft_cost: Array
    speedup: Array
    length: NDArray[np.int64]
    pays_below: Array


def cost_map(inputs: SpeculativeInputs) -> CostMap:
    """Return the best speedup over independent acceptance and draft cost, with the verification at hand."""
    costs = costs_of(inputs, pair_of(inputs))
    alpha = np.linspace(0.3, 0.95, 60)
    cost = np.geomspace(min(0.01, max(costs.draft, 1e-4)), max(1.0, costs.draft), 50)
    tokens = forms.tokens_per_round(alpha[:, np.newaxis], LENGTHS)
    gain = forms.speedup_by_length(
        np.broadcast_to(tokens, (len(cost), *tokens.shape)), cost[:, np.newaxis, np.newaxis], costs.verify
    )
    highest = ((tokens - costs.verify)[:, 1:] / LENGTHS[1:]).max(axis=-1)  # of a draft that costs what it gains
    pays_below = np.where(highest > 0, highest, np.nan)
    return CostMap(alpha, cost, gain.max(axis=-1), np.asarray(forms.best_length(gain)), pays_below)


def batch_curve(inputs: SpeculativeInputs) -> OverBatch | None:
    """Return the speedup against the batch, or None where costs are typed in that would depend on it."""
    pair = pair_of(inputs)
    if pair is None or pair.verify_cost is not None:
        return None
    batches = np.unique(np.append(BATCHES, inputs.batch))
    return over_batch(pair, acceptance_of(inputs), batches, inputs.draft_tokens)


@dataclass(frozen=True)
class Bar:
    """Something that occupies a lane of the timeline, in plain decode steps from the start of the round.

    Attributes
    ----------
    lane, what : str
        Where it is drawn, and what it is.
    start, length : float
        When it starts and how long it takes.
    steps : int
        Steps that it stands for: more than one in the middle of a long run.
    """

    lane: str
    what: str
    start: float
    length: float
    steps: int = 1


MOST_STEPS = 24
"""Steps of a run that are drawn one by one."""

ENDS = 8
"""Steps that are drawn one by one at each end of a longer run."""


def timeline(inputs: SpeculativeInputs) -> list[Bar]:
    """Return a round beside the plain decoding that takes as long; the middle of a long run of steps is one bar."""
    costs = costs_of(inputs, pair_of(inputs))
    gamma = inputs.draft_tokens
    link = costs.link_in_verify_s / costs.plain_s if costs.plain_s else 0.0
    there, verify_at = gamma * costs.draft, gamma * costs.draft + link / 2
    verify = float(costs.verify[gamma]) - link
    bars = _run("Draft", "draft", costs.draft, gamma * costs.draft, gamma)
    if link:
        bars += [
            Bar("Link", "drafts to the target", there, link / 2),
            Bar("Link", "outcome back", verify_at + verify, link / 2),
        ]
    bars.append(Bar("Target", f"verification of {counted(gamma, 'draft')}", verify_at, verify))
    whole = float(costs.round(gamma))
    return bars + _run("Plain decoding", "token", 1.0, whole, int(np.ceil(whole - 1e-9)))


def _run(lane: str, what: str, step: float, whole: float, steps: int) -> list[Bar]:
    """Return the bars of a run of equal steps, the last cut where the run ends."""
    if steps <= MOST_STEPS:
        single, between = [*range(steps)], []
    else:
        first, last = ENDS, steps - ENDS
        single = [*range(first), *range(last, steps)]
        middle = f"{what}s {first + 1:,} to {last:,}, {counted(last - first, 'step')} in one bar"
        between = [Bar(lane, middle, first * step, (last - first) * step, last - first)]
    ends = [Bar(lane, f"{what} {k + 1:,}", k * step, min(step, whole - k * step)) for k in single]
    return ends[:ENDS] + between + ends[ENDS:]


@dataclass(frozen=True)
class TokensCurve:
    """Tokens per round against the draft length, with the bonus token: measured, as used, and the independent fit."""

    length: NDArray[np.int64]
    used: Array
    independent: Array
    measured_length: tuple[int, ...]
    measured: tuple[float, ...]


def tokens_curve(inputs: SpeculativeInputs) -> TokensCurve:
    """Return what is known of the tokens of a round, beside what one acceptance says."""
    acceptance = acceptance_of(inputs)
    known = acceptance.measured if acceptance.kind != "one" else max(16, inputs.draft_tokens)
    length = LENGTHS[: known + 1]
    curve = acceptance.curve
    return TokensCurve(
        length,
        acceptance.tokens[: known + 1],
        np.asarray(forms.tokens_per_round(acceptance.independent, length)),
        curve.draft_tokens if curve else (),
        curve.tokens if curve else (),
    )
