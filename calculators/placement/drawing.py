"""Which stage sits on which accelerator: instances laid into nodes, a whole stage always in one."""

from __future__ import annotations

from dataclasses import dataclass

from calculators.outputs import output
from calculators.placement.candidates import Candidate
from calculators.placement.search import Unit

MOST_SEATS = 512
"""Accelerators that are drawn; a table and a figure of more tell nobody anything."""


@dataclass(frozen=True, kw_only=True)
class Seat:
    """One accelerator that is taken."""

    node: int = output("Node")
    place: int = output("Accelerator in the node")
    side: str = output("Side")
    instance: int = output("Instance")
    stage: int = output("Stage")


@dataclass(frozen=True)
class Chunk:
    """Stages that stay together in a node: side, instance, stage and accelerators of each."""

    stages: tuple[tuple[str, int, int, int], ...]

    @property
    def gpus(self) -> int:
        """Accelerators of all its stages."""
        return sum(stage[-1] for stage in self.stages)


@dataclass(frozen=True)
class Layout:
    """Where everything sits: the first accelerators one by one, and how many nodes all of them take."""

    seats: tuple[Seat, ...]
    nodes: int


def instance_chunks(candidate: Candidate, instance: int, node_gpus: int) -> list[Chunk]:
    """Return one instance's stages, cut where a node is full."""
    here = node_gpus // candidate.tp
    stages = [(candidate.side, instance, stage, candidate.tp) for stage in range(candidate.pp)]
    return [Chunk(tuple(stages[start : start + here])) for start in range(0, len(stages), here)]


def unit_chunks(unit: Unit, number: int) -> list[Chunk]:
    """Return a unit's segments: in each node the stages that hold the same layers, of all its instances."""
    sides = ((unit.prefill, unit.prefill_instances), (unit.decode, unit.decode_instances))
    chunks = []
    for segment in range(unit.nodes):
        stages = [
            (side.side, number * count + instance, segment * (side.pp // unit.nodes) + stage, side.tp)
            for side, count in sides
            for instance in range(count)
            for stage in range(side.pp // unit.nodes)
        ]
        chunks.append(Chunk(tuple(stages)))
    return chunks


def laid_out(chunks: list[Chunk], node_gpus: int) -> Layout:
    """Return where chunks sit, the largest first, each in the first node that has room for all of it."""
    free: list[int] = []
    first: dict[int, int] = {}  # room only shrinks, so a size never looks again at nodes that were too full for it
    seats: list[Seat] = []
    for chunk in sorted(chunks, key=lambda each: -each.gpus):
        node = first.get(chunk.gpus, 0)
        while node < len(free) and free[node] < chunk.gpus:
            node += 1
        if node == len(free):
            free.append(node_gpus)
        first[chunk.gpus] = node
        place = node_gpus - free[node]
        free[node] -= chunk.gpus
        for side, instance, stage, tp in chunk.stages:
            if len(seats) + tp <= MOST_SEATS:
                seats += [
                    Seat(node=node + 1, place=place + rank + 1, side=side, instance=instance + 1, stage=stage + 1)
                    for rank in range(tp)
                ]
            place += tp
    return Layout(tuple(seats), len(free))
