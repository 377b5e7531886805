"""The simulation beside the formulas: the three ways to serve, from step to step, on the same requests."""

from __future__ import annotations

from dataclasses import dataclass

from calculators.checks import ComparedFigure, compared
from calculators.interference.compute import InterferenceInputs, Served, compute
from calculators.outputs import output
from calculators.simulation import clock_for, link_of, workload_of
from formulas.closed_form import DomainError
from formulas.montecarlo.confidence import Interval
from formulas.montecarlo.serving import (
    InstanceSettings,
    Workload,
    simulate,
    simulate_disaggregated,
)
from formulas.montecarlo.serving.served import Served as SimulatedRequests

MOST_REQUESTS = 60_000
"""Requests of a check, however many are asked for: some seconds."""

WAYS = {"prefill_first": "prefill first", "chunked": "chunked", "disaggregated": "disaggregated"}


@dataclass(frozen=True)
class CheckedShare:
    """One share of requests by formula and by simulation."""

    label: str = output("Figure")
    formula: float = output("Formula")
    simulated: float = output("Simulated")
    low: float = output("Interval from")
    high: float = output("to")


@dataclass(frozen=True, kw_only=True)
class InterferenceCheck:
    """The simulated ways to serve beside the formulas."""

    customers: int = output("Requests simulated")
    warm_up: int = output("of which at either end, not counted")
    seed: int = output("Seed")
    rows: tuple[ComparedFigure, ...] = output("Figures")
    shares: tuple[CheckedShare, ...] = output("Attainment")


def check(inputs: InterferenceInputs) -> InterferenceCheck:
    """Simulate each way that has a steady state and set the formulas beside it.

    Raises
    ------
    DomainError
        If none has.
    InputsError
        As for :func:`~calculators.interference.compute.compute`.
    """
    result = compute(inputs)
    stable = {key: served for key in WAYS if (served := getattr(result, key)).mean_ttft_ms is not None}
    if not stable:
        raise DomainError("No way to serve has a steady state to simulate.")
    requests = min(inputs.customers, MOST_REQUESTS)
    skipped = requests // 10
    workload = workload_of(inputs, inputs.rate, requests)
    rows: list[ComparedFigure] = []
    shares = []
    for key, served in stable.items():
        run = _simulated(inputs, key, workload).part(skipped, requests - skipped // 2)
        rows += _rows(WAYS[key], served, run.ttft_estimates(), run.tpot_estimates())
        share = run.attainment(1e-3 * inputs.ttft_slo_ms, 1e-3 * inputs.tpot_slo_ms)
        shares.append(
            CheckedShare(f"attainment, {WAYS[key]}", served.attainment or 0.0, share.estimate, share.low, share.high)
        )
    return InterferenceCheck(
        customers=requests,
        warm_up=skipped + skipped // 2,
        seed=inputs.seed,
        rows=tuple(rows),
        shares=tuple(shares),
    )


def _rows(way: str, served: Served, ttft: dict[str, Interval], tpot: dict[str, Interval]) -> list[ComparedFigure]:
    found = []
    for prefix, name in (("mean", "mean"), ("p90", "P90"), ("p99", "P99")):
        for what, simulated in (("ttft", ttft), ("tpot", tpot)):
            value = getattr(served, f"{prefix}_{what}_ms")
            found.append(compared(f"{name} {what.upper()}, {way}", value, simulated[name], 1e3))
    return found


def _simulated(inputs: InterferenceInputs, key: str, workload: Workload) -> SimulatedRequests:
    clock = clock_for(inputs, workload, inputs.chunk_tokens)
    if key != "disaggregated":
        settings = (
            InstanceSettings("chunked", clock, chunk_tokens=inputs.chunk_tokens)
            if key == "chunked"
            else InstanceSettings("prefill-first", clock)
        )
        return simulate(workload, settings)
    return simulate_disaggregated(
        workload, InstanceSettings("prefill", clock), InstanceSettings("decode", clock), link=link_of(inputs)
    )
