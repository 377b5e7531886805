"""The answer in a sentence and four numbers, and what the figures and tables say."""

from __future__ import annotations

from calculators import checks
from calculators.compare.check import CompareCheck
from calculators.compare.compute import CompareResult
from calculators.compare.curves import goodputs
from calculators.compare.inputs import CompareInputs
from calculators.outputs import counted, duration, short

NAMES = {"prefill_first": "prefill first", "chunked": "chunked prefill", "disaggregated": "disaggregated serving"}


def answer(inputs: CompareInputs, result: CompareResult) -> str:
    """Return the answer to the page's question, in Markdown, with its icon in front."""
    fleet = f"On {counted(inputs.fleet_gpus, 'accelerator')}"
    targets = (
        f"{duration(result.used_ttft_slo_ms)} to the first token and {duration(result.used_tpot_slo_ms)} for each next"
    )
    if result.best is None:
        return f":red[:material/block:] {fleet} none of the three ways keeps {targets} at any rate."
    each = goodputs(result)
    others = [f"{short(value)} {NAMES[key]}" for key, value in each.items() if value and key != result.best]
    against = f" against {' and '.join(others)}" if others else "; no other way keeps them at any rate"
    return (
        f":green[:material/compare_arrows:] {fleet} **{NAMES[result.best]}** serves most within {targets}: "
        f"**{short(each[result.best])} requests/s** for each accelerator{against}."
    )


def metrics(result: CompareResult) -> list[tuple[str, str, str]]:
    """Return label, value and explanation of the four numbers under the sentence."""
    budget = "–" if result.chunk_budget is None else f"Best budget {counted(result.chunk_budget, 'token')} a step."
    split = f"{result.prefill_instances} prefill and {counted(result.decode_instances, 'decode instance')}."
    whole = "Whole instances cost something: split in proportion, as in a large pool, the gain is "
    return [
        (
            "Prefill first",
            short(result.prefill_first.goodput_per_gpu, "/s"),
            "Goodput per accelerator; a prompt runs alone.",
        ),
        ("Chunked prefill", short(result.chunked.goodput_per_gpu, "/s"), f"Goodput per accelerator. {budget}"),
        ("Disaggregated", short(result.disaggregated.goodput_per_gpu, "/s"), f"Goodput per accelerator. {split}"),
        (
            "Gain over prefill first",
            "–" if result.gain_over_prefill_first is None else f"{short(result.gain_over_prefill_first)} ×",
            f"{whole}{short(result.ideal_gain_over_prefill_first)}.",
        ),
    ]


def basis(inputs: CompareInputs) -> str:
    """Return in a sentence what the answer rests on, and how far it can be trusted."""
    mixed = (
        "a mixed step loses no efficiency, which is kind to chunks"
        if inputs.mixed_efficiency == 1
        else f"a mixed step reaches {100 * inputs.mixed_efficiency:g} % of the arithmetic rate"
    )
    return (
        "Approximations of each way; requests are spread over the instances at random, and both targets are "
        "taken as met independently. Against the event simulation goodputs were within 4 %, but those of chunks up to 26 % too high where "
        "the TTFT target is hardly more than the prompt's own time. "
        f"Step times by the set *{inputs.assumptions}*: {mixed}. The answer hangs on that: see *Mixed steps*."
    )


def caption(inputs: CompareInputs) -> str:
    """Return for which scenario a figure is, in plain text; of the inputs with a workload put in."""
    chips = f"{inputs.fleet_gpus} × {inputs.accelerator}" + (f", {inputs.tp} an instance" if inputs.tp > 1 else "")
    return (
        f"{inputs.model} on {chips}, {counted(inputs.prompt_tokens, 'token')} in and {inputs.output_tokens:,} out; assumptions: "
        f"{inputs.assumptions}"
    )


def on_tighter(result: CompareResult) -> str:
    """Return how tight both targets can get at the arrival rate, in Markdown."""
    found = [
        f"{NAMES[key]} **{short(scale)}**"
        for key in NAMES
        if (scale := getattr(result, key).tightest_scale) is not None
    ]
    if not found:
        return f"At {short(result.total_rate)} requests/s no way has a steady state."
    return (
        f"At {short(result.total_rate)} requests/s in all, both targets times this are just kept: {', '.join(found)}. Budget and ratio "
        "are chosen again for each factor, among those next to the best: other targets ask for others."
    )


def on_mixed(result: CompareResult) -> str:
    """Return where the answer turns, in Markdown."""
    turn = result.turning_efficiency
    first = (
        "A step with both prompts and sequences shares one reading of the weights, which the step-time model gives to chunks for "
        "nothing. Kernels for mixed batches reach less. "
    )
    if turn is not None:
        return f"{first}Where mixed steps reach less than **{short(turn)}** of the arithmetic rate, disaggregated serving carries more."
    gain = result.gain_over_chunked
    if result.disaggregated.goodput is None:
        return f"{first}Disaggregated serving keeps the targets at no rate here."
    if gain is not None and gain < 1:
        return f"{first}Chunks carry more here however much mixed steps lose."
    return f"{first}Disaggregated serving carries more here even if mixed steps lose nothing."


def on_times(inputs: CompareInputs) -> str:
    """Return how the curves are meant, in Markdown."""
    return (
        f"The times that {100 * inputs.attainment:g} % of the requests do not exceed. A way may keep one target easily and miss the "
        "other: prefill first the tokens', chunks the first token's."
    )


def agreement(check: CompareCheck) -> str:
    """Return in plain words how the simulation was made and what it says of the forms, in Markdown."""
    said = "" if not check.rows else f"{checks.largest_difference(check.rows)} "
    return (
        f"{said}{counted(check.customers, 'request')} on all accelerators at the arrival rate, {check.warm_up:,} of them at either end left out; "
        f"seed {check.seed}; a third as many for each step of the search for the goodput, which is right to about 2 % and what a seed is worth. "
        "As in the forms, a request goes to any instance; the last goodput is with a router that chooses the instance with the fewest "
        "requests, which queues of prompts gain most from. No limit on memory. Intervals of 95 % each, by batch means."
    )
