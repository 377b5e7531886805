"""Inputs to result: the exact M/D/1 time to first token, the rate a target allows, the instances a rate needs.

A prefill instance that serves equal prompts one at a time, first come first served, under Poisson arrivals is an
M/D/1 queue (lecture 4.1; DistServe, section 3.1, equation 1). No Streamlit, no Plotly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calculators.fleet import instances_for, within
from calculators.inputs import Number, as_dict, declared
from calculators.machine import assumptions_of
from calculators.outputs import apart, output, readable
from calculators.scenario import FirstTokenTarget, Simulation, Traffic
from calculators.service_time import PrefillInputs, PrefillTime, StepBreakdown, prefill_time
from formulas.queueing import md1

PERCENTILES = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p999": 99.9}
"""The percentiles that every answer reports, by the beginning of their key."""


@dataclass(frozen=True, kw_only=True)
class TtftInputs(Simulation, FirstTokenTarget, PrefillInputs, Traffic):
    """What the time to first token depends on, and how large the simulation beside it is."""


@dataclass(frozen=True, kw_only=True)
class TtftResult:
    """The answer. A time that does not exist is ``None``; ``verdict`` and ``reasons`` say why."""

    service_ms: float = output("Service time", "ms", "One prompt alone on the instance")
    utilization: float = output("Utilization", "", "Share of the time that the instance is busy")
    stable: bool = output("Steady state", "", "Exists only below utilization 1")
    mean_wait_ms: float | None = output("Mean wait", "ms", default=None)
    mean_ttft_ms: float | None = output("Mean TTFT", "ms", default=None)
    p50_ttft_ms: float | None = output("P50 TTFT", "ms", default=None)
    p90_ttft_ms: float | None = output("P90 TTFT", "ms", default=None)
    p95_ttft_ms: float | None = output("P95 TTFT", "ms", default=None)
    p99_ttft_ms: float | None = output("P99 TTFT", "ms", default=None)
    p999_ttft_ms: float | None = output("P99.9 TTFT", "ms", default=None)
    target_ttft_ms: float | None = output("TTFT held against the target", "ms", default=None)
    max_rate: float | None = output("Highest rate within the target", "requests/s", "For one instance")
    instances: int | None = output("Instances needed", "", "For this rate, split at random")
    accelerators: int | None = output("Accelerators needed", "", "Instances times the tensor parallel degree")
    verdict: str = output("Verdict", "", "meets, misses, too_slow_unloaded, unstable or does_not_fit")
    service: StepBreakdown | None = output("What the service time is made of")
    reasons: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Why figures are missing, then what to know before using those that are there."""
        return self.reasons + self.remarks


def compute(inputs: TtftInputs) -> TtftResult:
    """Return the time to first token of one instance, the rate its target allows, and the instances needed.

    Raises
    ------
    InputsError
        If the accelerator does not have the data type or the link that the inputs ask for.
    """
    service = prefill_time(inputs)
    utilization = md1.UTILIZATION(rate=inputs.rate, service_time=service.service_ms / 1e3)
    times = _ttft(inputs, service.service_ms) if utilization < 1 else {}
    target_ttft = times.get("target_ttft_ms")
    max_rate = max_rate_within_target(inputs, service.service_ms) if service.fits is not False else None
    verdict = verdict_of(inputs, service, max_rate, target_ttft)
    instances = None if max_rate is None else instances_for(inputs.rate, max_rate)
    return TtftResult(
        service_ms=service.service_ms,
        utilization=utilization,
        stable=utilization < 1,
        **times,
        max_rate=max_rate,
        instances=instances,
        accelerators=None if instances is None else instances * inputs.tp,
        verdict=verdict,
        service=service.parts,
        reasons=_reasons(inputs, service, utilization, verdict),
        remarks=tuple(filter(None, (service.misfit, *service.remarks))),
    )


