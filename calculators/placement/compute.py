"""Inputs to result: how many instances of which degrees on each side, and where they sit.

Lecture 4 and 5; DistServe (OSDI 2024), section 4, algorithms 1 and 2. No Streamlit, no Plotly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import hardware_db
from calculators.fleet import instances_for
from calculators.inputs import part_of
from calculators.lengths import histogram_remarks
from calculators.machine import MachineInputs, machine_of
from calculators.outputs import counted, output, readable, short
from calculators.placement.candidates import SIDES, Candidate, Side
from calculators.placement.cluster import PlacementInputs, SearchInputs, kv_route
from calculators.placement.drawing import Chunk, Layout, instance_chunks, laid_out, unit_chunks
from calculators.placement.instances import (
    depends_on_number,
    goodput_among,
    instances_needed,
    share_in_time,
    units_needed,
)
from calculators.placement.search import Search, Unit, search
from calculators.remarks import chip_and_model_remarks
from calculators.scenario import Instance

MOST_INSTANCES = 20_000
"""Instances beyond which nobody lays them out one by one."""


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """The configuration of one side."""

    tp: int = output("Tensor degree")
    pp: int = output("Stages")
    gpus: int = output("Accelerators of an instance")
    goodput: float = output("Goodput of an instance", "requests/s")
    goodput_per_gpu: float = output("Goodput of an accelerator", "requests/s")
    instances: int = output("Instances")
    nodes: int = output("Nodes of an instance")
    alone_ms: float = output("Alone", "ms", "TTFT or time of a token of a request that meets nobody")
    attainment: float = output("Share within the target", "", "Of requests, at the target rate and these instances")


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A joint choice on a slow network, flat for a table."""

    nodes: int = output("Nodes", "", "Of a unit")
    prefill_tp: int = output("Prefill TP", "", "Tensor degree")
    prefill_pp: int = output("Prefill PP", "", "Stages")
    prefill_instances: int = output("Prefill instances")
    decode_tp: int = output("Decode TP", "", "Tensor degree")
    decode_pp: int = output("Decode PP", "", "Stages")
    decode_instances: int = output("Decode instances")
    gpus: int = output("Accelerators", "", "Of a unit")
    goodput: float = output("Goodput", "requests/s", "Of a unit")
    goodput_per_gpu: float = output("Goodput each", "requests/s", "Of an accelerator")


