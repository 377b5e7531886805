"""Inputs to result: one decode step, and the pool of sequences that forms under load.

Lecture 3, 4.4 and 8.4; DistServe, section 3.2. No Streamlit, no Plotly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calculators.decode_pool import Pool, PoolInputs, pool_of
from calculators.decode_step import step_of, turning_of
from calculators.fleet import instances_for, within
from calculators.memory import sequences_that_fit
from calculators.outputs import apart, counted, output, readable
from calculators.remarks import hardware_remarks
from calculators.scenario import Batch, NextTokenTarget, Simulation, Traffic
from calculators.step_load import StepContents

Array = NDArray[np.float64]

PERCENTILES = {"p50": 50.0, "p90": 90.0, "p99": 99.0}
"""The percentiles of every result, by the prefix of their key."""

OFTEN = 0.01
"""Share of the requests that wait for a slot, from which a page speaks of it."""


@dataclass(frozen=True, kw_only=True)
class DecodeInputs(Simulation, NextTokenTarget, PoolInputs, Batch, Traffic):
    """One step of a batch, and the pool that forms when requests arrive."""


@dataclass(frozen=True, kw_only=True)
class DecodeResult:
    """The answer. A time that does not exist is ``None``."""

    mean_batch: float | None = output("Mean batch", "sequences")
    mean_tpot_ms: float | None = output("Mean TPOT", "ms", "From the first token to the last, for each after the first")
    p50_tpot_ms: float | None = output("P50 TPOT", "ms")
    p90_tpot_ms: float | None = output("P90 TPOT", "ms")
    p99_tpot_ms: float | None = output("P99 TPOT", "ms")
    target_tpot_ms: float | None = output("TPOT held against the target", "ms", "At the attainment asked for")
    stable: bool = output("Stable")
    max_rate: float | None = output(
        "Highest rate in target", "requests/s", "One instance; None if no rate meets the target"
    )
    capacity: float | None = output("Capacity", "requests/s", "Never reached; None if nothing can be decoded")
    instances: int | None = output("Instances needed", "", "When each request goes to one of them at random")
    accelerators: int | None = output("Accelerators needed")
    slots: int | None = output(
        "Slots", "", "Sequences whose prompt and output fit in memory; None if the weights do not"
    )
    share_waiting: float | None = output("Share that waits for a slot")
    mean_slot_wait_ms: float | None = output("Mean wait for a slot", "ms", "Over all requests; part of the TPOT")
    tokens_per_second: float | None = output("Tokens decoded", "1/s", "By one instance")
    verdict: str = output(
        "Verdict", "", "meets, misses, unstable, too_slow_unloaded, does_not_fit or nothing_to_decode"
    )
    step_ms: float = output("One step", "ms", "Of the batch and context given")
    bound: str = output("bound by", "", "What takes longest: weights, kv, compute, collectives or overhead")
    weights_ms: float = output("reading the weights", "ms")
    kv_ms: float = output("reading the KV cache", "ms")
    compute_ms: float = output("arithmetic", "ms", "Beside the reading; the longer of the two counts")
    collectives_ms: float = output("all-reduces", "ms")
    overhead_ms: float = output("overhead", "ms")
    attention_intensity: float = output(
        "Intensity of attention", "FLOP/B", "Whatever the batch: heads that share a cache"
    )
    projection_intensity: float = output("Intensity of projections and FFN", "FLOP/B", "Grows with the batch")
    ridge: float = output("Ridge", "FLOP/B", "Peak rate over memory bandwidth, at the chip's peaks")
    critical_batch: float | None = output(
        "Weights bound by compute from",
        "sequences",
        "Projections and FFN alone, at the chip's peaks; the whole step reads the cache too and turns elsewhere",
    )
    reached_critical_batch: float | None = output(
        "Weights bound by compute with the efficiencies assumed from", "sequences"
    )
    max_batch: int | None = output("Largest batch", "sequences", "At the context given; None if the weights do not fit")
    remarks: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should know before using the figures."""
        return self.remarks


def context_of(inputs: DecodeInputs, pool: Pool) -> float:
    """Return the context of the sequences in the step that is looked at: typed in, or the mean under load."""
    return pool.context_tokens if inputs.context_tokens is None else float(inputs.context_tokens)


def compute(inputs: DecodeInputs) -> DecodeResult:
    """Return one step and its limits, and the stationary pool at the arrival rate.

    Raises
    ------
    InputsError
        If the accelerator does not have the data type, or not the link that tensor parallelism needs.
    """
    pool = pool_of(inputs)
    context = context_of(inputs, pool)
    one = step_of(inputs, StepContents(sequences=inputs.batch, context_tokens=context))
    turning = turning_of(inputs, inputs.batch, context)
    max_rate = pool.max_rate(inputs.tpot_slo_ms, inputs.attainment)
    loaded = _under_load(inputs, pool)
    verdict = _verdict(inputs, pool, max_rate, stable=loaded["stable"])
    instances = None if max_rate is None else instances_for(inputs.rate, max_rate)
    return DecodeResult(
        **loaded,
        max_rate=max_rate,
        capacity=pool.capacity if pool.serves else None,
        instances=instances,
        accelerators=None if instances is None else instances * inputs.tp,
        slots=pool.slots,
        verdict=verdict,
        **vars(one),
        **vars(turning),
        max_batch=sequences_that_fit(inputs, math.ceil(context)),
        remarks=(
            *_remarks(inputs, pool, context, loaded),
            *hardware_remarks(inputs, max(context, inputs.prompt_tokens + inputs.cached_tokens + inputs.output_tokens)),
        ),
    )


