"""How far the goodput of the closed forms is from the event simulation's, over a grid: ``python -m benchmarks.goodput``.

Each scenario is a model on its accelerators, a workload, and targets so many times what a prompt and a token take alone. The
simulated goodput is looked for by bisection, the same requests coming faster or slower. Requests are spread at random, as the
forms take it.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from calculators.compare import search
from calculators.compare.check import Bench
from calculators.compare.compute import fleets_of
from calculators.compare.inputs import CompareInputs

REQUESTS = 20_000
QUICK_REQUESTS = 6_000

MACHINES = {
    "8B on H100": CompareInputs(fleet_gpus=2),
    "70B on 4 H100": CompareInputs(fleet_gpus=8, tp=4, model="llama-3.1-70b"),
}
LENGTHS = {"512 in, 64 out": (512, 64), "2,048 in, 256 out": (2048, 256), "256 in, 256 out": (256, 256)}
TARGETS = {"tight": (4.0, 1.5), "medium": (8.0, 2.0), "loose": (20.0, 4.0)}
"""Targets of TTFT and TPOT, in prefills and in decode steps of one sequence."""

SPREADS = {"fixed": (0.0, 0.0, 1.0), "log-normal": (1.0, 1.0, 1.0), "log-normal, bursts": (1.0, 1.0, 4.0)}
"""Coefficients of variation of prompts and outputs, and squared coefficient of variation of the gaps."""


@dataclass(frozen=True)
class Row:
    """One way to serve in one scenario: goodputs of the forms and of the simulation, and the error [%]."""

    scenario: str
    spread: str
    way: str
    formula: float
    simulated: float | None

    @property
    def off(self) -> float | None:
        """What the form is above the simulation [%], or ``None`` where it is far off or one of them is nothing."""
        return None if self.simulated is None else 100 * (self.formula / self.simulated - 1)


def scenarios(quick: bool) -> Iterator[tuple[str, str, CompareInputs]]:
    """Yield each scenario with its name and its spread."""
    machines = list(MACHINES.items())[: 1 if quick else None]
    lengths = list(LENGTHS.items())[: 1 if quick else None]
    for (machine, inputs), (size, (prompt, output)), (tight, times), (spread, (c, d, a)) in product(
        machines, lengths, TARGETS.items(), SPREADS.items()
    ):
        sized = replace(inputs, prompt_tokens=prompt, output_tokens=output)
        alone = search.prefill_first(sized).system
        limits = {
            "ttft_slo_ms": times[0] * 1e3 * alone.prefill_s,
            "tpot_slo_ms": times[1] * alone.pool.alone_ms,
        }
        spread_out = replace(sized, prompt_cv=c, output_cv=d, arrival_scv=a, **limits)
        yield f"{machine}, {size}, {tight}", spread, spread_out


def rows(quick: bool = False) -> Iterator[Row]:
    """Yield every way of every scenario that keeps the targets at some rate."""
    requests = QUICK_REQUESTS if quick else REQUESTS
    for name, spread, inputs in scenarios(quick):
        for key, fleet in fleets_of(inputs).items():
            formula = fleet.goodput(search.targets_of(inputs))
            if formula:
                simulated = Bench(inputs, fleet).goodput(formula, requests)
                yield Row(name, spread, key, formula, simulated)


def table(found: list[Row]) -> str:
    """Return the errors in percent, a line for each scenario and a column for each way, as Markdown."""
    ways = list(dict.fromkeys(row.way for row in found))
    at = {(row.scenario, row.spread, row.way): row for row in found}
    lines = ["| " + " | ".join(("scenario", "lengths", *ways)) + " |", "|" + "---|" * (2 + len(ways))]
    for scenario, spread in dict.fromkeys((row.scenario, row.spread) for row in found):
        cells = [_cell(at.get((scenario, spread, way))) for way in ways]
        lines.append("| " + " | ".join((scenario, spread, *cells)) + " |")
    return "\n".join(lines)


def _cell(row: Row | None) -> str:
    if row is None:
        return "no rate"
    return "far off" if row.off is None else f"{row.off:+.1f}"


def summary(found: list[Row]) -> str:
    """Return the median and the largest error of each way and spread, as Markdown."""
    lines = ["| way | lengths | scenarios | median | worst |", "|---|---|---|---|---|"]
    for way, spread in dict.fromkeys((row.way, row.spread) for row in found):
        mine = [row.off for row in found if (row.way, row.spread) == (way, spread)]
        off = [abs(each) for each in mine if each is not None]
        if off:
            worst = max((each for each in mine if each is not None), key=abs)
            lines.append(f"| {way} | {spread} | {len(mine)} | {statistics.median(off):.1f} | {worst:+.1f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    results = []
    for each in rows("--quick" in sys.argv[1:]):
        results.append(each)
        print(each.scenario, each.spread, each.way, f"{each.formula:.4g}", _cell(each), file=sys.stderr, flush=True)
    print(table(results), summary(results), sep="\n\n")
