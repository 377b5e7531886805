"""The simulation beside the formulas: one instance of each kind at its goodput, and the whole group."""

from __future__ import annotations

from dataclasses import dataclass

from calculators.inputs import part_of
from calculators.outputs import output
from calculators.pools.compute import compute
from calculators.pools.goodputs import decode_side
from calculators.pools.inputs import PoolsInputs
from calculators.simulation import clock_for, link_of, workload_of
from calculators.systems import ServingInputs
from formulas.closed_form import DomainError
from formulas.montecarlo.confidence import Interval
from formulas.montecarlo.serving import (
    InstanceSettings,
    Workload,
    simulate,
    simulate_disaggregated,
)
from formulas.montecarlo.serving.instance import Kind

MOST_REQUESTS = 60_000
"""Requests of a check, however many are asked for: some seconds."""

ANY = float("inf")


@dataclass(frozen=True)
class CheckedGoodput:
    """The share of requests within target at a rate, by simulation."""

    label: str = output("Deployment")
    rate: float = output("Rate", "requests/s")
    asked: float = output("Attainment asked for")
    simulated: float = output("Attainment simulated")
    low: float = output("Interval from")
    high: float = output("to")


@dataclass(frozen=True, kw_only=True)
class PoolsCheck:
    """The simulated deployments beside what was asked of them."""

    customers: int = output("Requests simulated")
    warm_up: int = output("of which at either end, not counted")
    seed: int = output("Seed")
    rows: tuple[CheckedGoodput, ...] = output("Attainment")


@dataclass(frozen=True)
class _Bench:
    """What all simulated deployments share."""

    inputs: PoolsInputs
    requests: int

    def settings(self, kind: Kind, serving: ServingInputs) -> InstanceSettings:
        slots = decode_side(self.inputs).pool.slots if kind == "decode" else None
        return InstanceSettings(kind, clock_for(serving, self.workload(1.0)), max_batch=slots)

    def workload(self, rate: float) -> Workload:
        return workload_of(self.inputs, rate, self.requests)


def check(inputs: PoolsInputs) -> PoolsCheck:
    """Simulate one instance of each kind at its goodput, and the group at the rate it is to carry.

    Raises
    ------
    DomainError
        If a goodput is typed in, or there is no group.
    InputsError
        As for :func:`~calculators.pools.compute.compute`.
    """
    if inputs.prefill_goodput is not None or inputs.decode_goodput is not None:
        raise DomainError("The goodputs are typed in: there is no instance to simulate. Leave them empty to have one.")
    result = compute(inputs)
    if not result.served_rate or result.prefill_instances is None or result.decode_instances is None:
        raise DomainError("There is no group that serves anything to simulate.")
    requests = min(inputs.customers, MOST_REQUESTS)
    bench = _Bench(inputs, requests)
    prefill = bench.settings("prefill", part_of(ServingInputs, inputs))
    decode = bench.settings("decode", decode_side(inputs).inputs)
    ttft, tpot = 1e-3 * inputs.ttft_slo_ms, 1e-3 * inputs.tpot_slo_ms
    skipped = requests // 10
    rows = []

    def row(label: str, rate: float, run: object, limits: tuple[float, float]) -> None:
        share: Interval = run.part(skipped, requests - skipped // 2).attainment(*limits)  # type: ignore[attr-defined]
        rows.append(CheckedGoodput(label, rate, inputs.attainment, share.estimate, share.low, share.high))

    for label, goodput, settings, limits in (
        ("one prefill instance, TTFT", result.prefill_goodput, prefill, (ttft, ANY)),
        ("one decode instance, TPOT", result.decode_goodput, decode, (ANY, tpot)),
    ):
        assert goodput is not None  # noqa: S101 - else there would be no group
        row(label, goodput, simulate(bench.workload(goodput), settings), limits)
    counts = result.prefill_instances, result.decode_instances
    run = simulate_disaggregated(
        bench.workload(result.served_rate), prefill, decode, counts, link_of(inputs, min(counts))
    )
    row(f"{counts[0]} prefill + {counts[1]} decode, both", result.served_rate, run, (ttft, tpot))
    return PoolsCheck(customers=requests, warm_up=skipped + skipped // 2, seed=inputs.seed, rows=tuple(rows))
