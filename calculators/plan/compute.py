"""Inputs to result: from a workload and its targets to a deployment, its cost, and whether to disaggregate.

Lecture, sections 1, 3, 5, 6 and 9; DistServe, section 4. No Streamlit, no Plotly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from calculators.inputs import integer, number, part_of, same_as
from calculators.lengths import histogram_remarks
from calculators.outputs import output, readable, short
from calculators.plan.candidates import candidates
from calculators.plan.costs import costs_of, price_of
from calculators.plan.deployments import Demand, Deployment, Refused, Side
from calculators.plan.reasons import Compared, Reason, reasons
from calculators.plan.stages import Stages, stages_that_fit
from calculators.pools.inputs import PoolsInputs
from calculators.remarks import hardware_remarks
from calculators.scenario import (
    Assumptions,
    Burstiness,
    Hardware,
    Interconnect,
    KvLink,
    Memory,
    Output,
    OutputSpread,
    Prompt,
    PromptLaw,
    Routing,
    ServiceLevels,
    Simulation,
    Traffic,
)
from calculators.systems import Disaggregated, ServingInputs

LEVELS = {"p50": 0.5, "p90": 0.9, "p99": 0.99}

KINDS = {"prefill_first": "prefill first", "chunked": "chunked prefill", "disaggregated": "disaggregated"}


@dataclass(frozen=True, kw_only=True)
class PlanInputs(
    Simulation,
    ServiceLevels,
    KvLink,
    Assumptions,
    Memory,
    Interconnect,
    Hardware,
    Routing,
    Burstiness,
    OutputSpread,
    Output,
    PromptLaw,
    Prompt,
    Traffic,
):
    """The workload, the model and chip, the targets, the price, and how many accelerators there are.

    The tensor degree is none of them: the plan finds it.
    """

    price_per_hour: float | None = number(
        "Price of an accelerator",
        unit="US$/h",
        low=0.001,
        high=10_000,
        default=None,
        step=0.1,
        empty="as seen on the market",
        help="What an hour of one accelerator costs. Leave it empty to take the middle of the prices in the database.",
    )
    decode_accelerator: str | None = same_as(PoolsInputs, "decode_accelerator")

    decode_price_per_hour: float | None = number(
        "Price of a decode accelerator",
        unit="US$/h",
        low=0.001,
        high=10_000,
        default=None,
        step=0.1,
        empty="as seen on the market",
        help="What an hour of one accelerator of the decode side costs, if that is another kind. With two kinds and their "
        "prices the cheapest deployment wins; else the one with the fewest accelerators.",
    )
    most_gpus: int | None = integer(
        "Accelerators at hand",
        low=1,
        high=1_000_000,
        default=None,
        step=8,
        empty="as many as it takes",
        help="How many accelerators there are at most. Leave it empty to plan without a limit.",
    )


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """One deployment and its cost."""

    kind: str = output("Kind", "", "prefill_first, chunked or disaggregated")
    prefill: Side = output("Prefill")
    decode: Side = output("Decode", "", "Colocated, the same instances as prefill")
    chunk_tokens: int | None = output("Token budget of a step", "tokens", "For chunked prefill")
    gpus: int = output("Accelerators")
    cost_per_hour: float | None = output("Cost", "US$/h")
    cost_per_million_input_tokens: float | None = output("Cost of a million input tokens", "US$")
    cost_per_million_output_tokens: float | None = output("Cost of a million output tokens", "US$")
    attainment: float = output("Attainment", "", "At the rate asked for")
    highest_rate: float = output("Highest rate in target", "requests/s", "All instances together")


@dataclass(frozen=True, kw_only=True)
class Predicted:
    """The times of the recommended deployment at the rate asked for."""

    p50_ttft_ms: float = output("P50 TTFT", "ms")
    p90_ttft_ms: float = output("P90 TTFT", "ms")
    p99_ttft_ms: float = output("P99 TTFT", "ms")
    p50_tpot_ms: float = output("P50 TPOT", "ms")
    p90_tpot_ms: float = output("P90 TPOT", "ms")
    p99_tpot_ms: float = output("P99 TPOT", "ms")
    attainment: float = output("Attainment")
    mean_batch: float = output("Mean batch of an instance", "sequences")
    slots: int | None = output("Slots of an instance", "sequences")
    kv_gbit_s: float | None = output("Cache over each link", "Gbit/s", "Disaggregated")
    link_utilization: float | None = output("Utilization of each link", "", "Disaggregated")


@dataclass(frozen=True, kw_only=True)
class PlanResult:
    """The answer."""

    recommendation: Recommendation | None = output("Recommendation")
    predicted: Predicted | None = output("Predicted")
    binding: str | None = output("Binds first", "", "ttft, tpot, memory, link or stability")
    headroom: float | None = output("Headroom", "", "How much more it takes within the targets, as a share of the rate")
    disaggregate: bool | None = output(
        "Disaggregate",
        "",
        "Whether that is the best: it takes less than every colocated way, or as little and attains more",
    )
    verdict: str = output(
        "Verdict", "", "meets, too_few_accelerators, too_slow_unloaded, does_not_fit or nothing_to_decode"
    )
    reasons: tuple[Reason, ...] = output("Reasons")
    alternatives: tuple[Recommendation, ...] = output("Alternatives")
    refused: tuple[Refused, ...] = output("Degrees that do not serve")
    pipeline: Stages | None = output(
        "Pipeline that holds it", "", "Where no tensor degree does; the page of placement plans pipelines"
    )
    price_per_hour: float | None = output("Price of an accelerator", "US$/h")
    remarks: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should know before using the figures."""
        return self.remarks


