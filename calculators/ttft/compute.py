"""Inputs to result: the time to first token, the rate a target allows, the instances a rate needs.

A prefill instance that serves equal prompts one at a time, first come first served, under Poisson arrivals is an
M/D/1 queue (lecture 4.1; DistServe, section 3.1, equation 1); other traffic is another queue
(:mod:`calculators.ttft.methods`). No Streamlit, no Plotly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from calculators.fleet import ROUNDING, fewest_servers, instances_for, within
from calculators.inputs import InputsError
from calculators.lengths import histogram_remarks, spread_of
from calculators.outputs import apart, output, readable
from calculators.scenario import FirstTokenTarget
from calculators.service_time import PrefillTime, StepBreakdown, prefill_time
from calculators.ttft.arrivals import AS_POISSON, as_poisson, is_poisson
from calculators.ttft.bursts import BurstOnIdle, burst_on_idle
from calculators.ttft.convoy import Convoy, Elsewhere, behind_a_long_prompt
from calculators.ttft.inputs import TtftInputs, level_of, statistic
from calculators.ttft.methods import queue_of
from calculators.ttft.queues import Queue
from calculators.ttft.simulated import Simulated
from calculators.ttft.trace import TraceSummary, summary_of
from calculators.ttft.traffic import is_plain
from formulas.closed_form import DomainError
from formulas.queueing import md1

SEARCHED_REQUESTS = 100_000
"""Requests of each simulation while it is looked for the instances needed."""

PERCENTILES = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p999": 99.9}
"""The percentiles that every answer reports, by the beginning of their key."""


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
    max_rate: float | None = output("Highest rate within the target", "requests/s", "For one instance, or for the pool")
    instances: int | None = output("Instances needed", "", "For this rate, with this router")
    accelerators: int | None = output("Accelerators needed", "", "Instances times the tensor parallel degree")
    verdict: str = output("Verdict", "", "meets, misses, too_slow_unloaded, unstable or does_not_fit")
    service: StepBreakdown | None = output("What the service time is made of")
    method: str = output("Method", default="")
    approximation_error: str | None = output("Error of the method", "", "None where it is exact", default=None)
    trace: TraceSummary | None = output("Trace", default=None)
    burst: BurstOnIdle | None = output(
        "A burst on an idle pool", "", "On the page it has a tab of its own", default=None
    )
    long_prompt: Convoy | Elsewhere | None = output(
        "One very long prompt", "", "On the page, in that tab too", default=None
    )
    reasons: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Why figures are missing, then what to know before using those that are there."""
        return self.reasons + self.remarks


def compute(inputs: TtftInputs, *, thorough: bool = True) -> TtftResult:
    """Return the time to first token, the rate the target allows, and the instances needed.

    Parameters
    ----------
    inputs
        The scenario.
    thorough
        Whether to look for the instances needed where that takes seconds, and to add the burst and the long prompt, which
        a page draws elsewhere.

    Raises
    ------
    InputsError
        If the accelerator does not have the data type or the link that the inputs ask for, or no method is known for
        the traffic.
    """
    service, queue = prefill_time(inputs), queue_of(inputs)
    utilization = queue.utilization(inputs.rate)
    times = _ttft(inputs, queue) if utilization < 1 else {}
    target_ttft = times.get("target_ttft_ms")
    fits = service.fits is not False
    max_rate = highest_rate(inputs, queue) if fits else None
    reached = max_rate is not None or _reached_by_more(inputs, queue)
    verdict = verdict_of(inputs, service, max_rate, target_ttft, reached=reached)
    instances = None if not (fits and reached) else instances_needed(inputs, max_rate, thorough=thorough)
    return TtftResult(
        service_ms=queue.service_ms,
        utilization=utilization,
        stable=utilization < 1,
        **times,
        max_rate=max_rate,
        instances=instances,
        accelerators=None if instances is None else instances * inputs.tp,
        verdict=verdict,
        service=service.parts,
        method=queue.name,
        approximation_error=error_of(queue, inputs.rate) if utilization < 1 else None,
        trace=None if inputs.trace is None else summary_of(inputs),
        burst=burst_on_idle(inputs) if thorough else None,
        long_prompt=behind_a_long_prompt(inputs) if thorough else None,
        reasons=_reasons(inputs, queue, utilization, verdict),
        remarks=tuple(
            filter(
                None,
                (
                    service.misfit,
                    *service.remarks,
                    *histogram_remarks(inputs),
                    _unused(inputs, queue),
                    _not_looked_for(queue, instances, verdict),
                ),
            )
        ),
    )


def _unused(inputs: TtftInputs, queue: Queue) -> str:
    """Return what of the arrivals plays no part: spells too short to be told from none, or the burstiness beside other kinds."""
    if as_poisson(inputs, queue.law.mean):
        return (
            f"Busy spells of {readable(inputs.busy_spell_s)} s come and go many times while one prompt is served: the arrivals are "
            f"taken for Poisson's, whose counts vary up to {AS_POISSON - 1:.0%} less."
        )
    if inputs.arrivals == "gamma" or inputs.arrival_scv == 1:
        return ""
    return f"The burstiness of arrivals, {readable(inputs.arrival_scv)}, plays no part here: the kind of arrivals is {inputs.arrivals}."


def _reached_by_more(inputs: TtftInputs, queue: Queue) -> bool:
    """Return whether more instances may meet a target that these meet at no rate, or at none that is known."""
    if is_poisson(inputs) and queue.kind != "simulation":
        return False
    return queue.unloaded_ms(level_of(inputs)) <= inputs.ttft_slo_ms


