"""Every configuration of one side, evaluated or refused with its reasons.

A configuration is a tensor degree, a number of stages and over how many nodes these go. Stages are never cut by the border of a
node. On a fast network they fill one node after the other; on a slow one every node of an instance has as many.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

import hardware_db
from calculators.degrees import pipeline_degrees, tensor_obstacles
from calculators.inputs import part_of
from calculators.kv_transfer import TransferInputs, link_values
from calculators.lengths import lengths_of, spread_of
from calculators.memory import MemoryInputs, cache_of, how_many, room_for_cache
from calculators.outputs import apart, output, short
from calculators.placement.cluster import SearchInputs, hops_s, kv_route
from calculators.placement.goodput import DecodePipeline, PrefillPipeline
from calculators.placement.step_times import RoundTable, StepTimes
from formulas import kv_cache as kv_forms
from formulas.queueing.service import ServiceLaw, service_law

Side = Literal["prefill", "decode"]
SIDES: tuple[Side, ...] = ("prefill", "decode")

LINK_SHARE = 0.8
"""Utilization of an instance's link to which its prefill goodput is held: a transfer then waits for two others."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One configuration of one side."""

    side: str = output("Side")
    tp: int = output("Tensor degree")
    pp: int = output("Stages")
    nodes: int = output("Nodes")
    gpus: int = output("Accelerators", "", "Of an instance")
    goodput: float | None = output("Goodput", "requests/s", "Of an instance")
    goodput_per_gpu: float | None = output("Goodput each", "requests/s", "Of an accelerator")
    alone_ms: float | None = output("Alone", "ms", "TTFT or time of a token of a request that meets nobody")
    slots: int | None = output("Requests in memory", "", "Of an instance, all stages together")
    refused_by: str = output("Refused by", "", "shape (model, link, nodes), memory or time; empty where it is allowed")
    reasons: tuple[str, ...] = output("Why not")
    notes: tuple[str, ...] = output("Notes")

    @property
    def allowed(self) -> bool:
        """Whether nothing stands against it."""
        return not self.reasons

    @property
    def name(self) -> str:
        """The degrees in words: ``TP 4 PP 2``."""
        return f"TP {self.tp} PP {self.pp}"


@dataclass(frozen=True)
class Shape:
    """Degrees and the nodes over which the stages go."""

    tp: int
    pp: int
    nodes: int

    @property
    def boundaries(self) -> tuple[int, int]:
        """Boundaries between successive stages: inside nodes, and between nodes."""
        return self.pp - self.nodes, self.nodes - 1


