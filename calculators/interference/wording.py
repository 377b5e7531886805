"""The answer in a sentence and four numbers, and what the figures and tables say."""

from __future__ import annotations

import math

from calculators import checks
from calculators.interference.check import InterferenceCheck
from calculators.interference.compute import InterferenceInputs, InterferenceResult
from calculators.interference.curves import Overtaking
from calculators.interference.example import AGENTS, QUERY, STATED
from calculators.interference.figures import level_of
from calculators.outputs import counted, duration, readable, short

NAMES = {"prefill_first": "prefill first", "chunked": "chunked prefill", "disaggregated": "disaggregated serving"}


def answer(inputs: InterferenceInputs, result: InterferenceResult) -> str:
    """Return the answer to the page's question, in Markdown, with its icon in front."""
    step = (
        f"A prompt of {counted(inputs.prompt_tokens, 'token')} in a step of {counted(inputs.batch, 'sequence')} makes it "
        f"**{short(result.slowdown)} times** as long: each of their tokens comes {short(result.late_ms, 'ms')} later."
    )
    if result.slowdown < 1.005:
        step = f"A prompt of {counted(inputs.prompt_tokens, 'token')} in a step of {counted(inputs.batch, 'sequence')} **rides for free**."
    if result.best is None:
        return f":red[:material/block:] {step} {_nothing(inputs, result)}"
    best = getattr(result, result.best)
    others = [
        f"{short(each.goodput_per_accelerator)} {NAMES[key]}"
        for key in NAMES
        if key != result.best and (each := getattr(result, key)).goodput_per_accelerator
    ]
    rest = f" against {' and '.join(others)}" if others else ""
    return (
        f":green[:material/call_split:] {step} Within both targets **{NAMES[result.best]}** serves most: "
        f"**{short(best.goodput_per_accelerator)} requests/s** for each accelerator{rest}. {_at_the_rate(inputs, result)}"
    )


def _nothing(inputs: InterferenceInputs, result: InterferenceResult) -> str:
    """Return why none of the ways serves."""
    if inputs.output_tokens == 1:
        return "A single output token comes with the prefill: there is nothing to decode."
    if any(sentence.startswith("Does not fit") for sentence in result.warnings):
        return f"{inputs.model} does not fit in the memory of {inputs.tp} × {inputs.accelerator}, so that nothing is served."
    return (
        f"At no rate are {duration(inputs.ttft_slo_ms)} to the first token and {duration(inputs.tpot_slo_ms)} for each next "
        "one met by any of the three ways to serve."
    )


def _at_the_rate(inputs: InterferenceInputs, result: InterferenceResult) -> str:
    """Return the attainment of each way at the arrival rate on one instance."""
    said = [
        f"{NAMES[key]} {'is unstable' if (share := getattr(result, key).attainment) is None else f'{short(100 * share)} %'}"
        for key in NAMES
    ]
    return f"At {readable(inputs.rate)} requests/s on one instance both are met by: {', '.join(said)}."


def metrics(inputs: InterferenceInputs, result: InterferenceResult) -> list[tuple[str, str, str]]:
    """Return label, value and explanation of the four numbers under the sentence."""
    level = level_of(inputs)
    found = [
        (
            f"{level} TPOT, {name}",
            short(getattr(result, key).own_tpot_ms, "ms"),
            f"At {readable(inputs.rate)} requests/s on one instance{' of each kind' * (key == 'disaggregated')}. {meaning}",
        )
        for key, name, meaning in (
            ("prefill_first", "prefill first", "A prompt runs alone, before any decode step."),
            ("chunked", "chunked", "Each step takes all sequences, and prompts up to the budget."),
            ("disaggregated", "disaggregated", "Prompts and tokens on instances of their own; the transfer is in it."),
        )
    ]
    return [
        *found,
        (
            "Rides for free",
            counted(math.floor(result.free_prompt_tokens), "token"),
            "The longest prompt that makes the step no longer.",
        ),
    ]


