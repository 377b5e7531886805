"""The answer in a sentence and four numbers."""

from __future__ import annotations

import hardware_db
from calculators import checks, lengths
from calculators.fleet import ROUNDING
from calculators.machine import assumptions_of
from calculators.outputs import apart, counted, duration, readable, short
from calculators.routers import ROUTERS
from calculators.ttft.arrivals import in_words
from calculators.ttft.check import LECTURE_P99, LECTURE_UTILIZATION, TtftCheck
from calculators.ttft.compute import TtftResult
from calculators.ttft.inputs import TtftInputs, level_of, statistic
from calculators.ttft.lengths import law_of
from calculators.ttft.methods import queue_of
from calculators.ttft.queues.base import MOST_LOAD
from calculators.ttft.sensitivity import Sensitivity
from calculators.ttft.traffic import is_plain
from formulas.queueing.md1 import wait_quantile

ICONS = {
    "meets": ":green[:material/check_circle:]",
    "misses": ":orange[:material/warning:]",
    "unstable": ":red[:material/trending_up:]",
    "too_slow_unloaded": ":red[:material/hourglass_disabled:]",
    "does_not_fit": ":red[:material/memory_alt:]",
}


HOPELESS = 500_000_000
"""Requests for 1 % on the mean beyond which the largest run that the page allows (5 million) cannot tell anything."""


HEADLESS = "There is no answer yet: it is computed when you ask for it, above."

ASK = {"simulation": "Simulate this traffic", "numerical": "Compute this traffic"}
"""What the button says that asks for a slow answer."""


def sentence(inputs: TtftInputs, result: TtftResult) -> str:
    """Return the answer to the page's question, in Markdown."""
    rate = f"{readable(inputs.rate)} requests/s"
    target = duration(inputs.ttft_slo_ms)
    ttft = "–" if result.target_ttft_ms is None else duration(result.target_ttft_ms, inputs.ttft_slo_ms)
    if inputs.servers > 1 or result.max_rate is None:
        return _pool_sentence(inputs, result, rate, target, ttft)
    match result.verdict:
        case "meets":
            return f"At {rate} the {statistic(inputs)} is **{ttft}**, within the target of {target}: **one instance** does."
        case "misses":
            return (
                f"At {rate} the {statistic(inputs)} is **{ttft}**, over the target of {target}: use "
                f"**{_fleet(inputs, result)}**, or at most {short(result.max_rate)} requests/s on one."
            )
        case "unstable":
            return (
                f"One instance serves less than {apart(1e3 / result.service_ms, inputs.rate)} requests/s, and {rate} arrive: its queue "
                f"grows without end. **{_fleet(inputs, result)}** meet the target of {target}."
            )
        case "too_slow_unloaded":
            return (
                f"One prompt alone takes **{duration(result.service_ms, inputs.ttft_slo_ms)}**, and the target is {target}: no number of "
                "instances meets it."
            )
    return "The weights do not fit in memory: no number of these instances serves this model."


def _pool_sentence(inputs: TtftInputs, result: TtftResult, rate: str, target: str, ttft: str) -> str:
    """Return the answer for a pool, or for one that is simulated."""
    pool = "one instance" if inputs.servers == 1 else f"{inputs.servers} instances ({ROUTERS[inputs.routing]})"
    use = "" if result.instances is None else f"use **{_fleet(inputs, result)}**"
    match result.verdict:
        case "meets":
            fewer = result.instances is not None and result.instances < inputs.servers
            enough = f" {_fleet(inputs, result)} would do." if fewer else ""
            return f"At {rate} on {pool} the {statistic(inputs)} is **{ttft}**, within the target of {target}.{enough}"
        case "misses":
            limit = "" if result.max_rate is None else f"at most {short(result.max_rate)} requests/s on these"
            advice = " or ".join(filter(None, (use, limit)))
            return (
                f"At {rate} on {pool} the {statistic(inputs)} is **{ttft}**, over the target of {target}"
                f"{': ' + advice if advice else ''}."
            )
        case "unstable":
            capacity = apart(queue_of(inputs).capacity, inputs.rate)
            verb = "serves" if inputs.servers == 1 else "serve"
            meet = "" if result.instances is None else f" **{_fleet(inputs, result)}** meet the target of {target}."
            return f"{pool[0].upper()}{pool[1:]} {verb} less than {capacity} requests/s, and {rate} arrive: the queue grows without end.{meet}"
        case "too_slow_unloaded":
            unloaded = duration(queue_of(inputs).unloaded_ms(level_of(inputs)), inputs.ttft_slo_ms)
            return f"Without any wait the {statistic(inputs)} is **{unloaded}**, and the target is {target}: no number of instances meets it."
    return "The weights do not fit in memory: no number of these instances serves this model."


