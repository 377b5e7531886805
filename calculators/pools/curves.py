"""The arrays behind the figures: against the target rate, for every budget, and for other workloads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calculators.fleet import ROUNDING
from calculators.outputs import output
from calculators.pools.compute import PoolsResult, Sides
from calculators.pools.goodputs import shifted
from calculators.pools.inputs import PoolsInputs
from formulas import pools as forms

Array = NDArray[np.float64]

STEPS = 300
"""Most steps of rounding that a curve shows exactly."""

FACTORS = (0.5, 0.63, 0.8, 1.0, 1.25, 1.6, 2.0)
"""What the lengths of prompts and outputs are multiplied by."""

MOST_BUDGET = 128


@dataclass(frozen=True)
class RateCurve:
    """What each accelerator carries against the target rate."""

    rate: Array = output("Target rate", "requests/s")
    gpus: Array = output("Accelerators")
    goodput_per_gpu: Array = output("Goodput per accelerator", "requests/s")
    colocated_per_gpu: Array = output("Colocated: goodput per accelerator", "requests/s")


def rate_curve(inputs: PoolsInputs, result: PoolsResult, sides: Sides) -> RateCurve:
    """Return what each accelerator carries against the rate; a step of rounding is two points."""
    rates = _rates(inputs, result, sides)
    planned = rates * (1 + inputs.headroom)

    def gpus(goodput: float, size: int) -> Array:
        return size * (np.maximum(1, np.ceil(planned / goodput * (1 - ROUNDING))) + inputs.spare)

    both = gpus(sides.prefill_goodput, sides.prefill_gpus) + gpus(sides.decode_goodput, sides.decode_gpus)
    alone = np.full_like(rates, np.nan)
    if result.colocated_goodput is not None:
        alone = rates / gpus(result.colocated_goodput, inputs.tp)
    return RateCurve(rates, both, rates / both, alone)


def _rates(inputs: PoolsInputs, result: PoolsResult, sides: Sides) -> Array:
    """Return rates to beyond the one that is served, with both ends of each step where there are not too many."""
    more = 1 + inputs.headroom
    goodputs = [sides.prefill_goodput, sides.decode_goodput, *([g] if (g := result.colocated_goodput) else [])]
    most = 1.7 * max(result.served_rate or 0.0, 2 * max(goodputs) / more)
    edges = []
    for goodput in goodputs:
        number = int(most * more / goodput)
        if number <= STEPS:
            edges += [goodput / more * np.arange(1, number + 1)]
    ends = np.concatenate(edges) if edges else np.empty(0)
    rates = np.unique(np.concatenate([np.linspace(most / 200, most, 200), ends, ends * (1 + 10 * ROUNDING)]))
    return np.asarray(rates[rates <= most])


@dataclass(frozen=True)
class Budget:
    """The best whole numbers of instances on so many accelerators."""

    gpus: int = output("Accelerators")
    prefill_instances: int = output("Prefill instances")
    decode_instances: int = output("Decode instances")
    used: int = output("Accelerators used")
    goodput: float = output("Goodput", "requests/s")
    goodput_per_gpu: float = output("Goodput per accelerator", "requests/s", "Over all that there are")
    share: float = output("Share of the ideal")


def budgets(result: PoolsResult, sides: Sides) -> list[Budget]:
    """Return the best split for every number of accelerators to a third beyond those at hand, 24 at least."""
    least = sides.prefill_gpus + sides.decode_gpus
    most = min(max(24, 4 * least, 4 * (result.gpus or 0) // 3), max(MOST_BUDGET, 4 * least))
    ideal = forms.IDEAL_GOODPUT(**sides.goodputs, **sides.sizes)
    found = []
    for gpus in range(least, most + 1):
        split = forms.best_split(gpus, **sides.goodputs, **sides.sizes)
        each = split.goodput / gpus
        found.append(
            Budget(gpus, split.prefill_instances, split.decode_instances, split.gpus, split.goodput, each, each / ideal)
        )
    return found


@dataclass(frozen=True)
class ShiftMap:
    """What the same instances carry when prompts and outputs become longer or shorter.

    Attributes
    ----------
    prompt, output : array
        What the lengths are multiplied by.
    relative : array
        Goodput of the group relative to that of the lengths at hand; a row for each output factor. NaN where one side
        keeps its target at no rate.
    prefill_binds : array of bool
        Whether the prefill side is the weaker one.
    idle : array
        Share of the stronger side that is idle.
    """

    prompt: Array
    output: Array
    relative: Array
    prefill_binds: NDArray[np.bool_]
    idle: Array


def shift_map(inputs: PoolsInputs, result: PoolsResult) -> ShiftMap:
    """Return what the group at hand carries for other lengths."""
    fixed = replace(inputs, target_rate=1.0, spare=0, headroom=0.0, prefill_instances=None, decode_instances=None)
    return _shift_map(fixed, result.prefill_instances or 1, result.decode_instances or 1, result.group_goodput or 0.0)


@lru_cache(maxsize=16)
def _shift_map(inputs: PoolsInputs, prefills: int, decodes: int, group: float) -> ShiftMap:
    shape = len(FACTORS), len(FACTORS)
    first, second = np.full(shape, np.nan), np.full(shape, np.nan)
    for row, output_factor in enumerate(FACTORS):
        for column, prompt_factor in enumerate(FACTORS):
            each = shifted(inputs, (prefills, decodes), prompt_factor, output_factor)
            first[row, column] = np.nan if each.prefill is None else prefills * each.prefill
            second[row, column] = np.nan if each.decode is None else decodes * each.decode
    carried, strong = np.minimum(first, second), np.maximum(first, second)
    factors = np.array(FACTORS)
    return ShiftMap(factors, factors, carried / group, first <= second, 1 - carried / strong)


def shift_table(found: ShiftMap) -> dict[str, Any]:
    """Return the map as columns, a row for each pair of factors."""
    prompt, out = np.meshgrid(found.prompt, found.output)
    binds = np.where(found.prefill_binds, "prefill", "decode")
    there = np.isfinite(found.relative)
    return {
        "Prompts times": prompt.ravel().tolist(),
        "Outputs times": out.ravel().tolist(),
        "Goodput relative to now": [
            x if ok else None for x, ok in zip(found.relative.ravel().tolist(), there.ravel(), strict=True)
        ],
        "Weaker side": [x if ok else None for x, ok in zip(binds.ravel().tolist(), there.ravel(), strict=True)],
        "Idle of the stronger side": [
            x if ok else None for x, ok in zip(found.idle.ravel().tolist(), there.ravel(), strict=True)
        ],
    }
