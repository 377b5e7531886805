"""The arrays behind the figures: the three ways to serve against the rate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from calculators.outputs import output
from calculators.scenario import ServiceLevels
from calculators.systems import Disaggregated, System, overtaking_rates

Array = NDArray[np.float64]

NAN = float("nan")


@dataclass(frozen=True)
class Curve:
    """One way to serve against the rate; NaN where it has no steady state."""

    key: str
    name: str
    rate: Array = output("Arrival rate", "requests/s")
    mean_ttft_ms: Array = output("Mean TTFT", "ms")
    own_ttft_ms: Array = output("TTFT at the attainment asked for", "ms")
    mean_tpot_ms: Array = output("Mean TPOT", "ms")
    own_tpot_ms: Array = output("TPOT at the attainment asked for", "ms")
    attainment: Array = output("Attainment")


def rates_of(systems: tuple[System, ...], points: int = 16) -> Array:
    """Return rates for all ways together: evenly spaced, to where the last of them has no steady state."""
    most = max(system.bound for system in systems)
    even = np.linspace(0.02, 0.9, points - 3)
    return most * np.concatenate([even, [0.94, 0.97, 0.99]])


@lru_cache(maxsize=128)  # it does not depend on the rate, which is what a planner moves
def _curve(
    system: System, rates: tuple[float, ...], ttft_slo_ms: float, tpot_slo_ms: float, attainment: float
) -> Curve:
    targets = ServiceLevels(ttft_slo_ms=ttft_slo_ms, tpot_slo_ms=tpot_slo_ms, attainment=attainment)
    rows = []
    for rate in rates:
        times = system.at(rate)
        if times is None:
            rows.append([NAN] * 4 + [0.0])
            continue
        ttft, tpot = times.ttft_quantile_s(attainment), times.tpot_quantile_s(attainment)
        seconds = [times.mean_ttft_s, float(ttft), times.mean_tpot_s, float(tpot)]
        rows.append([*(1e3 * each for each in seconds), times.attainment(targets)])
    return Curve(system.key, system.name, np.array(rates), *np.array(rows).T)


def curves_of(systems: tuple[System, ...], targets: ServiceLevels) -> list[Curve]:
    """Return each way's times against the same rates, one instance each, or one of each kind."""
    rates = tuple(map(float, rates_of(systems)))
    return [_curve(system, rates, targets.ttft_slo_ms, targets.tpot_slo_ms, targets.attainment) for system in systems]


def on_the_same_accelerators(systems: tuple[System, ...], targets: ServiceLevels) -> list[Curve]:
    """Return each way's times against the rate for each accelerator.

    Disaggregated, each accelerator is a part of a pool that is split in proportion; it is left out where no split is.
    """
    scaled: list[System] = []
    for system in systems:
        fair = system.in_proportion(targets) if isinstance(system, Disaggregated) else system
        scaled += [fair] if fair is not None else []
    most = max(system.bound / system.accelerators for system in scaled)
    rates = most * rates_of(tuple(scaled)) / max(system.bound for system in scaled)
    slos = (targets.ttft_slo_ms, targets.tpot_slo_ms, targets.attainment)
    curves = [_curve(system, tuple(map(float, rates * system.accelerators)), *slos) for system in scaled]
    return [replace(curve, rate=rates) for curve in curves]


@dataclass(frozen=True)
class Overtaking:
    """A rate at which one way to serve becomes better than another."""

    what: str = output("Figure")
    better_below: str = output("Better below")
    better_above: str = output("Better above")
    rate: float = output("Rate", "requests/s")


def overtakings(curves: list[Curve], level: str) -> list[Overtaking]:
    """Return where the curves of two ways cross, in TTFT and in TPOT."""
    found = []
    for place, one in enumerate(curves):
        for other in curves[place + 1 :]:
            for what, name in ((f"{level} TTFT", "own_ttft_ms"), (f"{level} TPOT", "own_tpot_ms")):
                mine, theirs = getattr(one, name), getattr(other, name)
                for rate in overtaking_rates(one.rate, mine, theirs):
                    before = int(np.searchsorted(one.rate, rate)) - 1
                    names = (one.name, other.name) if mine[before] < theirs[before] else (other.name, one.name)
                    found.append(Overtaking(what, *names, rate))
    return sorted(found, key=lambda each: each.rate)
