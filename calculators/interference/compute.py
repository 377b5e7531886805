"""Inputs to result: one step with a prompt in it, and three ways to serve at the same rate.

Lecture 2 and 3; DistServe, section 2.3. No Streamlit, no Plotly.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from calculators.decode_pool import Pool
from calculators.decode_step import step_of
from calculators.inputs import integer, part_of
from calculators.interference.mixed import free_prompt_tokens
from calculators.lengths import histogram_remarks
from calculators.outputs import counted, output, readable
from calculators.remarks import hardware_remarks
from calculators.scenario import Batch, ServiceLevels, Simulation, Traffic
from calculators.step_load import StepContents
from calculators.systems import ChunkedPrefill, Disaggregated, PrefillFirst, ServingInputs, System
from formulas import interference as forms

LEVELS = {"p90": 0.9, "p99": 0.99}
"""The percentiles of every way to serve, by the beginning of their key."""

CROWDED = 0.8
"""Share of the slots from which the mean batch is too large for forms that do not know of memory."""


@dataclass(frozen=True, kw_only=True)
class InterferenceInputs(Simulation, ServiceLevels, ServingInputs, Batch, Traffic):
    """A step with a prompt in it, and the traffic that brings the prompts."""

    chunk_tokens: int = integer(
        "Token budget of a step",
        unit="tokens",
        low=1,
        high=1_000_000,
        default=512,
        step=128,
        help="For chunked prefill: most tokens of a step, decoding sequences and prompts together.",
    )


@dataclass(frozen=True)
class Served:
    """What one way to serve does at the arrival rate. A time that does not exist is ``None``."""

    mean_ttft_ms: float | None = output("mean TTFT", "ms")
    p90_ttft_ms: float | None = output("P90 TTFT", "ms")
    p99_ttft_ms: float | None = output("P99 TTFT", "ms")
    mean_tpot_ms: float | None = output("mean TPOT", "ms")
    p90_tpot_ms: float | None = output("P90 TPOT", "ms")
    p99_tpot_ms: float | None = output("P99 TPOT", "ms")
    own_ttft_ms: float | None = output("TTFT at the attainment asked for", "ms")
    own_tpot_ms: float | None = output("TPOT at the attainment asked for", "ms")
    attainment: float | None = output("attainment", "", "Share of the requests that meet both targets")
    goodput: float | None = output("highest rate in target", "requests/s", "None if no rate meets the targets")
    goodput_per_accelerator: float | None = output(
        "highest rate per accelerator", "requests/s", "Disaggregated: the two sides split in proportion"
    )


@dataclass(frozen=True, kw_only=True)
class InterferenceResult:
    """The answer."""

    decode_step_ms: float = output("Step without a prompt", "ms")
    mixed_step_ms: float = output("Step with the prompt in it", "ms")
    slowdown: float = output("Slowdown")
    late_ms: float = output("Each token of the step is late by", "ms")
    free_prompt_tokens: float = output(
        "Prompt that rides for free", "tokens", "Its arithmetic hides behind the reading"
    )
    prefill_ms: float = output("Prefill alone", "ms")
    prefill_first: Served = output("Prefill first", prefix="prefill_first_")
    chunked: Served = output("Chunked prefill", prefix="chunked_")
    disaggregated: Served = output("Disaggregated", prefix="disaggregated_")
    best: str | None = output("Most requests per accelerator", "", "prefill_first, chunked or disaggregated")
    chunk_steps: int | None = output("Steps of a prompt in chunks", "", "If no other waits")
    chunk_ttft_steps: float | None = output("Mean steps to the first token in chunks")
    reread_tokens: float | None = output("Prompt tokens read again by later chunks", "tokens")
    transfer_ms: float | None = output(
        "Mean transfer of a cache", "ms", "Disaggregated, over the link between the pools"
    )
    prefill_share: float | None = output("Share of prefill instances, in proportion")
    remarks: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should know before using the figures."""
        return self.remarks


def systems_of(inputs: InterferenceInputs) -> tuple[PrefillFirst, ChunkedPrefill, Disaggregated]:
    """Return the three ways to serve, one instance each, or one of each kind."""
    shared = part_of(ServingInputs, inputs)
    return PrefillFirst(shared), ChunkedPrefill(shared, inputs.chunk_tokens), Disaggregated(shared)


def context_of(inputs: InterferenceInputs, pool: Pool) -> float:
    """Return the context of the sequences in the step that is looked at: typed in, or the mean under load."""
    return pool.context_tokens if inputs.context_tokens is None else float(inputs.context_tokens)


def compute(inputs: InterferenceInputs) -> InterferenceResult:
    """Return what a prompt does to a step, and what each way to serve does at the arrival rate.

    Raises
    ------
    InputsError
        If the accelerator does not have the data type, or not the link that tensor parallelism needs.
    """
    first, chunked, apart = systems_of(inputs)
    context = context_of(inputs, first.pool)
    sequences = {"sequences": inputs.batch, "context_tokens": context}
    plain = step_of(inputs, StepContents(**sequences)).step_ms
    prompt = {"prompt_tokens": inputs.prompt_tokens, "cached_tokens": inputs.cached_tokens}
    mixed = step_of(inputs, StepContents(**prompt, **sequences)).step_ms
    served: dict[str, Any] = {system.key: _served(inputs, system) for system in (first, chunked, apart)}
    rated = {key: each.goodput_per_accelerator for key, each in served.items() if each.goodput_per_accelerator}
    return InterferenceResult(
        decode_step_ms=plain,
        mixed_step_ms=mixed,
        slowdown=forms.SLOWDOWN(mixed_step_s=mixed, decode_step_s=plain),
        late_ms=mixed - plain,
        free_prompt_tokens=free_prompt_tokens(inputs, inputs.batch, context),
        prefill_ms=1e3 * first.prefill_s,
        **served,
        best=max(rated, key=lambda key: rated[key]) if rated else None,
        **_in_chunks(inputs, chunked),
        **_apart(inputs, apart),
        remarks=(
            *_remarks(inputs, first, chunked),
            *histogram_remarks(inputs),
            *hardware_remarks(inputs, first.pool.context_tokens + inputs.output_tokens),
        ),
    )


