"""The answer in a sentence and four numbers, and what the figures and tables say."""

from __future__ import annotations

from calculators import checks
from calculators.decode.check import DecodeCheck
from calculators.decode.compute import DecodeInputs, DecodeResult
from calculators.decode.figures import statistic
from calculators.decode.halves import Crossing
from calculators.decode_pool import pool_of
from calculators.outputs import apart, counted, duration, readable, short

ICONS = {
    "meets": ":green[:material/check_circle:]",
    "misses": ":orange[:material/warning:]",
    "unstable": ":red[:material/trending_up:]",
    "too_slow_unloaded": ":red[:material/hourglass_disabled:]",
    "does_not_fit": ":red[:material/memory_alt:]",
    "nothing_to_decode": ":orange[:material/warning:]",
}

BOUNDS = {
    "weights": "reading the weights",
    "kv": "reading the KV cache",
    "compute": "arithmetic",
    "collectives": "the all-reduces",
    "overhead": "the overhead of a step",
}


def sentence(inputs: DecodeInputs, result: DecodeResult) -> str:
    """Return the answer to the page's question, in Markdown."""
    rate, target = f"{readable(inputs.rate)} requests/s", duration(inputs.tpot_slo_ms)
    name = f"{statistic(inputs)} TPOT"
    match result.verdict:
        case "does_not_fit":
            return "Nothing can be decoded: the weights, the reserve and one request do not fit in memory."
        case "nothing_to_decode":
            return "A single output token comes with the prefill: there is nothing left to decode."
        case "too_slow_unloaded":
            return (
                f"Even alone a sequence takes **{duration(pool_of(inputs).alone_ms, inputs.tpot_slo_ms)}** for a token, and the "
                f"target is {target}: no number of instances meets it."
            )
        case "unstable":
            return (
                f"One instance decodes less than {apart(result.capacity or 0, inputs.rate)} requests/s, and {rate} arrive: they wait "
                f"without end. The target of {target} is met by **{_fleet(inputs, result)}**."
            )
    tpot = duration(result.target_tpot_ms or 0, inputs.tpot_slo_ms)
    batch = f"At {rate} a step has **{counted(result.mean_batch, 'sequence')}** on average"
    if result.verdict == "meets":
        return f"{batch}, and the {name} is **{tpot}**, within the target of {target}: **one instance** does."
    return (
        f"{batch}, and the {name} is **{tpot}**, over the target of {target}: use **{_fleet(inputs, result)}**, or at most "
        f"{short(result.max_rate)} requests/s on one."
    )


def answer(inputs: DecodeInputs, result: DecodeResult) -> str:
    """Return the answer with the icon of its verdict in front."""
    return f"{ICONS[result.verdict]} {sentence(inputs, result)}"


def _fleet(inputs: DecodeInputs, result: DecodeResult) -> str:
    if inputs.tp == 1:
        return counted(result.instances, "instance")
    return f"{counted(result.instances, 'instance')} of {inputs.tp}, {counted(result.accelerators, 'accelerator')}"


def metrics(inputs: DecodeInputs, result: DecodeResult) -> list[tuple[str, str, str]]:
    """Return label, value and explanation of the four numbers under the sentence."""
    return [
        (
            f"{statistic(inputs)} TPOT",
            short(result.target_tpot_ms, "ms"),
            "Time per output token: from the first token to the last, for each token after the first, waits included.",
        ),
        ("Mean batch", short(result.mean_batch), "Sequences in the pool, averaged over time."),
        (
            "Highest rate in target",
            short(result.max_rate, "/s"),
            "Requests per second that one instance decodes within the target.",
        ),
        ("Slots", readable(result.slots), "Sequences whose whole prompt and output fit in memory beside the weights."),
    ]


def basis(inputs: DecodeInputs) -> str:
    """Return in a sentence what the answer rests on, and how far it can be trusted."""
    return (
        "Processor sharing with a rate by state: exact for the mean at any output lengths. Against the event simulation the "
        "mean is within 1 %, P90 within 2 % and P99 within 4 %; P99 is 15 % low where output lengths spread with a coefficient "
        f"of variation of 1.5, and where outputs have only a few tokens P90 is up to 8 % and P99 10 % low. Step times by the set *{inputs.assumptions}*."
    )


