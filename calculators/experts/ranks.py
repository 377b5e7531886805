"""Expert parallelism: what falls on each rank of a group, what they exchange, and how long its step takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

import hardware_db
from calculators.experts.routing import Routing
from calculators.experts.steps import context_of, sequences_of
from calculators.inputs import InputError, InputsError
from calculators.machine import machine_of
from calculators.outputs import counted, output
from calculators.step_load import step_load
from formulas import experts as forms
from formulas import step_time as step

if TYPE_CHECKING:
    from calculators.experts.compute import ExpertsInputs

ACTIVATION_BYTES = 2
"""Bytes of an activation's element on its way, as in the all-reduces of tensor parallelism."""

_PLACEMENTS: dict[str, forms.Placement] = {
    "shuffled": "shuffled",
    "balanced": "balanced",
    "by_popularity": "by popularity",
}
PLACEMENTS = tuple(_PLACEMENTS)


@dataclass(frozen=True)
class Ranks:
    """What falls on the ranks of an expert-parallel group, in each layer."""

    ranks: int = output("Ranks")
    experts_on_rank: int = output("Experts on a rank")
    mean_load: float = output("Choices on a rank", "", "On average: tokens times experts per token over ranks; exact")
    busiest_load: float = output("Busiest rank, choices", "", "Expected maximum; approximate")
    imbalance: float = output("Busiest over mean", "", "What the arithmetic of the experts waits for")
    mean_distinct: float = output("Experts touched on a rank", "", "On average; each token chooses among all experts")
    busiest_distinct: float = output("Busiest rank, experts touched", "", "Expected maximum; approximate")
    ranks_visited: float = output("Ranks that a token visits", "", "Choices that meet on a rank travel once; exact")
    sent_bytes: float | None = output("Sent by a rank in a layer", "B", "One way; as much comes back")
    step_ms: float | None = output("Step of the group", "ms", "None without a record, or where the link is not known")
    bound: str | None = output("Bound by", "", "compute or memory")
    exchange_ms: float | None = output("of which exchange", "ms", "To the experts and back, in all layers")


def divisors(experts: int) -> list[int]:
    """Return the numbers of ranks over which so many experts divide.

    >>> divisors(12)
    [1, 2, 3, 4, 6, 12]
    """
    return [n for n in range(1, experts + 1) if experts % n == 0]


def placed(routing: Routing, ranks: int, placement: str) -> NDArray[np.intp]:
    """Return the rank of each expert."""
    return forms.place(routing.weights, ranks, _PLACEMENTS[placement])


def ranks_of(inputs: ExpertsInputs, routing: Routing, ranks: int, tokens: int | None = None) -> Ranks:
    """Return what falls on each of so many ranks.

    Raises
    ------
    InputsError
        If the experts do not divide over them, or tensor parallelism does not divide them.
    """
    t = sequences_of(inputs).tokens if tokens is None else tokens
    _check(inputs, routing, ranks)
    rank = placed(routing, ranks, inputs.placement)
    load = forms.busiest_load(routing.probabilities, t, rank)
    mean = forms.RANK_LOAD(experts_per_token=routing.chosen, tokens=t, ranks=ranks)
    busiest = forms.busiest_distinct(routing.probabilities, t, rank)
    visited = _visited(routing, ranks, inputs.placement)
    time = _group_step(inputs, t, ranks, load, busiest, visited) if routing.recorded else None
    return Ranks(
        ranks=ranks,
        experts_on_rank=routing.experts // ranks,
        mean_load=mean,
        busiest_load=load,
        imbalance=load / mean,
        mean_distinct=routing.touched(t) / ranks,
        busiest_distinct=busiest,
        ranks_visited=visited,
        sent_bytes=_sent_bytes(inputs, t, ranks, visited) if routing.recorded else None,
        step_ms=1e3 * time.total_s if time else None,
        bound=str(time.bound) if time else None,
        exchange_ms=1e3 * time.collectives_s if time else None,
    )


def _visited(routing: Routing, ranks: int, placement: str) -> float:
    if routing.even:
        return forms.ranks_visited(routing.experts, routing.chosen, ranks)
    return _unevenly_visited(routing.weights, routing.chosen, tuple(placed(routing, ranks, placement)))


@lru_cache(maxsize=256)
def _unevenly_visited(weights: tuple[float, ...], chosen: int, rank: tuple[int, ...]) -> float:
    return float(forms.visit_probabilities(weights, chosen, rank).sum())