def _under_load(inputs: DecodeInputs, pool: Pool) -> dict[str, Any]:
    """Return the figures of the stationary pool, by their keys in the result."""
    law = pool.law(inputs.rate)
    if law is None:
        names = ("mean_batch", "mean_tpot_ms", *(f"{key}_tpot_ms" for key in PERCENTILES), "target_tpot_ms")
        return dict.fromkeys((*names, "share_waiting", "mean_slot_wait_ms", "tokens_per_second")) | {"stable": False}
    levels = {f"{key}_tpot_ms": level / 100 for key, level in PERCENTILES.items()}
    levels["target_tpot_ms"] = inputs.attainment
    times = 1e3 * law.tpot_from_arrival(list(levels.values()), pool.lengths_cv2)
    return {
        **dict(zip(levels, map(float, times), strict=True)),
        "mean_tpot_ms": 1e3 * law.tpot_from_arrival(None, pool.lengths_cv2),
        "mean_batch": law.mean_batch,
        "stable": True,
        "share_waiting": law.full,
        "mean_slot_wait_ms": 1e3 * law.slot_wait(pool.lengths_cv2),
        "tokens_per_second": inputs.rate * pool.steps,
    }


def _verdict(inputs: DecodeInputs, pool: Pool, max_rate: float | None, *, stable: bool) -> str:
    """Return the one verdict that holds, the one that no rate can change first."""
    if not pool.slots:
        return "does_not_fit"
    if pool.steps == 0:
        return "nothing_to_decode"
    if max_rate is None:
        return "too_slow_unloaded"
    if not stable:
        return "unstable"
    # By the rate, so that the verdict, the highest rate and the instances agree to the last digit.
    return "meets" if within(inputs.rate, max_rate) else "misses"


def _remarks(inputs: DecodeInputs, pool: Pool, context: float, loaded: dict[str, Any]) -> tuple[str, ...]:
    found = []
    if not pool.slots:
        what = (
            "the weights and the reserve leave no memory for a cache"
            if pool.slots is None
            else "not one request's cache fits"
        )
        found.append(
            f"Does not fit: on {inputs.tp} × {inputs.accelerator} {what} ({inputs.model} in {inputs.weight_dtype}). One step "
            "is shown as if it did."
        )
    fitting = sequences_that_fit(inputs, math.ceil(context))
    if fitting is not None and inputs.batch > fitting > 0:
        found.append(
            f"The batch of {inputs.batch:,} is more than memory holds at a context of {counted(context, 'token')}: {fitting:,} "
            "sequences. One step is shown as if it fitted."
        )
    if loaded["share_waiting"] and loaded["share_waiting"] >= OFTEN:
        found.append(
            f"Memory cuts the batch at {counted(pool.slots, 'sequence')}: {loaded['share_waiting']:.0%} of the requests wait for a slot, "
            f"{readable(loaded['mean_slot_wait_ms'], 3)} ms on average over all."
        )
    if pool.serves and inputs.rate >= pool.capacity:
        found.append(
            f"Unstable: {apart(inputs.rate, pool.capacity)} requests/s arrive and one instance decodes less than "
            f"{apart(pool.capacity, inputs.rate)}; there is no steady state, and requests wait without end."
        )
    return tuple(found)


@dataclass(frozen=True)
class LoadCurve:
    """TPOT and batch against the arrival rate: arrays of equal length, from an idle instance to near its capacity."""

    rate: Array = output("Arrival rate", "requests/s")
    mean_batch: Array = output("Mean batch", "sequences")
    mean_tpot_ms: Array = output("Mean TPOT", "ms")
    p50_tpot_ms: Array = output("P50 TPOT", "ms")
    p90_tpot_ms: Array = output("P90 TPOT", "ms")
    p99_tpot_ms: Array = output("P99 TPOT", "ms")
    own_tpot_ms: Array = output("TPOT at the attainment asked for", "ms")


@lru_cache(maxsize=64)  # it does not depend on the rate, which is what a planner moves
def load_curve(pool: Pool, attainment: float, points: int = 60) -> LoadCurve:
    """Return TPOT and batch against the rate; the points stand closer together where the curves bend upwards."""
    even = np.linspace(0.002, 0.8, points // 2, endpoint=False)
    rates = pool.capacity * np.concatenate([even, 1 - np.geomspace(0.2, 0.01, points - len(even))])
    levels = np.array([*PERCENTILES.values(), 100 * attainment]) / 100
    laws = [law for rate in rates if (law := pool.law(rate))]
    rates = np.array([law.rate for law in laws])
    means = [law.tpot_from_arrival(None, pool.lengths_cv2) for law in laws]
    times = 1e3 * np.array([law.tpot_from_arrival(levels, pool.lengths_cv2) for law in laws]).T
    return LoadCurve(rates, np.array([law.mean_batch for law in laws]), 1e3 * np.array(means), *times)