@dataclass(frozen=True, kw_only=True)
class PlacementResult:
    """The answer. What does not exist, since a side has no configuration, is ``None``."""

    verdict: str = output(
        "Verdict", "", "fits, cluster_too_small, does_not_fit, too_slow_unloaded, refused or nothing_to_decode"
    )
    prefill: Chosen | None = output("Prefill")
    decode: Chosen | None = output("Decode")
    gpus: int | None = output("Accelerators", "", "Of both sides, for the target rate")
    nodes_needed: int | None = output("Nodes needed", "", "With every stage whole in one node")
    goodput_per_gpu: float | None = output("Target rate for each accelerator", "requests/s")
    group_goodput: float | None = output("Goodput of all instances", "requests/s", "The smaller of both sides'")
    attainment: float | None = output(
        "Share that meets both targets", "", "At the target rate, the two times taken as independent"
    )
    cluster_goodput: float | None = output("Goodput of the whole cluster", "requests/s", "With these configurations")
    kv_gbit_s: float | None = output("Caches handed over", "Gbit/s", "At the target rate, all instances together")
    kv_gbit_s_per_instance: float | None = output("of each prefill instance", "Gbit/s")
    link_gbit_s: float = output("Link of each instance", "Gbit/s", "One way, at the efficiency given")
    link_utilization: float | None = output("Utilization of that link")
    transfer_ms: float | None = output("Mean time of a hand-off", "ms", "The wait for the link included")
    fewest_gpus: int | None = output(
        "Fewest accelerators",
        "",
        "For this rate, over all pairs of configurations: whole instances round. In bursts or behind a router, not looked for",
    )
    fewest: str = output("with", "", "The pair that needs the fewest")
    pairs: tuple[Pair, ...] = output("Joint choices")
    table: tuple[Candidate, ...] = output("Configurations")
    layout: Layout
    remarks: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should know before using the figures."""
        return self.remarks


def compute(inputs: PlacementInputs) -> PlacementResult:
    """Return the configuration of each side, the instances for the target rate, and where they sit.

    Raises
    ------
    InputsError
        If the accelerator does not have the data type.
    """
    machine_of(
        part_of(MachineInputs, inputs, tp=1)
    )  # says what is wrong with the data type before anything is searched
    found = search(part_of(SearchInputs, inputs))
    prefill, decode = found.best("prefill"), found.best("decode")
    needs_decode = inputs.steps > 0
    if prefill is None or (needs_decode and decode is None):
        return _without_answer(inputs, found)
    unit = found.units[0] if found.units else None
    numbers = _numbers(inputs, found, unit, prefill, decode)
    layout = _layout(inputs, unit, prefill, decode, numbers)
    chosen = _chosen(inputs, found, prefill, numbers[0]), _chosen(inputs, found, decode, numbers[1])
    gpus = numbers[0] * prefill.gpus + numbers[1] * (decode.gpus if decode else 0)
    sides = [each.instances * each.goodput for each in chosen if each]
    per_instance = inputs.target_rate / numbers[0]
    shares = [each.attainment for each in chosen if each]
    fewest_gpus, fewest = _fewest(inputs, found)
    return PlacementResult(
        verdict=_verdict(inputs, layout, needs_decode=needs_decode),
        prefill=chosen[0],
        decode=chosen[1],
        gpus=gpus,
        nodes_needed=layout.nodes,
        goodput_per_gpu=inputs.target_rate / gpus,
        group_goodput=min(sides),
        attainment=shares[0] * shares[-1] if len(shares) > 1 else shares[0],
        cluster_goodput=_cluster_goodput(inputs, unit, prefill, decode),
        **_traffic(inputs, found, per_instance if needs_decode else None),
        fewest_gpus=fewest_gpus,
        fewest=fewest,
        pairs=_pairs(found),
        table=found.candidates,
        layout=layout,
        remarks=_remarks(inputs, layout, gpus, shares, fewest_gpus, fewest),
    )


def _numbers(
    inputs: PlacementInputs, found: Search, unit: Unit | None, prefill: Candidate, decode: Candidate | None
) -> tuple[int, int]:
    """Return the instances of each side for the target rate; on a slow network, those of whole units."""
    if unit:
        sides = (unit.prefill, unit.prefill_instances), (unit.decode, unit.decode_instances)
        units = units_needed(inputs, found, sides, unit.goodput)
        return units * unit.prefill_instances, units * unit.decode_instances
    return instances_needed(inputs, found, prefill), instances_needed(inputs, found, decode) if decode else 0


def _chosen(inputs: PlacementInputs, found: Search, candidate: Candidate | None, instances: int) -> Chosen | None:
    if candidate is None:
        return None
    goodput = goodput_among(inputs, found, candidate, instances)
    return Chosen(
        tp=candidate.tp, pp=candidate.pp, gpus=candidate.gpus, goodput=goodput, goodput_per_gpu=goodput / candidate.gpus,
        instances=instances, nodes=candidate.nodes, alone_ms=candidate.alone_ms or 0.0,
        attainment=share_in_time(inputs, found, candidate, instances),
    )  # fmt: skip


def _layout(
    inputs: PlacementInputs, unit: Unit | None, prefill: Candidate, decode: Candidate | None, numbers: tuple[int, int]
) -> Layout:
    if sum(numbers) > MOST_INSTANCES:
        gpus = numbers[0] * prefill.gpus + numbers[1] * (decode.gpus if decode else 0)
        return Layout((), -(-gpus // inputs.node_gpus))
    chunks: list[Chunk] = []
    if unit:
        for number in range(numbers[0] // unit.prefill_instances):
            chunks += unit_chunks(unit, number)
    else:
        for side, count in zip((prefill, decode), numbers, strict=True):
            for number in range(count):
                chunks += instance_chunks(side, number, inputs.node_gpus) if side else []
    return laid_out(chunks, inputs.node_gpus)


def _cluster_goodput(
    inputs: PlacementInputs, unit: Unit | None, prefill: Candidate, decode: Candidate | None
) -> float | None:
    """Return the goodput of the whole cluster, the best split of its accelerators; ``None`` if not even one pair fits."""
    if unit:
        here = inputs.node_gpus // (unit.gpus // unit.nodes) * inputs.nodes // unit.nodes
        return here * unit.goodput or None
    if decode is None:
        return (inputs.gpus // prefill.gpus) * (prefill.goodput or 0.0) or None
    splits = (
        min(
            count * (prefill.goodput or 0.0),
            (inputs.gpus - count * prefill.gpus) // decode.gpus * (decode.goodput or 0.0),
        )
        for count in range(1, inputs.gpus // prefill.gpus + 1)
    )
    return max(splits, default=0.0) or None


def _traffic(inputs: PlacementInputs, found: Search, per_instance: float | None) -> dict[str, Any]:
    """Return the caches on their way at the target rate, against the link, by their keys in the result."""
    moved = found.hand_off
    link = 8e-9 * moved.kv_bytes / moved.link_s if moved.link_s > 0 else 8e-9 * kv_route(inputs).bytes_s
    if per_instance is None:
        names = ("kv_gbit_s", "kv_gbit_s_per_instance", "link_utilization", "transfer_ms")
        return dict.fromkeys(names) | {"link_gbit_s": link}
    utilization = per_instance * moved.link_s
    return {
        "kv_gbit_s": 8e-9 * moved.kv_bytes * inputs.target_rate,
        "kv_gbit_s_per_instance": 8e-9 * moved.kv_bytes * per_instance,
        "link_gbit_s": link,
        "link_utilization": utilization,
        "transfer_ms": 1e3 * moved.mean_s(per_instance) if utilization < 1 else None,
    }


def _fewest(inputs: PlacementInputs, found: Search) -> tuple[int | None, str]:
    """Return the fewest accelerators for the target rate, and with what; the goodput for each may be smaller.

    Not looked for where what an instance carries depends on how many there are.
    """
    rate = inputs.target_rate
    if depends_on_number(inputs):
        return None, ""
    if found.units:
        unit = min(found.units, key=lambda each: instances_for(rate, each.goodput) * each.gpus)
        return (
            instances_for(rate, unit.goodput) * unit.gpus,
            f"prefill {unit.prefill.name}, decode {unit.decode.name}",
        )
    total, names = 0, []
    for side in ("prefill", "decode"):
        allowed = [each for each in found.candidates if each.side == side and each.allowed]
        if allowed:
            best = min(allowed, key=lambda each: instances_for(rate, each.goodput or 0.0) * each.gpus)
            total += instances_for(rate, best.goodput or 0.0) * best.gpus
            names.append(f"{side} {best.name}")
    return total, ", ".join(names)


def _pairs(found: Search) -> tuple[Pair, ...]:
    return tuple(
        Pair(
            nodes=unit.nodes, prefill_tp=unit.prefill.tp, prefill_pp=unit.prefill.pp, prefill_instances=unit.prefill_instances,
            decode_tp=unit.decode.tp, decode_pp=unit.decode.pp, decode_instances=unit.decode_instances, gpus=unit.gpus,
            goodput=unit.goodput, goodput_per_gpu=unit.goodput_per_gpu,
        )
        for unit in found.units
    )  # fmt: skip


def _verdict(inputs: PlacementInputs, layout: Layout, *, needs_decode: bool) -> str:
    if layout.nodes > inputs.nodes:
        return "cluster_too_small"
    return "fits" if needs_decode else "nothing_to_decode"


def _without_answer(inputs: PlacementInputs, found: Search) -> PlacementResult:
    """Return a result that says which of the reasons that no rate can change stands against a side."""
    empty: tuple[Side, ...] = tuple(side for side in SIDES if not found.allowed(side))
    rows = [each for each in found.candidates if each.side in empty[:1]]
    causes = {each.refused_by for each in rows}
    verdict = "too_slow_unloaded" if "time" in causes else "does_not_fit" if "memory" in causes else "refused"
    fastest = min(
        (each for each in rows if each.alone_ms is not None), key=lambda each: each.alone_ms or 0.0, default=None
    )
    remark = (
        f"No configuration is left for the {empty[0]} side; the table of configurations says why of each."
        if empty
        else "Both sides have configurations, and no two of them share a node: use larger nodes, or a fast network."
    )
    if fastest:
        remark += f" The fastest is {fastest.name}: {short(fastest.alone_ms, 'ms')} for a request that meets nobody."
    return PlacementResult(
        verdict=verdict, prefill=None, decode=None, gpus=None, nodes_needed=None, goodput_per_gpu=None, group_goodput=None,
        attainment=None, cluster_goodput=None, **_traffic(inputs, found, None), fewest_gpus=None, fewest="", pairs=(),
        table=found.candidates, layout=Layout((), 0), remarks=(remark, *_hardware_remarks(inputs)),
    )  # fmt: skip


def _remarks(
    inputs: PlacementInputs, layout: Layout, gpus: int, shares: list[float], fewest_gpus: int | None, fewest: str
) -> tuple[str, ...]:
    found = []
    if layout.nodes > inputs.nodes:
        found.append(
            f"The cluster has {counted(inputs.nodes, 'node')} of {inputs.node_gpus}, and the target rate takes {layout.nodes}: the drawing "
            "shows the missing ones too."
        )
    if inputs.attained_by == "each" and len(shares) > 1 and shares[0] * shares[1] < inputs.attainment:
        found.append(
            f"Each target by itself is met by at least {inputs.attainment:.4g} of the requests; both at once by "
            f"{readable(shares[0] * shares[1], 4)} at this rate. Set attained_by = both to plan for that."
        )
    if fewest_gpus is not None and fewest_gpus < gpus:
        found.append(
            f"Whole instances: {fewest} would need {counted(fewest_gpus, 'accelerator')} for this rate, {gpus - fewest_gpus} fewer, although "
            "a full one of it carries less for each accelerator."
        )
    return (*found, *histogram_remarks(inputs), *_hardware_remarks(inputs))


def _hardware_remarks(inputs: PlacementInputs) -> tuple[str, ...]:
    chip = hardware_db.accelerators()[inputs.accelerator]
    found = []
    if chip.scale_up_domain is not None and inputs.node_gpus > chip.scale_up_domain and inputs.tp_link is None:
        found.append(
            f"The scale-up link of {chip.name} joins {chip.scale_up_domain}; nodes of {inputs.node_gpus} are taken as one anyway "
            "where stages hand over to each other."
        )
    one = part_of(Instance, inputs, tp=1)
    return (*found, *chip_and_model_remarks(one, inputs.prompt_context + inputs.output_tokens))