def answer(inputs: TtftInputs, result: TtftResult) -> str:
    """Return the answer with the icon of its verdict in front."""
    return f"{ICONS[result.verdict]} {sentence(inputs, result)}"


def _fleet(inputs: TtftInputs, result: TtftResult) -> str:
    if inputs.tp == 1 or inputs.service_ms is not None:
        return f"{readable(result.instances)} instances"
    return f"{readable(result.instances)} instances of {inputs.tp}, {readable(result.accelerators)} accelerators"


def metrics(inputs: TtftInputs, result: TtftResult) -> list[tuple[str, str, str]]:
    """Return label, value and explanation of the four numbers under the sentence."""
    name = statistic(inputs)
    alone = f"{duration(result.service_ms)}{' on average' if lengths.spread_of(inputs) else ''}"
    several = inputs.tp > 1 and inputs.service_ms is None and result.instances is not None
    return [
        (
            name[0].upper() + name[1:],
            short(result.target_ttft_ms, "ms"),
            "Time from arrival to first token: the wait and the prompt's own service. "
            + ("Exact for M/D/1." if _is_start(inputs) else result.method),
        ),
        (
            "Utilization",
            apart(result.utilization, 1),
            f"Share of the time that the instance is busy. One prompt takes {alone}.",
        ),
        (
            "Highest rate in target",
            f"{highest_rate(inputs, result)} /s" if result.max_rate else "–",
            f"Requests per second that {'one instance takes' if inputs.servers == 1 else 'the pool takes'} within the target.",
        ),
        (
            "Accelerators needed" if several else "Instances needed",
            f"{readable(result.accelerators)} = {result.instances} × {inputs.tp}"
            if several
            else readable(result.instances),
            "For this rate, when each request goes to an instance at random."
            if inputs.routing == "random"
            else f"For this rate; router: {ROUTERS[inputs.routing]}.",
        ),
    ]


def highest_rate(inputs: TtftInputs, result: TtftResult) -> str:
    """Return the highest rate in target as a figure, or that it is any rate below capacity."""
    capacity = queue_of(inputs).capacity
    everywhere = result.max_rate is not None and result.max_rate >= MOST_LOAD * capacity * (1 - ROUNDING)
    return f"below {short(capacity)}" if everywhere else short(result.max_rate)


def _is_start(inputs: TtftInputs) -> bool:
    return is_plain(inputs) and inputs.servers == 1


def _model(inputs: TtftInputs, result: TtftResult) -> str:
    """Return the traffic and the method that answers for it."""
    if _is_start(inputs):
        return "M/D/1: Poisson arrivals, equal prompts, one at a time, first come first served. "
    error = "" if result.approximation_error is None else f" {result.approximation_error}"
    spread = ""
    if lengths.spread_of(inputs) and inputs.service_ms is None:
        spread = f" The service times have a coefficient of variation of {readable(law_of(inputs).scv ** 0.5, 3)}."
    return f"{traffic_of(inputs)}. {result.method}{error}{spread} "


