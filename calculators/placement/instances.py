"""Instances of a configuration behind a router: how many the target rate takes, and what each carries among them.

The search rates an instance by itself. Among several, bursts thin out, and a router evens the arrivals or lets prompts share a queue.
"""

from __future__ import annotations

from dataclasses import replace

from calculators.fleet import MOST_INSTANCES, fewest_servers, instances_for
from calculators.lengths import spread_of
from calculators.placement.candidates import Candidate, Shape
from calculators.placement.cluster import PlacementInputs
from calculators.placement.goodput import DecodePipeline, PrefillPipeline
from calculators.placement.search import Search, evaluator_of
from calculators.routers import OWN_STREAM, scv_at_one, sharing
from calculators.systems import LEAST_SCV, MOST_SCV

Pipeline = PrefillPipeline | DecodePipeline


def depends_on_number(inputs: PlacementInputs) -> bool:
    """Return whether an instance carries more, or less, among more of them."""
    return inputs.arrival_scv != 1 or inputs.routing != "random"


def pipeline_among(inputs: PlacementInputs, found: Search, candidate: Candidate, instances: int) -> Pipeline:
    """Return an instance of a configuration as it is among so many."""
    evaluator, shape = evaluator_of(inputs, found), Shape(candidate.tp, candidate.pp, candidate.nodes)
    if candidate.side == "decode":
        scv = _scv(inputs, instances)
        even = inputs.routing != "random"  # what a router evens, the prefills undo
        return replace(evaluator.decode_pipeline(shape, candidate.slots), arrival_scv=max(scv, 1.0) if even else scv)
    pipeline = evaluator.prefill_pipeline(shape)
    if _shares_a_queue(inputs, candidate):
        return replace(pipeline, sharing=sharing(instances, inputs.routing), arrival_scv=inputs.arrival_scv)
    return replace(pipeline, arrival_scv=_scv(inputs, instances))


def _shares_a_queue(inputs: PlacementInputs, candidate: Candidate) -> bool:
    """Return whether prompts start as soon as any instance is free; equal ones in turn do, too."""
    if not spread_of(inputs):
        return inputs.routing != "random"
    # Prompts that differ, in several stages, have no form but in turn.
    return inputs.routing not in OWN_STREAM and candidate.pp == 1


def _scv(inputs: PlacementInputs, instances: int) -> float:
    in_turn = inputs.routing != "random"
    return min(max(scv_at_one(inputs.arrival_scv, instances, in_turn=in_turn), LEAST_SCV), MOST_SCV)


def share_in_time(inputs: PlacementInputs, found: Search, candidate: Candidate, instances: int) -> float:
    """Return the share of the requests within a side's target, with so many instances for the target rate."""
    pipeline, rate = pipeline_among(inputs, found, candidate, instances), inputs.target_rate / instances
    if isinstance(pipeline, PrefillPipeline):
        return pipeline.share_within(1e-3 * inputs.ttft_slo_ms, rate)
    return pipeline.share_within(evaluator_of(inputs, found).tpot_slo_s, rate)


def goodput_among(inputs: PlacementInputs, found: Search, candidate: Candidate, instances: int) -> float:
    """Return what an instance carries among so many within its side's target [requests/s]; prefill, its link allows as well."""
    if not depends_on_number(inputs):
        return candidate.goodput or 0.0
    pipeline = pipeline_among(inputs, found, candidate, instances)
    if isinstance(pipeline, PrefillPipeline):
        return min(pipeline.goodput(1e-3 * inputs.ttft_slo_ms, inputs.level) or 0.0, _most(inputs, found, candidate))
    return pipeline.goodput(evaluator_of(inputs, found).tpot_slo_s, inputs.level) or 0.0


def instances_needed(inputs: PlacementInputs, found: Search, candidate: Candidate) -> int:
    """Return the fewest instances of a configuration for the target rate."""
    return units_needed(inputs, found, ((candidate, 1),), candidate.goodput or 0.0)


def units_needed(
    inputs: PlacementInputs, found: Search, sides: tuple[tuple[Candidate, int], ...], goodput: float
) -> int:
    """Return the fewest units of so many instances of either side each for the target rate."""
    if not depends_on_number(inputs):
        return instances_for(inputs.target_rate, goodput)

    def keeps(count: int) -> bool:
        return all(_keeps(inputs, found, candidate, count * number) for candidate, number in sides)

    return fewest_servers(keeps, 1, MOST_INSTANCES) or instances_for(inputs.target_rate, goodput)


def _keeps(inputs: PlacementInputs, found: Search, candidate: Candidate, instances: int) -> bool:
    if inputs.target_rate / instances > _most(inputs, found, candidate):
        return False
    return share_in_time(inputs, found, candidate, instances) >= inputs.level


def _most(inputs: PlacementInputs, found: Search, candidate: Candidate) -> float:
    """Return the rate of an instance that its link allows [requests/s]."""
    handing = candidate.side == "prefill" and inputs.steps > 0
    return found.hand_off.max_rate if handing else float("inf")
