"""The arrays behind the maps: who wins over rate and speedup, and the speedup over prompt length and degree."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from calculators.degrees import tensor_degrees
from calculators.inputs import InputsError
from calculators.outputs import output
from calculators.parallelism.compute import LEVELS, ParallelismInputs, ParallelismResult, prefill_inputs
from calculators.parallelism.ways import Way
from calculators.service_time import prefill_times_ms
from formulas.parallelism import percentiles, stages_crossover_rate

Array = NDArray[np.float64]


@dataclass(frozen=True)
class WinnerMap:
    """Tensor against pipeline over rate and speedup.

    Attributes
    ----------
    rate, speedup : ndarray
        The axes [requests/s], [].
    crossover_rate : ndarray
        Rate above which the pipeline wins, for each speedup [requests/s]; infinite where tensor always wins.
    best_ms : ndarray
        TTFT of the better one [ms], NaN where both are unstable.
    """

    rate: Array
    speedup: Array
    crossover_rate: Array
    best_ms: Array


def winner_map(inputs: ParallelismInputs, result: ParallelismResult, by: str, points: int = 60) -> WinnerMap:
    """Return who wins on a grid of rates and speedups, by the mean or a percentile."""
    pipeline = next(way for way in result.ways if way.id == "pp")
    return _winner_map(result.service_ms, pipeline, inputs.gpus, LEVELS[by], points)


@lru_cache(maxsize=64)  # it does not depend on the rate, which is what a planner moves
def _winner_map(service_ms: float, pipeline: Way, gpus: int, level: float | None, points: int) -> WinnerMap:
    speedup = np.linspace(1.0, gpus, points)
    rate = np.linspace(0.0, pipeline.capacity, points + 1)[:-1]
    tensor_s = service_ms / 1e3 / speedup
    stages_s = np.asarray(pipeline.stage_times_ms) / 1e3
    slowest, latency = percentiles.bottleneck_and_latency(stages_s, pipeline.hop_ms / 1e3)
    crossing = stages_crossover_rate(tensor_s, slowest, latency, level)
    crossing = np.where(np.isnan(crossing), np.where(tensor_s >= latency, 0.0, np.inf), crossing)
    in_stages = pipeline.curve_ms(rate, level)[None, :]
    in_tensor = _tensor_ms(tensor_s[:, None], rate[None, :], level)
    return WinnerMap(rate, speedup, crossing, np.fmin(in_tensor, in_stages))


def _tensor_ms(service_s: Array, rate: Array, level: float | None) -> Array:
    one_stage = np.broadcast_to(service_s, np.broadcast_shapes(service_s.shape, rate.shape))[..., None]
    if level is None:
        return np.asarray(1e3 * percentiles.pipeline_mean(rate, one_stage))
    return np.asarray(1e3 * percentiles.pipeline_quantile(level, rate, one_stage))


@dataclass(frozen=True)
class SpeedupCurve:
    """Speedup over one accelerator against the prompt length, for one tensor degree."""

    tp: int
    prompt_tokens: Array = output("Prompt length", "tokens")
    speedup: Array = output("Speedup")


def speedup_curves(inputs: ParallelismInputs, degrees: tuple[int, ...] = (2, 4, 8)) -> list[SpeedupCurve]:
    """Return the speedup by the step-time model for each degree whose all-reduces the link can carry."""
    tokens = np.geomspace(64, 65_536, 60)
    computed = replace(inputs, service_ms=None)
    one = prefill_times_ms(prefill_inputs(computed, 1), tokens)
    curves = []
    for degree in tensor_degrees(computed, degrees):
        try:
            several = prefill_times_ms(prefill_inputs(computed, degree.degree), tokens)
        except InputsError:  # the link joins fewer: a curve less, and the table of degrees says why
            continue
        curves.append(SpeedupCurve(degree.degree, tokens, one / several))
    return curves
