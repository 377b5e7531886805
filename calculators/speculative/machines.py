"""Target and draft on their chips: where weights and cache are kept, and how long each step takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import hardware_db
from calculators.inputs import InputError, InputsError
from calculators.machine import MachineInputs, machine_of
from calculators.memory import cache_of
from calculators.speculative.given import SpeculativeInputs
from calculators.step_load import StepContents, attention_flops, step_load
from formulas import step_time as step

Array = NDArray[np.float64]

OVERHEAD_MS = {"on-chip": 0.045, "other": 0.3}
"""Overhead of a draft step by kind of chip [ms], where none is typed in.

Lecture 8.3 gives 0.90 ms on a GPU and 0.057 ms on a machine of 150 TB/s for a draft of 1.6 billion 8-bit parameters; so
much is left beside the reading at 80 % of the bandwidth. A draft step has no scheduling of its own, unlike a target's.
"""

LEAST_LEFT = 0.1
"""Share of the usable memory that the weights leave, where the number of chips is not typed in."""

EIGHT_BITS_FIRST = ("fp8", "int8", "bf16", "fp16", "fp32")


@dataclass(frozen=True)
class Side:
    """One of the two models on its chips.

    Attributes
    ----------
    name : str
        ``target`` or ``draft``, as the inputs' names begin.
    machine : MachineInputs
        Model, chips, formats and assumptions.
    context : int
        Tokens that each sequence attends to.
    size : float or None
        Parameters in place of the model's own.
    taken : float
        Bytes of each chip that the other model takes already.
    """

    name: str
    machine: MachineInputs
    context: int
    size: float | None = None
    taken: float = 0.0

    @property
    def chip(self) -> hardware_db.Accelerator:
        """The chip's record."""
        return hardware_db.accelerators()[self.machine.accelerator]

    @property
    def model(self) -> hardware_db.Model:
        """The model's record."""
        return hardware_db.models()[self.machine.model]

    @property
    def weights_per_chip(self) -> float:
        """Bytes of weights on each chip."""
        form = hardware_db.FORMATS[self.machine.weight_dtype]
        whole = self.size * form.layer_bytes if self.size else self.model.weight_bytes(self.machine.weight_dtype)
        return whole / self.machine.tp

    @property
    def cache_per_chip(self) -> float:
        """Bytes of one sequence's cache on each chip."""
        return cache_of(self.model, self.context, self.machine.kv_dtype, self.machine.tp).sequence_per_rank


@dataclass(frozen=True)
class Placement:
    """The memories that weights and cache are read from.

    Attributes
    ----------
    weights, cache : str
        Their names; the cache's for the largest of the batches.
    weights_bytes_s : float
        Bandwidth that the weights are read at [B/s].
    cache_bytes_s : ndarray
        Bandwidth that the cache is read at, for each batch [B/s].
    fits : ndarray
        Whether there is room for both, for each batch.
    """

    weights: str
    cache: str
    weights_bytes_s: float
    cache_bytes_s: Array
    fits: NDArray[np.bool_]


@dataclass(frozen=True)
class StepParts:
    """The time of a step and its parts [s]."""

    total_s: Any
    compute_s: Any
    weights_s: Any
    cache_s: Any
    collectives_s: Any
    overhead_s: float


def target_side(inputs: SpeculativeInputs) -> Side:
    """Return the target on its chips.

    Raises
    ------
    InputsError
        If the chip cannot compute with the format, or nothing joins so many of them.
    """
    stored = inputs.target_dtype or hardware_db.models()[inputs.target].native_format
    alone = Side("target", _machine_inputs(inputs, "target", stored), inputs.context)
    return _on_chips(alone, inputs.target_tp or _fewest(alone, inputs))


