"""Prompts and tokens on instances of their own: the best numbers of both for each pair of tensor degrees."""

from __future__ import annotations

from functools import lru_cache

from calculators.fleet import ROUNDING
from calculators.plan.deployments import Demand, Deployment, Side
from calculators.scenario import ServiceLevels
from calculators.systems import Disaggregated, Latency, ServingInputs, fewest_decode, fewest_prefill

MOST_ADDED = 24
"""Instances that are added to what either side needs alone, until both targets hold together."""


def disaggregated(
    prefill: dict[int, ServingInputs], decode: dict[int, ServingInputs], demand: Demand
) -> list[Deployment]:
    """Return the best deployment for each pair of degrees that fit, prefill and decode."""
    rate, targets = demand.rate, demand.targets
    one = {tp: Disaggregated(each, routing=demand.routing) for tp, each in prefill.items()}
    other = {tp: Disaggregated(each, routing=demand.routing) for tp, each in decode.items()}
    first = {tp: fewest_prefill(each, rate, targets) for tp, each in one.items()}
    second = {tp: fewest_decode(each, rate, targets) for tp, each in other.items() if each.pool.serves}
    found = []
    for tp_p, count_p in first.items():
        for tp_d, count_d in second.items():
            if count_p and count_d:
                each = _pair(prefill[tp_p], decode[tp_d], [count_p, count_d], demand)
                found += [each] if each is not None else []
    return found


def _pair(prefill: ServingInputs, decode: ServingInputs, counts: list[int], demand: Demand) -> Deployment | None:
    """Return as many of both as the rate needs, one more of the tighter side until both targets hold together."""
    targets, rate = demand.targets, demand.rate
    counts = list(counts)
    for _ in range(MOST_ADDED):
        system = Disaggregated(
            prefill, counts[0], counts[1], decode if decode != prefill else None, routing=demand.routing
        )
        times = system.at(rate)
        if times is not None and times.attainment(targets) >= targets.attainment * (1 - ROUNDING):
            return _deployment(system, (prefill, decode), counts, demand)
        if system.hand_off(rate).mean_ms is None:
            return None
        counts[_tighter(system, times, demand)] += 1
    return None


def _tighter(system: Disaggregated, times: Latency | None, demand: Demand) -> int:
    """Return the side that more requests miss their target for, 0 for prefill; without a steady state, the fuller one."""
    if times is None:
        full = [
            demand.rate * system.prefill_s / system.prefill_instances,
            demand.rate / system.pool.capacity / system.decode_instances,
        ]
        return 0 if full[0] >= full[1] else 1
    first = times.ttft_share_within(1e-3 * demand.targets.ttft_slo_ms)
    return 0 if first <= times.tpot_share_within(1e-3 * demand.targets.tpot_slo_ms) else 1


def _deployment(
    system: Disaggregated, kinds: tuple[ServingInputs, ServingInputs], counts: list[int], demand: Demand
) -> Deployment:
    goodputs = tuple(
        _goodput(each, side, count, demand.routing, demand.targets)
        for side, each, count in zip(("prefill", "decode"), kinds, counts, strict=True)
    )
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
        rate=demand.rate,
    )


@lru_cache(maxsize=256)  # each is a side of several pairs
def _goodput(inputs: ServingInputs, side: str, count: int, routing: str, targets: ServiceLevels) -> float:
    """Return what one of so many instances of a side carries within its target [requests/s]."""
    if side == "prefill":
        pool = Disaggregated(inputs, prefill_instances=count, routing=routing)
        return pool.prefill_goodput(targets.ttft_slo_ms, targets.attainment) or 0.0
    pool = Disaggregated(inputs, decode_instances=count, routing=routing)
    return pool.decode_goodput(targets.tpot_slo_ms, targets.attainment) or 0.0