def _ttft(inputs: TtftInputs, service_ms: float) -> dict[str, float]:
    """Return the times of a stable instance, by their keys in the result."""
    values = {"rate": inputs.rate, "service_time": service_ms / 1e3}
    levels = np.array([*PERCENTILES.values(), inputs.percentile]) / 100
    *percentiles, own = (
        float(service_ms * (1 + wait)) for wait in md1.wait_quantile(levels, md1.UTILIZATION(**values))
    )
    mean_ttft = 1e3 * md1.MEAN_TTFT(**values)
    return {
        "mean_wait_ms": 1e3 * md1.MEAN_WAIT(**values),
        "mean_ttft_ms": mean_ttft,
        **{f"{key}_ttft_ms": value for key, value in zip(PERCENTILES, percentiles, strict=True)},
        "target_ttft_ms": mean_ttft if inputs.slo_statistic == "mean" else own,
    }


def max_rate_within_target(inputs: FirstTokenTarget, service_ms: float) -> float | None:
    """Return the highest rate [requests/s] at which one instance meets the target, or ``None`` if no rate does."""
    wait_limit = inputs.ttft_slo_ms / service_ms - 1
    if wait_limit < 0:
        return None
    level = None if inputs.slo_statistic == "mean" else inputs.percentile / 100
    return 1e3 * _max_utilization(wait_limit, level) / service_ms or None


@lru_cache(maxsize=4096)  # it does not depend on the rate, which is what a planner moves
def _max_utilization(wait_limit: float, level: float | None) -> float:
    return float(md1.max_utilization_mean(wait_limit) if level is None else md1.max_utilization(wait_limit, level))


