"""Formula beside simulation, for every calculator: the rows of the table, and what they amount to in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from calculators.outputs import output, readable
from formulas.montecarlo.agreement import CheckedValue
from formulas.montecarlo.confidence import Interval

TOGETHER = 0.95
"""Confidence that all intervals of one check hold at once, at least."""


def each_level(rows: int) -> float:
    """Return the confidence of each of several intervals that hold together with :data:`TOGETHER` (Bonferroni).

    >>> each_level(5)
    0.99
    """
    return 1 - (1 - TOGETHER) / rows


@dataclass(frozen=True)
class CheckedFigure:
    """One figure by formula and by simulation."""

    label: str = output("Figure")
    exact_ms: float = output("Exact", "ms")
    simulated_ms: float = output("Simulated", "ms")
    low_ms: float = output("Interval from", "ms")
    high_ms: float | None = output("to", "ms", "None where the run is too short to bound the figure")
    verdict: str = output("Exact figure is", "", "inside the interval, outside, or: run too short")


def figures_in_ms(rows: Iterable[CheckedValue], unit_ms: float, prefix: str = "") -> tuple[CheckedFigure, ...]:
    """Return checked values as figures in ms; ``unit_ms`` is the unit that they are in."""
    return tuple(_in_ms(row, unit_ms, prefix) for row in rows)


def _in_ms(row: CheckedValue, unit_ms: float, prefix: str) -> CheckedFigure:
    high = row.simulated.high
    return CheckedFigure(
        f"{prefix}{row.name}",
        unit_ms * row.exact,
        unit_ms * row.simulated.estimate,
        unit_ms * row.simulated.low,
        unit_ms * high if math.isfinite(high) else None,
        row.verdict,
    )


class Checked(Protocol):
    """A figure of any unit that was held against its simulation."""

    @property
    def label(self) -> str:
        """What it is."""

    @property
    def verdict(self) -> str:
        """Whether the exact figure is inside the interval, outside, or the run too short."""


def agree(rows: Sequence[Checked]) -> bool | None:
    """Return whether every exact figure lies inside its interval; ``None`` where a run is too short to tell."""
    verdicts = {row.verdict for row in rows}
    return None if "run too short" in verdicts else verdicts <= {"inside"}


def verdict(rows: Sequence[Checked]) -> str:
    """Return in a sentence of Markdown what the rows amount to."""
    agrees = agree(rows)
    if agrees is None:
        return "**This run is too short to check every figure.** Ask for more requests (sidebar, *Simulation*)."
    if agrees:
        return "**Every exact figure lies inside its interval.**"
    outside = ", ".join(row.label for row in rows if row.verdict == "outside")
    return (
        f"**Outside the interval: {outside}.** By chance that happens in one run of twenty at most; another seed tells."
    )


def method(customers: int, warm_up: int, seed: int, rows: int) -> str:
    """Return in a sentence how the simulation was made and how its intervals are meant."""
    return (
        f"{customers:,} requests, the first {warm_up:,} of them left out as warm-up; seed {seed}. Intervals by batch "
        f"means, which account for the correlation of successive waits: {each_level(rows):.3g} each, so that all hold "
        f"in at least {TOGETHER:.0%} of runs."
    )


@dataclass(frozen=True)
class ComparedFigure:
    """One figure by a formula that is an approximation, and by simulation: how far apart they are."""

    label: str = output("Figure")
    formula_ms: float = output("Formula", "ms")
    simulated_ms: float = output("Simulated", "ms")
    low_ms: float = output("Interval from", "ms")
    high_ms: float | None = output("to", "ms", "None where the run is too short to bound the figure")
    off_percent: float = output("Formula is off by", "%", "Above the simulated value if positive")


@dataclass(frozen=True)
class RepeatedFigure(ComparedFigure):
    """One figure that has no formula: as the answer's simulation gives it, and another one with another seed."""

    formula_ms: float = output("Answer, simulated", "ms")
    simulated_ms: float = output("Another seed", "ms")
    off_percent: float = output("Answer is off by", "%", "Above the other simulation if positive")


def compared(
    label: str, formula_ms: float, simulated: Interval, unit_ms: float, kind: type[ComparedFigure] = ComparedFigure
) -> ComparedFigure:
    """Return an answer's figure beside its simulated interval, whose unit is ``unit_ms`` [ms]."""
    high = simulated.high
    return kind(
        label,
        formula_ms,
        unit_ms * simulated.estimate,
        unit_ms * simulated.low,
        unit_ms * high if math.isfinite(high) else None,
        100 * (formula_ms / (unit_ms * simulated.estimate) - 1),
    )


def largest_difference(rows: Sequence[ComparedFigure]) -> str:
    """Return in a sentence of Markdown how far the formulas are from the simulation at most."""
    worst = max(rows, key=lambda row: abs(row.off_percent))
    return f"**The formulas are at most {readable(abs(worst.off_percent), 2)} % from the simulation** ({worst.label})."
