"""The event simulation beside the forms: the three ways on all accelerators, requests at random and behind a router."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calculators.checks import ComparedFigure, compared
from calculators.clock import ServingClock
from calculators.compare.compute import Way, compute, fleets_of
from calculators.compare.figures import NAMES
from calculators.compare.inputs import CompareInputs, effective
from calculators.compare.search import Fleet
from calculators.outputs import output
from calculators.simulation import apart_behind, clock_for, link_of, workload_of
from calculators.systems import ChunkedPrefill, Disaggregated
from formulas.closed_form import DomainError
from formulas.montecarlo.serving import (
    InstanceSettings,
    Served,
    Targets,
    Workload,
    simulate,
    simulate_disaggregated,
    simulated_goodput,
)

Places = NDArray[np.int64]

MOST_REQUESTS = 30_000
"""Requests of a run at the arrival rate, however many are asked for; a step of the search for the goodput has a third."""

PRECISION = 0.02
"""Of a simulated goodput."""


@dataclass(frozen=True)
class CheckedWay:
    """One way by formula and by simulation."""

    label: str = output("Way")
    formula_goodput: float = output("Goodput each", "requests/s", "Of an accelerator, by the formula")
    simulated_goodput: float | None = output(
        "simulated", "requests/s", "Requests go to instances at random, as in the formula"
    )
    routed_goodput: float | None = output(
        "with a router", "requests/s", "Simulated; each request goes to the instance with the fewest"
    )
    formula_attainment: float = output("Attainment", "", "At the arrival rate, by the formula")
    simulated_attainment: float | None = output("Attainment, simulated")
    low: float | None = output("Interval from")
    high: float | None = output("to")


@dataclass(frozen=True, kw_only=True)
class CompareCheck:
    """The simulated ways beside the forms."""

    customers: int = output("Requests simulated")
    warm_up: int = output("of which at either end, not counted")
    seed: int = output("Seed")
    ways: tuple[CheckedWay, ...] = output("Ways")
    rows: tuple[ComparedFigure, ...] = output("Times at the arrival rate")


def check(inputs: CompareInputs) -> CompareCheck:
    """Simulate each way that keeps the targets at some rate: its goodput, and its times at the arrival rate.

    Raises
    ------
    DomainError
        If none does.
    InputsError
        As for :func:`~calculators.compare.compute.compute`.
    """
    result = compute(inputs)
    used = effective(inputs)
    found = {key: getattr(result, key) for key in NAMES if getattr(result, key).goodput}
    if not found:
        raise DomainError("No way keeps the targets at any rate: there is nothing to simulate.")
    requests = min(inputs.customers, MOST_REQUESTS)
    ways, rows = [], []
    for key, way in found.items():
        bench = Bench(used, fleets_of(used)[key])
        row, times = _held_against(bench, way, result.total_rate, requests)
        ways.append(row)
        rows += times
    return CompareCheck(
        customers=requests,
        warm_up=requests // 10 + requests // 20,
        seed=inputs.seed,
        ways=tuple(ways),
        rows=tuple(rows),
    )


@dataclass(frozen=True)
class Bench:
    """One way, simulated.

    Attributes
    ----------
    routed
        Whether a request goes to the instance with the fewest requests, of those of its kind; else to any, as the forms
        take it.
    """

    inputs: CompareInputs
    fleet: Fleet
    routed: bool = False

    def run(self, rate: float, requests: int) -> Served:
        """Return what became of so many requests at a rate [requests/s] of all, those at either end left out."""
        # Of requests spread at random, each instance sees its share of the rate: one of them is enough.
        one = not self.routed and not isinstance(self.fleet.system, Disaggregated)
        budget = self.fleet.system.budget if isinstance(self.fleet.system, ChunkedPrefill) else 0
        workload = self._one(rate, requests) if one else workload_of(self.inputs, rate, requests)
        clock = replace(clock_for(self.inputs, workload, budget), mixed_efficiency=self.inputs.mixed_efficiency)
        served = self._served(workload, clock, 1 if one else self.fleet.units)
        return served.part(requests // 10, requests - requests // 20)

    def goodput(self, guess: float, requests: int) -> float | None:
        """Return the highest rate [requests/s] of all within the targets, or ``None`` if it is far from the guess."""
        own = self.inputs
        targets = Targets(1e-3 * own.ttft_slo_ms, 1e-3 * own.tpot_slo_ms, own.attainment)
        try:
            return simulated_goodput(
                lambda rate: self.run(rate, requests), targets, 0.5 * guess, 1.7 * guess, PRECISION
            )
        except DomainError:
            return None

    def _one(self, rate: float, requests: int) -> Workload:
        thinned = replace(self.inputs, arrival_scv=self.fleet.system.arrival_scv())
        return workload_of(thinned, rate / self.fleet.units, requests)

    def _served(self, workload: Workload, clock: ServingClock, instances: int) -> Served:
        match self.fleet.system:
            case Disaggregated() as system:
                counts = round(system.prefill_instances), round(system.decode_instances)
                sides = InstanceSettings("prefill", clock), InstanceSettings("decode", clock)
                link = link_of(self.inputs, min(counts))
                if self.routed:
                    return simulate_disaggregated(workload, *sides, counts, link)
                return apart_behind("random", workload, sides, counts, link, self.inputs.seed)
            case ChunkedPrefill() as system:
                settings = InstanceSettings("chunked", clock, chunk_tokens=system.budget)
            case _:
                settings = InstanceSettings("prefill-first", clock)
        return simulate(workload, settings, instances)


def _held_against(bench: Bench, way: Way, rate: float, requests: int) -> tuple[CheckedWay, list[ComparedFigure]]:
    """Return a way's goodput and attainment beside its simulation, and its times where it has a steady state."""
    name, gpus = NAMES[bench.fleet.key], bench.fleet.gpus
    goodput = way.goodput or 0.0
    found = [each.goodput(goodput, requests // 3) for each in (bench, replace(bench, routed=True))]
    random, routed = (None if rate is None else rate / gpus for rate in found)
    if way.mean_ttft_ms is None:
        return CheckedWay(name, goodput / gpus, random, routed, 0.0, None, None, None), []
    run = bench.run(rate, requests)
    share = run.attainment(1e-3 * bench.inputs.ttft_slo_ms, 1e-3 * bench.inputs.tpot_slo_ms)
    row = CheckedWay(
        name, goodput / gpus, random, routed, way.attainment or 0.0, share.estimate, share.low, share.high
    )  # fmt: skip
    times = []
    for prefix, label in (("mean", "mean"), ("p50", "P50"), ("p90", "P90"), ("p99", "P99")):
        for what, intervals in (("ttft", run.ttft_estimates()), ("tpot", run.tpot_estimates())):
            value = getattr(way, f"{prefix}_{what}_ms")
            times.append(compared(f"{label} {what.upper()}, {name.lower()}", value, intervals[label], 1e3))
    return row, times
