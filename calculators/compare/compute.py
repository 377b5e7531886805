"""Inputs to result: three ways to serve on the same accelerators, each at its best.

Lecture 5; DistServe, section 6. No Streamlit, no Plotly.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import hardware_db
from calculators.compare import search
from calculators.compare.inputs import CompareInputs, effective
from calculators.compare.search import Fleet
from calculators.inputs import InputError, InputsError
from calculators.lengths import histogram_remarks
from calculators.outputs import output, readable
from calculators.remarks import hardware_remarks
from calculators.systems import ChunkedPrefill, Disaggregated

WAYS = ("prefill_first", "chunked", "disaggregated")


@dataclass(frozen=True)
class Way:
    """What one way to serve does on all accelerators. A figure that does not exist is ``None``."""

    goodput_per_gpu: float | None = output("goodput per accelerator", "requests/s", "Of both targets; None if no rate")
    goodput: float | None = output("goodput of all", "requests/s")
    mean_ttft_ms: float | None = output("mean TTFT", "ms")
    p50_ttft_ms: float | None = output("P50 TTFT", "ms")
    p90_ttft_ms: float | None = output("P90 TTFT", "ms")
    p99_ttft_ms: float | None = output("P99 TTFT", "ms")
    mean_tpot_ms: float | None = output("mean TPOT", "ms")
    p50_tpot_ms: float | None = output("P50 TPOT", "ms")
    p90_tpot_ms: float | None = output("P90 TPOT", "ms")
    p99_tpot_ms: float | None = output("P99 TPOT", "ms")
    attainment: float | None = output("attainment", "", "Share of requests within both targets at the arrival rate")
    tightest_scale: float | None = output("tightest scale", "", "Factor of both targets kept at the arrival rate")


@dataclass(frozen=True, kw_only=True)
class CompareResult:
    """The answer."""

    instances: int = output("Instances", "", "That the accelerators make up")
    total_rate: float = output("Rate of all", "requests/s", "The arrival rate at one instance, times the instances")
    prefill_first: Way = output("Prefill first", prefix="prefill_first_")
    chunked: Way = output("Chunked prefill", prefix="chunked_")
    disaggregated: Way = output("Disaggregated", prefix="disaggregated_")
    best: str | None = output("Most requests per accelerator", "", "prefill_first, chunked or disaggregated")
    chunk_budget: int | None = output("Best budget of chunks", "tokens")
    prefill_instances: int | None = output("Best split: prefill instances")
    decode_instances: int | None = output("Best split: decode instances")
    gain_over_prefill_first: float | None = output("Disaggregated over prefill first")
    gain_over_chunked: float | None = output("Disaggregated over chunked")
    turning_efficiency: float | None = output(
        "Efficiency of mixed steps at which disaggregated overtakes chunked", "", "None if it does at all, or at none"
    )
    ideal_gain_over_prefill_first: float | None = output("The same, split in proportion", "", "As in a large pool")
    used_prompt_tokens: int = output("Prompt", "tokens")
    used_output_tokens: int = output("Output", "tokens")
    used_ttft_slo_ms: float = output("TTFT target", "ms")
    used_tpot_slo_ms: float = output("TPOT target", "ms")
    remarks: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should know before using the figures."""
        return self.remarks


