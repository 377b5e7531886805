"""The simulations beside the formula: rounds of accepted and refused drafts, and tokens sampled from two models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from calculators.checks import agree, each_level
from calculators.outputs import output
from calculators.speculative.accepted import acceptance_of
from calculators.speculative.costs import costs_of, pair_of
from calculators.speculative.given import SpeculativeInputs
from formulas.montecarlo.agreement import CheckedValue
from formulas.montecarlo.speculative import check_rounds
from formulas.montecarlo.speculative_sampling import SamplingCheck, check_sampling, models_with_acceptance

ROWS = 6
"""Figures that are checked together: four of the rounds, and acceptance and distribution of the sampled tokens."""

MOST_DRAWS = 20_000_000
"""Drafts that are drawn at most, so that a long draft does not take minutes."""

LONGEST_SAMPLED = 32
"""Longest draft that tokens are sampled with: the distribution does not depend on it."""


@dataclass(frozen=True)
class CheckedFigure:
    """One figure by formula and by simulation, in its own unit."""

    label: str = output("Figure")
    exact: float = output("Exact")
    simulated: float = output("Simulated")
    low: float = output("Interval from")
    high: float = output("to")
    verdict: str = output("Exact figure is", "", "inside the interval, or outside")


@dataclass(frozen=True, kw_only=True)
class SpeculativeCheck:
    """Both simulations."""

    rounds: int = output("Rounds simulated")
    seed: int = output("Seed")
    agrees: bool = output("Every exact figure inside its interval, and the target unchanged")
    rows: tuple[CheckedFigure, ...] = output("Rounds")
    tokens: int = output("Tokens sampled from two models")
    chi_square: float = output("Chi-square against the target", "", "Of the sampled tokens")
    degrees: int = output("Degrees of freedom")
    p_value: float = output("Chance of a larger chi-square")
    target_unchanged: bool = output("The target's distribution is unchanged")
    counts: Any = None
    expected: Any = None
    sampling: SamplingCheck | None = None


def check(inputs: SpeculativeInputs) -> SpeculativeCheck:
    """Simulate rounds and sample tokens, and hold the formulas against them.

    Raises
    ------
    InputsError
        As for :func:`~calculators.speculative.compute.compute`.
    """
    acceptance, costs = acceptance_of(inputs), costs_of(inputs, pair_of(inputs))
    length, level = inputs.draft_tokens, each_level(ROWS)
    rates, verify = acceptance.rates[:length], float(costs.verify[length])
    rounds = min(inputs.customers, max(10_000, MOST_DRAWS // length))
    run = check_rounds(rates, costs.draft, verify, rounds, inputs.seed, level)
    target, draft = models_with_acceptance(acceptance.independent)
    sampled = check_sampling(
        target, draft, min(length, LONGEST_SAMPLED), max(2_000, rounds // 20), inputs.seed, level
    )  # fmt: skip
    rows = tuple(_figure(row) for row in (*run.rows, sampled.acceptance))
    return SpeculativeCheck(
        rounds=rounds,
        seed=inputs.seed,
        agrees=bool(agree(rows)) and sampled.verdict == "inside",
        rows=rows,
        tokens=sampled.tokens,
        chi_square=sampled.chi_square,
        degrees=sampled.degrees,
        p_value=sampled.p_value,
        target_unchanged=sampled.verdict == "inside",
        counts=run.counts,
        expected=run.expected,
        sampling=sampled,
    )


NAMES = {
    "accepted tokens": "Accepted drafts, without the bonus token",
    "tokens per round": "Tokens per round, with the bonus token",
    "speedup": "Speedup",
    "whole draft accepted": "Share of drafts accepted whole",
    "acceptance": "Acceptance in sampling, the sum of min(p, q)",
}


def _figure(row: CheckedValue) -> CheckedFigure:
    simulated = row.simulated
    return CheckedFigure(NAMES[row.name], row.exact, simulated.estimate, simulated.low, simulated.high, row.verdict)