def compute(inputs: PlanInputs) -> PlanResult:
    """Return the deployment with the fewest accelerators that keeps the targets, and what stands beside it.

    Raises
    ------
    InputsError
        If the accelerator does not have the data type.
    """
    demand = demand_of(inputs)
    targets = demand.targets
    found, refused = candidates(demand)
    best = _best_of_each(found)
    ranked = [_recommendation(demand, each) for each in best.values()]
    chosen = next(iter(best.values()), None)
    apart, colocated = best.get("disaggregated"), _first_colocated(best)
    verdict = _verdict(inputs, ranked, refused)
    return PlanResult(
        recommendation=ranked[0] if ranked else None,
        predicted=None if chosen is None else _predicted(inputs, chosen),
        binding=None if chosen is None else _binding(chosen, targets),
        headroom=None if chosen is None else chosen.can_take(targets) / inputs.rate - 1,
        disaggregate=None if not best else chosen is apart,
        verdict=verdict,
        reasons=tuple(reasons(Compared(demand.prefill, targets, inputs.rate, colocated, apart))),
        alternatives=tuple(ranked[1:]),
        refused=refused,
        pipeline=stages_that_fit(demand.prefill) if verdict == "does_not_fit" else None,
        price_per_hour=demand.prices[0],
        remarks=(*_remarks(inputs, demand, found), *histogram_remarks(inputs), *_chip_remarks(inputs)),
    )


def demand_of(inputs: PlanInputs) -> Demand:
    """Return what is to be served, on which kinds of accelerators, at which prices."""
    prefill = part_of(ServingInputs, inputs, tp=1)
    other = inputs.decode_accelerator
    decode = prefill if other is None else replace(prefill, accelerator=other)
    price = price_of(inputs.accelerator, inputs.price_per_hour)
    second = price if decode == prefill else price_of(decode.accelerator, inputs.decode_price_per_hour)
    most = math.inf if inputs.most_gpus is None else inputs.most_gpus
    return Demand(prefill, decode, part_of(ServiceLevels, inputs), inputs.rate, (price, second), most, inputs.routing)


def deployments_of(inputs: PlanInputs) -> dict[str, Deployment]:
    """Return the best deployment of each kind, the best of all first."""
    return _best_of_each(candidates(demand_of(inputs))[0])


def _best_of_each(found: Iterable[Deployment]) -> dict[str, Deployment]:
    best: dict[str, Deployment] = {}
    for each in found:
        best.setdefault(each.kind, each)
    return best


def _first_colocated(best: dict[str, Deployment]) -> Deployment | None:
    return next((each for kind, each in best.items() if kind != "disaggregated"), None)


