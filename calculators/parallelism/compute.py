"""Inputs to result: the mean and the percentiles of TTFT of n accelerators used in three ways, and the crossover.

Lecture 4.2; DistServe, section 3.1, equations 1 to 3. No Streamlit, no Plotly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import hardware_db
from calculators.degrees import PIPELINE_DEGREES, TENSOR_DEGREES, Degree, pipeline_degrees, tensor_degrees
from calculators.inputs import InputError, InputsError, choice, integer, number
from calculators.outputs import output, readable, short
from calculators.parallelism.ways import Way
from calculators.scenario import (
    Assumptions,
    FirstTokenTarget,
    Hardware,
    Interconnect,
    Prompt,
    PromptSpread,
    Simulation,
    Traffic,
    TypedService,
)
from calculators.service_time import PrefillInputs, prefill_time, stage_times_ms
from formulas.parallelism import CHUNKED_MEAN_TTFT, Crossover, stages_crossover, tandem
from formulas.queueing import pollaczek_khinchine as pk

LEVELS: dict[str, float | None] = {"mean": None, "p90": 0.90, "p99": 0.99}
"""The statistics that every way is compared by; ``None`` stands for the mean."""


CHUNKS = 16
"""Chunks in a prompt of mean length, where the prompts are cut into chunks of one size."""


@dataclass(frozen=True, kw_only=True)
class ParallelismInputs(
    Simulation, FirstTokenTarget, Assumptions, Interconnect, Hardware, PromptSpread, Prompt, TypedService, Traffic
):
    """How many accelerators there are, and what is known of the speedup, the stages and the prompts."""

    gpus: int = integer(
        "Accelerators",
        low=2,
        high=64,
        default=2,
        step=1,
        symbol="n",
        help="How many accelerators are to be used as one: in tensor, as a pipeline, or apart.",
    )
    speedup: float | None = number(
        "Tensor speedup",
        low=1,
        high=64,
        default=None,
        step=0.05,
        symbol="K",
        empty="computed",
        help="How many times as fast a prompt is when all accelerators share each layer. Leave it empty to have it "
        "computed.",
    )
    stages: str = choice(
        "Pipeline stages",
        options=("equal", "layers"),
        default="equal",
        help="Equal: each stage takes D/n, DistServe's assumption. Layers: whole layers, lm_head on the last stage, "
        "and the step overhead on every one.",
    )
    hop_us: float = number(
        "Hop between stages",
        unit="µs",
        low=0,
        high=100_000,
        default=0,
        step=10,
        help="What handing the activations from one stage to the next costs.",
    )


@dataclass(frozen=True, kw_only=True)
class SpreadMeans:
    """Mean TTFT where the prompts differ: log-normal service times with the spread given."""

    tp_mean_ttft_ms: float | None = output("Tensor, mean TTFT", "ms", "M/G/1, exact")
    pp_mean_ttft_ms: float | None = output("Pipeline, mean TTFT", "ms", "Exact for two equal stages, else simulate")
    pp_chunked_mean_ttft_ms: float | None = output(
        "Pipeline in chunks, mean TTFT", "ms", "Exact; sixteen chunks in a mean prompt"
    )
    replicas_mean_ttft_ms: float | None = output("Replicas, mean TTFT", "ms", "M/G/1, exact")


@dataclass(frozen=True, kw_only=True)
class ParallelismResult:
    """The answer. A time that does not exist, since the way is unstable at this rate, is ``None``."""

    service_ms: float = output("Service time on one", "ms")
    speedup: float = output("Tensor speedup", "", "Service time on one over that of all in tensor")
    tp_service_ms: float = output("Service time in tensor", "ms")
    tp_mean_ttft_ms: float | None = output("Tensor, mean TTFT", "ms", default=None)
    pp_mean_ttft_ms: float | None = output("Pipeline, mean TTFT", "ms", default=None)
    replicas_mean_ttft_ms: float | None = output("Replicas, mean TTFT", "ms", default=None)
    tp_p90_ttft_ms: float | None = output("Tensor, P90 TTFT", "ms", default=None)
    pp_p90_ttft_ms: float | None = output("Pipeline, P90 TTFT", "ms", default=None)
    replicas_p90_ttft_ms: float | None = output("Replicas, P90 TTFT", "ms", default=None)
    tp_p99_ttft_ms: float | None = output("Tensor, P99 TTFT", "ms", default=None)
    pp_p99_ttft_ms: float | None = output("Pipeline, P99 TTFT", "ms", default=None)
    replicas_p99_ttft_ms: float | None = output("Replicas, P99 TTFT", "ms", default=None)
    crossover_rate: float | None = output("Crossover, by the mean", "requests/s", "Above it the pipeline beats tensor")
    crossover_rate_p90: float | None = output("Crossover, by P90", "requests/s", "Above it the pipeline beats tensor")
    crossover_rate_p99: float | None = output("Crossover, by P99", "requests/s", "Above it the pipeline beats tensor")
    winner: str | None = output("Lowest mean TTFT", "", "tp, pp or replicas, of those that fit and are stable")
    winner_p90: str | None = output("Lowest P90 TTFT")
    winner_p99: str | None = output("Lowest P99 TTFT")
    tp_capacity: float = output("Tensor, capacity", "requests/s")
    pp_capacity: float = output("Pipeline, capacity", "requests/s")
    replicas_capacity: float = output("Replicas, capacity", "requests/s")
    spread: SpreadMeans | None = output("With the spread of the prompts")
    ways: tuple[Way, ...] = output("Ways to use them")
    degrees: tuple[Degree, ...] = output("Degrees")
    crossover_reason: str = output("Crossover")
    warnings: tuple[str, ...] = ()


def compute(inputs: ParallelismInputs) -> ParallelismResult:
    """Return TTFT of the accelerators used in tensor, as a pipeline, and as replicas, and where the first two cross.

    Raises
    ------
    InputsError
        If the accelerator does not have the data type, or not the link that tensor parallelism needs.
    """
    one_ms, remarks = _service_on_one(inputs)
    tensor_ms = one_ms / inputs.speedup if inputs.speedup else _tensor_service_ms(inputs, inputs.gpus)
    tensor, pipeline, replicas = three = _three_ways(inputs, one_ms, tensor_ms)
    times = {
        f"{way.id}_{statistic}_ttft_ms": way.ttft_ms(inputs.rate, level)
        for way in three
        for statistic, level in LEVELS.items()
    }
    spread = _spread(inputs, three) if inputs.prompt_cv else None
    winners = _winners(three, times, spread)
    found = {statistic: _crossover(tensor, pipeline, level) for statistic, level in LEVELS.items()}
    return ParallelismResult(
        service_ms=one_ms,
        speedup=inputs.speedup or one_ms / tensor_ms,
        tp_service_ms=tensor_ms,
        **times,
        crossover_rate=found["mean"].rate,
        crossover_rate_p90=found["p90"].rate,
        crossover_rate_p99=found["p99"].rate,
        crossover_reason=found["mean"].reason,
        winner=winners["mean"],
        winner_p90=winners["p90"],
        winner_p99=winners["p99"],
        tp_capacity=tensor.capacity,
        pp_capacity=pipeline.capacity,
        replicas_capacity=replicas.capacity,
        spread=spread,
        ways=(*three, *_mixed_ways(inputs, one_ms, tensor_ms)),
        degrees=_degrees(inputs),
        warnings=(*remarks, *_warnings(inputs, three)),
    )


def prefill_inputs(inputs: ParallelismInputs, tp: int, **changes: Any) -> PrefillInputs:
    """Return the inputs of a prefill on ``tp`` accelerators in tensor, other things as in ``inputs``."""
    shared = {f.name: getattr(inputs, f.name) for f in fields(PrefillInputs) if f.name != "tp"}
    domain = hardware_db.accelerators()[inputs.accelerator].scale_up_domain
    if domain is not None and tp <= domain < inputs.gpus:
        shared["tp_link"] = None  # the link named is what joins the nodes; a group inside one has its own
    return PrefillInputs(**(shared | changes), tp=tp)


def _service_on_one(inputs: ParallelismInputs) -> tuple[float, tuple[str, ...]]:
    """Return the service time on one accelerator and the remarks on it; what fits is a question to each way."""
    time = prefill_time(prefill_inputs(inputs, 1))
    return time.service_ms, time.remarks


def _tensor_service_ms(inputs: ParallelismInputs, tp: int) -> float:
    """Return the service time in tensor; the speedup is the step-time model's also where D is typed in."""
    try:
        one, several = (prefill_time(prefill_inputs(inputs, degree, service_ms=None)).service_ms for degree in (1, tp))
    except InputsError as refused:
        # The degree is this page's number of accelerators; its sentence says what joins how many.
        named = [InputError("gpus", tp, each.sentence) if each.name == "tp" else each for each in refused.errors]
        raise InputsError(named) from None
    return several if inputs.service_ms is None else inputs.service_ms * several / one


