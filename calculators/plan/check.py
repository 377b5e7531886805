"""The simulation beside the plan: the recommended deployment, from step to step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from calculators.checks import ComparedFigure, compared
from calculators.outputs import output
from calculators.plan.compute import PlanInputs, compute, deployments_of
from calculators.plan.deployments import Deployment
from calculators.routers import OWN_STREAM, scv_at_one
from calculators.simulation import apart_behind, clock_for, link_of, workload_of
from calculators.systems import Disaggregated
from formulas.closed_form import DomainError
from formulas.montecarlo.serving import (
    InstanceSettings,
    KvLink,
    Served,
    Workload,
    simulate,
)
from formulas.montecarlo.serving.instance import Kind

Progress = Callable[[float], None]

MOST_REQUESTS = 60_000
"""Requests of a check, however many are asked for: some seconds."""


@dataclass(frozen=True, kw_only=True)
class PlanCheck:
    """The simulated deployment beside the prediction."""

    customers: int = output("Requests simulated")
    warm_up: int = output("of which at either end, not counted")
    seed: int = output("Seed")
    attainment: float = output("Attainment simulated")
    attainment_low: float = output("Interval from")
    attainment_high: float = output("to")
    predicted_attainment: float = output("Attainment predicted")
    holds: bool = output("Targets hold in the simulation")
    rows: tuple[ComparedFigure, ...] = output("Figures")


def check(inputs: PlanInputs, progress: Progress | None = None) -> PlanCheck:
    """Simulate the recommended deployment and set the prediction beside it.

    Parameters
    ----------
    inputs
        What the plan was asked.
    progress
        Told now and then the share that is done, in [0, 1]. An exception from it stops the simulation.

    Raises
    ------
    DomainError
        If there is no plan.
    InputsError
        As for :func:`~calculators.plan.compute.compute`.
    """
    result = compute(inputs)
    best = next(iter(deployments_of(inputs).values()), None)
    if best is None or result.predicted is None:
        raise DomainError("There is no plan to simulate.")
    requests = min(inputs.customers, MOST_REQUESTS)
    skipped = requests // 10
    counted = slice(skipped, requests - skipped // 2)
    several = any(side.instances > 1 for side in best.sides)
    looks = several and inputs.routing == "random"  # then a router that looks is simulated as well
    routed = _Run(inputs, best, requests, _part(progress, 0.0, 0.5)).behind("shortest_queue") if looks else None
    half = _part(progress, 0.5, 1.0) if looks else progress
    served = _Run(inputs, best, requests, half).behind(inputs.routing)
    limits = 1e-3 * inputs.ttft_slo_ms, 1e-3 * inputs.tpot_slo_ms
    share = (routed or served).part(counted.start, counted.stop).attainment(*limits)
    served = served.part(counted.start, counted.stop)
    ttft, tpot = served.ttft_estimates(), served.tpot_estimates()
    rows = [
        compared(f"{name} {what.upper()}", getattr(result.predicted, f"{name.lower()}_{what}_ms"), found[name], 1e3)
        for what, found in (("ttft", ttft), ("tpot", tpot))
        for name in ("P50", "P90", "P99")
    ]
    return PlanCheck(
        customers=requests,
        warm_up=skipped + skipped // 2,
        seed=inputs.seed,
        attainment=share.estimate,
        attainment_low=share.low,
        attainment_high=share.high,
        predicted_attainment=result.predicted.attainment,
        holds=share.estimate >= inputs.attainment,
        rows=tuple(rows),
    )


def _part(progress: Progress | None, low: float, high: float) -> Progress | None:
    """Return what to tell of a part of the work, so that the whole goes from 0 to 1."""
    return None if progress is None else lambda share: progress(low + (high - low) * share)


@dataclass(frozen=True)
class _Run:
    """A simulation of a plan."""

    inputs: PlanInputs
    plan: Deployment
    requests: int
    progress: Progress | None

    def behind(self, routing: str) -> Served:
        """Simulate the deployment behind a router.

        Colocated, where each instance has a stream of its own, one of them at its share of the rate stands for all.
        """
        if isinstance(self.plan.system, Disaggregated):
            workload = workload_of(self.inputs, self.inputs.rate, self.requests)
            sides, link = self._sides(workload), self._link
            return apart_behind(routing, workload, sides, self._counts, link, self.inputs.seed, self.progress)
        instances = self.plan.prefill.instances
        if routing not in OWN_STREAM:
            return self._together(workload_of(self.inputs, self.inputs.rate, self.requests), instances)
        alone = replace(
            self.inputs, arrival_scv=scv_at_one(self.inputs.arrival_scv, instances, in_turn=routing == "round_robin")
        )
        return self._together(workload_of(alone, self.plan.rate, self.requests), 1)

    @property
    def _counts(self) -> tuple[int, int]:
        return self.plan.prefill.instances, self.plan.decode.instances

    @property
    def _link(self) -> KvLink:
        return link_of(self.inputs, min(self._counts))

    def _sides(self, workload: Workload) -> tuple[InstanceSettings, InstanceSettings]:
        system = self.plan.system
        other = system.decode_inputs if isinstance(system, Disaggregated) else None
        decode = clock_for(other or system.inputs, workload)
        return (
            InstanceSettings("prefill", clock_for(system.inputs, workload)),
            InstanceSettings("decode", decode, max_batch=system.pool.slots),
        )

    def _together(self, workload: Workload, instances: int) -> Served:
        system, budget = self.plan.system, self.plan.chunk_tokens
        kind: Kind = "prefill-first" if budget is None else "chunked"
        clock = clock_for(system.inputs, workload, budget or 0)
        settings = InstanceSettings(kind, clock, max_batch=system.pool.slots, chunk_tokens=budget)
        return simulate(workload, settings, instances, progress=self.progress)
