"""The answer in a sentence and four numbers, and what the figures and tables say."""

from __future__ import annotations

from calculators import checks
from calculators.outputs import counted, readable, short
from calculators.parallelism.check import ParallelismCheck
from calculators.parallelism.compute import LEVELS, ParallelismInputs, ParallelismResult

NAMES = {"tp": "tensor parallel", "pp": "the pipeline", "replicas": "separate replicas"}


def statistic(inputs: ParallelismInputs) -> str:
    """Return which of mean, P90 and P99 the answer is given by: the one nearest to what the target is set on.

    With spread prompts it is the mean, which is known exactly; percentiles are not.
    """
    if inputs.slo_statistic == "mean" or inputs.prompt_cv:
        return "mean"
    return "p99" if inputs.percentile >= 95 else "p90"


def said(name: str) -> str:
    """Return a statistic as it stands in a sentence: ``mean TTFT``, ``P99 TTFT``."""
    return "mean TTFT" if name == "mean" else f"{name.upper()} TTFT"


def times(result: ParallelismResult, by: str) -> dict[str, float | None]:
    """Return the time [ms] of each way that the answer compares: with spread prompts, their own means."""
    source = result if result.spread is None else result.spread
    return {way: getattr(source, f"{way}_{by}_ttft_ms") for way in NAMES}


def answer(inputs: ParallelismInputs, result: ParallelismResult) -> str:
    """Return the answer to the page's question, in Markdown, with an icon in front."""
    by = statistic(inputs)
    best = winner(result, by)
    if best is None:
        return _no_answer(inputs, result)
    found = times(result, by)
    others = [f"{short(found[way], 'ms')} as {NAMES[way]}" for way in NAMES if way != best and found[way] is not None]
    against = f", against {' and '.join(others)}" if others else ""
    spread = f" with a spread of {inputs.prompt_cv:g}" if inputs.prompt_cv else ""
    return (
        f":green[:material/check_circle:] At {readable(inputs.rate)} requests/s{spread}, use {counted(inputs.gpus, 'accelerator')} "
        f"as **{NAMES[best]}**: {said(by)} **{short(found[best], 'ms')}**{against}."
    )


def _no_answer(inputs: ParallelismInputs, result: ParallelismResult) -> str:
    ways = [way for way in result.ways if way.id in NAMES]
    possible = [way for way in ways if way.fits is not False and not way.obstacles]
    if not possible:
        return (
            f":red[:material/block:] {inputs.model} does not run on {inputs.gpus} × {inputs.accelerator} in tensor, as a "
            "pipeline or as replicas; the reasons stand below."
        )
    if any(way.is_stable(inputs.rate) for way in possible):
        return (
            ":orange[:material/help:] With spread prompts there is no closed form for a pipeline of more than two equal "
            "stages: *Check by simulation* compares the ways."
        )
    top = max(way.capacity for way in possible)
    return (
        f":red[:material/trending_up:] {counted(inputs.gpus, 'accelerator')} cannot keep up with {readable(inputs.rate)} requests/s: "
        f"the largest capacity is {short(top)} requests/s."
    )


def winner(result: ParallelismResult, by: str) -> str | None:
    """Return the way with the lowest mean, P90 or P99."""
    return result.winner if by == "mean" else getattr(result, f"winner_{by}")


def metrics(inputs: ParallelismInputs, result: ParallelismResult) -> list[tuple[str, str, str]]:
    """Return label, value and explanation of the four numbers under the sentence."""
    by = statistic(inputs)
    crossings = {"mean": result.crossover_rate, "p90": result.crossover_rate_p90, "p99": result.crossover_rate_p99}
    crossing = crossings[by]
    return [
        (
            "Tensor speedup",
            f"{short(result.speedup)}",
            f"One prompt takes {short(result.service_ms, 'ms')} on one accelerator and {short(result.tp_service_ms, 'ms')} on all.",
        ),
        (
            f"Crossover by {by if by == 'mean' else by.upper()}",
            f"{short(crossing)} /s" if crossing else "–",
            result.crossover_reason
            if crossing is None
            else "Of the two: above this rate the pipeline is sooner, below it tensor.",
        ),
        ("Tensor capacity", f"{short(result.tp_capacity)} /s", "Requests per second that are never reached: K / D."),
        ("Pipeline capacity", f"{short(result.pp_capacity)} /s", "One prompt per time of the slowest stage."),
    ]