def shapes(inputs: SearchInputs) -> Iterator[Shape]:
    """Return every configuration that the cluster has room for; a pipeline has at most as many stages as layers."""
    layers = hardware_db.models()[inputs.model].layers
    for tp in range(1, inputs.node_gpus + 1):
        in_node = inputs.node_gpus // tp
        if inputs.network == "fast":
            for pp in range(1, min(inputs.gpus // tp, layers) + 1):
                yield Shape(tp, pp, -(-pp // in_node))
        else:
            for nodes in range(1, inputs.nodes + 1):
                for here in range(1, in_node + 1):
                    if here * nodes <= layers:
                        yield Shape(tp, here * nodes, nodes)


@dataclass(frozen=True)
class HandOff:
    """Moving one request's cache [B, s]."""

    kv_bytes: float
    link_s: float
    latency_s: float

    @property
    def max_rate(self) -> float:
        """Rate [requests/s] of one instance to which its link is used."""
        return LINK_SHARE / self.link_s if self.link_s > 0 else float("inf")

    def mean_s(self, rate: float) -> float:
        """Return the mean time [s] of a transfer at a rate [requests/s] of one instance, the wait for the link included."""
        return float(kv_forms.LINK_MEAN_TRANSFER(rate=rate, link_time_s=self.link_s, latency_s=self.latency_s))


def hand_off(inputs: SearchInputs) -> HandOff:
    """Return what moving one request's cache costs on the way that the network leaves it."""
    route = kv_route(inputs)
    links = inputs.links_used if inputs.network == "fast" else 1
    values = link_values(part_of(TransferInputs, inputs, rate=1.0, links_used=links), route, inputs.prompt_context)
    return HandOff(float(values["kv_bytes"]), float(kv_forms.LINK_TIME(**values)), route.latency_s)


@dataclass(frozen=True)
class Evaluator:
    """Evaluates shapes for one side with one source of step times.

    Attributes
    ----------
    tpot_slo_s
        What the hand-off leaves of the TPOT target [s]; the decode side's limit.
    """

    inputs: SearchInputs
    times: StepTimes
    hand_off: HandOff
    tpot_slo_s: float

    def candidate(self, side: Side, shape: Shape) -> Candidate:
        """Return the configuration with its goodput, or the reasons for which it is refused."""
        if reasons := self.structure(side, shape):
            return _refused(side, shape, "shape", reasons)
        slots, reasons = self._memory(side, shape)
        if reasons:
            return _refused(side, shape, "memory", reasons, slots)
        return self._prefill(shape, slots) if side == "prefill" else self._decode(shape, slots)

    def structure(self, side: Side, shape: Shape) -> tuple[str, ...]:
        """Return what the model, the link and the nodes say against a shape."""
        inputs = self.inputs
        found = [*tensor_obstacles(inputs, shape.tp)]
        if not found and (unknown := self.times.refusal(shape.tp)):
            found.append(unknown)
        if shape.nodes > inputs.nodes:
            whole = inputs.node_gpus // shape.tp
            found.append(
                f"{shape.pp} stages of {shape.tp} need {shape.nodes} nodes, {whole} stages in each, and there are {inputs.nodes}"
            )
        if inputs.network == "slow" and shape.tp * shape.pp >= inputs.node_gpus * shape.nodes:
            found.append(
                f"it fills its nodes: no room beside it for the {'decode' if side == 'prefill' else 'prefill'} side"
            )
        return tuple(found)

    def prefill_pipeline(self, shape: Shape) -> PrefillPipeline:
        """Return the prefill instance of a shape."""
        stages_s = self.times.prefill_s(self.inputs, shape.tp, shape.pp)
        hops = hops_s(self.inputs, shape.boundaries, self.inputs.prompt_tokens)
        relative = self._relative(shape.tp) if spread_of(self.inputs) else None
        return PrefillPipeline(tuple(stages_s.tolist()), hops, relative, self.inputs.arrival_scv)

    def _relative(self, tp: int) -> ServiceLaw:
        return _relative_law(self.times, self.inputs, tp)

    def decode_pipeline(self, shape: Shape, slots: int | None) -> DecodePipeline:
        """Return the decode instance of a shape."""
        table = RoundTable(self.times, self.inputs, shape.tp, shape.pp, self.decode_hops_s(shape))
        spread = self.inputs.output_cv**2, self.inputs.arrival_scv
        return DecodePipeline(table, self.inputs.steps, slots, *spread)

    def decode_hops_s(self, shape: Shape) -> float:
        """Return the time [s] of all hops of a token; the last stage hands it back to the first."""
        inside, between = shape.boundaries
        back = (0, 0) if shape.pp == 1 else (0, 1) if between else (1, 0)
        return hops_s(self.inputs, (inside + back[0], between + back[1]), 1.0)

    def _memory(self, side: Side, shape: Shape) -> tuple[int | None, tuple[str, ...]]:
        """Return how many requests fit, all stages together, and why that is too few."""
        inputs, (tp, pp) = self.inputs, (shape.tp, shape.pp)
        held = part_of(MemoryInputs, inputs, tp=tp)
        model, chip = hardware_db.models()[inputs.model], hardware_db.accelerators()[inputs.accelerator]
        room = room_for_cache(held, pp)
        if room is None:
            weights = model.weight_bytes(inputs.weight_dtype) * -(-model.layers // pp) / model.layers / tp
            usable = inputs.memory_share * chip.memory_bytes
            needs = f"{weights / 1e9:.1f} GB of weights and {inputs.reserve_gb:g} GB of reserve on each"
            return None, (f"{needs}, and {usable / 1e9:.1f} GB of {chip.name} may be used",)
        tokens = inputs.prompt_context + (inputs.steps if side == "decode" else 0)
        slots = how_many(room, cache_of(model, tokens, inputs.kv_dtype, tp, pp).sequence_per_rank)
        needed = pp if side == "prefill" else 1
        if slots is not None and slots < needed:
            what = f"the caches of {needed} prompts, one for each stage," if needed > 1 else "the cache of one request"
            return slots, (f"{what} do not fit into the {room / 1e9:.2f} GB that the weights and the reserve leave",)
        return slots, ()

    def _prefill(self, shape: Shape, slots: int | None) -> Candidate:
        inputs, pipeline = self.inputs, self.prefill_pipeline(shape)
        slo_s = 1e-3 * inputs.ttft_slo_ms
        goodput = pipeline.goodput(slo_s, inputs.level)
        if goodput is None:
            late = (
                f"too slow even unloaded: {apart(1e3 * pipeline.latency_s, inputs.ttft_slo_ms)} ms to the first token"
            )
            return _refused("prefill", shape, "time", (late,), slots, 1e3 * pipeline.latency_s)
        notes = _uneven(inputs, shape)
        if pipeline.is_simulated:
            notes = (*notes, "simulated")
        if inputs.steps and goodput > self.hand_off.max_rate:
            notes = (
                *notes,
                f"held to {short(self.hand_off.max_rate)} requests/s by its link, where the targets allow {short(goodput)}",
            )
            goodput = self.hand_off.max_rate
        return _allowed("prefill", shape, slots, notes, 1e3 * pipeline.latency_s, goodput)

    def _decode(self, shape: Shape, slots: int | None) -> Candidate:
        inputs, pipeline = self.inputs, self.decode_pipeline(shape, slots)
        alone_ms = 1e3 * pipeline.alone_s
        goodput = pipeline.goodput(self.tpot_slo_s, inputs.level) if self.tpot_slo_s > 0 else None
        if goodput is None:
            moved = inputs.tpot_slo_ms - 1e3 * self.tpot_slo_s
            late = f"too slow even unloaded: {apart(alone_ms, inputs.tpot_slo_ms)} ms for a token"
            if moved > 0.01 * alone_ms:
                late += f", and the hand-off adds {short(moved)} ms to each"
            return _refused("decode", shape, "time", (late,), slots, alone_ms)
        return _allowed("decode", shape, slots, _uneven(inputs, shape), alone_ms, goodput)


@lru_cache(maxsize=64)  # all pipelines of a degree share it, and what is drawn from it
def _relative_law(times: StepTimes, inputs: SearchInputs, tp: int) -> ServiceLaw:
    return service_law(lengths_of(inputs), lambda tokens: times.relative_s(inputs, tp, np.asarray(tokens, float)))


def _uneven(inputs: SearchInputs, shape: Shape) -> tuple[str, ...]:
    (rule,) = pipeline_degrees(inputs, (shape.pp,))
    return rule.notes


def _allowed(
    side: Side, shape: Shape, slots: int | None, notes: tuple[str, ...], alone_ms: float, goodput: float
) -> Candidate:
    gpus = shape.tp * shape.pp
    return Candidate(
        side=side, tp=shape.tp, pp=shape.pp, nodes=shape.nodes, gpus=gpus, goodput=goodput, goodput_per_gpu=goodput / gpus,
        alone_ms=alone_ms, slots=slots, refused_by="", reasons=(), notes=notes,
    )  # fmt: skip


def _refused(
    side: Side,
    shape: Shape,
    by: str,
    reasons: tuple[str, ...],
    slots: int | None = None,
    alone_ms: float | None = None,
) -> Candidate:
    return Candidate(
        side=side, tp=shape.tp, pp=shape.pp, nodes=shape.nodes, gpus=shape.tp * shape.pp, goodput=None, goodput_per_gpu=None,
        alone_ms=alone_ms, slots=slots, refused_by=by, reasons=reasons, notes=(),
    )  # fmt: skip
