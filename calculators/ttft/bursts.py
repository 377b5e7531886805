"""Arrivals of several kinds at one rate and utilization; and a single burst on an idle pool, which has no steady state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calculators.inputs import InputsError
from calculators.lengths import spread_of
from calculators.outputs import output
from calculators.ttft.arrivals import TYPICAL_SCV, BurstyArrivals, in_words
from calculators.ttft.inputs import TtftInputs, level_of
from calculators.ttft.lengths import law_of
from calculators.ttft.methods import queue_of
from calculators.ttft.queues import BatchD1
from formulas.queueing.bursts import BURST_DRAIN, burst_mean_wait, burst_quantile, largest_burst

Array = NDArray[np.float64]

MOST_AT_ONCE = 10_000
"""Size up to which the largest burst within the target is looked for."""


@dataclass(frozen=True)
class Arrivals:
    """TTFT under one kind of arrivals."""

    arrivals: str = output("Arrivals")
    utilization: float = output("Utilization")
    mean_ttft_ms: float = output("Mean TTFT", "ms")
    p50_ttft_ms: float = output("P50 TTFT", "ms")
    p99_ttft_ms: float = output("P99 TTFT", "ms")
    times_poisson: float = output("P99 over Poisson's")
    method: str = output("Method")


def at_the_same_load(inputs: TtftInputs) -> list[Arrivals]:
    """Return Poisson arrivals and each bursty kind, for equal prompts at one instance with its share of the rate.

    Empty where there is no steady state.
    """
    alone = replace(_plain(inputs), servers=1, rate=max(inputs.rate / inputs.servers, 0.001))
    if queue_of(alone).utilization(alone.rate) >= 1:
        return []
    scv = inputs.arrival_scv if inputs.arrival_scv > 1 else TYPICAL_SCV
    kinds: tuple[dict[str, Any], ...] = (
        {},
        {"arrival_scv": scv},
        {"arrivals": "batches"},
        {"arrivals": "spells"},
    )
    rows: list[Arrivals] = []
    for kind in kinds:
        try:
            row = _under(replace(alone, **kind), rows[0].p99_ttft_ms if rows else None)
        except InputsError:  # gaps beyond what the method computes
            continue
        rows.append(row)
    return rows


def _plain(inputs: TtftInputs) -> TtftInputs:
    return replace(
        inputs,
        prompt_cv=0.0,
        prompt_histogram="",
        arrivals="gamma",
        arrival_scv=1.0,
        batch_size=1,
        order="fcfs",
        routing="random",
    )


def _under(inputs: TtftInputs, poisson_p99: float | None) -> Arrivals:
    queue = queue_of(inputs)
    p50, p99 = (float(value) for value in queue.ttft_ms(np.array([0.5, 0.99]), inputs.rate))
    times = 1.0 if poisson_p99 is None else p99 / poisson_p99
    load, mean = queue.utilization(inputs.rate), queue.mean_ttft_ms(inputs.rate)
    return Arrivals(in_words(inputs), load, mean, p50, p99, times, queue.name)


@dataclass(frozen=True)
class BurstOnIdle:
    """What a burst on an idle pool means for its prompts, if nobody else comes, and for the pool."""

    burst: int = output("Prompts at once")
    service_ms: float = output("Service time", "ms", "Of equal prompts, one at a time on an instance")
    first_ms: float = output("First token of the first", "ms")
    middle_ms: float = output("First token of the one in the middle", "ms")
    last_ms: float = output("First token of the last", "ms", "On average, if instances are chosen at random")
    mean_ms: float = output("Mean TTFT of the burst", "ms")
    largest: int | None = output("Largest burst within the target", "", "None if it is above 10,000")
    idle_again_ms: float | None = output(
        "Idle again after", "ms", "With the arrival rate at hand behind it, the pool taken as one fast instance", default=None
    )  # fmt: skip


def burst_on_idle(inputs: TtftInputs) -> BurstOnIdle:
    """Return the first-token times of a burst on an idle pool, the largest within the target, and when it is over."""
    service_ms, times = service_ms_of(inputs), first_token_ms(inputs)
    middle = (inputs.burst + 1) // 2
    fast_s = service_ms / 1e3 / inputs.servers
    stable = inputs.rate * fast_s < 1
    drain = BURST_DRAIN(burst=inputs.burst, rate=inputs.rate, service_time=fast_s) if stable else None
    return BurstOnIdle(
        burst=inputs.burst,
        service_ms=service_ms,
        first_ms=float(times[0]),
        middle_ms=float(times[middle - 1]),
        last_ms=float(times[-1]),
        mean_ms=float(times.mean()),
        largest=_largest(inputs, service_ms),
        idle_again_ms=None if drain is None else 1e3 * float(drain),
    )


def service_ms_of(inputs: TtftInputs) -> float:
    """Return the mean service time of a prompt alone on an instance [ms]."""
    return queue_of(_plain(inputs)).service_ms if not spread_of(inputs) else 1e3 * law_of(inputs).mean


def at_random(inputs: TtftInputs) -> bool:
    """Return whether the router may send two prompts of a burst to one instance while another is idle."""
    return inputs.servers > 1 and inputs.routing == "random"


def first_token_ms(inputs: TtftInputs) -> Array:
    """Return the time to the first token of each prompt of the burst, in order; on average if instances are chosen at random."""
    place, service_ms = np.arange(1, inputs.burst + 1), service_ms_of(inputs)
    if at_random(inputs):
        return np.asarray(service_ms * (1 + (place - 1) / inputs.servers))
    return np.asarray(burst_quantile(place / inputs.burst, inputs.burst, inputs.servers, service_ms))


def _largest(inputs: TtftInputs, service_ms: float) -> int | None:
    level, limit = level_of(inputs), inputs.ttft_slo_ms
    if level is not None and not at_random(inputs):
        found = largest_burst(limit, level, inputs.servers, service_ms)
        return found if found <= MOST_AT_ONCE else None

    def keeps(burst: int) -> bool:
        return _statistic_ms(inputs, burst, service_ms, level) <= limit * (1 + 1e-12)

    return _most(keeps)


def _statistic_ms(inputs: TtftInputs, burst: int, service_ms: float, level: float | None) -> float:
    """Return the TTFT of a burst at a level, or its mean."""
    if at_random(inputs):
        behind = BurstyArrivals(arrivals="batches", burst=burst)
        return BatchD1(law_of(inputs), inputs.servers, service_ms, arrivals=behind).idle_ms(level)
    return service_ms + float(burst_mean_wait(burst, inputs.servers, service_ms))


def _most(keeps: Callable[[int], bool]) -> int | None:
    """Return the largest burst that keeps the target, 0 if none does, ``None`` if it is beyond what is looked at."""
    if keeps(MOST_AT_ONCE):
        return None
    most, too_many = 0, MOST_AT_ONCE
    while too_many - most > 1:
        middle = (most + too_many) // 2
        most, too_many = (middle, too_many) if keeps(middle) else (most, middle)
    return most