def _recommendation(demand: Demand, deployment: Deployment) -> Recommendation:
    costs, targets = costs_of(deployment, demand), demand.targets
    times = deployment.latency
    return Recommendation(
        kind=deployment.kind,
        prefill=deployment.prefill,
        decode=deployment.decode,
        chunk_tokens=deployment.chunk_tokens,
        gpus=deployment.gpus,
        cost_per_hour=costs.per_hour,
        cost_per_million_input_tokens=costs.per_million_input,
        cost_per_million_output_tokens=costs.per_million_output,
        attainment=times.attainment(targets) if times else 0.0,
        highest_rate=deployment.can_take(targets),
    )


def _predicted(inputs: PlanInputs, deployment: Deployment) -> Predicted | None:
    times = deployment.latency
    if times is None:
        return None
    levels = list(LEVELS.values())
    ttft, tpot = 1e3 * times.ttft_quantile_s(levels), 1e3 * times.tpot_quantile_s(levels)
    moved = deployment.system.hand_off(inputs.rate) if isinstance(deployment.system, Disaggregated) else None
    figures: dict[str, Any] = {f"{key}_ttft_ms": float(each) for key, each in zip(LEVELS, ttft, strict=True)}
    figures |= {f"{key}_tpot_ms": float(each) for key, each in zip(LEVELS, tpot, strict=True)}
    return Predicted(
        **figures,
        attainment=times.attainment(part_of(ServiceLevels, inputs)),
        mean_batch=times.mean_batch,
        slots=deployment.system.pool.slots,
        kv_gbit_s=None if moved is None else 8 * moved.required_gb_s,
        link_utilization=None if moved is None else moved.utilization,
    )


def _binding(deployment: Deployment, targets: ServiceLevels) -> str:
    """Return what gives way first when the rate grows to what the deployment takes."""
    sets = deployment.decode.instances if deployment.kind != "disaggregated" else 1
    beyond = 1.02 * deployment.can_take(targets) / sets
    if isinstance(deployment.system, Disaggregated) and deployment.system.hand_off(beyond).mean_ms is None:
        return "link"
    times, here = deployment.system.at(beyond), deployment.latency
    slots = deployment.system.pool.slots or 1
    if max((each.mean_batch for each in (times, here) if each is not None), default=0.0) > CROWDED * slots:
        return "memory"
    if times is None:
        return "stability"
    first = times.ttft_share_within(1e-3 * targets.ttft_slo_ms)
    return "ttft" if first <= times.tpot_share_within(1e-3 * targets.tpot_slo_ms) else "tpot"


CROWDED = 0.8
"""Share of the slots from which a batch is said to be bound by memory."""


def _verdict(inputs: PlanInputs, ranked: list[Recommendation], refused: Iterable[Refused]) -> str:
    if not ranked and inputs.output_tokens == 1:
        return "nothing_to_decode"
    if not ranked:
        slow = any("no rate meets" in each.reason for each in refused)
        return "too_slow_unloaded" if slow else "does_not_fit"
    return "too_few_accelerators" if inputs.most_gpus is not None and ranked[0].gpus > inputs.most_gpus else "meets"


def _remarks(inputs: PlanInputs, demand: Demand, found_deployments: Iterable[Deployment]) -> tuple[str, ...]:
    unpriced = (kind.accelerator for kind in demand.kinds if demand.price_of(kind.accelerator) is None)
    found = [f"No price of {name} is known; type one in to see what the plan costs." for name in unpriced]
    if (
        inputs.most_gpus is not None
        and found_deployments
        and all(each.gpus > inputs.most_gpus for each in found_deployments)
    ):
        most = max(each.with_as_many(inputs.most_gpus) for each in found_deployments)
        so_many = (
            f"So many carry about {short(most)} requests/s."
            if most
            else "No deployment that keeps the targets is so small."
        )
        fewest = min(each.gpus for each in found_deployments)
        found.append(
            f"{inputs.most_gpus:,} accelerators are too few: {fewest:,} are needed for {readable(inputs.rate)} requests/s. {so_many}"
        )
    return tuple(found)


def _chip_remarks(inputs: PlanInputs) -> tuple[str, ...]:
    context = inputs.prompt_tokens + inputs.cached_tokens + inputs.output_tokens
    said = [hardware_remarks(kind, context) for kind in demand_of(inputs).kinds]
    return tuple(dict.fromkeys(sentence for each in said for sentence in each))
