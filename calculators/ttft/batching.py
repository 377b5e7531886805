"""Prompts prefilled together: up to which size it helps the time to first token, and from where all only wait."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from calculators.inputs import declared
from calculators.machine import machine_of
from calculators.outputs import output
from calculators.service_time import prefill_load
from calculators.ttft.batched import Batched
from calculators.ttft.inputs import TtftInputs
from calculators.ttft.methods import queue_of
from calculators.ttft.queues import Queue
from calculators.ttft.traffic import RealTraffic
from formulas import step_time as step
from formulas.closed_form import DomainError
from formulas.queueing.batching import LARGEST_BATCH_OF_PROMPTS, PAIR_SAVING

Array = NDArray[np.float64]

_LONGEST = 65_536
_POINTS = 24
_HIGHEST_LOAD = 0.93


@dataclass(frozen=True)
class BatchOf:
    """Batches of up to so many prompts."""

    most: int = output("Prompts together, at most")
    tokens: int = output("Tokens of a full batch", "tokens")
    step_ms: float = output("Time of a full batch", "ms")
    capacity: float = output("Rate it can take", "requests/s")
    mean_ttft_ms: float | None = output("Mean TTFT at this rate", "ms", "None where there is no steady state")


@dataclass(frozen=True)
class Batching:
    """What batches of prompts bring on one instance: equal prompts, Poisson arrivals, whoever waits goes along."""

    saturation_tokens: int | None = output(
        "Saturation length", "tokens", "None if nothing up to 65,536 tokens is compute-bound"
    )
    fill: int = output("Prompts that fill the accelerator")
    alone_ms: float = output("One prompt alone", "ms")
    pair_ms: float = output("Two together", "ms")
    pair_saving_ms: float = output(
        "Mean saving of two who wait", "ms", "Negative: together they only wait for each other"
    )
    rows: tuple[BatchOf, ...] = output("Batches")


def possible(inputs: TtftInputs) -> bool:
    """Return whether it is known what a batch takes."""
    return inputs.service_ms is None


def saturation_tokens(inputs: TtftInputs) -> int | None:
    """Return the fewest tokens of a prefill whose arithmetic takes as long as reading the weights."""
    tokens = np.arange(1, _LONGEST + 1)
    time = step.step_time(prefill_load(inputs, tokens), machine_of(inputs))
    bound = np.asarray(time.compute_s) >= np.asarray(time.memory_s)
    return int(tokens[np.argmax(bound)]) if bound.any() else None


def batching(inputs: TtftInputs) -> Batching:
    """Return what batches of one, two, four … prompts do at the share of the rate that an instance gets."""
    saturation, prompt = saturation_tokens(inputs), inputs.prompt_tokens
    most = declared(RealTraffic)["batch_size"].high  # type: ignore[attr-defined]
    fill = 1
    if saturation is not None and prompt <= saturation:
        fill = int(min(LARGEST_BATCH_OF_PROMPTS(saturation_tokens=saturation, prompt_tokens=prompt), most))
    alone_ms, pair_ms = batch_times_ms(inputs, 2)
    sizes = sorted({1, 2, 4, 8, 16, fill, inputs.batch_size})
    return Batching(
        saturation_tokens=saturation,
        fill=fill,
        alone_ms=alone_ms,
        pair_ms=pair_ms,
        pair_saving_ms=1e3 * float(PAIR_SAVING(single_s=alone_ms / 1e3, pair_s=pair_ms / 1e3)),
        rows=tuple(_row(inputs, size) for size in sizes),
    )


def batch_times_ms(inputs: TtftInputs, most: int) -> tuple[float, ...]:
    """Return the time of a batch of one prompt, of two, and so on."""
    queue = batches_of(inputs, max(most, 2))
    assert isinstance(queue, Batched)  # noqa: S101 - two or more
    return queue.batch_times_ms[:most]


def batches_of(inputs: TtftInputs, most: int) -> Queue:
    """Return one instance that takes up to so many prompts at a time."""
    return queue_of(
        replace(
            inputs,
            servers=1,
            prompt_cv=0.0,
            prompt_histogram="",
            arrivals="gamma",
            arrival_scv=1.0,
            order="fcfs",
            batch_size=most,
        )
    )


def _row(inputs: TtftInputs, most: int) -> BatchOf:
    queue = batches_of(inputs, most)
    step_ms = batch_times_ms(inputs, most)[-1]
    return BatchOf(
        most, most * inputs.prompt_tokens, step_ms, queue.capacity, _mean_ttft_ms(queue, inputs.rate / inputs.servers)
    )


def _mean_ttft_ms(queue: Queue, rate: float) -> float | None:
    if queue.utilization(rate) >= 1:
        return None
    try:
        return queue.mean_ttft_ms(rate)
    except DomainError:  # too near to saturation to be computed
        return None


@dataclass(frozen=True)
class BatchCurve:
    """Mean TTFT of one instance against its rate, for one largest batch."""

    most: int
    rate: Array = output("Arrival rate", "requests/s")
    mean_ttft_ms: Array = output("Mean TTFT", "ms")


def batch_curves(inputs: TtftInputs, found: Batching) -> list[BatchCurve]:
    """Return mean TTFT against the rate: one at a time, batches that fill the accelerator, and larger ones."""
    sizes = sorted({1, max(found.fill, 2), 4 * max(found.fill, 2) if found.fill < 32 else 128})
    same = replace(inputs, rate=1.0, ttft_slo_ms=100.0)  # they depend on neither, and those are what a planner moves
    return [_curve(same, size) for size in sizes]


@lru_cache(maxsize=32)
def _curve(inputs: TtftInputs, most: int) -> BatchCurve:
    queue = batches_of(inputs, most)
    rates = np.linspace(0, _HIGHEST_LOAD, _POINTS + 1)[1:] * queue.capacity
    means = [_mean_ttft_ms(queue, float(rate)) for rate in rates]
    return BatchCurve(most, rates, np.array([np.nan if mean is None else mean for mean in means]))
