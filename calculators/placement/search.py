"""DistServe's two searches over every configuration of a cluster, with the closed forms as their evaluator.

Algorithm 1, for a network over which caches may cross nodes: each side's configuration of the largest goodput per accelerator,
by itself. Algorithm 2, for a slow one: the stages of both sides that hold the same layers share a node, so both sides are
chosen together, for each number of nodes that an instance is cut over. DistServe puts one instance of each side into such a
unit; here it holds as many of each as the node has room for, of which one and one is a case.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache

from calculators.inputs import part_of
from calculators.outputs import output
from calculators.placement.candidates import Candidate, Evaluator, HandOff, Side, hand_off, shapes
from calculators.placement.cluster import SearchInputs
from calculators.placement.step_times import ModelledTimes, StepTimes
from calculators.systems import refuse_other_bursts

SAME = 1e-9
"""Relative difference of two goodputs below which the configuration with fewer accelerators is the better one."""


@dataclass(frozen=True, kw_only=True)
class Unit:
    """Instances of both sides that are placed together on the same nodes; on a fast network, one of each apart."""

    nodes: int = output("Nodes of a unit")
    prefill: Candidate
    decode: Candidate
    prefill_instances: int = output("Prefill instances")
    decode_instances: int = output("Decode instances")
    gpus: int = output("Accelerators of a unit")
    goodput: float = output("Goodput of a unit", "requests/s")
    goodput_per_gpu: float = output("Goodput of an accelerator", "requests/s")


@dataclass(frozen=True)
class Search:
    """What a search found.

    Attributes
    ----------
    candidates
        Every configuration of both sides, those allowed first, by goodput per accelerator.
    units
        On a slow network every joint choice, the best first.
    hand_off
        Moving one request's cache.
    transfer_s
        Mean time of a transfer that decoding was charged with, spread over a request's tokens [s].
    joint
        Whether both sides are chosen together.
    """

    candidates: tuple[Candidate, ...]
    units: tuple[Unit, ...]
    hand_off: HandOff
    transfer_s: float
    joint: bool

    def allowed(self, side: Side) -> list[Candidate]:
        """Return the configurations of a side against which nothing stands, the best first."""
        return [each for each in self.candidates if each.side == side and each.allowed]

    def best(self, side: Side) -> Candidate | None:
        """Return the configuration chosen for a side, or ``None`` if all were refused."""
        if self.joint:
            return (self.units[0].prefill if side == "prefill" else self.units[0].decode) if self.units else None
        return next(iter(self.allowed(side)), None)


@lru_cache(maxsize=64)  # it does not depend on the target rate, which is what a planner moves
def search(inputs: SearchInputs, times: StepTimes = ModelledTimes()) -> Search:  # noqa: B008 - frozen, without state
    """Return the evaluated configurations and the joint choices.

    Raises
    ------
    InputsError
        If the accelerator does not have the data type.
    """
    refuse_other_bursts(inputs)
    moved = hand_off(inputs)
    evaluator = Evaluator(inputs, times, moved, 1e-3 * inputs.tpot_slo_ms)
    prefill = [evaluator.candidate("prefill", shape) for shape in shapes(inputs)]
    if not inputs.steps:
        return Search(tuple(sorted(prefill, key=_rank)), (), moved, 0.0, joint=False)
    transfer_s = moved.mean_s(_busiest(inputs, prefill))
    left = Evaluator(inputs, times, moved, 1e-3 * inputs.tpot_slo_ms - transfer_s / inputs.steps)
    decode = [left.candidate("decode", shape) for shape in shapes(inputs)]
    joint = inputs.network == "slow"
    units = joint_choices(inputs.node_gpus, prefill, decode) if joint else ()
    return Search(tuple(sorted([*prefill, *decode], key=_rank)), units, moved, transfer_s, joint)


def evaluator_of(inputs: SearchInputs, found: Search) -> Evaluator:
    """Return the evaluator of decoding as a search left it, by the step-time model: the hand-off taken off its target."""
    late_s = found.transfer_s / inputs.steps if inputs.steps else 0.0
    return Evaluator(part_of(SearchInputs, inputs), ModelledTimes(), found.hand_off, 1e-3 * inputs.tpot_slo_ms - late_s)


def _busiest(inputs: SearchInputs, prefill: list[Candidate]) -> float:
    """Return the rate [requests/s] that one prefill instance hands over: of the one chosen, or of the busiest of all."""
    allowed = sorted((each for each in prefill if each.allowed), key=_rank)
    if not allowed:
        return 0.0
    return (allowed[0].goodput or 0.0) if inputs.network == "fast" else max(each.goodput or 0.0 for each in allowed)


def _rank(candidate: Candidate) -> tuple[bool, float, int]:
    """Return what configurations are sorted by: those allowed, goodput per accelerator, then fewer accelerators."""
    per_gpu = candidate.goodput_per_gpu or 0.0
    return (not candidate.allowed, -float(f"{per_gpu:.9e}"), candidate.gpus)


def joint_choices(
    node_gpus: int, prefill: list[Candidate], decode: list[Candidate], *, one_of_each: bool = False
) -> tuple[Unit, ...]:
    """Return the best unit of every pair of configurations that share nodes, the best of all first.

    With ``one_of_each``, a unit holds one instance of each side, as DistServe's does.
    """
    by_nodes: dict[int, tuple[list[Candidate], list[Candidate]]] = defaultdict(lambda: ([], []))
    for place, candidates in enumerate((prefill, decode)):
        for each in candidates:
            if each.allowed:
                by_nodes[each.nodes][place].append(each)
    found = [
        unit
        for ours, theirs in by_nodes.values()
        for one in ours
        for other in theirs
        if (unit := best_unit(node_gpus, one, other, 1 if one_of_each else node_gpus))
    ]
    return tuple(sorted(found, key=lambda unit: (-float(f"{unit.goodput_per_gpu:.9e}"), unit.gpus)))


def best_unit(node_gpus: int, prefill: Candidate, decode: Candidate, most: int) -> Unit | None:
    """Return the numbers of instances, up to ``most`` of a side, that share a node with the largest goodput per accelerator.

    ``None`` where not even one of each does.
    """
    ours, theirs = prefill.gpus // prefill.nodes, decode.gpus // decode.nodes
    options = [
        _unit(prefill, decode, count, other)
        for count in range(1, min(most, (node_gpus - theirs) // ours) + 1)
        for other in range(1, min(most, (node_gpus - count * ours) // theirs) + 1)
    ]
    return max(options, key=lambda unit: (float(f"{unit.goodput_per_gpu:.9e}"), -unit.gpus), default=None)


def _unit(prefill: Candidate, decode: Candidate, prefills: int, decodes: int) -> Unit:
    gpus = prefills * prefill.gpus + decodes * decode.gpus
    goodput = min(prefills * (prefill.goodput or 0.0), decodes * (decode.goodput or 0.0))
    return Unit(
        nodes=prefill.nodes, prefill=prefill, decode=decode, prefill_instances=prefills, decode_instances=decodes, gpus=gpus,
        goodput=goodput, goodput_per_gpu=goodput / gpus,
    )  # fmt: skip
