"""The answer in a sentence and four numbers, and what the figures and tables say."""

from __future__ import annotations

import numpy as np

from calculators.lengths import spread_of
from calculators.outputs import counted, short
from calculators.pools.check import PoolsCheck
from calculators.pools.compute import PoolsResult
from calculators.pools.curves import Budget, ShiftMap
from calculators.pools.inputs import PoolsInputs
from calculators.routers import AS_TAKEN, OWN_STREAM, ROUTERS, among_as_many


def answer(inputs: PoolsInputs, result: PoolsResult) -> str:
    """Return the answer to the page's question, in Markdown, with its icon in front."""
    if result.gpus is None:
        side = "prefill" if result.prefill_goodput is None else "decode"
        return f":red[:material/block:] No number of {side} instances keeps the target: no pools to size."
    if not result.served_rate:
        return ":orange[:material/warning:] With all instances of one kind kept as spares, **nothing is served**."
    counts = f"**{_counted(result.prefill_instances, 'prefill')} + {_counted(result.decode_instances, 'decode')}**"
    given = inputs.prefill_instances is not None or inputs.decode_instances is not None
    each = f"**{short(result.goodput_per_gpu)}** for each accelerator"
    said = (
        f"{counts} carry **{short(result.served_rate)} requests/s** within both targets: {each}"
        if given
        else f"**{short(result.served_rate)} requests/s** take {counts}: {each}"
    )
    return f"{_icon(result)} {said}{_against(result)}."


def _counted(number: int | None, kind: str) -> str:
    return counted(number, f"{kind} instance")


def _icon(result: PoolsResult) -> str:
    gain = result.gain_over_colocated
    return ":orange[:material/group_work:]" if gain is not None and gain < 1 else ":green[:material/group_work:]"


def _against(result: PoolsResult) -> str:
    gain = result.gain_over_colocated
    if gain is None:
        return ""
    return (
        f", **{short(gain)} times** a colocated one" if gain >= 1 else f", only **{short(gain)} times** a colocated one"
    )


def metrics(inputs: PoolsInputs, result: PoolsResult) -> list[tuple[str, str, str]]:
    """Return label, value and explanation of the four numbers under the sentence."""
    sizes = f"{inputs.tp} for each prefill instance, {inputs.decode_tp or inputs.tp} for each decode instance."
    waste = "–" if result.rounding_waste is None else f"{100 * result.rounding_waste:.3g} %"
    return [
        ("Accelerators", short(result.gpus), sizes),
        (
            "Goodput per accelerator",
            short(result.goodput_per_gpu, "/s"),
            "The rate served over all of them, spares too.",
        ),
        (
            "Group goodput",
            short(result.group_goodput, "/s"),
            "What the weaker side carries with all instances at work.",
        ),
        ("Waste of rounding", waste, "Share of the accelerators that whole instances leave idle."),
    ]


def _queue(inputs: PoolsInputs) -> str:
    """Return the kind of queue that prompts make, in Kendall's notation."""
    servers = "1" if inputs.routing in OWN_STREAM else "c"
    at_random = inputs.arrival_scv == 1 and inputs.routing != "round_robin"  # every n-th request comes more evenly
    return f"{'M' if at_random else 'G'}/{'G' if spread_of(inputs) else 'D'}/{servers}"


def basis(inputs: PoolsInputs, result: PoolsResult) -> str:
    """Return in a sentence what the answer rests on, and how far it can be trusted."""
    computed = [
        f"{short(value)} {name}"
        for typed, value, name in (
            (inputs.prefill_goodput, result.prefill_goodput, f"of a prefill instance ({_queue(inputs)} on TTFT)"),
            (inputs.decode_goodput, result.decode_goodput, "of a decode instance (product form on TPOT)"),
            (inputs.colocated_goodput, result.colocated_goodput, "of a colocated one (prompts first)"),
        )
        if typed is None and value is not None
    ]
    if not computed:
        return "All goodputs are typed in: the rest is counting."
    return (
        f"Computed, requests/s: {', '.join(computed)}. Each side keeps its own target for {100 * inputs.attainment:g} % of the "
        "requests; where both sides are at their limit, fewer keep both. "
        f"{AS_TAKEN[inputs.routing].capitalize()}. Step times by the set *{inputs.assumptions}*."
    )


