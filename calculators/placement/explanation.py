"""What makes the answer checkable: its formulas with the user's numbers, and the facts it rests on."""

from __future__ import annotations

import numpy as np

import hardware_db
from calculators.facts import Fact, ShownFormula, fact_of, instance_facts
from calculators.inputs import part_of
from calculators.machine import MachineInputs
from calculators.placement.candidates import Shape
from calculators.placement.cluster import PlacementInputs, SearchInputs, kv_route
from calculators.placement.compute import Chosen, PlacementResult
from calculators.placement.search import Search, evaluator_of, search
from formulas import kv_cache as kv_forms
from formulas.decode_pool import PIPELINE_ROUND, micro_batch
from formulas.parallelism import STAGES_MEAN_TTFT


def formulas(inputs: PlacementInputs, result: PlacementResult) -> list[ShownFormula]:
    """Return the formulas of the chosen configurations with their numbers put in."""
    found = search(part_of(SearchInputs, inputs))
    shown = []
    if result.prefill:
        shown.append(_prefill(inputs, found, result.prefill))
    if result.decode:
        shown.append(_decode(inputs, found, result.decode))
    if result.prefill and result.decode:
        shown += _hand_off(inputs, found, result.prefill)
    return shown


def _shape(chosen: Chosen) -> Shape:
    return Shape(chosen.tp, chosen.pp, chosen.nodes)


def _prefill(inputs: PlacementInputs, found: Search, chosen: Chosen) -> ShownFormula:
    pipeline = evaluator_of(inputs, found).prefill_pipeline(_shape(chosen))
    values = {
        "rate": inputs.target_rate / chosen.instances,
        "bottleneck_time": pipeline.bottleneck_s,
        "latency": pipeline.latency_s,
    }
    if inputs.prompt_cv or inputs.arrival_scv != 1:
        how = "simulated" if pipeline.is_simulated else "numerically exact"
        wait = (
            "The formula holds for equal prompts that come at random, and is a mark to compare with: yours spread or come in "
            f"bursts. The goodput is where the percentile of their wait, {how},"
        )
    else:
        wait = "The goodput is where the percentile of the same wait, exact in M/D/1,"
    remark = (
        f"Of one instance, of which there are {chosen.instances:,}. {wait} and the time through all stages make "
        f"{inputs.ttft_slo_ms:g} ms: {chosen.goodput:.4g} requests/s."
    )
    return ShownFormula(STAGES_MEAN_TTFT, values, remark)


def _decode(inputs: PlacementInputs, found: Search, chosen: Chosen) -> ShownFormula:
    evaluator, shape = evaluator_of(inputs, found), _shape(chosen)
    slots = next(each.slots for each in found.allowed("decode") if (each.tp, each.pp) == (chosen.tp, chosen.pp))
    law = evaluator.decode_pipeline(shape, slots).law(inputs.target_rate / chosen.instances)
    batch = micro_batch(np.array([law.mean_batch + 1]), chosen.pp)
    stages = evaluator.times.decode_s(evaluator.inputs, chosen.tp, chosen.pp, batch, inputs.mean_context)[:, 0]
    latency = float(stages.sum()) + evaluator.decode_hops_s(shape)
    values = {"stages": chosen.pp, "slowest_s": float(stages.max()), "way_s": latency}
    remark = (
        f"At the {law.mean_batch + 1:.4g} sequences that a token sees on average in an instance, of which there are {chosen.instances:,}: "
        f"{float(batch[0]):.4g} in each micro-batch. The law of their number is the decode pool's, with this time as its step."
    )
    return ShownFormula(PIPELINE_ROUND, values, remark)


def _hand_off(inputs: PlacementInputs, found: Search, chosen: Chosen) -> list[ShownFormula]:
    moved, rate = found.hand_off, inputs.target_rate / chosen.instances
    queue = {"rate": rate, "link_time_s": moved.link_s}
    return [
        ShownFormula(kv_forms.REQUIRED_BANDWIDTH, {"rate": rate, "kv_bytes": moved.kv_bytes}),
        ShownFormula(kv_forms.LINK_UTILIZATION, queue),
        ShownFormula(kv_forms.LINK_MEAN_TRANSFER, queue | {"latency_s": moved.latency_s}),
    ]


def facts(inputs: PlacementInputs) -> list[Fact]:
    """Return the records that the answer rests on."""
    found = instance_facts(part_of(MachineInputs, inputs, tp=1))
    route = kv_route(inputs)
    if route.id:
        found.append(fact_of(hardware_db.links()[route.id], "Link"))
    return found