def _served(inputs: InterferenceInputs, system: System) -> Served:
    """Return a system's figures at the arrival rate, and its goodput."""
    goodput = per_accelerator = None
    if system.pool.serves:
        goodput = system.goodput(inputs)
        balanced = system.in_proportion(inputs) if isinstance(system, Disaggregated) else system
        rate = None if balanced is None else balanced.goodput(inputs)
        per_accelerator = None if rate is None or balanced is None else rate / balanced.accelerators
    times = system.at(inputs.rate) if system.pool.serves else None
    if times is None:
        nothing: dict[str, Any] = dict.fromkeys(each.name for each in fields(Served))
        return Served(**nothing | {"goodput": goodput, "goodput_per_accelerator": per_accelerator})
    levels = list(LEVELS.values())
    (p90_ttft, p99_ttft), (p90_tpot, p99_tpot) = times.ttft_quantile_s(levels), times.tpot_quantile_s(levels)
    return Served(
        mean_ttft_ms=1e3 * times.mean_ttft_s,
        p90_ttft_ms=1e3 * float(p90_ttft),
        p99_ttft_ms=1e3 * float(p99_ttft),
        mean_tpot_ms=1e3 * times.mean_tpot_s,
        p90_tpot_ms=1e3 * float(p90_tpot),
        p99_tpot_ms=1e3 * float(p99_tpot),
        own_ttft_ms=1e3 * float(times.ttft_quantile_s(inputs.attainment)),
        own_tpot_ms=1e3 * float(times.tpot_quantile_s(inputs.attainment)),
        attainment=times.attainment(inputs),
        goodput=goodput,
        goodput_per_accelerator=per_accelerator,
    )


def _in_chunks(inputs: InterferenceInputs, system: ChunkedPrefill) -> dict[str, Any]:
    """Return what cutting the prompts costs: steps, and the cache that later chunks read again."""
    times = system.at(inputs.rate) if system.pool.serves else None
    law = getattr(times, "law", None)
    if law is None:
        return dict.fromkeys(("chunk_steps", "chunk_ttft_steps", "reread_tokens"))
    return {
        "chunk_steps": law.prompt_steps,
        "chunk_ttft_steps": law.ttft_steps,
        # Each chunk but the last fills what the sequences leave of the budget.
        "reread_tokens": (inputs.chunk_tokens - law.steps.batch) * law.prompt_steps * (law.prompt_steps - 1) / 2,
    }


def _apart(inputs: InterferenceInputs, system: Disaggregated) -> dict[str, Any]:
    """Return what taking the phases apart costs and how they split."""
    balanced = system.in_proportion(inputs) if system.pool.serves else None
    return {
        "transfer_ms": system.hand_off(inputs.rate).mean_ms,
        "prefill_share": None if balanced is None else balanced.prefill_instances * inputs.tp,
    }


def _remarks(inputs: InterferenceInputs, system: PrefillFirst, chunked: ChunkedPrefill) -> tuple[str, ...]:
    found = []
    pool = system.pool
    if not pool.slots:
        found.append(
            f"Does not fit: {inputs.tp} × {inputs.accelerator} has no room for {inputs.model} in {inputs.weight_dtype}, the "
            "reserve and one request. One step is shown as if it did; the ways to serve are not."
        )
    if pool.steps == 0:
        found.append(
            "A single output token comes with the prefill: there is nothing to decode, and nothing to interrupt."
        )
    times = system.at(inputs.rate) if pool.serves else None
    if times is not None and pool.slots is not None and times.mean_batch > CROWDED * pool.slots:
        found.append(
            f"Prefill first has {counted(times.mean_batch, 'sequence')} at once on average, and memory holds {pool.slots:,}: the "
            "forms of colocated serving leave out that some prompts wait for room."
        )
    unstable = [system.name.lower() for system in systems_of(inputs) if pool.serves and system.at(inputs.rate) is None]
    if unstable:
        found.append(
            f"Unstable: at {readable(inputs.rate)} requests/s on one instance there is no steady state for {', '.join(unstable)}."
        )
    if pool.serves and chunked.at(inputs.rate) is None and inputs.rate < chunked.bound:
        found.append(
            f"Starved: at {readable(inputs.rate)} requests/s the decoding sequences leave too little of the budget of "
            f"{counted(inputs.chunk_tokens, 'token')} for prompts to keep up. A larger budget does."
        )
    if inputs.output_cv > 0 and pool.serves:
        found.append(
            "Output lengths that spread: of the colocated ways the forms know the mean length alone. With geometric lengths the "
            "mean TPOT over requests is 1 to 5 % above them, and P90 3 to 9 %."
        )
    return tuple(found)
