"""The simulation beside the formulas: tokens that choose experts, step after step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calculators.checks import each_level
from calculators.experts.compute import ExpertsInputs
from calculators.experts.ranks import placed
from calculators.experts.routing import Routing, routing_of
from calculators.experts.steps import sequences_of
from calculators.outputs import output
from formulas import experts as forms
from formulas.closed_form import DomainError
from formulas.montecarlo.routing import RoutingCheck, check_routing

Array = NDArray[np.float64]

LEAST_STEPS, MOST_STEPS = 64, 20_000
MOST_CLOCKS = 2**25
"""Draws of one simulation: a third of a second's work."""


@dataclass(frozen=True)
class CheckedCount:
    """One figure by formula and by simulation."""

    label: str = output("Figure")
    formula: float = output("Formula")
    kind: str = output("which is", "", "exact, or approximate")
    simulated: float = output("Simulated")
    low: float = output("Interval from")
    high: float = output("to")
    verdict: str = output("Formula is", "", "inside the interval, outside, or: run too short")


@dataclass(frozen=True)
class Histogram:
    """Share of the steps that touched so many experts."""

    experts: Array = output("Different experts")
    simulated: Array = output("Share of the steps, simulated")
    exact: Array | None = output("Share of the steps, exact")


@dataclass(frozen=True)
class Choices:
    """Share of the tokens that choose each expert, the most popular first."""

    place: Array = output("Place by popularity")
    simulated: Array = output("Share of the tokens, simulated")
    exact: Array = output("Share of the tokens, exact")
    rule_of_thumb: Array = output("k times the popularity, at most 1")


@dataclass(frozen=True, kw_only=True)
class ExpertsCheck:
    """Simulated steps, each with tokens routed anew."""

    steps: int = output("Steps simulated")
    tokens: int = output("Tokens in each")
    seed: int = output("Seed")
    agrees: bool | None = output(
        "Every exact figure inside its interval", "", "None where the run is too short to tell"
    )
    rows: tuple[CheckedCount, ...] = output("Figures")
    histogram: Histogram
    choices: Choices


def check(inputs: ExpertsInputs) -> ExpertsCheck:
    """Simulate the routing and hold the formulas against it.

    Raises
    ------
    DomainError
        If the model is dense, or the step is too large to simulate.
    InputsError
        As for :func:`~calculators.experts.compute.compute`.
    """
    routing = routing_of(inputs)
    if routing is None:
        raise DomainError("A dense model routes nothing: there is nothing to simulate.")
    tokens = sequences_of(inputs).tokens
    rank = placed(routing, inputs.ep, inputs.placement) if inputs.ep > 1 else None
    steps = _steps(inputs.customers, tokens, routing.experts)
    level = each_level(2 if rank is None else 4)
    run = check_routing(routing.weights, routing.chosen, tokens, rank, steps, inputs.seed, level)
    rows = _rows(run)
    exact = [row.verdict for row in rows if row.kind == "exact"]
    return ExpertsCheck(
        steps=run.steps,
        tokens=run.tokens,
        seed=run.seed,
        agrees=None if "run too short" in exact else set(exact) == {"inside"},
        rows=rows,
        histogram=_histogram(routing, run),
        choices=_choices(routing, run),
    )


def _steps(requests: int, tokens: int, experts: int) -> int:
    """Return how many steps are simulated: the requests' worth of tokens, within what takes a fraction of a second."""
    most = MOST_CLOCKS // (tokens * experts)
    if most < LEAST_STEPS:
        largest = MOST_CLOCKS // (LEAST_STEPS * experts)
        raise DomainError(
            f"Steps of up to {largest:,} tokens are simulated here; one of {tokens:,} takes too long. Type fewer tokens in."
        )
    return max(LEAST_STEPS, min(requests // tokens, most, MOST_STEPS))


def _rows(run: RoutingCheck) -> tuple[CheckedCount, ...]:
    return tuple(
        CheckedCount(
            label=f"{'experts touched, ' if place < 2 else ''}{row.name}",
            formula=row.exact,
            kind="approximate" if row.name in run.approximate else "exact",
            simulated=row.simulated.estimate,
            low=row.simulated.low,
            high=row.simulated.high,
            verdict=row.verdict,
        )
        for place, row in enumerate(run.rows)
    )


def _histogram(routing: Routing, run: RoutingCheck) -> Histogram:
    law = forms.distinct_law(routing.experts, routing.chosen, run.tokens) if routing.even else None
    some = run.counts > 0 if law is None else (run.counts > 0) | (law > 1e-6)
    shown = np.arange(np.argmax(some), len(some) - np.argmax(some[::-1]))
    return Histogram(shown.astype(float), run.counts[shown] / run.steps, None if law is None else law[shown])


def _choices(routing: Routing, run: RoutingCheck) -> Choices:
    order = np.argsort(-np.asarray(routing.weights), kind="stable")
    rule = forms.share_with_replacement(routing.weights, routing.chosen)
    tokens = run.steps * run.tokens
    return Choices(
        np.arange(1.0, routing.experts + 1), run.chosen[order] / tokens, run.probabilities[order], rule[order]
    )
