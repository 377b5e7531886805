"""Prompts and tokens on the same instances: prefill first and chunks, at each tensor degree."""

from __future__ import annotations

from collections.abc import Callable

from calculators.fleet import instances_for
from calculators.plan.deployments import Demand, Deployment, Refused, Side
from calculators.scenario import ServiceLevels
from calculators.systems import ChunkedPrefill, PrefillFirst, ServingInputs, System, split_of

GIVEN_UP = 0.85
"""Share of the best rate for each accelerator; below it no larger tensor degree is tried."""

BUDGETS = (512, 2048)
FINER_BUDGETS = {512: 256, 2048: 1024}
"""Token budgets that are tried for chunked prefill: first two, then the neighbour of the better one."""

MOST_TRIED = 24
"""Numbers of instances that are tried where the goodput of one depends on how many there are."""


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
    one = _fewest(lambda sets: PrefillFirst(inputs, split=sets), demand)
    return [] if one is None else [one]


def _chunked(inputs: ServingInputs, demand: Demand) -> list[Deployment]:
    """Return chunked prefill with the best of the budgets that are tried."""
    best = None
    for budget in BUDGETS:
        best = _better(best, budget, inputs, demand)
    if best is None or best.chunk_tokens is None:
        return []
    best = _better(best, FINER_BUDGETS[best.chunk_tokens], inputs, demand)
    return [] if best is None else [best]


def _better(best: Deployment | None, budget: int, inputs: ServingInputs, demand: Demand) -> Deployment | None:
    """Return chunks of a budget if an instance carries more with them than the best so far, else that."""
    if best is not None and inputs.arrival_scv == 1:
        times = ChunkedPrefill(inputs, budget).at(best.prefill.goodput)
        if times is None or times.attainment(demand.targets) < demand.targets.attainment:
            return best  # how much less it carries, nobody needs to know
    other = _fewest(lambda sets: ChunkedPrefill(inputs, budget, split=sets), demand)
    if best is None or other is None:
        return other or best
    return max(best, other, key=lambda each: each.prefill.goodput)


def _slowest(inputs: ServingInputs, targets: ServiceLevels) -> str:
    system = PrefillFirst(inputs)
    prefill_ms, step_ms = 1e3 * system.prefill_s, system.pool.alone_ms
    return (
        f"a prompt alone takes {prefill_ms:.4g} ms of {targets.ttft_slo_ms:g}, a token alone {step_ms:.4g} ms of "
        f"{targets.tpot_slo_ms:g}"
    )


def _fewest(made: Callable[[int], System], demand: Demand) -> Deployment | None:
    """Return the fewest instances that carry the rate; bursts thin out over them, so that more of them carry more each."""
    inputs = made(1).inputs
    if not made(1).pool.serves:
        return None
    best, count = None, 1
    for _ in range(MOST_TRIED):
        system = made(split_of(inputs, count))
        goodput = system.goodput(demand.targets)
        if not goodput:
            return best
        needed = instances_for(demand.rate, goodput)
        if inputs.arrival_scv == 1:
            return _fleet(system, needed, goodput, demand.rate)
        if needed <= count:
            best = _fleet(system, count, goodput, demand.rate)
        if needed == count or (best is not None and needed > count):
            return best
        count = needed
    return best


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