def basis(inputs: InterferenceInputs) -> str:
    """Return in a sentence what the answer rests on, and how far it can be trusted."""
    return (
        "Approximations, held against the event simulation. For prompts and outputs of one length, up to half of the prompts' "
        "capacity: prefill first within 1 % for means and 2 % for P90, chunked within 3 % for means and 8 % for P90, disaggregated "
        "within 1 %; for lengths that spread and for bursts see docs/accuracy.md. Near saturation prefill first is up to 10 % too high. Outputs of a few tokens put all up to 7 % off, prompts of "
        "many thousand tokens and busy links tens of percent: check by simulation. Targets are taken as met independently. "
        "Disaggregated has one instance of each kind, so twice the accelerators: *Same accelerators* compares like with like. "
        f"Step times by the set *{inputs.assumptions}*, in which a mixed step loses no efficiency."
    )


def caption(inputs: InterferenceInputs) -> str:
    """Return for which scenario a figure is, in plain text."""
    chips = f"{inputs.tp} × {inputs.accelerator}" if inputs.tp > 1 else inputs.accelerator
    return (
        f"{inputs.model} on {chips}, {counted(inputs.prompt_tokens, 'token')} in and {inputs.output_tokens:,} out, budget "
        f"{inputs.chunk_tokens:,}; assumptions: {inputs.assumptions}"
    )


def on_one_step(inputs: InterferenceInputs, result: InterferenceResult, context: float) -> str:
    """Return whose tokens are late and by how much, in Markdown."""
    if result.late_ms <= 0:
        late = "Not one of them is late."
    else:
        late = (
            f"All **{inputs.batch:,}** tokens of the step come **{short(result.late_ms, 'ms')}** later: "
            f"{short(inputs.batch * result.late_ms, 'ms')} of waiting together, for one prompt. Alone it would take "
            f"{short(result.prefill_ms, 'ms')}, and the sequences would wait for all of that and then for their own step."
        )
    return (
        f"A step of {counted(inputs.batch, 'sequence')} at a context of {counted(context, 'token')} takes "
        f"{short(result.decode_step_ms, 'ms')}, with the prompt in it {short(result.mixed_step_ms, 'ms')}. {late} "
        f"A prompt of up to **{counted(math.floor(result.free_prompt_tokens), 'token')}** makes the step no longer: its arithmetic "
        "hides behind what the step reads."
    )


def on_chunks(inputs: InterferenceInputs, result: InterferenceResult) -> str:
    """Return what cutting prompts costs, in Markdown."""
    if result.chunk_steps is None:
        return "Chunked prefill has no steady state at this rate with this budget."
    return (
        f"With a budget of {counted(inputs.chunk_tokens, 'token')} a prompt takes **{counted(result.chunk_steps, 'step')}** if no other waits, and "
        f"{short(result.chunk_ttft_steps)} on average. Later chunks read the cache of the earlier ones again: "
        f"**{counted(result.reread_tokens, 'token')}** a prompt, which grows with the square of their number. Where the "
        "decoding sequences fill the budget, prompts starve."
    )


def on_the_same_accelerators(result: InterferenceResult, found: list[Overtaking]) -> str:
    """Return how the three ways are compared on the same hardware, in Markdown."""
    split = "" if result.prefill_share is None else f" ({100 * result.prefill_share:.3g} % of them for prefill)"
    crossings = (
        "No two curves cross where both have a steady state."
        if not found
        else "Where one way becomes better than another, per accelerator:"
    )
    return (
        "The same accelerators for each way: disaggregated, they are split in proportion to what each side needs"
        f"{split}, as in a large pool; a small one loses more to rounding. {crossings}"
    )


def on_the_example() -> str:
    """Return what the companion article says and how it compares, in Markdown."""
    return (
        f"An article on disaggregation has {AGENTS} travel agents whose answers are being generated when a query of {QUERY:,} "
        f"tokens arrives. It states {STATED}. For Llama-2-70B the model of this page gives the table below: no number of H100s "
        "has both 25 ms for a token and 80 ms for the query, as the one is bound by bandwidth and the other by arithmetic; the "
        "jump of the tokens by the query's time is there on all. The cache is 0.655 GB by the article's own formula, with the "
        "model's 8 KV heads."
    )


def agreement(check: InterferenceCheck) -> str:
    """Return in plain words how the simulation was made and what it says of the formulas, in Markdown."""
    return (
        f"{checks.largest_difference(check.rows)} {counted(check.customers, 'request')} on one instance each, {check.warm_up:,} of them at "
        f"either end left out; seed {check.seed}. Step by step, with the same step times and each sequence's own context; no limit "
        "on memory. Intervals of 95 % each, by batch means."
    )
