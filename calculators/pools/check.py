"""The simulation beside the formulas: one instance of each kind at its goodput, and the whole group."""

from __future__ import annotations

from dataclasses import dataclass

from calculators.inputs import part_of
from calculators.outputs import counted, output
from calculators.pools.compute import compute
from calculators.pools.goodputs import DECODE, PREFILL, decode_side, prefill_side
from calculators.pools.inputs import PoolsInputs
from calculators.simulation import (
    apart_behind,
    clock_for,
    completions_behind,
    first_tokens_behind,
    link_of,
    workload_of,
)
from calculators.systems import ServingInputs, depends_on_number
from formulas.closed_form import DomainError
from formulas.montecarlo.serving import InstanceSettings, Served, Workload
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

    def alone(self, kind: str, rate: float, instances: int, settings: InstanceSettings) -> Served:
        """Simulate the instances of one kind: prefills that hand over nothing, or decodes that find each prompt cached."""
        workload, own = self.workload(rate), self.inputs
        came = workload.arrivals
        if kind == PREFILL:
            first = first_tokens_behind(own.routing, workload, settings, instances, own.seed)
            return Served(came, first, first, workload.prompt_tokens, workload.output_tokens, ())
        done = completions_behind(own.routing, workload, settings, instances, own.seed)
        return Served(came, came, done, workload.prompt_tokens, workload.output_tokens, ())


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

    def row(label: str, rate: float, run: Served, limits: tuple[float, float]) -> None:
        share = run.part(skipped, requests - skipped // 2).attainment(*limits)
        rows.append(CheckedGoodput(label, rate, inputs.attainment, share.estimate, share.low, share.high))

    for kind, count, goodput, limits in (
        (PREFILL, result.prefill_instances, result.prefill_goodput, (ttft, ANY)),
        (DECODE, result.decode_instances, result.decode_goodput, (ANY, tpot)),
    ):
        # At random times and spread at random, one instance is as good as any number; else the pool is what has a goodput.
        together = max(count - inputs.spare, 1) if depends_on_number(prefill_side(inputs)) else 1
        rate = together * (goodput or 0.0)
        label = f"{counted(together, f'{kind} instance')}, {'TTFT' if kind == PREFILL else 'TPOT'}"
        row(label, rate, bench.alone(kind, rate, together, prefill if kind == PREFILL else decode), limits)
    counts = result.prefill_instances, result.decode_instances
    # The goodputs are of requests at random; the group is looked at behind a router that would be used.
    routing = "shortest_queue" if inputs.routing == "random" else inputs.routing
    workload, link = bench.workload(result.served_rate), link_of(inputs, min(counts))
    run = apart_behind(routing, workload, (prefill, decode), counts, link, inputs.seed)
    row(f"{counts[0]} prefill + {counts[1]} decode, both", result.served_rate, run, (ttft, tpot))
    return PoolsCheck(customers=requests, warm_up=skipped + skipped // 2, seed=inputs.seed, rows=tuple(rows))
