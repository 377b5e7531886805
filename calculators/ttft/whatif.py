"""What the choices that a planner has would do: more tensor parallelism, FP8, other prompts, more traffic."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from calculators.fleet import instances_for
from calculators.inputs import InputsError
from calculators.outputs import output
from calculators.service_time import PrefillTime, prefill_time
from calculators.ttft.compute import compute, max_rate_within_target, target_ttft_ms, verdict_of
from calculators.ttft.inputs import TtftInputs, level_of
from calculators.ttft.methods import queue_of
from calculators.ttft.traffic import is_plain

TENSOR_DEGREES = (1, 2, 4, 8)

VERDICTS = {
    "meets": "one instance meets the target",
    "misses": "several instances meet the target",
    "unstable": "several instances meet the target; one is overloaded",
    "too_slow_unloaded": "too slow even unloaded",
    "does_not_fit": "the weights do not fit",
}


@dataclass(frozen=True)
class Alternative:
    """One change to the scenario and what it does."""

    change: str = output("Change")
    service_ms: float | None = output("Service time", "ms")
    target_ttft_ms: float | None = output("TTFT of one instance", "ms")
    max_rate: float | None = output("Highest rate in target", "requests/s")
    instances: int | None = output("Instances")
    accelerators: int | None = output("Accelerators")
    verdict: str = output("Verdict")


def alternatives(inputs: TtftInputs) -> list[Alternative]:
    """Return the scenario as it is and with one thing changed at a time."""
    if not is_plain(inputs) or inputs.servers > 1:
        return [_of_queue(change, changed) for change, changed in _changes(inputs)]
    rows = [(change, changed, _service(changed)) for change, changed in _changes(inputs)]
    times = [service.service_ms for _, _, service in rows if isinstance(service, PrefillTime)]
    rates = [changed.rate for _, changed, service in rows if isinstance(service, PrefillTime)]
    ttft = iter(target_ttft_ms(inputs, np.array(rates), np.array(times)))
    return [
        Alternative(change, None, None, None, None, None, service)
        if isinstance(service, str)
        else _row(change, changed, service, float(next(ttft)))
        for change, changed, service in rows
    ]


def _of_queue(change: str, inputs: TtftInputs) -> Alternative:
    """Return a row by the method of the traffic; what takes seconds to find is left out."""
    try:
        service, queue = prefill_time(inputs), queue_of(inputs)
        if queue.kind in ("exact", "simulation"):
            result = compute(inputs, thorough=False)
            found = (result.target_ttft_ms, result.max_rate, result.instances, result.accelerators)
            return Alternative(change, result.service_ms, *found, VERDICTS[result.verdict])
        stable = queue.utilization(inputs.rate) < 1
        ttft = queue.value_ms(level_of(inputs), inputs.rate) if stable else None
    except InputsError as refused:
        return Alternative(change, None, None, None, None, None, "; ".join(error.sentence for error in refused.errors))
    verdict = "unstable" if ttft is None else "meets" if ttft <= inputs.ttft_slo_ms else "misses"
    if service.fits is False:
        verdict = "does_not_fit"
    elif queue.unloaded_ms(level_of(inputs)) > inputs.ttft_slo_ms:
        verdict = "too_slow_unloaded"
    return Alternative(change, queue.service_ms, ttft, None, None, None, VERDICTS[verdict])


def _service(inputs: TtftInputs) -> PrefillTime | str:
    """Return the service time, or why there is none."""
    try:
        return prefill_time(inputs)
    except InputsError as refused:
        return "; ".join(error.sentence for error in refused.errors)


def _changes(inputs: TtftInputs) -> Iterator[tuple[str, TtftInputs]]:
    yield "as it is", inputs
    yield "twice the rate", replace(inputs, rate=2 * inputs.rate)
    if inputs.service_ms is not None:
        yield "half the service time", replace(inputs, service_ms=inputs.service_ms / 2)
        yield "twice the service time", replace(inputs, service_ms=inputs.service_ms * 2)
        return
    for tp in TENSOR_DEGREES:
        if tp != inputs.tp:
            yield f"tensor parallel {tp}", replace(inputs, tp=tp)
    if inputs.weight_dtype != "fp8":
        yield "weights and products in FP8", replace(inputs, weight_dtype="fp8", compute_dtype=None)
    yield "twice the prompt", replace(inputs, prompt_tokens=2 * inputs.prompt_tokens)
    if inputs.prompt_tokens > 1:
        yield "half the prompt", replace(inputs, prompt_tokens=inputs.prompt_tokens // 2)


def _row(change: str, inputs: TtftInputs, service: PrefillTime, ttft_ms: float) -> Alternative:
    target_ttft = None if math.isnan(ttft_ms) else ttft_ms
    max_rate = None if service.fits is False else max_rate_within_target(inputs, service.service_ms)
    instances = None if max_rate is None else instances_for(inputs.rate, max_rate)
    return Alternative(
        change,
        service.service_ms,
        target_ttft,
        max_rate,
        instances,
        None if instances is None else instances * inputs.tp,
        VERDICTS[verdict_of(inputs, service, max_rate, target_ttft, reached=max_rate is not None)],
    )