def _three_ways(inputs: ParallelismInputs, one_ms: float, tensor_ms: float) -> tuple[Way, Way, Way]:
    n = inputs.gpus
    return (
        _way(inputs, "tp", n, 1, 1, (tensor_ms,)),
        _way(inputs, "pp", 1, n, 1, _stages(inputs, 1, n, one_ms)),
        _way(inputs, "replicas", 1, 1, n, (one_ms,)),
    )


def _mixed_ways(inputs: ParallelismInputs, one_ms: float, tensor_ms: float) -> list[Way]:
    """Return tensor within stages: every pair of degrees above one whose product is the number of accelerators."""
    n = inputs.gpus
    pairs = [(tp, n // tp) for tp in range(2, n) if n % tp == 0]
    return [
        _way(
            inputs,
            f"tp{tp}pp{pp}",
            tp,
            pp,
            1,
            _stages(inputs, tp, pp, _mixed_service_ms(inputs, tp, one_ms, tensor_ms)),
        )
        for tp, pp in pairs
    ]


def _mixed_service_ms(inputs: ParallelismInputs, tp: int, one_ms: float, tensor_ms: float) -> float:
    """Return the service time of a smaller tensor degree; where K was typed in for all, K to the power ln tp / ln n."""
    if inputs.speedup is None:
        return _tensor_service_ms(inputs, tp)
    return one_ms * float((tensor_ms / one_ms) ** (math.log(tp) / math.log(inputs.gpus)))


def _stages(inputs: ParallelismInputs, tp: int, pp: int, service_ms: float) -> tuple[float, ...]:
    if inputs.stages == "layers" and inputs.service_ms is None:
        return stage_times_ms(prefill_inputs(inputs, tp), pp)
    return (service_ms / pp,) * pp


def _way(inputs: ParallelismInputs, name: str, tp: int, pp: int, replicas: int, times_ms: tuple[float, ...]) -> Way:
    fits: bool | None = None
    obstacles: tuple[str, ...] = ()
    if inputs.service_ms is None:
        tensor, pipeline = tensor_degrees(inputs, [tp])[0], pipeline_degrees(inputs, [pp])[0]
        fits = pipeline_degrees(inputs, [tp * pp])[0].fits
        # Memory is a question to both degrees together, and has its own answer.
        obstacles = tuple(r for each in (tensor, pipeline) for r in each.reasons if not r.endswith("GB"))
    return Way(
        id=name,
        tp=tp,
        pp=pp,
        replicas=replicas,
        stage_times_ms=times_ms,
        hop_ms=inputs.hop_us / 1e3,
        fits=fits,
        obstacles=obstacles,
    )


def _crossover(tensor: Way, pipeline: Way, level: float | None) -> Crossover:
    return _crossover_of(tensor.stage_times_ms[0], pipeline.stage_times_ms, pipeline.hop_ms, level)


@lru_cache(maxsize=1024)  # it does not depend on the rate, which is what a planner moves
def _crossover_of(tensor_ms: float, stages_ms: tuple[float, ...], hop_ms: float, level: float | None) -> Crossover:
    return stages_crossover(tensor_ms / 1e3, [time / 1e3 for time in stages_ms], hop_ms / 1e3, level)


def _winner(ways: tuple[Way, ...], times: dict[str, float | None]) -> str | None:
    """Return the way with the lowest time, of those that are possible and stable."""
    reached = {
        way.id: time
        for way in ways
        if way.fits is not False and not way.obstacles and (time := times[way.id]) is not None
    }
    return min(reached, key=reached.__getitem__, default=None)


def _winners(
    ways: tuple[Way, ...], times: dict[str, float | None], spread: SpreadMeans | None
) -> dict[str, str | None]:
    """Return the winner by each statistic; with spread prompts by the mean alone, and only where all means are known."""
    if spread is None:
        by = {name: {way.id: times[f"{way.id}_{name}_ttft_ms"] for way in ways} for name in LEVELS}
        return {name: _winner(ways, by[name]) for name in LEVELS}
    means = {way.id: getattr(spread, f"{way.id}_mean_ttft_ms") for way in ways}
    known = all(means[way.id] is not None or times[f"{way.id}_mean_ttft_ms"] is None for way in ways)
    return {"mean": _winner(ways, means) if known else None, "p90": None, "p99": None}


def _spread(inputs: ParallelismInputs, ways: tuple[Way, Way, Way]) -> SpreadMeans:
    tensor, pipeline, replicas = ways
    return SpreadMeans(
        tp_mean_ttft_ms=_spread_mean_ms(tensor, inputs),
        pp_mean_ttft_ms=_spread_pipeline_ms(pipeline, inputs),
        pp_chunked_mean_ttft_ms=_chunked_pipeline_ms(pipeline, inputs),
        replicas_mean_ttft_ms=_spread_mean_ms(replicas, inputs),
    )


def _spread_mean_ms(way: Way, inputs: ParallelismInputs) -> float | None:
    if not way.is_stable(inputs.rate):
        return None
    service_s = way.stage_times_ms[0] / 1e3
    wait_s = pk.MEAN_WAIT(
        rate=inputs.rate / way.replicas,
        mean_service=service_s,
        service_second_moment=service_s**2 * (1 + inputs.prompt_cv**2),
    )
    return float(1e3 * (service_s + wait_s))


def _spread_pipeline_ms(way: Way, inputs: ParallelismInputs) -> float | None:
    if not way.is_stable(inputs.rate) or way.pp != 2 or len(set(way.stage_times_ms)) > 1:
        return None
    stage = tandem.Lognormal(way.stage_times_ms[0] / 1e3, inputs.prompt_cv)
    return 1e3 * tandem.tandem_mean_ttft(inputs.rate, stage) + way.hop_ms


def _chunked_pipeline_ms(way: Way, inputs: ParallelismInputs) -> float | None:
    """Return the mean TTFT where prompts are cut into chunks of one size, the last of each filled up."""
    stage_s = max(way.stage_times_ms) / 1e3
    chunk_s = stage_s / CHUNKS
    mean, second = tandem.chunk_moments(tandem.Lognormal(stage_s, inputs.prompt_cv), chunk_s)
    if inputs.rate * chunk_s * mean >= 1:
        return None
    ttft_s = CHUNKED_MEAN_TTFT(
        rate=inputs.rate, chunk_time=chunk_s, mean_chunks=mean, chunks_second_moment=second, stages=way.pp
    )
    return float(1e3 * ttft_s) + (way.pp - 1) * way.hop_ms


def _degrees(inputs: ParallelismInputs) -> tuple[Degree, ...]:
    if inputs.service_ms is not None:
        return ()
    return (
        *tensor_degrees(inputs, sorted({*TENSOR_DEGREES, inputs.gpus})),
        *pipeline_degrees(inputs, sorted({*PIPELINE_DEGREES, inputs.gpus})),
    )


def _warnings(inputs: ParallelismInputs, ways: tuple[Way, ...]) -> tuple[str, ...]:
    names = {"tp": "Tensor parallelism is", "pp": "The pipeline is", "replicas": "Separate replicas are"}
    found = [
        f"{names[way.id]} unstable at {readable(inputs.rate)} requests/s: the capacity is {short(way.capacity)} requests/s."
        for way in ways
        if not way.is_stable(inputs.rate)
    ]
    found += [f"{names[way.id]} impossible: the weights do not fit." for way in ways if way.fits is False]
    found += [f"{names[way.id]} impossible: {'; '.join(way.obstacles)}." for way in ways if way.obstacles]
    if inputs.prompt_cv:
        found.append(
            "The percentiles and the crossovers are those of equal prompts. With spread prompts the later stages of a "
            "pipeline queue too, and its wait is longer than the formula's; the simulation has the percentiles."
        )
    if inputs.service_ms is not None and inputs.speedup is None:
        found.append(
            f"The speedup is computed for {inputs.model} on {inputs.accelerator}; the service time is typed in."
        )
    if inputs.service_ms is not None and inputs.stages == "layers":
        found.append("The service time is typed in, so the stages are taken as equal.")
    return tuple(found)