def caption(inputs: DecodeInputs) -> str:
    """Return for which scenario a figure is, in plain text."""
    chips = f"{inputs.tp} × {inputs.accelerator}" if inputs.tp > 1 else inputs.accelerator
    return (
        f"{inputs.model} on {chips}, {counted(inputs.prompt_tokens, 'token')} in and {inputs.output_tokens:,} out; "
        f"assumptions: {inputs.assumptions}"
    )


def on_one_step(inputs: DecodeInputs, result: DecodeResult, context: float) -> str:
    """Return what bounds the step that is looked at, and where that turns, in Markdown."""
    said = (
        f"A step of **{counted(inputs.batch, 'sequence')}** at a context of {counted(context, 'token')} takes "
        f"**{short(result.step_ms, 'ms')}**; what takes longest is **{BOUNDS[result.bound]}**. "
    )
    if result.critical_batch is None:
        turn = "At no batch are the projections bound by compute. "
    else:
        turn = (
            f"Projections and FFN do {short(result.projection_intensity)} FLOP for each byte of weights, and the chip can do "
            f"{short(result.ridge)}: they are bound by compute from a batch of **{short(result.critical_batch)}** at the chip's "
            f"peaks, {short(result.reached_critical_batch)} with the efficiencies assumed. "
            "That is the threshold of the weights alone; the whole step also reads the cache, so that it turns at another batch or "
            "never. "
        )
    return (
        f"{said}{turn}Attention does {short(result.attention_intensity)} FLOP for each byte of cache, whatever the batch: "
        "as many as heads share one cached head."
    )


def on_batch(result: DecodeResult) -> str:
    """Return what the law of the batch is, and whether memory cuts it, in Markdown."""
    said = (
        "How often each batch is found: a product form that depends on the output lengths through their mean alone. A token sees "
        "its own sequence and others by this very law."
    )
    if not result.share_waiting or result.share_waiting < 1e-6:
        return said
    return (
        f"{said} Memory cuts it at **{counted(result.slots, 'sequence')}**: {100 * result.share_waiting:.2g} % of the requests "
        f"find every slot taken and wait, {short(result.mean_slot_wait_ms, 'ms')} on average over all."
    )


def on_ways() -> str:
    """Return how the ways are to be read."""
    return (
        "Each batch has the size given (*Decode step* in the sidebar). Tensor parallelism shortens the step, less and less; a "
        "pipeline works on a batch of its own in each stage, so that a token takes as many times the slowest stage as there are, and "
        "throughput grows, but for the overhead of each stage; replicas multiply it, with the weights in each. A cross marks what the model or memory does not allow."
    )


def on_halves(inputs: DecodeInputs, crossing: Crossing) -> str:
    """Return what the split is for and what crosses the network, in Markdown."""
    return (
        f"With attention and its cache on some chips, and projections and FFN on others, **{short(crossing.mb_per_layer)} MB** "
        f"cross the network in each layer, there and back, for a batch of {inputs.batch:,}: {short(crossing.mb_per_step)} MB a "
        f"step, or {short(crossing.gb_s, 'GB/s')} for as long as the step takes now. A chip suits the half at which it gains "
        "more over the one chosen: attention wants bandwidth and memory, projections and FFN at a large batch want arithmetic."
    )


def agreement(check: DecodeCheck) -> str:
    """Return in plain words how the simulation was made and what it says of the formulas, in Markdown."""
    return (
        f"{checks.largest_difference(check.rows)} {counted(check.customers, 'request')}, {check.warm_up:,} of them at either end left "
        f"out; seed {check.seed}; up to {counted(check.peak_batch, 'sequence')} at once. The simulation goes from step to step with the "
        "same step times: a request joins at the end of the step in progress, each sequence has its own context, and a request "
        "waits for a slot where memory is full. Intervals of 95 % each, by batch means."
    )