def draft_side(inputs: SpeculativeInputs, target: Side) -> Side:
    """Return the draft on its chips, which may be the target's.

    Raises
    ------
    InputsError
        As for :func:`target_side`.
    """
    shared = inputs.draft_accelerator is None
    most = target.machine.tp if shared else 128
    if inputs.draft_tp and inputs.draft_tp > most:
        sentence = f"the draft runs on the target's chips, of which there are {most}; use at most so many"
        raise InputsError([InputError("draft_tp", inputs.draft_tp, sentence)])
    chip = hardware_db.accelerators()[inputs.draft_accelerator or inputs.target_accelerator]
    computable = (name for name in EIGHT_BITS_FIRST if _native(name, chip))
    machine = _machine_inputs(inputs, "draft", inputs.draft_dtype or next(computable, EIGHT_BITS_FIRST[0]))
    overhead = OVERHEAD_MS["on-chip" if "SRAM" in chip.memory_type else "other"]
    typed = inputs.draft_overhead_ms
    alone = Side(
        "draft",
        replace(machine, step_overhead_ms=overhead if typed is None else typed),
        inputs.context,
        None if inputs.draft_size_b is None else 1e9 * inputs.draft_size_b,
        target.weights_per_chip if shared else 0.0,
    )
    return _on_chips(alone, inputs.draft_tp or min(_fewest(alone, inputs), most))


def _native(weight_dtype: str, chip: hardware_db.Accelerator) -> bool:
    return not set(hardware_db.FORMATS[weight_dtype].native_compute).isdisjoint(chip.data_types)


def _machine_inputs(inputs: SpeculativeInputs, side: Literal["target", "draft"], weight_dtype: str) -> MachineInputs:
    """Return one chip for one of the models."""
    accelerator = inputs.target_accelerator
    if side == "draft":
        accelerator = inputs.draft_accelerator or accelerator
    chip = hardware_db.accelerators()[accelerator]
    computed = hardware_db.FORMATS[weight_dtype].compute_dtype(chip.data_types)
    if computed is None:
        has = ", ".join(chip.data_types) or "nothing that is published"
        sentence = (
            f"{chip.name} computes in {has}, to which {weight_dtype} is not unpacked; choose another format or chip"
        )
        raise InputsError([InputError(f"{side}_dtype", weight_dtype, sentence)])
    return MachineInputs(
        model=inputs.target if side == "target" else inputs.draft,
        accelerator=accelerator,
        weight_dtype=weight_dtype,
        compute_dtype=computed,
        kv_dtype=inputs.kv_dtype,
        assumptions=inputs.assumptions,
        compute_efficiency=inputs.compute_efficiency,
        memory_efficiency=inputs.memory_efficiency,
        step_overhead_ms=inputs.step_overhead_ms,
        allreduce_latency_us=inputs.allreduce_latency_us,
    )


def _fewest(alone: Side, inputs: SpeculativeInputs) -> int:
    """Return the smallest power of two of chips that holds the weights and leaves :data:`LEAST_LEFT` for the cache."""
    for tp in (1, 2, 4, 8, 16, 32, 64):
        side = replace(alone, machine=replace(alone.machine, tp=tp))
        left = memory_left(side, inputs)
        if left >= LEAST_LEFT * (left + side.weights_per_chip):
            return tp
    return 128


def memory_left(side: Side, inputs: SpeculativeInputs) -> float:
    """Return the bytes of each chip that are left for a cache, all its memories together; below 0 if none is."""
    whole = sum(room for _, room, _ in _room(side))
    reserve = 0.0 if side.chip.memory_tiers else 1e9 * inputs.reserve_gb  # activations stay out of on-chip memories
    return inputs.memory_share * whole - reserve - side.weights_per_chip


def _on_chips(side: Side, tp: int) -> Side:
    return replace(side, machine=replace(side.machine, tp=tp, tp_link=_link_between(side, tp)))


def _link_between(side: Side, tp: int) -> str | None:
    """Return the link to name: none where the chip's own joins so many, else the one to the host."""
    chip = side.chip
    if tp == 1 or chip.group_bandwidth_bytes_s(tp) is not None:
        return None
    if chip.host_link_id is None:
        sentence = f"nothing in the database joins so many of {chip.name}; use fewer, or another chip"
        raise InputsError([InputError(f"{side.name}_tp", tp, sentence)])
    return chip.host_link_id