def traffic_of(inputs: TtftInputs) -> str:
    """Return the traffic in a few words."""
    parts = [in_words(inputs), lengths.in_words(inputs)]
    parts += [f"{inputs.servers} instances, {ROUTERS[inputs.routing]}"] if inputs.servers > 1 else []
    parts += [f"order {inputs.order}"] if inputs.order != "fcfs" else []
    parts += [f"up to {inputs.batch_size} prefilled together"] if inputs.batch_size > 1 else []
    return ", ".join(parts)


def basis(inputs: TtftInputs, result: TtftResult) -> str:
    """Return in a sentence what the answer rests on, and how far it can be trusted."""
    model = _model(inputs, result)
    if inputs.service_ms is not None:
        return model + "The service time is typed in; model, accelerator and prompt length are not used."
    assumed = assumptions_of(inputs)
    changed = " (some changed)" if assumed != hardware_db.assumptions()[inputs.assumptions] else ""
    return (
        f"{model}Service time for {inputs.model} on {inputs.accelerator} by the set *{inputs.assumptions}*{changed}: "
        f"{assumed.compute_efficiency:.0%} of the peak rate, {assumed.memory_efficiency:.0%} of the memory bandwidth, "
        f"{assumed.step_overhead_ms:g} ms a step. {hardware_db.assumptions()[inputs.assumptions].accuracy}"
    )


def caption(inputs: TtftInputs) -> str:
    """Return for which scenario a figure is, in plain text."""
    method = "M/D/1" if _is_start(inputs) else traffic_of(inputs)
    if inputs.service_ms is not None:
        return f"Service time {duration(inputs.service_ms)}; {method}"
    assumed = f"assumptions: {inputs.assumptions}"
    chips = f"{inputs.tp} × {inputs.accelerator}" if inputs.tp > 1 else inputs.accelerator
    return f"{inputs.model} on {chips}, prompts of {counted(inputs.prompt_tokens, 'token')}; {assumed}; {method}"


def agreement(check: TtftCheck) -> str:
    """Return in plain words whether the simulation supports the formula, in Markdown."""
    needed = (
        f"At utilization {apart(check.utilization, 1)} the mean wait is known to 1 % after about "
        f"{_rounded(check.needed_for_one_percent)} requests; this run knows it to {check.half_width_percent:.2g} %. The "
        "simulation checks the formula, not whether your arrivals are Poisson and your prompts equal."
    )
    method = checks.method(check.customers, check.warm_up, check.seed, len(check.rows))
    if check.agrees is None and check.needed_for_one_percent > HOPELESS:
        return f"**No run that this page allows settles it: here the formula is the better source.** {method} {needed}"
    return f"{checks.verdict(check.rows)} {method} {needed}"


def _rounded(count: float) -> str:
    return f"{float(f'{count:.2g}'):,.0f}"


def on_short_runs(check: TtftCheck) -> str:
    """Return what the figure of short runs shows, in Markdown."""
    first = check.short_runs[0]
    return (
        f"A run that starts empty has not seen the worst yet. Half the runs of {first.customers:,} requests report a "
        f"P99 below {short(first.median_ms, 'ms')}; the exact P99 is {short(check.exact_p99_ms, 'ms')}. Dots are the median run, "
        "bars hold nine runs in ten. The lecture's own run was short too: its P99 at utilization "
        f"{LECTURE_UTILIZATION} is {LECTURE_P99:g} service times (section 4.3), and the exact one "
        f"{1 + wait_quantile(0.99, LECTURE_UTILIZATION):.5g}."
    )


def on_sensitivities(rows: tuple[Sensitivity, ...], name: str) -> str:
    """Return what matters most, in Markdown."""
    first = rows[0]
    direction = "longer" if first.elasticity > 0 else "shorter"
    return (
        f"**{first.label} matters most**: one percent more makes the {name} {abs(first.elasticity):.3g} % {direction}. "
        "Each bar is an elasticity: the percent change of the answer for one percent more of the input."
    )