def fleets_of(inputs: CompareInputs) -> dict[str, Fleet]:
    """Return each way at its best on all accelerators; one that keeps the targets at no rate with a budget or ratio at hand.

    Without room for two instances there is no disaggregated one.
    """
    budget = search.best_budget(inputs) or 512
    found = [search.prefill_first(inputs), search.chunked(inputs, budget)]
    if search.instances_of(inputs) >= 2:
        found.append(search.split(inputs, search.best_prefills(inputs) or search.instances_of(inputs) // 2))
    return {fleet.key: fleet for fleet in found}


def compute(inputs: CompareInputs) -> CompareResult:
    """Return what each way does on the same accelerators.

    Raises
    ------
    InputsError
        If there are fewer accelerators than one instance takes, or the accelerator lacks the data type or the link.
    """
    used = effective(inputs)
    if used.fleet_gpus < used.tp:
        raise InputsError(
            [InputError("fleet_gpus", used.fleet_gpus, f"one instance takes {used.tp}; use as many or more")]
        )
    serves = search.prefill_first(used).system.pool.serves
    fleets = fleets_of(used) if serves else {}
    rate = used.rate * search.instances_of(used)
    ways: dict[str, Any] = {key: _way(used, fleets.get(key), rate) for key in WAYS}
    each: dict[str, float] = {key: way.goodput_per_gpu for key, way in ways.items() if way.goodput_per_gpu}
    first, chunks, apart = (each.get(key) for key in WAYS)
    return CompareResult(
        instances=search.instances_of(used),
        total_rate=rate,
        **ways,
        best=max(each, key=lambda key: each[key]) if each else None,
        **_choices(fleets, each),
        gain_over_prefill_first=apart / first if apart and first else None,
        gain_over_chunked=apart / chunks if apart and chunks else None,
        turning_efficiency=_turning(used, fleets, ways["disaggregated"].goodput if chunks else None),
        ideal_gain_over_prefill_first=_ideal_gain(used, first) if serves else None,
        used_prompt_tokens=used.prompt_tokens,
        used_output_tokens=used.output_tokens,
        used_ttft_slo_ms=used.ttft_slo_ms,
        used_tpot_slo_ms=used.tpot_slo_ms,
        remarks=(
            *_remarks(inputs, used, fleets),
            *histogram_remarks(used),
            *hardware_remarks(used, used.prompt_tokens + used.output_tokens),
        ),
    )


def _way(inputs: CompareInputs, fleet: Fleet | None, rate: float) -> Way:
    """Return a way's goodput, and its figures at the rate."""
    nothing: dict[str, Any] = dict.fromkeys(each.name for each in fields(Way))
    if fleet is None:
        return Way(**nothing)
    goodput = fleet.goodput(search.targets_of(inputs))
    found = nothing | {"goodput": goodput, "goodput_per_gpu": None if goodput is None else goodput / fleet.gpus}
    found["tightest_scale"] = search.tightest_scale(alternatives(inputs, fleet), rate, inputs)
    times = fleet.system.at(rate / fleet.units)
    if times is None:
        return Way(**found)
    for what, mean, quantiles in (
        ("ttft", times.mean_ttft_s, times.ttft_quantile_s([0.5, 0.9, 0.99])),
        ("tpot", times.mean_tpot_s, times.tpot_quantile_s([0.5, 0.9, 0.99])),
    ):
        found[f"mean_{what}_ms"] = 1e3 * mean
        found |= {f"p{p}_{what}_ms": 1e3 * float(x) for p, x in zip((50, 90, 99), quantiles, strict=True)}
    return Way(**found | {"attainment": times.attainment(inputs)})


def alternatives(inputs: CompareInputs, fleet: Fleet) -> list[Fleet]:
    """Return a way with the budgets or ratios next to its best: other targets may ask for another."""
    match fleet.system:
        case ChunkedPrefill():
            return [search.chunked(inputs, budget) for budget in search.near(fleet.system.budget)]
        case Disaggregated():
            middle = round(fleet.system.prefill_instances)
            some = {middle, *search.near_split(inputs)}
            return [search.split(inputs, each) for each in sorted(some) if 0 < each < search.instances_of(inputs)]
        case _:
            return [fleet]


def _choices(fleets: dict[str, Fleet], each: dict[str, float]) -> dict[str, Any]:
    """Return the budget and the ratio of the ways that keep the targets at some rate."""
    chunks, apart = (fleets[key].system if key in each else None for key in ("chunked", "disaggregated"))
    return {
        "chunk_budget": chunks.budget if isinstance(chunks, ChunkedPrefill) else None,
        "prefill_instances": round(apart.prefill_instances) if isinstance(apart, Disaggregated) else None,
        "decode_instances": round(apart.decode_instances) if isinstance(apart, Disaggregated) else None,
    }


def _turning(inputs: CompareInputs, fleets: dict[str, Fleet], rate: float | None) -> float | None:
    chunks = fleets.get("chunked")
    if rate is None or chunks is None or not isinstance(chunks.system, ChunkedPrefill):
        return None
    return search.turning_efficiency(inputs, chunks.system.budget, rate)


def _ideal_gain(inputs: CompareInputs, first: float | None) -> float | None:
    """Return the gain of parts of a large pool, split in proportion, over prefill first."""
    targets = search.targets_of(inputs)
    fair = Disaggregated(search.shared_of(inputs)).in_proportion(targets)
    rate = None if fair is None else fair.goodput(targets)
    if rate is None or fair is None or first is None:
        return None
    whole = inputs.fleet_gpus / (
        search.instances_of(inputs) * inputs.tp
    )  # accelerators that stand idle do not count here
    return rate / fair.accelerators / (first * whole)


def _remarks(inputs: CompareInputs, used: CompareInputs, fleets: dict[str, Fleet]) -> tuple[str, ...]:
    said = []
    pool = search.prefill_first(used).system.pool
    if not pool.slots:
        said.append(
            f"Does not fit: {used.tp} × {used.accelerator} has no room for {used.model} in {used.weight_dtype}, the reserve and "
            "one request. Nothing is served."
        )
    elif pool.steps == 0:
        said.append("A single output token comes with the prefill: there is nothing to decode, and nothing to compare.")
    elif "disaggregated" not in fleets:
        said.append(
            f"{used.fleet_gpus} accelerators make up one instance of {used.tp}: too few to take the phases apart."
        )
    idle = used.fleet_gpus % used.tp
    if idle:
        said.append(f"{idle} of the {used.fleet_gpus} accelerators make up no whole instance and stand idle.")
    if inputs.workload is not None:
        said += _workload_remarks(inputs, used)
    return tuple(said)


def _workload_remarks(inputs: CompareInputs, used: CompareInputs) -> list[str]:
    record = hardware_db.workloads()[str(inputs.workload)]
    said = []
    if record.slo_for(used.model) is None:
        said.append(
            f"The source of this workload sets no targets for {used.model}: the scenario's own are used, "
            f"{readable(used.ttft_slo_ms)} and {readable(used.tpot_slo_ms)} ms."
        )
    return said