def step_parts(side: Side, batch: Any, new_tokens: Any = 1) -> StepParts:
    """Return the time of a step of ``batch`` sequences with ``new_tokens`` each; both may be arrays, they broadcast."""
    contents = StepContents(sequences=batch, context_tokens=side.context, new_tokens=new_tokens)
    load = step_load(side.machine, contents)
    if side.size:
        form = hardware_db.FORMATS[side.machine.weight_dtype]
        work = step.matmul_flops(side.size, contents.tokens) + attention_flops(side.machine, contents)
        load = replace(load, flops=work, weight_bytes=side.size * form.layer_bytes + 0 * contents.tokens)
    place = placement(side, batch)
    time = step.step_time(load, replace(machine_of(side.machine), memory_bandwidth=place.weights_bytes_s))
    cache_s = time.kv_s * (place.weights_bytes_s / place.cache_bytes_s)
    total_s = step.STEP_TIME(
        compute_s=time.compute_s,
        memory_s=time.weights_s + cache_s,
        collectives_s=time.collectives_s,
        overhead_s=time.overhead_s,
    )
    return StepParts(total_s, time.compute_s, time.weights_s, cache_s, time.collectives_s, time.overhead_s)


def placement(side: Side, batch: Any) -> Placement:
    """Return which memories hold the weights and, for each batch, the cache.

    The weights are in the fastest memory that holds all of them, the cache in the fastest with room left for all of it.
    What fits nowhere is taken to be in the slowest.
    """
    tiers = _room(side)
    weights = side.weights_per_chip
    kept = next((place for place, (_, room, _) in enumerate(tiers) if weights <= room), len(tiers) - 1)
    cache = side.cache_per_chip * np.asarray(batch, dtype=float)
    bandwidth, fits, name = np.full(cache.shape, tiers[-1][2]), np.zeros(cache.shape, dtype=bool), tiers[-1][0]
    for place, (tier, room, bytes_s) in reversed(list(enumerate(tiers))):
        here = cache <= room - (weights if place == kept else 0.0)
        bandwidth, fits = np.where(here, bytes_s, bandwidth), fits | here
        name = tier if bool(np.all(here)) else name
    return Placement(tiers[kept][0], name, tiers[kept][2], bandwidth, fits & (weights <= tiers[kept][1]))


def _room(side: Side) -> list[tuple[str, float, float]]:
    """Return name, bytes left and bandwidth of each memory of the chip, the fastest first; what is taken fills those."""
    chip = side.chip
    known = [(tier.name, tier.bytes, tier.bandwidth_gb_s) for tier in chip.memory_tiers if tier.bandwidth_gb_s]
    memories = known or [(chip.memory_type, chip.memory_bytes, chip.memory_bandwidth_gb_s)]
    left, taken = [], side.taken
    for name, size, gb_s in memories:
        used = min(taken, float(size))
        left.append((name, size - used, 1e9 * gb_s))
        taken -= used
    return left


@dataclass(frozen=True)
class Spill:
    """Up to which batch the cache is in the fastest of several memories that ever holds it, and where it is beyond."""

    batch: int
    tier: str
    beyond: str


def spill_of(side: Side) -> Spill | None:
    """Return where the cache leaves a faster memory for a slower one; None where it never does."""
    tiers = _room(side)
    kept = next((place for place, (_, room, _) in enumerate(tiers) if side.weights_per_chip <= room), len(tiers) - 1)
    for place, (tier, room, _) in enumerate(tiers[:-1]):
        left = room - (side.weights_per_chip if place == kept else 0.0)
        if left >= side.cache_per_chip > 0:
            return Spill(int(left / side.cache_per_chip), tier, tiers[place + 1][0])
    return None


def round_trip_s(inputs: SpeculativeInputs) -> float:
    """Return what a round's two hand-overs cost: nothing on the same chips."""
    if inputs.draft_accelerator is None:
        return 0.0
    if inputs.draft_round_trip_us is not None:
        return 1e-6 * inputs.draft_round_trip_us
    return 2 * (hardware_db.links()[inputs.draft_link].latency_s or 0.0)
