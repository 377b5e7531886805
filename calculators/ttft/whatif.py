"""What the choices that a planner has would do: more tensor parallelism, FP8, other prompts, more traffic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from calculators.inputs import InputsError
from calculators.outputs import output
from calculators.ttft.compute import TtftInputs, compute

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
    return [_row(change, changed) for change, changed in _changes(inputs)]


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


def _row(change: str, inputs: TtftInputs) -> Alternative:
    try:
        result = compute(inputs)
    except InputsError as refused:
        return Alternative(change, None, None, None, None, None, "; ".join(error.sentence for error in refused.errors))
    verdict = VERDICTS[result.verdict]
    return Alternative(
        change,
        result.service_ms,
        result.target_ttft_ms,
        result.max_rate,
        result.instances,
        result.accelerators,
        verdict,
    )
