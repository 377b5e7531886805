"""The answer in a sentence and four numbers, and what the tables say."""

from __future__ import annotations

from calculators import checks
from calculators.outputs import apart, counted, duration, readable, short
from calculators.plan.check import PlanCheck
from calculators.plan.compute import KINDS, PlanInputs, PlanResult, Recommendation
from calculators.plan.reasons import Reason
from calculators.routers import AS_TAKEN, ROUTERS, among_as_many

CENT = 0.01
MANY_TIMES = 10.0

ICONS = {
    "meets": ":green[:material/check_circle:]",
    "too_few_accelerators": ":orange[:material/warning:]",
    "too_slow_unloaded": ":red[:material/hourglass_disabled:]",
    "does_not_fit": ":red[:material/memory_alt:]",
    "nothing_to_decode": ":orange[:material/block:]",
}

BINDS = {
    "ttft": "the time to the first token",
    "tpot": "the time per output token",
    "memory": "memory",
    "link": "the link between the pools",
    "stability": "the work itself: beyond it there is no steady state",
}


def answer(inputs: PlanInputs, result: PlanResult) -> str:
    """Return the answer to the page's question, in Markdown, with its icon in front."""
    return f"{ICONS[result.verdict]} {_sentence(inputs, result)}"


def _sentence(inputs: PlanInputs, result: PlanResult) -> str:
    rate = f"{readable(inputs.rate)} requests/s"
    if result.verdict == "does_not_fit":
        return (
            f"{inputs.model} in {inputs.weight_dtype} does not fit on {_kinds(inputs)}: no tensor degree up to 8 holds the "
            f"weights, the reserve and one request. {_in_stages(result)}A smaller format, or an accelerator with more memory, does."
        )
    if result.verdict == "nothing_to_decode":
        return (
            "A single output token comes with the prefill: there is nothing to decode. *Time to first token* says how many "
            "instances the prompts need."
        )
    if result.verdict == "too_slow_unloaded" or result.recommendation is None:
        return (
            f"Even idle, no arrangement of {_kinds(inputs)} brings the first token in {duration(inputs.ttft_slo_ms)} and each "
            f"next one in {duration(inputs.tpot_slo_ms)}: more replicas do not help. {_lever(result)}"
        )
    best = result.recommendation
    cost = "" if best.cost_per_hour is None else f", about **${readable(best.cost_per_hour, 3)} an hour**"
    few = ""
    if result.verdict == "too_few_accelerators":
        few = f" More than the {readable(inputs.most_gpus)} at hand."
    return (
        f"Use **{_counted(best)}**: {described(best)}{cost}. At {rate} "
        f"**{apart(100 * best.attainment, 100 * inputs.attainment)} %** of the requests meet both targets, {_headroom(result)}.{few}"
    )


def _in_stages(result: PlanResult) -> str:
    found = result.pipeline
    if found is None:
        return ""
    return (
        f"A pipeline of **{found.pp} stages of {counted(found.tp, 'accelerator')}** holds it: *Placement* plans pipelines, this page "
        "does not. "
    )


def _headroom(result: PlanResult) -> str:
    more = result.headroom or 0.0
    if more > MANY_TIMES:
        return f"and it would take {short(1 + more)} times the rate"
    return f"with {short(100 * more)} % of headroom"


def _kinds(inputs: PlanInputs) -> str:
    other = inputs.decode_accelerator
    return inputs.accelerator if other in (None, inputs.accelerator) else f"{inputs.accelerator} and {other}"


def _counted(plan: Recommendation) -> str:
    """Return how many accelerators of each kind."""
    one, other = plan.prefill, plan.decode
    if one.accelerator == other.accelerator:
        return f"{plan.gpus:,} × {one.accelerator}"
    return f"{one.gpus:,} × {one.accelerator} and {other.gpus:,} × {other.accelerator}"


