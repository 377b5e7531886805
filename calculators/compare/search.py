"""The best of each way to serve on the same accelerators: the budget of chunks, the ratio of instances."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from calculators.compare.inputs import CompareInputs
from calculators.inputs import part_of
from calculators.scenario import ServiceLevels
from calculators.systems import (
    BUDGETS,
    ChunkedPrefill,
    Disaggregated,
    PrefillFirst,
    ServingInputs,
    System,
    best_chunks,
    split_of,
)
from formulas.pools import best_split

LEAST_EFFICIENCY = 0.05
SCALES = 1e-3, 1e3
"""Between which a common factor of both targets is looked for."""


@dataclass(frozen=True)
class Fleet:
    """One way to serve on all accelerators.

    Attributes
    ----------
    system
        The unit of which there are several: one instance, or the whole group of both kinds.
    units
        How many of them.
    gpus
        All accelerators, idle ones among them.
    """

    system: System
    units: int
    gpus: int

    @property
    def key(self) -> str:
        """The way's own name, as in a result."""
        return self.system.key

    def goodput(self, targets: ServiceLevels) -> float | None:
        """Return the highest rate [requests/s] of all within the targets."""
        rate = self.system.goodput(targets)
        return None if rate is None else self.units * rate

    def attainment(self, rate: float, targets: ServiceLevels) -> float:
        """Return the share of requests within both targets at a rate [requests/s] of all; none without a steady state."""
        times = self.system.at(rate / self.units)
        return 0.0 if times is None else times.attainment(targets)


def instances_of(inputs: CompareInputs) -> int:
    """Return how many instances the accelerators make up."""
    return inputs.fleet_gpus // inputs.tp


def shared_of(inputs: CompareInputs) -> ServingInputs:
    """Return what all ways share."""
    return part_of(ServingInputs, inputs)


def targets_of(inputs: CompareInputs, scale: float = 1.0) -> ServiceLevels:
    """Return the targets, both times so much."""
    own = part_of(ServiceLevels, inputs)
    return replace(own, ttft_slo_ms=scale * own.ttft_slo_ms, tpot_slo_ms=scale * own.tpot_slo_ms)


def prefill_first(inputs: CompareInputs) -> Fleet:
    """Return prompts before tokens on every instance."""
    count = instances_of(inputs)
    return Fleet(PrefillFirst(shared_of(inputs), split=split_of(inputs, count)), count, inputs.fleet_gpus)


def chunked(inputs: CompareInputs, budget: int) -> Fleet:
    """Return chunks of a budget on every instance."""
    count = instances_of(inputs)
    system = ChunkedPrefill(shared_of(inputs), budget, inputs.mixed_efficiency, split=split_of(inputs, count))
    return Fleet(system, count, inputs.fleet_gpus)


def best_budget(inputs: CompareInputs) -> int | None:
    """Return the budget [tokens] with which chunks carry most within the targets, or ``None`` if none carries any."""
    sets = split_of(inputs, instances_of(inputs))
    return _best_budget(shared_of(inputs), targets_of(inputs), inputs.mixed_efficiency, sets)


@lru_cache(maxsize=256)
def _best_budget(shared: ServingInputs, targets: ServiceLevels, efficiency: float, sets: int) -> int | None:
    best = best_chunks(lambda budget: ChunkedPrefill(shared, budget, efficiency, split=sets), targets)
    return None if best is None else best.budget


def near(budget: int) -> tuple[int, ...]:
    """Return a budget and those next to it.

    >>> near(512), near(128)
    ((384, 512, 768), (128, 192))
    """
    place = BUDGETS.index(budget)
    return BUDGETS[max(place - 1, 0) : place + 2]


def split(inputs: CompareInputs, prefills: int) -> Fleet:
    """Return so many prefill instances, the others for decode, each pair of them with links of its own."""
    decodes = instances_of(inputs) - prefills
    return Fleet(Disaggregated(shared_of(inputs), prefills, decodes), 1, inputs.fleet_gpus)


def best_prefills(inputs: CompareInputs) -> int | None:
    """Return how many instances prefill where the group carries most, or ``None`` if no split carries any.

    From the sides' own goodputs, and one more or less: a request has to keep both targets, not one on either side.
    """
    candidates = near_split(inputs)
    rates = {prefills: split(inputs, prefills).goodput(targets_of(inputs)) or 0.0 for prefills in candidates}
    best = max(rates, key=lambda prefills: rates[prefills], default=None)
    return best if best is not None and rates[best] > 0 else None


def near_split(inputs: CompareInputs) -> list[int]:
    """Return the numbers of prefill instances next to what the sides' goodputs say."""
    system, targets = Disaggregated(shared_of(inputs)), targets_of(inputs)
    if not system.pool.serves or instances_of(inputs) < 2:
        return []
    first = system.prefill_goodput(targets.ttft_slo_ms, targets.attainment)
    second = system.decode_goodput(targets.tpot_slo_ms, targets.attainment)
    if not first or not second:
        return []
    middle = best_split(instances_of(inputs), first, second).prefill_instances
    return [each for each in (middle - 1, middle, middle + 1) if 0 < each < instances_of(inputs)]


def tightest_scale(fleets: Sequence[Fleet], rate: float, inputs: CompareInputs) -> float | None:
    """Return the smallest factor of both targets that one of the fleets still keeps at a rate, or ``None``."""

    def kept(scale: float) -> bool:
        targets = targets_of(inputs, scale)
        return any(fleet.attainment(rate, targets) >= targets.attainment for fleet in fleets)

    low, high = SCALES
    if not kept(high):
        return None
    return _turn(lambda scale: not kept(scale), low, high, 1e-3)


def turning_efficiency(inputs: CompareInputs, budget: int, rate: float) -> float | None:
    """Return the efficiency of mixed steps at which chunks carry no more than a rate [requests/s] of all.

    ``None`` if they do not even without a loss, or still do at the least efficiency.
    """
    targets = targets_of(inputs)
    sets = split_of(inputs, instances_of(inputs))
    return _turning(shared_of(inputs), targets, budget, rate / instances_of(inputs), sets)


@lru_cache(maxsize=256)
def _turning(shared: ServingInputs, targets: ServiceLevels, budget: int, rate: float, sets: int) -> float | None:
    def carries(efficiency: float) -> bool:
        others = sorted(near(budget), key=lambda each: each != budget)  # the best before is the likeliest
        found = (ChunkedPrefill(shared, each, efficiency, split=sets).at(rate) for each in others)
        return any(times is not None and times.attainment(targets) >= targets.attainment for times in found)

    if not carries(1.0) or carries(LEAST_EFFICIENCY):
        return None
    return _turn(lambda efficiency: not carries(efficiency), LEAST_EFFICIENCY, 1.0, 2e-3)


def _turn(below: Callable[[float], bool], low: float, high: float, precision: float) -> float:
    """Return where something stops being true, by halving in proportion, to a relative precision."""
    while high / low > 1 + precision:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if below(middle) else (low, middle)
    return high
