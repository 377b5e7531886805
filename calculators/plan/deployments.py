"""What can be deployed: each way to serve at each tensor degree, with as many instances as the rate needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from calculators.degrees import tensor_degrees
from calculators.fleet import ROUNDING, instances_for
from calculators.inputs import InputsError
from calculators.outputs import output
from calculators.scenario import ServiceLevels
from calculators.systems import ChunkedPrefill, Disaggregated, Latency, PrefillFirst, ServingInputs, System, split_of

DEGREES = (1, 2, 4, 8)
"""Tensor degrees that are tried."""

GIVEN_UP = 0.85
"""Share of the best rate for each accelerator; below it no larger tensor degree is tried for colocated serving."""

BUDGETS = (512, 2048)
FINER_BUDGETS = {512: 256, 2048: 1024}
"""Token budgets that are tried for chunked prefill: first two, then the neighbour of the better one."""


@dataclass(frozen=True)
class Side:
    """Instances of one kind."""

    tp: int = output("Tensor parallel")
    instances: int = output("Instances")
    gpus: int = output("Accelerators")
    goodput: float = output("Goodput of one", "requests/s", "Largest rate of one instance within its target")


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """One way to serve the whole rate: colocated, the same instances are both sides."""

    kind: str = output("Kind", "", "prefill_first, chunked or disaggregated")
    prefill: Side = output("Prefill")
    decode: Side = output("Decode")
    gpus: int = output("Accelerators")
    chunk_tokens: int | None = output("Token budget of a step", "tokens")
    system: System
    rate: float

    @property
    def latency(self) -> Latency | None:
        """The times at the rate that falls to one set of instances, spread at random."""
        return self.system.at(self.rate)

    def can_take(self, targets: ServiceLevels) -> float:
        """Return the largest rate [requests/s] of the whole deployment within the targets."""
        sets = self.decode.instances if self.kind != "disaggregated" else 1
        return sets * (self.system.goodput(targets) or 0.0)


@dataclass(frozen=True)
class Refused:
    """One tensor degree that cannot serve, and why."""

    tp: int = output("Tensor parallel")
    reason: str = output("Why not")


@lru_cache(maxsize=64)  # the page asks for the result and for the deployments behind it
def candidates(
    inputs: ServingInputs, targets: ServiceLevels, rate: float
) -> tuple[tuple[Deployment, ...], tuple[Refused, ...]]:
    """Return what serves the rate within the targets, the fewest accelerators first, and which degrees do not."""
    usable, refused = _usable(inputs)
    found: list[Deployment] = []
    for tp, shared in usable.items():
        there = [*_prefill_first(shared, targets, rate), *_chunked(shared, targets, rate)]
        found += there
        if not there:
            refused.append(Refused(tp, f"colocated, no rate meets both targets: {_slowest(shared, targets)}"))
        elif _rate_of_each(there) < GIVEN_UP * _rate_of_each(found):
            break  # each degree more costs more than it brings, from here on
    found += _apart(usable, targets, rate)
    return tuple(sorted(found, key=lambda each: (each.gpus, -_attained(each, targets)))), tuple(refused)


def _rate_of_each(deployments: list[Deployment]) -> float:
    return max(each.prefill.goodput / each.prefill.tp for each in deployments)


def _attained(deployment: Deployment, targets: ServiceLevels) -> float:
    times = deployment.latency
    return 0.0 if times is None else times.attainment(targets)


def _prefill_first(inputs: ServingInputs, targets: ServiceLevels, rate: float) -> list[Deployment]:
    one = _colocated(lambda sets: PrefillFirst(inputs, split=sets), targets, rate)
    return [] if one is None else [one]


def _chunked(inputs: ServingInputs, targets: ServiceLevels, rate: float) -> list[Deployment]:
    """Return chunked prefill with the best of the budgets that are tried."""

    def tried(budget: int) -> Deployment | None:
        return _colocated(lambda sets: ChunkedPrefill(inputs, budget, split=sets), targets, rate)

    found = {budget: tried(budget) for budget in BUDGETS}
    rated = {budget: each for budget, each in found.items() if each is not None}
    if not rated:
        return []
    best = max(rated, key=lambda budget: rated[budget].prefill.goodput)
    other = tried(FINER_BUDGETS[best])
    return [max((rated[best], other or rated[best]), key=lambda each: each.prefill.goodput)]


def _usable(inputs: ServingInputs) -> tuple[dict[int, ServingInputs], list[Refused]]:
    usable, refused = {}, []
    for rule in tensor_degrees(inputs, DEGREES):
        shared = replace(inputs, tp=rule.degree)
        try:
            pool = PrefillFirst(shared).pool
        except InputsError as error:
            refused.append(Refused(rule.degree, error.errors[0].sentence))
            continue
        if rule.reasons:
            refused.append(Refused(rule.degree, "; ".join(rule.reasons)))
        elif not pool.slots:
            refused.append(Refused(rule.degree, "the weights, the reserve and one request do not fit in memory"))
        else:
            usable[rule.degree] = shared
    return usable, refused


def _slowest(inputs: ServingInputs, targets: ServiceLevels) -> str:
    system = PrefillFirst(inputs)
    prefill_ms, step_ms = 1e3 * system.prefill_s, system.pool.alone_ms
    return (
        f"a prompt alone takes {prefill_ms:.4g} ms of {targets.ttft_slo_ms:g}, a token alone {step_ms:.4g} ms of "
        f"{targets.tpot_slo_ms:g}"
    )


def _colocated(made: Callable[[int], System], targets: ServiceLevels, rate: float) -> Deployment | None:
    """Return the fewest instances that carry the rate; bursts thin out over them, so that more of them carry more each."""
    inputs = made(1).inputs
    if not made(1).pool.serves:
        return None
    best, count = None, 1
    for _ in range(_MOST_ADDED):
        system = made(split_of(inputs, count))
        goodput = system.goodput(targets)
        if not goodput:
            return best
        needed = instances_for(rate, goodput)
        if inputs.arrival_scv == 1:
            return _fleet(system, needed, goodput, rate)
        if needed <= count:
            best = _fleet(system, count, goodput, rate)
        if needed == count or (best is not None and needed > count):
            return best
        count = needed
    return best


def _fleet(system: System, instances: int, goodput: float, rate: float) -> Deployment:
    tp = system.inputs.tp
    side = Side(tp, instances, instances * tp, goodput)
    budget = system.budget if isinstance(system, ChunkedPrefill) else None
    return Deployment(
        kind=system.key,
        prefill=side,
        decode=side,
        gpus=side.gpus,
        chunk_tokens=budget,
        system=system,
        rate=rate / instances,
    )


def _apart(usable: dict[int, ServingInputs], targets: ServiceLevels, rate: float) -> list[Deployment]:
    """Return the best disaggregated deployment for each pair of degrees."""
    prefill = {
        tp: Disaggregated(shared).prefill_goodput(targets.ttft_slo_ms, targets.attainment)
        for tp, shared in usable.items()
    }
    decode = {
        tp: PrefillFirst(shared).pool.max_rate(targets.tpot_slo_ms, targets.attainment) for tp, shared in usable.items()
    }
    found = []
    for tp_p, goodput_p in prefill.items():
        for tp_d, goodput_d in decode.items():
            if goodput_p and goodput_d:
                each = _pair(usable[tp_p], usable[tp_d], (goodput_p, goodput_d), targets, rate)
                found += [each] if each is not None else []
    return found


def _pair(
    prefill: ServingInputs,
    decode: ServingInputs,
    goodputs: tuple[float, float],
    targets: ServiceLevels,
    rate: float,
) -> Deployment | None:
    """Return as many of both as the rate needs, one more of the tighter side until both targets hold together."""
    counts = [instances_for(rate, goodput) for goodput in goodputs]
    for _ in range(_MOST_ADDED):
        system = Disaggregated(prefill, counts[0], counts[1], decode if decode != prefill else None)
        times = system.at(rate)
        if times is not None and times.attainment(targets) >= targets.attainment * (1 - ROUNDING):
            sides = [
                Side(each.tp, count, count * each.tp, goodput)
                for each, count, goodput in zip((prefill, decode), counts, goodputs, strict=True)
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
        if system.hand_off(rate).mean_ms is None:
            return None
        shares = [rate / count / goodput for count, goodput in zip(counts, goodputs, strict=True)]
        if times is not None:
            late = (
                times.ttft_share_within(1e-3 * targets.ttft_slo_ms),
                times.tpot_share_within(1e-3 * targets.tpot_slo_ms),
            )
            shares = [1 - late[0], 1 - late[1]]
        counts[0 if shares[0] >= shares[1] else 1] += 1
    return None


_MOST_ADDED = 24