def described(plan: Recommendation) -> str:
    """Return a deployment in words."""
    if plan.kind != "disaggregated":
        budget = f" of {counted(plan.chunk_tokens, 'token')} a step" if plan.chunk_tokens else ""
        return f"{_instances(plan.prefill.instances, plan.prefill.tp)} with {KINDS[plan.kind]}{budget}"
    return (
        f"{_instances(plan.prefill.instances, plan.prefill.tp)} for prefill and "
        f"{_instances(plan.decode.instances, plan.decode.tp)} for decode"
    )


def _instances(count: int, tp: int) -> str:
    each = f" of {counted(tp, 'accelerator')}" if tp > 1 else ""
    return f"{counted(count, 'instance')}{each}"


def _lever(result: PlanResult) -> str:
    slow = next((each.reason for each in reversed(result.refused) if "no rate meets" in each.reason), "")
    return f"At the largest degree, {slow.split(': ', 1)[1]}." if slow else "A faster chip or a smaller format would."


def metrics(inputs: PlanInputs, result: PlanResult) -> list[tuple[str, str, str]]:
    """Return label, value and explanation of the four numbers under the sentence."""
    best, times = result.recommendation, result.predicted
    output_cost = None if best is None else best.cost_per_million_output_tokens
    input_cost = None if best is None else best.cost_per_million_input_tokens
    return [
        ("Accelerators", readable(None if best is None else best.gpus), "Of the recommended deployment."),
        (
            "P90 first token",
            short(None if times is None else times.p90_ttft_ms, "ms"),
            f"Time to first token, predicted; the target is {duration(inputs.ttft_slo_ms)}.",
        ),
        (
            "P90 next tokens",
            short(None if times is None else times.p90_tpot_ms, "ms"),
            f"Time per output token, predicted; the target is {duration(inputs.tpot_slo_ms)}.",
        ),
        (
            "A million tokens in, out",
            "–" if input_cost is None or output_cost is None else f"{_money(input_cost)}, {_money(output_cost)}",
            "At this rate, each side bearing its own accelerators or its share of the time of shared ones.",
        ),
    ]


def _money(dollars: float) -> str:
    """Return an amount: cents, and where it is less than one, its first two digits.

    >>> _money(13244.391), _money(0.0012345)
    ('$13,244.39', '$0.0012')
    """
    return f"${dollars:,.2f}" if dollars >= CENT else f"${dollars:.2g}"


def basis(inputs: PlanInputs) -> str:
    """Return in a sentence what the answer rests on."""
    return (
        "Closed forms of prefill first, chunked prefill and disaggregated pools at tensor degrees 1, 2, 4 and 8; "
        f"{AS_TAKEN[inputs.routing]}; {_rule(inputs)}. Step times by the set *{inputs.assumptions}*. Check the plan "
        "by simulation before you buy."
    )


def _rule(inputs: PlanInputs) -> str:
    two = inputs.decode_accelerator not in (None, inputs.accelerator)
    return "the cheapest wins where both prices are known" if two else "the fewest accelerators win"


def on_disaggregation(result: PlanResult) -> str:
    """Return the verdict on disaggregating, in Markdown."""
    if result.disaggregate is None:
        return "There is nothing to compare: no deployment meets the targets."
    sides = [each.side for each in result.reasons]
    weighed = f"{counted(sides.count('for'), 'reason')} for it, {sides.count('against')} against."
    verdict = (
        "**Disaggregate**: it takes less than the best colocated way, or as little and attains more."
        if result.disaggregate
        else "**Do not disaggregate**: the best colocated way takes as little, or less."
    )
    return f"{verdict} {weighed} Each has its own number for this scenario."


SIDES = {
    "for": ":green[:material/add_circle:]",
    "against": ":orange[:material/do_not_disturb_on:]",
    "neither": ":gray[:material/circle:]",
}


