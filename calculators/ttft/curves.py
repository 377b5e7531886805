"""TTFT against the rate, by the method of the traffic: computed at some loads, and between them interpolated."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from calculators.inputs import part_of
from calculators.ttft.compute import PERCENTILES, Sweep, sweep
from calculators.ttft.inputs import TtftInputs
from calculators.ttft.methods import queue_of
from calculators.ttft.queues import Md1, Queue
from calculators.ttft.simulated import Simulated, SimulationInputs

HIGHEST_LOAD = 0.985
_POINTS = 120


def curves_of(inputs: TtftInputs) -> Sweep:
    """Return TTFT against rate for the pool; percentiles are NaN where they are simulated."""
    queue = queue_of(inputs)
    if isinstance(queue, Md1):
        one = _one_instance(queue.service_ms, inputs.percentile)
        if inputs.servers == 1:
            return one
        return Sweep(one.rate * inputs.servers, *(getattr(one, name) for name in list(Sweep.__dataclass_fields__)[1:]))
    return _curves(part_of(SimulationInputs, inputs, trace=None, trace_columns=None), inputs.percentile)


# Neither of them depends on the rate, which is what a planner moves.
_one_instance = lru_cache(maxsize=64)(sweep)


@lru_cache(maxsize=64)
def _curves(inputs: SimulationInputs, percentile: float) -> Sweep:
    queue = queue_of(inputs)
    levels = np.array([*PERCENTILES.values(), percentile]) / 100
    closed = not isinstance(queue, Simulated)
    loads, means, rows = _at_nodes(queue, levels, with_mean=closed or _exact_mean(queue), with_levels=closed)
    load = np.linspace(0, loads[-1], _POINTS)
    return Sweep(
        load * queue.capacity, load, _between(loads, means, load), *(_between(loads, row, load) for row in rows)
    )


def _exact_mean(queue: Queue) -> bool:
    return isinstance(queue, Simulated) and queue.exact_mean


def _at_nodes(queue: Queue, levels: np.ndarray, *, with_mean: bool, with_levels: bool) -> tuple[np.ndarray, ...]:
    """Return the loads of the nodes, the mean there, and the percentiles; at no load nobody waits."""
    depth = np.linspace(0, -np.log1p(-HIGHEST_LOAD), (queue.nodes if with_levels else 40) + 1)
    loads = -np.expm1(-depth)
    nothing = np.full(len(loads), np.nan)
    means, rows = nothing.copy(), np.full((len(levels), len(loads)), np.nan)
    rates = loads[1:] * queue.capacity
    if with_mean:
        means = np.array([queue.idle_ms(None), *map(queue.mean_ttft_ms, rates.tolist())])
    if with_levels:
        unloaded = np.array([queue.idle_ms(level) for level in levels])
        rows = np.column_stack([unloaded, queue.curve_ms(levels, rates)])
    return loads, means, rows


def _between(loads: np.ndarray, values: np.ndarray, load: np.ndarray) -> np.ndarray:
    """Interpolate the logarithm over the logarithm of the distance from capacity, in which it is nearly straight."""
    from scipy.interpolate import PchipInterpolator  # slow to import, and needed by few

    if np.isnan(values).any():
        return np.full(len(load), np.nan)
    curve = PchipInterpolator(-np.log1p(-loads), np.log(values))
    return np.asarray(np.exp(curve(-np.log1p(-load))))