def _not_looked_for(queue: Queue, instances: int | None, verdict: str) -> str:
    """Return what to do where the number of instances is not found by itself."""
    if verdict in ("too_slow_unloaded", "does_not_fit"):
        return ""
    if queue.kind == "simulation" and instances is not None:
        return (
            f"Simulated at this rate only: the highest rate is not looked for. The instances are found by simulations of "
            f"{SEARCHED_REQUESTS:,} requests at most, so that one more or less may be right."
        )
    if instances is not None:
        return ""
    if queue.kind == "simulation":
        return (
            "Simulated at this rate only: neither the highest rate nor the instances needed are looked for. On the page, the tab "
            "Traffic finds the instances."
        )
    return (
        "The instances needed are not looked for unasked: that takes simulations, or seconds. On the page, the tab Traffic "
        "finds them."
    )


def error_of(queue: Queue, rate: float) -> str | None:
    """Return how far off a queue's answer may be at a rate, in a sentence."""
    return queue.error_at(rate) if isinstance(queue, Simulated) else queue.error


def _ttft(inputs: TtftInputs, queue: Queue) -> dict[str, float]:
    """Return the times of a stable pool, by their keys in the result."""
    levels = np.array([*PERCENTILES.values(), inputs.percentile]) / 100
    *percentiles, own = (float(value) for value in queue.ttft_ms(levels, inputs.rate))
    mean_ttft = queue.mean_ttft_ms(inputs.rate)
    return {
        "mean_wait_ms": queue.mean_wait_ms(inputs.rate),
        "mean_ttft_ms": mean_ttft,
        **{f"{key}_ttft_ms": value for key, value in zip(PERCENTILES, percentiles, strict=True)},
        "target_ttft_ms": mean_ttft if inputs.slo_statistic == "mean" else own,
    }


def highest_rate(inputs: TtftInputs, queue: Queue) -> float | None:
    """Return the highest rate [requests/s] at which the pool meets the target, ``None`` if none does or it is simulated."""
    if is_plain(inputs):
        each = max_rate_within_target(inputs, queue.service_ms)
        return None if each is None else each * inputs.servers
    return _highest_rate(queue, inputs.ttft_slo_ms, level_of(inputs))


@lru_cache(maxsize=256)  # as below; queues are kept, and compared by identity
def _highest_rate(queue: Queue, limit_ms: float, level: float | None) -> float | None:
    return queue.max_rate(limit_ms, level)


def instances_needed(inputs: TtftInputs, max_rate: float | None, *, thorough: bool) -> int | None:
    """Return the fewest instances with which this router keeps the target at this rate.

    ``None`` where more than 256 are needed, or where it takes seconds and `thorough` is not asked for.
    """
    if inputs.routing == "random" and is_poisson(inputs):
        return None if max_rate is None else instances_for(inputs.rate, max_rate / inputs.servers)
    try:
        several = queue_of(replace(inputs, servers=max(inputs.servers, 2)))
    except InputsError:  # batches and orders behind this router are not computed
        return None
    if not (several.quick or thorough):
        return None
    if several.kind == "simulation":
        inputs = replace(inputs, customers=min(inputs.customers, SEARCHED_REQUESTS))
    return fewest_servers(lambda count: keeps_target(inputs, count), math.floor(inputs.rate / _alone(inputs)) + 1)


def keeps_target(inputs: TtftInputs, servers: int) -> bool:
    """Return whether so many instances keep the target at the rate at hand."""
    queue = queue_of(replace(inputs, servers=servers))
    if queue.utilization(inputs.rate) >= 1:
        return False
    try:
        return queue.value_ms(level_of(inputs), inputs.rate) <= inputs.ttft_slo_ms * (1 + ROUNDING)
    except DomainError:  # too near saturation to be computed: far too long
        return False


def _alone(inputs: TtftInputs) -> float:
    return queue_of(replace(inputs, servers=1)).capacity


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


def verdict_of(
    inputs: TtftInputs, service: PrefillTime, max_rate: float | None, target_ttft: float | None, *, reached: bool
) -> str:
    """Return the one verdict that holds, the one that no rate can change first."""
    if service.fits is False:
        return "does_not_fit"
    if not reached:
        return "too_slow_unloaded"
    if target_ttft is None:
        return "unstable"
    if max_rate is None:  # simulated at this rate and at no other, or too slow at any rate on these instances
        return "meets" if target_ttft <= inputs.ttft_slo_ms else "misses"
    # By the rate, so that the verdict, the highest rate and the instances agree to the last digit.
    return "meets" if within(inputs.rate, max_rate) else "misses"


def _reasons(inputs: TtftInputs, queue: Queue, utilization: float, verdict: str) -> tuple[str, ...]:
    found = []
    if utilization >= 1:
        pool = "One instance serves" if inputs.servers == 1 else f"{inputs.servers} instances serve"
        found.append(
            f"Unstable: at {readable(inputs.rate)} requests/s the utilization is {apart(utilization, 1)}; from 1 on there is no "
            f"steady state, and the queue grows without end. {pool} less than "
            f"{apart(queue.capacity, inputs.rate)} requests/s."
        )
    if verdict == "too_slow_unloaded":
        unloaded = queue.unloaded_ms(level_of(inputs))
        what = "one prompt takes" if not spread_of(inputs) else f"the {statistic(inputs)} without any wait is"
        found.append(
            f"Too slow even unloaded: {what} {apart(unloaded, inputs.ttft_slo_ms)} ms and the target is "
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
