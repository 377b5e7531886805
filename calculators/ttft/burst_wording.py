"""Bursts, convoys and batches in words."""

from __future__ import annotations

from calculators.lengths import spread_of
from calculators.outputs import duration, readable, short
from calculators.routers import ROUTERS
from calculators.ttft.batching import Batching
from calculators.ttft.bursts import Arrivals, BurstOnIdle, at_random
from calculators.ttft.convoy import Convoy, Elsewhere
from calculators.ttft.inputs import TtftInputs, statistic

NO_STEADY_STATE = "Without a steady state there is nothing to compare: lower the rate, or add instances."

NOT_KNOWN = "A typed service time does not say what several prompts take together: leave **Service time** empty to have it computed."

SWITCH_ON = (
    "Each is set under *Bursts and convoys* in the sidebar; **Kind of arrivals** there makes every other figure of this page "
    "answer for it."
)


def on_same_load(inputs: TtftInputs, rows: list[Arrivals]) -> str:
    """Return what the kind of arrivals does to P99, in Markdown."""
    if not rows:
        return NO_STEADY_STATE
    worst = max(rows, key=lambda row: row.p99_ttft_ms)
    where = "one instance" if inputs.servers == 1 else "each instance, with its share of the rate"
    if worst.times_poisson <= 1:
        return f"At utilization {rows[0].utilization:.2f} of {where} none of these bursts make P99 longer than Poisson arrivals do."
    return (
        f"**The same utilization, {rows[0].utilization:.2f}, gives up to {worst.times_poisson:.3g} times the P99.** Equal prompts at "
        f"{where}: P99 is {short(rows[0].p99_ttft_ms, 'ms')} under Poisson arrivals, and {short(worst.p99_ttft_ms, 'ms')} under "
        f"{worst.arrivals}. All are exact. {SWITCH_ON}"
    )


def on_burst(inputs: TtftInputs, found: BurstOnIdle) -> str:
    """Return what a burst on an idle pool means, in Markdown."""
    pool = (
        "one idle instance" if inputs.servers == 1 else f"{inputs.servers} idle instances ({ROUTERS[inputs.routing]})"
    )
    if found.burst == 1:
        return f"One prompt on {pool} has its first token after {short(found.first_ms, 'ms')}. Set **Prompts that come at once** above 1."
    average = " on average" if at_random(inputs) else ""
    start = (
        f"**{found.burst} prompts at once on {pool}**: the first has its first token after {short(found.first_ms, 'ms')}, the middle "
        f"one after {short(found.middle_ms, 'ms')}, the last after **{short(found.last_ms, 'ms')}**{average}. {_largest(inputs, found)}"
    )
    return f"{start} {_drained(inputs, found)} {_assumed(inputs)}".strip()


def _largest(inputs: TtftInputs, found: BurstOnIdle) -> str:
    target = f"keeps the {statistic(inputs)} within {duration(inputs.ttft_slo_ms)}"
    if found.largest == 0:
        return f"Not even one prompt {target}."
    if found.largest is None:
        return f"A burst of 10,000 still {target}."
    return f"A burst of up to **{found.largest:,}** {target}."


def _drained(inputs: TtftInputs, found: BurstOnIdle) -> str:
    if found.idle_again_ms is None:
        return "At this rate the pool is never idle again."
    behind = f"With {readable(inputs.rate)} requests/s coming behind it"
    if inputs.servers == 1:
        return f"{behind}, the instance is idle again after {short(found.idle_again_ms, 'ms')} on average."
    return f"{behind}, it is worked off after about {short(found.idle_again_ms, 'ms')} (the pool taken as one fast instance)."


def _assumed(inputs: TtftInputs) -> str:
    parts = ["prompts of the mean service time"] if spread_of(inputs) else []
    parts += ["one at a time on an instance"] if inputs.batch_size > 1 else []
    return f"Computed for {' and '.join(parts)}." if parts else ""


