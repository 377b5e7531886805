"""Prompts and tokens on the same instances: prefill first and chunks, at each tensor degree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from calculators.lengths import spread_of
from calculators.plan.deployments import Demand, Deployment, Refused, Side
from calculators.scenario import ServiceLevels
from calculators.systems import (
    ChunkedPrefill,
    PrefillFirst,
    ServingInputs,
    System,
    best_chunks,
    depends_on_number,
    fewest_sets,
)

GIVEN_UP = 0.85
"""Share of the best rate for each accelerator; below it no larger tensor degree is tried."""

SHORTER_PROMPT = "a faster chip, a shorter prompt or a longer cached prefix brings the first token sooner"
SMALLER_STEP = "a smaller weight format or more memory bandwidth brings the next tokens sooner"
LOOSER = "both are in time alone, but hardly: a looser target or a lower attainment is what helps"
"""What helps where a target is missed at any rate."""


def colocated(usable: dict[int, ServingInputs], demand: Demand) -> tuple[list[Deployment], list[Refused]]:
    """Return the deployments at the degrees that fit, and the degrees at which no rate meets both targets."""
    found: list[Deployment] = []
    refused = []
    for tp, shared in usable.items():
        there = [*_prefill_first(shared, demand), *_chunked(shared, demand)]
        found += there
        if not there:
            reason = f"colocated, no rate meets both targets: {_slowest(shared, demand.targets)}"
            refused.append(Refused(shared.accelerator, tp, reason))
        elif _rate_of_each(there) < GIVEN_UP * _rate_of_each(found):
            break  # each degree more costs more than it brings, from here on
    return found, refused


def _rate_of_each(deployments: list[Deployment]) -> float:
    return max(each.prefill.goodput / each.prefill.tp for each in deployments)


def _prefill_first(inputs: ServingInputs, demand: Demand) -> list[Deployment]:
    one = _fewest(lambda sets: PrefillFirst(inputs, split=sets, routing=demand.routing), demand)
    return [] if one is None else [one]


def _chunked(inputs: ServingInputs, demand: Demand) -> list[Deployment]:
    """Return chunked prefill with its best budget, found as if prompts came at random times."""
    even = replace(inputs, arrival_scv=1.0)
    best = best_chunks(lambda budget: ChunkedPrefill(even, budget), demand.targets)
    if best is None:
        return []
    one = _fewest(lambda sets: ChunkedPrefill(inputs, best.budget, split=sets, routing=demand.routing), demand)
    return [] if one is None else [one]


def _slowest(inputs: ServingInputs, targets: ServiceLevels) -> str:
    system = PrefillFirst(inputs)
    prefill_ms, step_ms = 1e3 * float(system.prefill_law.quantile(targets.attainment)), system.pool.alone_ms
    prompt = (
        f"{100 * targets.attainment:g} % of the prompts alone take up to"
        if spread_of(inputs)
        else "a prompt alone takes"
    )
    late = [
        lever
        for lever, is_late in (
            (SHORTER_PROMPT, prefill_ms > targets.ttft_slo_ms),
            (SMALLER_STEP, step_ms > targets.tpot_slo_ms),
        )
        if is_late
    ]
    return (
        f"{prompt} {prefill_ms:.4g} ms of {targets.ttft_slo_ms:g}, a token alone {step_ms:.4g} ms of {targets.tpot_slo_ms:g}; "
        f"{' and '.join(late) or LOOSER}"
    )


def _fewest(made: Callable[[int], System], demand: Demand) -> Deployment | None:
    """Return the fewest instances that carry the rate."""
    count = fewest_sets(made, demand.rate, demand.targets)
    if count is None:
        return None
    system = made(count if depends_on_number(made(1)) else 1)
    goodput = system.goodput(demand.targets)
    return _fleet(system, count, goodput, demand.rate) if goodput else None


def _fleet(system: System, instances: int, goodput: float, rate: float) -> Deployment:
    tp = system.inputs.tp
    side = Side(system.inputs.accelerator, tp, instances, instances * tp, goodput)
    return Deployment(
        kind=system.key,
        prefill=side,
        decode=side,
        gpus=side.gpus,
        chunk_tokens=system.budget if isinstance(system, ChunkedPrefill) else None,
        system=system,
        rate=rate / instances,
    )