def caption(inputs: PoolsInputs, result: PoolsResult) -> str:
    """Return for which scenario a figure is, in plain text."""
    goodputs = f"{short(result.prefill_goodput)} and {short(result.decode_goodput)} requests/s an instance"
    if inputs.prefill_goodput is not None and inputs.decode_goodput is not None:
        return f"Goodputs typed in: {goodputs}"
    return f"{inputs.model}, {counted(inputs.prompt_tokens, 'token')} in and {inputs.output_tokens:,} out: {goodputs}{among_as_many(inputs)}"


def on_safety(inputs: PoolsInputs, result: PoolsResult) -> str:
    """Return what is left with one instance lost, in Markdown."""
    left = result.goodput_after_loss or 0.0
    enough = left >= (result.served_rate or 0.0) * (1 - 1e-9)
    verdict = "so the rate is still served" if enough else "less than the rate served"
    advice = "" if enough or inputs.spare else " A spare of each kind (sidebar, *This page*) keeps it."
    return (
        f"With one instance lost, whichever it is, the group carries **{short(left)} requests/s**: {verdict}.{advice} "
        f"The {result.binding} side is the weaker one; neither would be idle at **{counted(result.ideal_ratio, 'prefill instance')} "
        "for each decode instance**."
    )


def on_budgets(result: PoolsResult, rows: list[Budget]) -> str:
    """Return what the best splits show, in Markdown."""
    near = next((row for row in rows if row.share >= 0.95), None)
    best = (
        f"On {counted(result.gpus, 'accelerator')}, {result.best_prefill_instances} + {result.best_decode_instances} carries most: "
        f"{short(result.best_goodput)} requests/s."
    )
    reached = (
        f"The first budget within 5 % of the ideal is **{near.gpus}**."
        if near
        else "None of these is within 5 % of the ideal."
    )
    return f"{best} {reached} A small pool loses more to rounding: only so many ratios of whole numbers exist."


def on_shift(inputs: PoolsInputs, result: PoolsResult, found: ShiftMap) -> str:
    """Return what a shift of the workload does to the fixed ratio, in Markdown."""
    there = np.isfinite(found.relative)
    if not there.any():
        return "No other lengths can be computed for this scenario."
    worst = float(np.nanmax(np.where(there, found.idle, np.nan)))
    none = "" if there.all() else "; –: a target is kept at no rate"
    typed = (
        " The goodputs typed in are taken to change as those computed for this scenario do."
        if inputs.prefill_goodput is not None or inputs.decode_goodput is not None
        else ""
    )
    return (
        f"The same {result.prefill_instances} + {result.decode_instances} instances with longer or shorter prompts and outputs. P and "
        f"D: which side is the weaker one{none}. In the worst corner **{100 * worst:.3g} %** of the stronger side is idle, until the "
        f"ratio is changed.{typed}"
    )


def agreement(inputs: PoolsInputs, check: PoolsCheck) -> str:
    """Return in plain words how the simulation was made, in Markdown."""
    routed = (
        "There a request goes to the instance with the fewest requests, which is better than at random, and both sides miss some: the "
        "two effects pull apart."
        if inputs.routing == "random"
        else f"Router: {ROUTERS[inputs.routing]}; both sides miss some, so that fewer may keep both."
    )
    return (
        f"{counted(check.customers, 'request')}, {check.warm_up:,} of them at either end left out; seed {check.seed}. The first rows are "
        "the instances of one kind at their goodput: the share that keeps its target should be the attainment asked for. The last is "
        f"the whole group at the rate served, both targets together. {routed} Intervals of 95 % each, by batch means."
    )
