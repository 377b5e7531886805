"""The simulation beside the plan: the recommended deployment, from step to step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from calculators.checks import ComparedFigure, compared
from calculators.outputs import output
from calculators.plan.compute import PlanInputs, compute, deployments_of
from calculators.plan.deployments import Deployment
from calculators.simulation import clock_for, link_of, workload_of
from calculators.systems import Disaggregated
from formulas.closed_form import DomainError
from formulas.montecarlo.serving import (
    InstanceSettings,
    Served,
    simulate,
    simulate_disaggregated,
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
    alone = best.kind != "disaggregated" and best.prefill.instances > 1
    whole = _Run(inputs, best, requests, _part(progress, 0.0, 0.5) if alone else progress)
    served = whole.served(inputs.rate, best.prefill.instances)
    share = served.part(counted.start, counted.stop).attainment(1e-3 * inputs.ttft_slo_ms, 1e-3 * inputs.tpot_slo_ms)
    if alone:
        one = _Run(inputs, best, requests, _part(progress, 0.5, 1.0))
        served = one.served(best.rate, 1)
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

    def served(self, rate: float, instances: int) -> Served:
        """Simulate the deployment; colocated, so many of its instances at a rate [requests/s]."""
        inputs, plan = self.inputs, self.plan
        thinned = replace(inputs, arrival_scv=plan.system.arrival_scv()) if rate < inputs.rate else inputs
        workload = workload_of(thinned, rate, self.requests)
        slots = plan.system.pool.slots
        first = clock_for(plan.system.inputs, workload, plan.chunk_tokens or 0)
        if not isinstance(plan.system, Disaggregated):
            kind: Kind = "prefill-first" if plan.chunk_tokens is None else "chunked"
            settings = InstanceSettings(kind, first, max_batch=slots, chunk_tokens=plan.chunk_tokens)
            return simulate(workload, settings, instances, progress=self.progress)
        decode = clock_for(plan.system.decode_inputs or plan.system.inputs, workload)
        return simulate_disaggregated(
            workload,
            InstanceSettings("prefill", first),
            InstanceSettings("decode", decode, max_batch=slots),
            (plan.prefill.instances, plan.decode.instances),
            link_of(inputs),
            progress=self.progress,
        )