def on_convoy(inputs: TtftInputs, found: Convoy | None) -> str:
    """Return who waits how long behind a very long prompt, in Markdown."""
    if found is None:
        return NO_STEADY_STATE
    where = "" if inputs.servers == 1 else " at its instance; the other instances notice nothing"
    ordinary = "less than 0.01 ms" if found.ordinary_wait_ms < 0.01 else short(found.ordinary_wait_ms, "ms")
    return (
        f"**A prompt of {inputs.long_tokens:,} tokens takes {short(found.long_ms, 'ms')} and delays about "
        f"{_count(found.delayed)}**{where}. Who comes right behind it waits {short(found.right_behind_ms, 'ms')} more, and the "
        f"delayed ones {short(found.extra_ms, 'ms')} more on average; without it they wait {ordinary}. It takes "
        f"{short(found.over_after_ms, 'ms')} until the instance is idle for the first time. No order of service helps those who come while it runs, "
        "since it is not interrupted: cutting it in chunks, or an instance of its own for long prompts, does. Poisson arrivals, first come first "
        "served."
    )


def _count(delayed: float) -> str:
    return "one other" if delayed < 1.5 else f"{round(delayed):,} others"


ON_CONVOY_CURVE = (
    "Each moment later, less of the long prompt is left: the wait falls by the idle time that there would have been. Exact up to the end of "
    "the long prompt; beyond it, a lower bound."
)


def on_elsewhere(inputs: TtftInputs, found: Elsewhere | None) -> str:
    """Return what a router makes of a very long prompt that goes around it, in Markdown."""
    if found is None:
        return NO_STEADY_STATE
    start = (
        f"**A prompt of {inputs.long_tokens:,} tokens takes one of {inputs.servers} instances for {short(found.long_ms, 'ms')}; "
        f"{ROUTERS[inputs.routing]} goes around it.** The other {inputs.servers - 1} carry the rate meanwhile, at a utilization of "
        f"{found.utilization:.2f}"
    )
    if found.wait_ms is None:
        return (
            f"{start}: more than they can take. About {max(round(found.piled_up), 1):,} prompts pile up until it is done, and are worked off after it. "
            "One more instance avoids that."
        )
    return (
        f"{start}: the mean wait goes from {short(found.ordinary_wait_ms, 'ms')} to at most {short(found.wait_ms, 'ms')}, which is the steady state "
        "without that instance. Nobody waits for the long prompt itself. A router that chooses at random would make those at its instance wait for it."
    )


def on_batching(inputs: TtftInputs, found: Batching) -> str:
    """Return when batches help, in Markdown."""
    length = f"Prompts of {inputs.prompt_tokens:,} tokens"
    if found.saturation_tokens is None:
        limit = "On this accelerator reading the weights takes longer than the arithmetic at any length up to 65,536 tokens."
    elif found.fill > 1:
        limit = (
            f"Reading the weights takes as long as the arithmetic of **{found.saturation_tokens:,} tokens**, the saturation length. {length} "
            f"are shorter: **{found.fill}** of them fill the accelerator."
        )
    else:
        limit = (
            f"Reading the weights takes as long as the arithmetic of **{found.saturation_tokens:,} tokens**, the saturation length. {length} fill the "
            "accelerator alone."
        )
    pair = f"Two together take {short(found.pair_ms, 'ms')}, one alone {short(found.alone_ms, 'ms')}"
    saved = short(abs(found.pair_saving_ms), "ms")
    if found.pair_saving_ms > 0:
        gain = f"{pair}: two who wait are served {saved} sooner on average together than one after the other. **Batching helps.**"
    else:
        gain = (
            f"{pair}: two who wait are served {saved} later on average together than one after the other. **Batching only makes everyone wait** at "
            "low rates; what capacity it brings is in the table."
        )
    return f"{limit} {gain} One instance, equal prompts, Poisson arrivals; a batch takes whoever waits, and waits for nobody."