def on_reasons(reasons: tuple[Reason, ...]) -> str:
    """Return the reasons as a list in Markdown: those for disaggregating first, then those against, then the rest."""
    order = list(SIDES)
    ranked = sorted(reasons, key=lambda each: order.index(each.side))
    return "\n".join(
        f"- {SIDES[each.side]} **{each.reason[0].upper()}{each.reason[1:]}** ({each.side}): {each.sentence}"
        for each in ranked
    )


def deployments_table(plans: list[Recommendation]) -> dict[str, list[object]]:
    """Return deployments by column title, the recommended one first."""
    return {
        "Deployment": [described(each) for each in plans],
        "Accelerators": [_counted(each) for each in plans],
        "US$/h": [each.cost_per_hour for each in plans],
        "US$ per million in": [each.cost_per_million_input_tokens for each in plans],
        "out": [each.cost_per_million_output_tokens for each in plans],
        "Attainment": [each.attainment for each in plans],
        "Up to (requests/s)": [each.highest_rate for each in plans],
    }


def predicted_table(result: PlanResult) -> dict[str, list[object]]:
    """Return the times of the recommended deployment by column title."""
    times = result.predicted
    if times is None:
        return {}
    rows = {"First token (ms)": "ttft_ms", "Each next token (ms)": "tpot_ms"}
    columns: dict[str, list[object]] = {"Predicted": list(rows)}
    return columns | {
        level.upper(): [getattr(times, f"{level}_{name}") for name in rows.values()] for level in ("p50", "p90", "p99")
    }


def on_link(result: PlanResult) -> str:
    """Return what the caches ask of the links, in Markdown; nothing where none is moved."""
    times = result.predicted
    if times is None or times.kv_gbit_s is None or times.link_utilization is None:
        return ""
    return (
        f"The caches take {short(times.kv_gbit_s)} Gbit/s of each link between the pools, {short(100 * times.link_utilization)} % of "
        "what it carries."
    )


def on_binding(result: PlanResult) -> str:
    """Return what binds first and how much is left, in Markdown."""
    if result.binding is None:
        return ""
    return (
        f"What gives way first as the rate grows is **{BINDS[result.binding]}**, {short(100 * (result.headroom or 0))} % above the "
        "rate asked for."
    )


def agreement(inputs: PlanInputs, check: PlanCheck) -> str:
    """Return in plain words what the simulation says of the plan, in Markdown."""
    verdict = (
        "**The targets hold in the simulation**" if check.holds else "**The targets do not hold in the simulation**"
    )
    return (
        f"{verdict}: {100 * check.attainment:.2f} % of the requests meet both ({100 * check.attainment_low:.2f} to "
        f"{100 * check.attainment_high:.2f} %), where {100 * check.predicted_attainment:.2f} % were predicted. {_simulated(inputs)} "
        f"{checks.largest_difference(check.rows)} {check.customers:,} requests (a check takes 60,000 at most), "
        f"{check.warm_up:,} at either end left out; seed {check.seed}."
    )


def _simulated(inputs: PlanInputs) -> str:
    """Return behind which router the deployment is simulated."""
    if inputs.routing == "random":
        return (
            "The whole deployment is simulated, with a router that sends each request to the instance with the fewest; the "
            "prediction takes any instance at random, and so errs on the safe side. The table holds the formulas against a "
            "simulation where requests go to any instance."
        )
    if inputs.routing == "round_robin":
        return "Simulated with requests in turn over the instances, as the prediction takes them."
    return (
        f"Simulated behind the router that is chosen ({ROUTERS[inputs.routing]}; where there is no queue of prompts to share, the "
        f"instance with the fewest requests). The prediction: {AS_TAKEN[inputs.routing]}."
    )


def caption(inputs: PlanInputs) -> str:
    """Return for which scenario a figure is, in plain text."""
    return (
        f"{inputs.model} on {_kinds(inputs)}, {readable(inputs.rate)} requests/s, {counted(inputs.prompt_tokens, 'token')} in and "
        f"{inputs.output_tokens:,} out; assumptions: {inputs.assumptions}{among_as_many(inputs)}"
    )
