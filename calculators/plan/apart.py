"""Prompts and tokens on instances of their own: the best numbers of both for each pair of tensor degrees."""

from __future__ import annotations

from dataclasses import replace

from calculators.fleet import ROUNDING, instances_for
from calculators.plan.deployments import Demand, Deployment, Side
from calculators.systems import Disaggregated, Latency, ServingInputs

MOST_ADDED = 24
"""Instances that are added to what either side needs alone, until both targets hold together."""


def disaggregated(
    prefill: dict[int, ServingInputs], decode: dict[int, ServingInputs], demand: Demand
) -> list[Deployment]:
    """Return the best deployment for each pair of degrees that fit, prefill and decode."""
    targets = demand.targets
    one = {tp: Disaggregated(_at_most_random(each)) for tp, each in prefill.items()}
    other = {tp: Disaggregated(_at_most_random(each)) for tp, each in decode.items()}
    first = {tp: each.prefill_goodput(targets.ttft_slo_ms, targets.attainment) for tp, each in one.items()}
    second = {
        tp: each.decode_goodput(targets.tpot_slo_ms, targets.attainment)
        for tp, each in other.items()
        if each.pool.serves
    }
    found = []
    for tp_p, goodput_p in first.items():
        for tp_d, goodput_d in second.items():
            if goodput_p and goodput_d:
                each = _pair(prefill[tp_p], decode[tp_d], (goodput_p, goodput_d), demand)
                found += [each] if each is not None else []
    return found


def _at_most_random(inputs: ServingInputs) -> ServingInputs:
    """Return the workload without its bursts: over many instances they thin out, and what they still ask for is added."""
    return replace(inputs, arrival_scv=min(inputs.arrival_scv, 1.0))


def _pair(
    prefill: ServingInputs, decode: ServingInputs, goodputs: tuple[float, float], demand: Demand
) -> Deployment | None:
    """Return as many of both as the rate needs, one more of the tighter side until both targets hold together."""
    targets, rate = demand.targets, demand.rate
    counts = [instances_for(rate, goodput) for goodput in goodputs]
    for _ in range(MOST_ADDED):
        system = Disaggregated(prefill, counts[0], counts[1], decode if decode != prefill else None)
        times = system.at(rate)
        if times is not None and times.attainment(targets) >= targets.attainment * (1 - ROUNDING):
            return _deployment(system, (prefill, decode), counts, goodputs, rate)
        if system.hand_off(rate).mean_ms is None:
            return None
        counts[_tighter(times, demand, counts, goodputs)] += 1
    return None


def _tighter(times: Latency | None, demand: Demand, counts: list[int], goodputs: tuple[float, float]) -> int:
    """Return the side that more requests miss their target for, 0 for prefill; without a steady state, the fuller one."""
    if times is None:
        full = [demand.rate / count / goodput for count, goodput in zip(counts, goodputs, strict=True)]
        return 0 if full[0] >= full[1] else 1
    first = times.ttft_share_within(1e-3 * demand.targets.ttft_slo_ms)
    return 0 if first <= times.tpot_share_within(1e-3 * demand.targets.tpot_slo_ms) else 1


def _deployment(
    system: Disaggregated,
    kinds: tuple[ServingInputs, ServingInputs],
    counts: list[int],
    goodputs: tuple[float, float],
    rate: float,
) -> Deployment:
    sides = [
        Side(each.accelerator, each.tp, count, count * each.tp, goodput)
        for each, count, goodput in zip(kinds, counts, goodputs, strict=True)
    ]
    return Deployment(
        kind="disaggregated",
        prefill=sides[0],
        decode=sides[1],
        gpus=sides[0].gpus + sides[1].gpus,
        chunk_tokens=None,
        system=system,
        rate=rate,
    )