def caption(inputs: ParallelismInputs, result: ParallelismResult) -> str:
    """Return for which scenario a figure is, in plain text."""
    times = f"D = {short(result.service_ms, 'ms')}, K = {short(result.speedup)}, n = {inputs.gpus}; equal prompts"
    if inputs.service_ms is not None:
        return times
    return f"{inputs.model} on {inputs.accelerator}, prompts of {counted(inputs.prompt_tokens, 'token')}; {times}"


def on_crossover(result: ParallelismResult) -> str:
    """Return how the crossover depends on the statistic, in Markdown."""
    rates = [result.crossover_rate, result.crossover_rate_p90, result.crossover_rate_p99]
    if None in rates:
        return result.crossover_reason
    mean, p90, p99 = (f"{short(rate)}" for rate in rates)
    return (
        f"The pipeline overtakes tensor parallelism at **{mean}** requests/s by the mean, **{p90}** by P90 and "
        f"**{p99}** by P99. A target on a percentile should be compared by that percentile."
    )


def on_spread(inputs: ParallelismInputs, result: ParallelismResult) -> str:
    """Return what the spread of the prompts does to the means, in Markdown."""
    spread = result.spread
    if spread is None:
        return (
            "All prompts are taken as equal. With spread prompts a pipeline queues at every stage; set *Spread of "
            "prompt lengths* (sidebar, *This page*) to see by how much."
        )
    parts = [
        f"{NAMES[way]} {short(value, 'ms')} (equal prompts: {short(getattr(result, f'{way}_mean_ttft_ms'), 'ms')})"
        for way in ("tp", "pp", "replicas")
        if (value := getattr(spread, f"{way}_mean_ttft_ms")) is not None
    ]
    if not parts:
        return "No way keeps up with this rate, so there are no means to compare."
    missing = spread.pp_mean_ttft_ms is None and result.pp_mean_ttft_ms is not None
    more = " For this pipeline there is no closed form: the simulation has it." if missing else ""
    chunked = spread.pp_chunked_mean_ttft_ms
    if chunked is not None:
        more += (
            f" Cut into chunks of a sixteenth of a mean prompt, the last one filled up, the pipeline's mean is {short(chunked, 'ms')}: every stage "
            "then works on jobs of one size, as the simple formula asks, and one prompt's chunks are in several stages at "
            "once."
        )
    return (
        f"With log-normal service times of coefficient of variation {inputs.prompt_cv:g}, the exact means are "
        f"{'; '.join(parts)}.{more}"
    )


def agreement(check: ParallelismCheck) -> str:
    """Return in plain words whether the simulation supports the formulas, in Markdown."""
    method = checks.method(check.customers, check.warm_up, check.seed, max(len(check.rows), 1))
    return f"{checks.verdict(check.rows) if check.rows else ''} {method}"


def comparison(result: ParallelismResult) -> dict[str, list[object]]:
    """Return the three ways side by side, by column title."""
    ways = ("tp", "pp", "replicas")
    columns: dict[str, list[object]] = {"Way": [NAMES[way] for way in ways]}
    for name in LEVELS:
        columns[f"{said(name)} (ms)"] = [getattr(result, f"{way}_{name}_ttft_ms") for way in ways]
    return columns | {"Capacity (requests/s)": [getattr(result, f"{way}_capacity") for way in ways]}


def mixed(inputs: ParallelismInputs, result: ParallelismResult) -> dict[str, list[object]]:
    """Return every split of the accelerators into tensor degree, stages and replicas, by column title."""
    ways = result.ways
    return {
        "Tensor": [way.tp for way in ways],
        "Stages": [way.pp for way in ways],
        "Replicas": [way.replicas for way in ways],
        "Weights fit": [way.fits for way in ways],
        "Unloaded TTFT (ms)": [way.unloaded_ms for way in ways],
        **{f"{said(name)} (ms)": [way.ttft_ms(inputs.rate, level) for way in ways] for name, level in LEVELS.items()},
        "Capacity (requests/s)": [way.capacity for way in ways],
    }


def degrees(result: ParallelismResult) -> dict[str, list[object]]:
    """Return the degrees with what speaks against each, by column title."""
    rows = result.degrees
    return {
        "Way": [row.way for row in rows],
        "Degree": [row.degree for row in rows],
        "Allowed": [row.allowed for row in rows],
        "Why not": ["; ".join(row.reasons) for row in rows],
        "Notes": ["; ".join(row.notes) for row in rows],
    }