def target_ttft_ms(
    inputs: FirstTokenTarget, rate: NDArray[np.float64], service_ms: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the TTFT [ms] held against the target for many rates [requests/s] and service times [ms] at once.

    NaN where an instance is unstable.
    """
    if inputs.slo_statistic == "mean":
        return np.asarray(1e3 * md1.MEAN_TTFT(rate=rate, service_time=service_ms / 1e3))
    return np.asarray(service_ms * (1 + md1.wait_quantile(inputs.percentile / 100, rate * service_ms / 1e3)))


def statistic(inputs: FirstTokenTarget) -> str:
    """Return what the target is set on, as it stands in a sentence: ``P90 TTFT`` or ``mean TTFT``."""
    return "mean TTFT" if inputs.slo_statistic == "mean" else f"P{inputs.percentile:g} TTFT"


def verdict_of(inputs: TtftInputs, service: PrefillTime, max_rate: float | None, target_ttft: float | None) -> str:
    """Return the one verdict that holds, the one that no rate can change first."""
    if service.fits is False:
        return "does_not_fit"
    if max_rate is None:
        return "too_slow_unloaded"
    if target_ttft is None:
        return "unstable"
    # By the rate, so that the verdict, the highest rate and the instances agree to the last digit.
    return "meets" if within(inputs.rate, max_rate) else "misses"


def _reasons(inputs: TtftInputs, service: PrefillTime, utilization: float, verdict: str) -> tuple[str, ...]:
    found = []
    if utilization >= 1:
        found.append(
            f"Unstable: at {readable(inputs.rate)} requests/s the utilization is {apart(utilization, 1)}; from 1 on there is no "
            "steady state, and the queue grows without end. One instance serves less than "
            f"{apart(1e3 / service.service_ms, inputs.rate)} requests/s."
        )
    if verdict == "too_slow_unloaded":
        found.append(
            f"Too slow even unloaded: one prompt takes {apart(service.service_ms, inputs.ttft_slo_ms)} ms and the target is "
            f"{readable(inputs.ttft_slo_ms)} ms. More instances cannot help; a shorter prompt, more tensor parallelism or a "
            "faster accelerator can."
        )
    return tuple(found)


@dataclass(frozen=True)
class Sweep:
    """TTFT against rate: arrays of equal length, from an idle instance to just below its capacity."""

    rate: NDArray[np.float64] = output("Arrival rate", "requests/s")
    utilization: NDArray[np.float64] = output("Utilization")
    mean_ttft_ms: NDArray[np.float64] = output("Mean TTFT", "ms")
    p50_ttft_ms: NDArray[np.float64] = output("P50 TTFT", "ms")
    p90_ttft_ms: NDArray[np.float64] = output("P90 TTFT", "ms")
    p95_ttft_ms: NDArray[np.float64] = output("P95 TTFT", "ms")
    p99_ttft_ms: NDArray[np.float64] = output("P99 TTFT", "ms")
    p999_ttft_ms: NDArray[np.float64] = output("P99.9 TTFT", "ms")
    own_ttft_ms: NDArray[np.float64] = output("TTFT at the target's percentile", "ms")


def sweep(service_ms: float, percentile: float = 90, points: int = 200) -> Sweep:
    """Return TTFT against rate for an instance with that service time.

    The points stand evenly over the load, and closer together near the capacity, where the curves bend upwards.
    """
    even = np.linspace(0, 0.9, points * 3 // 4, endpoint=False)
    utilization = np.concatenate([even, 1 - np.geomspace(0.1, 0.005, points - len(even))])
    levels = np.array([*PERCENTILES.values(), percentile])[:, None] / 100
    percentiles = service_ms * (1 + md1.wait_quantile(levels, utilization[None, :]))
    mean = service_ms * md1.MEAN_TTFT(rate=utilization, service_time=1.0)
    return Sweep(1e3 * utilization / service_ms, utilization, mean, *percentiles)


@dataclass(frozen=True)
class Sensitivity:
    """How the TTFT that is held against the target answers to one input."""

    name: str = output("Input")
    label: str = output("Quantity")
    value: float = output("Value")
    elasticity: float = output("Elasticity", "", "Percent of TTFT for one percent of the input")


def sensitivities(inputs: TtftInputs) -> tuple[Sensitivity, ...]:
    """Return the elasticity of the TTFT held against the target in every input it depends on, largest first.

    By central differences through the whole calculation: one part in a thousand on either side, less near saturation.
    Empty where there is no steady state. A quantity of whole numbers (prompt length) is treated as continuous.
    """
    base = compute(inputs)
    if base.target_ttft_ms is None:
        return ()
    width = min(1e-3, 0.05 * (1 - base.utilization))
    found = [
        Sensitivity(name, declaration.label, value, slope)
        for name, declaration, value in _continuous_inputs(inputs)
        if (slope := _elasticity(inputs, name, value, width)) != 0
    ]
    return tuple(sorted(found, key=lambda one: -abs(one.elasticity)))


def _continuous_inputs(inputs: TtftInputs) -> list[tuple[str, Number, float]]:
    values = as_dict(inputs)
    names = ["rate", "service_ms"]
    if inputs.service_ms is None:
        assumed = assumptions_of(inputs)
        names = ["rate", "prompt_tokens", "compute_efficiency", "memory_efficiency", "step_overhead_ms"]
        names += ["allreduce_latency_us"] if inputs.tp > 1 else []
        values |= {name: getattr(assumed, name) for name in names[2:]}
    known = declared(TtftInputs)
    return [(name, known[name], float(values[name])) for name in names if values[name]]  # type: ignore[arg-type,misc]


def _elasticity(inputs: TtftInputs, name: str, value: float, width: float) -> float:
    below, above = (_target_ttft_at(inputs, name, value * (1 + step)) for step in (-width, width))
    return math.log(above / below) / math.log((1 + width) / (1 - width))


def _target_ttft_at(inputs: TtftInputs, name: str, value: float) -> float:
    changed: dict[str, Any] = {name: value}
    ttft = compute(replace(inputs, **changed)).target_ttft_ms
    if ttft is None:
        raise ValueError(f"{name} = {value} leaves no steady state, so close to it there is no elasticity")
    return ttft
