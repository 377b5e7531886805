"""The arrays behind the figures: against the rate, for tighter targets, for less efficient mixed steps, for every budget."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from calculators.compare import search
from calculators.compare.compute import WAYS, CompareResult, alternatives, fleets_of
from calculators.compare.inputs import CompareInputs
from calculators.outputs import output
from calculators.systems import BUDGETS

Array = NDArray[np.float64]

NAN = float("nan")
POINTS = 24
EFFICIENCIES = (0.2, 0.35, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


@dataclass(frozen=True)
class Curve:
    """One way to serve against the rate for each accelerator; NaN where it has no steady state."""

    key: str
    name: str
    rate: Array = output("Rate for each accelerator", "requests/s")
    attainment: Array = output("Attainment")
    own_ttft_ms: Array = output("TTFT at the attainment asked for", "ms")
    own_tpot_ms: Array = output("TPOT at the attainment asked for", "ms")


def against_rate(inputs: CompareInputs) -> list[Curve]:
    """Return each way's attainment and times against the rate for each accelerator."""
    return list(_against_rate(replace(inputs, rate=1.0)))


@lru_cache(maxsize=16)  # it does not depend on the rate, which is what a planner moves
def _against_rate(inputs: CompareInputs) -> tuple[Curve, ...]:
    fleets, targets = fleets_of(inputs), search.targets_of(inputs)
    most = max(fleet.system.bound * fleet.units / fleet.gpus for fleet in fleets.values())
    rates = most * np.linspace(0.03, 0.99, POINTS)
    found = []
    for fleet in fleets.values():
        rows = []
        for rate in rates:
            times = fleet.system.at(float(rate) * fleet.gpus / fleet.units)
            if times is None:
                rows.append([0.0, NAN, NAN])
                continue
            own = [times.ttft_quantile_s(targets.attainment), times.tpot_quantile_s(targets.attainment)]
            rows.append([times.attainment(targets), *(1e3 * float(each) for each in own)])
        found.append(Curve(fleet.key, fleet.system.name, rates, *np.array(rows).T))
    return tuple(found)


@dataclass(frozen=True)
class Tightening:
    """One way's attainment at the arrival rate, both targets times so much, with the best budget or ratio for each."""

    key: str
    scale: Array
    attainment: Array


def tightened(inputs: CompareInputs) -> list[Tightening]:
    """Return the attainment of each way against a common factor of both targets."""
    scales = np.geomspace(0.2, 5, 40)
    rate = inputs.rate * search.instances_of(inputs)
    return [
        Tightening(
            key,
            scales,
            np.array([
                max(each.attainment(rate, search.targets_of(inputs, float(scale))) for each in others)
                for scale in scales
            ]),
        )
        for key, fleet in fleets_of(inputs).items()
        for others in [alternatives(inputs, fleet)]
    ]  # fmt: skip


@dataclass(frozen=True)
class Degraded:
    """What chunks carry where mixed steps lose efficiency."""

    efficiency: float = output("Efficiency of mixed steps")
    budget: int | None = output("Best budget", "tokens")
    goodput_per_gpu: float | None = output("Chunked: goodput per accelerator", "requests/s")


def degraded(inputs: CompareInputs) -> list[Degraded]:
    """Return what chunks carry at their best against the efficiency of mixed steps."""
    return list(_degraded(replace(inputs, rate=1.0, mixed_efficiency=1.0)))


@lru_cache(maxsize=16)
def _degraded(inputs: CompareInputs) -> tuple[Degraded, ...]:
    found = []
    for efficiency in EFFICIENCIES:
        each = replace(inputs, mixed_efficiency=efficiency)
        budget = search.best_budget(each)
        goodput = None if budget is None else search.chunked(each, budget).goodput(search.targets_of(each))
        found.append(Degraded(efficiency, budget, None if goodput is None else goodput / inputs.fleet_gpus))
    return tuple(found)


@dataclass(frozen=True)
class Budget:
    """What chunks of one budget carry."""

    budget: int = output("Budget", "tokens")
    goodput_per_gpu: float | None = output("Goodput per accelerator", "requests/s")


def every_budget(inputs: CompareInputs) -> list[Budget]:
    """Return what chunks carry with each budget that was tried."""
    targets = search.targets_of(inputs)
    rates = [search.chunked(inputs, budget).goodput(targets) for budget in BUDGETS]
    return [
        Budget(budget, None if rate is None else rate / inputs.fleet_gpus)
        for budget, rate in zip(BUDGETS, rates, strict=True)
    ]


@dataclass(frozen=True)
class Ratio:
    """What one whole ratio of prefill to decode instances carries."""

    prefill_instances: int = output("Prefill instances")
    decode_instances: int = output("Decode instances")
    goodput_per_gpu: float | None = output("Goodput per accelerator", "requests/s")


def ratios(inputs: CompareInputs) -> list[Ratio]:
    """Return what the ratios next to the best carry."""
    found = []
    for prefills in search.near_split(inputs):
        rate = search.split(inputs, prefills).goodput(search.targets_of(inputs))
        each = None if rate is None else rate / inputs.fleet_gpus
        found.append(Ratio(prefills, search.instances_of(inputs) - prefills, each))
    return found


def goodputs(result: CompareResult) -> dict[str, float | None]:
    """Return each way's goodput per accelerator by key."""
    return {key: getattr(result, key).goodput_per_gpu for key in WAYS}