def exchange_values(inputs: ExpertsInputs, tokens: int, ranks: int, visited: float) -> dict[str, float]:
    """Return the values of :data:`formulas.experts.EXCHANGE_BYTES`."""
    model = hardware_db.models()[inputs.model]
    width = (model.moe.latent_width if model.moe else None) or model.hidden
    return {
        "tokens_per_rank": tokens / ranks,
        "ranks_visited": visited,
        "ranks": ranks,
        "hidden": width,
        "element_bytes": ACTIVATION_BYTES,
    }


def _sent_bytes(inputs: ExpertsInputs, tokens: int, ranks: int, visited: float) -> float:
    return float(forms.EXCHANGE_BYTES(**exchange_values(inputs, tokens, ranks, visited)))


def _group_step(
    inputs: ExpertsInputs, tokens: int, ranks: int, load: float, distinct: float, visited: float
) -> step.StepTime:
    """Return the time of a step of the group; collectives are the exchange and the all-reduces of attention.

    The group has as many accelerators as ranks. Attention is tensor parallel over ``tp`` of them and data parallel
    beyond, so that it reads its weights once in each such part, and each part has its share of the sequences.
    """
    model = hardware_db.models()[inputs.model]
    machine, parts = machine_of(inputs), ranks // inputs.tp
    own = step_load(inputs, sequences_of(inputs).contents(tokens / parts, context_of(inputs)))
    expert_flops = step.matmul_flops(model.parameters.one_expert * model.moe_layers, 1.0)
    on_rank = step.StepLoad(
        flops=(own.flops - expert_flops * model.experts_per_token * tokens / parts) / inputs.tp + expert_flops * load,
        weight_bytes=model.dense_weight_bytes(inputs.weight_dtype) / inputs.tp
        + model.moe_layers * distinct * model.expert_bytes(inputs.weight_dtype),
        kv_bytes=own.kv_bytes / min(inputs.tp, own.kv_shards),
        kv_shards=1,
        tokens=own.tokens,
        hidden=model.hidden,
        layers=model.layers,
    )
    time = step.step_time(on_rank, replace(machine, tp=1))
    shared_s = _exchange_s(inputs, tokens, ranks, visited) + _attention_reduce_s(inputs, own, machine)
    return replace(time, collectives_s=shared_s, total_s=time.total_s + shared_s)


def _exchange_s(inputs: ExpertsInputs, tokens: int, ranks: int, visited: float) -> float:
    machine, model = _joined(inputs, ranks), hardware_db.models()[inputs.model]
    if machine.link_bytes_s is None:  # a single rank
        return 0.0
    bandwidth = machine.link_efficiency * machine.link_bytes_s
    one_way = _sent_bytes(inputs, tokens, ranks, visited) / bandwidth + machine.allreduce_latency_s
    return 2 * model.moe_layers * one_way


def _attention_reduce_s(inputs: ExpertsInputs, own: step.StepLoad, machine: step.Machine) -> float:
    """Return the all-reduces that tensor parallelism leaves: one after attention, one after each dense FFN."""
    if inputs.tp == 1:
        return 0.0
    model = hardware_db.models()[inputs.model]
    share = (2 * model.layers - model.moe_layers) / (2 * model.layers)
    return share * float(step.step_time(replace(own, flops=0.0, weight_bytes=0.0), machine).collectives_s)


def _joined(inputs: ExpertsInputs, ranks: int) -> step.Machine:
    try:
        return machine_of(replace(inputs, tp=ranks))
    except InputsError as refused:
        renamed = [InputError("ep", ranks, each.sentence.replace("or use tp = 1", "or use ep = 1")) if each.name == "tp"
                   else each for each in refused.errors]  # fmt: skip
        raise InputsError(renamed) from None


def _check(inputs: ExpertsInputs, routing: Routing, ranks: int) -> None:
    if routing.experts % ranks:
        allowed = ", ".join(map(str, divisors(routing.experts)))
        sentence = (
            f"{counted(routing.experts, 'expert')} do not divide over {counted(ranks, 'rank')}; allowed: {allowed}"
        )
        raise InputsError([InputError("ep", ranks, sentence)])
    if routing.recorded and ranks % inputs.tp:
        sentence = f"attention over tp = {inputs.tp} does not divide the {counted(ranks, 'accelerator')} of the group"
        raise InputsError([InputError("ep", ranks, f"{sentence}; use a multiple of {inputs.tp}, or another tp")])


def ranks_table(inputs: ExpertsInputs, routing: Routing) -> list[Ranks]:
    """Return what falls on each rank for every number of ranks; those without a known link have no time."""
    found = []
    for ranks in divisors(routing.experts):
        try:
            found.append(ranks_of(inputs, routing, ranks))
        except InputsError:
            found.append(ranks_of(inputs, replace(routing, recorded=False), ranks))
    return found
