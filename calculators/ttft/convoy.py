"""One very long prompt among the others: who waits behind it, for how long, and how many do."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calculators.outputs import output
from calculators.routers import OWN_STREAM
from calculators.service_time import prefill_times_ms
from calculators.ttft.inputs import TtftInputs
from calculators.ttft.lengths import law_of
from calculators.ttft.methods import queue_of
from formulas.queueing import mg1
from formulas.queueing.order import CONVOY_AFFECTED, CONVOY_EXTRA_WAIT

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Convoy:
    """What a very long prompt does to those behind it at its instance: Poisson arrivals, first come first served."""

    long_ms: float = output("The long prompt takes", "ms")
    ordinary_ms: float = output("An ordinary prompt takes", "ms")
    utilization: float = output("Utilization of the instance")
    ordinary_wait_ms: float = output("Mean wait without it", "ms")
    right_behind_ms: float = output("Extra wait right behind it", "ms")
    delayed: float = output("Prompts delayed", "", "On average, until the instance is idle for the first time")
    extra_ms: float = output("Mean extra wait of those", "ms")
    over_after_ms: float = output("Over after", "ms", "On average, until the instance is idle for the first time")


@dataclass(frozen=True)
class Elsewhere:
    """What the other instances of a pool do while one is busy with the long prompt, if the router goes around it."""

    long_ms: float = output("The long prompt takes", "ms")
    utilization: float = output("Utilization of the others meanwhile")
    ordinary_wait_ms: float = output("Mean wait with all instances", "ms")
    wait_ms: float | None = output(
        "Mean wait on the others", "ms", "In a steady state without that instance", default=None
    )
    piled_up: float = output("Prompts that pile up meanwhile", default=0.0)


def goes_around(inputs: TtftInputs) -> bool:
    """Return whether the router sends prompts to the instances that are not held up."""
    return inputs.servers > 1 and inputs.routing not in OWN_STREAM


def long_ms_of(inputs: TtftInputs) -> float:
    """Return the service time of the long prompt [ms]; with a typed service time, in proportion to its length."""
    if inputs.service_ms is not None:
        return inputs.service_ms * inputs.long_tokens / inputs.prompt_tokens
    return float(prefill_times_ms(inputs, inputs.long_tokens))


def convoy(inputs: TtftInputs) -> Convoy | None:
    """Return what the long prompt does at its instance; ``None`` where there is no steady state to disturb."""
    law, rate = law_of(inputs), inputs.rate / inputs.servers
    load, long_s = rate * law.mean, long_ms_of(inputs) / 1e3
    if load >= 1:
        return None
    wait_s = float(mg1.mean_wait(rate, law))
    delayed = CONVOY_AFFECTED(rate=rate, long_service=long_s, mean_wait=wait_s, utilization=load)
    return Convoy(
        long_ms=1e3 * long_s,
        ordinary_ms=1e3 * law.mean,
        utilization=load,
        ordinary_wait_ms=1e3 * wait_s,
        right_behind_ms=1e3 * long_s,
        delayed=float(delayed),
        extra_ms=1e3 * float(CONVOY_EXTRA_WAIT(long_service=long_s, mean_wait=wait_s)),
        over_after_ms=1e3 * float(delayed) / rate,
    )


def elsewhere(inputs: TtftInputs) -> Elsewhere | None:
    """Return what the others do meanwhile, Poisson arrivals; ``None`` where all together have no steady state."""
    pool = replace(inputs, arrivals="gamma", arrival_scv=1.0, batch_size=1, order="fcfs", routing="shared")
    queue = queue_of(pool)
    if queue.utilization(pool.rate) >= 1:
        return None
    others = queue_of(replace(pool, servers=pool.servers - 1))
    load, long_ms = others.utilization(pool.rate), long_ms_of(inputs)
    return Elsewhere(
        long_ms=long_ms,
        utilization=load,
        ordinary_wait_ms=queue.mean_wait_ms(pool.rate),
        wait_ms=others.mean_wait_ms(pool.rate) if load < 1 else None,
        piled_up=max(pool.rate - others.capacity, 0.0) * long_ms / 1e3,
    )


def behind_a_long_prompt(inputs: TtftInputs) -> Convoy | Elsewhere | None:
    """Return what the long prompt does, by the router."""
    return elsewhere(inputs) if goes_around(inputs) else convoy(inputs)


@dataclass(frozen=True)
class ConvoyCurve:
    """Mean extra wait of a prompt against the time since the long one came."""

    since_ms: Array = output("After the long prompt", "ms")
    extra_ms: Array = output("Mean extra wait, exact until the long prompt could be done, then a lower bound", "ms")


def convoy_curve(found: Convoy) -> ConvoyCurve:
    """Return who waits how long behind the long prompt.

    What one who comes a time t later finds more is the long prompt less the idle time that there would have been
    until t: x - (1 - ρ) t on average, as long as t is not above x. Beyond, where idle time may exceed x, the mean is a little larger.
    """
    end = found.long_ms / (1 - found.utilization)
    since = np.array([0.0, found.long_ms, end, 1.15 * end])
    return ConvoyCurve(since, np.maximum(found.long_ms - (1 - found.utilization) * since, 0.0))
