"""Inputs to result: instances for a rate, or what a group of them carries, and what rounding costs.

Lecture 3.2 and exercise 4; DistServe, figure 1 and Algorithm 1. No Streamlit, no Plotly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from calculators.inputs import part_of
from calculators.lengths import histogram_remarks
from calculators.outputs import output, readable
from calculators.pools.goodputs import (
    COLOCATED,
    DECODE,
    PREFILL,
    Goodputs,
    decode_side,
    fewest_of,
    goodput_of,
    prefill_side,
)
from calculators.pools.inputs import PoolsInputs
from calculators.remarks import hardware_remarks
from calculators.scenario import Instance
from formulas import pools as forms


@dataclass(frozen=True, kw_only=True)
class PoolsResult:
    """The answer. A figure that does not exist is ``None``."""

    prefill_instances: int | None = output("Prefill instances", "", "Those kept as spares are among them")
    decode_instances: int | None = output("Decode instances", "", "Those kept as spares are among them")
    gpus: int | None = output("Accelerators")
    served_rate: float | None = output("Rate served", "requests/s", "The target, or what the given group carries")
    goodput_per_gpu: float | None = output("Goodput per accelerator", "requests/s", "The rate served over all of them")
    group_goodput: float | None = output("Goodput of the group", "requests/s", "The weaker side, all instances at work")
    rounding_waste: float | None = output("Waste of rounding", "", "Share of the accelerators, spares not counted")
    binding: str | None = output("Weaker side", "", "prefill or decode")
    goodput_after_loss: float | None = output("Goodput with one instance lost", "requests/s", "Whichever it is")
    ideal_goodput_per_gpu: float | None = output("Goodput per accelerator without rounding", "requests/s")
    ideal_ratio: float | None = output("Ideal ratio", "", "Prefill instances for each decode instance")
    gain_over_colocated: float | None = output("Gain over colocated", "", "For each accelerator, prompts first")
    colocated_gpus: int | None = output("Accelerators if colocated", "", "For the same rate, headroom and spares")
    best_prefill_instances: int | None = output("Best on as many accelerators: prefill")
    best_decode_instances: int | None = output("Best on as many accelerators: decode")
    best_goodput: float | None = output("Best on as many accelerators: goodput", "requests/s")
    prefill_goodput: float | None = output(
        "Goodput of a prefill instance", "requests/s", "Within the TTFT target, among so many"
    )
    decode_goodput: float | None = output(
        "Goodput of a decode instance", "requests/s", "Within the TPOT target, among so many"
    )
    colocated_goodput: float | None = output(
        "Goodput of a colocated instance", "requests/s", "Within both targets, among as many as the rate takes"
    )
    remarks: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should know before using the figures."""
        return self.remarks


@dataclass(frozen=True)
class Sides:
    """Both sides as the formulas take them: goodputs [requests/s] and accelerators of an instance."""

    prefill_goodput: float
    decode_goodput: float
    prefill_gpus: int
    decode_gpus: int

    @property
    def sizes(self) -> dict[str, Any]:
        """Accelerators of an instance of each kind."""
        return {"prefill_gpus": self.prefill_gpus, "decode_gpus": self.decode_gpus}

    @property
    def goodputs(self) -> dict[str, Any]:
        """What one instance of each kind carries."""
        return {"prefill_goodput": self.prefill_goodput, "decode_goodput": self.decode_goodput}


def sides_of(inputs: PoolsInputs, found: Goodputs) -> Sides | None:
    """Return both sides, or ``None`` if one of them keeps its target at no rate."""
    if found.prefill is None or found.decode is None:
        return None
    return Sides(found.prefill, found.decode, inputs.tp, inputs.decode_tp or inputs.tp)


def compute(inputs: PoolsInputs) -> PoolsResult:
    """Return the instances for a rate, or what the given ones carry.

    Raises
    ------
    InputsError
        As for :func:`~calculators.pools.goodputs.goodput_of`.
    """
    counts = counts_of(inputs)
    found = goodputs_of(inputs, counts)
    each = {f"{kind}_goodput": getattr(found, kind) for kind in (PREFILL, DECODE, COLOCATED)}
    sides = sides_of(inputs, found)
    if sides is None:
        names = [name for name in PoolsResult.__dataclass_fields__ if name not in {*each, "remarks"}]
        nothing: dict[str, Any] = dict.fromkeys(names)
        return PoolsResult(**nothing | each, remarks=_remarks(inputs, found))
    there: dict[str, Any] = {f"{kind}_instances": number or 0 for kind, number in counts.items()}
    return PoolsResult(**there, **each | _group(inputs, sides, there), remarks=_remarks(inputs, found, there))


def counts_of(inputs: PoolsInputs) -> dict[str, int | None]:
    """Return how many instances of each kind there are: given, matched to the one that is given, or for the rate.

    ``None`` where no number keeps the target.
    """
    given = {PREFILL: inputs.prefill_instances, DECODE: inputs.decode_instances}
    planned: float = forms.PLANNED_RATE(rate=inputs.target_rate, headroom=inputs.headroom)
    for kind, number in given.items():
        if number is not None:  # the other side is to carry what this one does without its spares
            working = max(number - inputs.spare, 1)
            planned = working * (goodput_of(inputs, kind, working) or 0.0)
            break
    counts: dict[str, int | None] = {}
    for kind, number in given.items():
        fewest = number or (fewest_of(inputs, kind, planned) if planned else None)
        counts[kind] = fewest if number or fewest is None else fewest + inputs.spare
    return counts


def goodputs_of(inputs: PoolsInputs, counts: dict[str, int | None] | None = None) -> Goodputs:
    """Return what one instance of each kind carries among those that work; a colocated one by itself."""
    counts = counts or counts_of(inputs)
    prefill, decode = (
        None if (number := counts[kind]) is None else goodput_of(inputs, kind, max(number - inputs.spare, 1))
        for kind in (PREFILL, DECODE)
    )
    return Goodputs(prefill, decode, goodput_of(inputs, COLOCATED))


def _group(inputs: PoolsInputs, sides: Sides, counts: dict[str, int]) -> dict[str, Any]:
    """Return what the group carries, what of it is idle, and how it compares."""
    working = {name: max(number - inputs.spare, 0) for name, number in counts.items()}
    carried = min(
        working["prefill_instances"] * sides.prefill_goodput, working["decode_instances"] * sides.decode_goodput
    )
    given = inputs.prefill_instances is not None or inputs.decode_instances is not None
    rate = carried / (1 + inputs.headroom) if given else inputs.target_rate
    each = forms.GOODPUT_PER_GPU(rate=rate, **counts, **sides.sizes)
    group = forms.GROUP_GOODPUT(**counts, **sides.goodputs)
    gpus = counts["prefill_instances"] * sides.prefill_gpus + counts["decode_instances"] * sides.decode_gpus
    best = forms.best_split(gpus, **sides.goodputs, **sides.sizes)
    first = counts["prefill_instances"] * sides.prefill_goodput
    return {
        "gpus": gpus,
        "served_rate": rate,
        "goodput_per_gpu": each,
        "group_goodput": group,
        "rounding_waste": _waste(rate * (1 + inputs.headroom), sides, working),
        "binding": PREFILL if first <= group else DECODE,
        "goodput_after_loss": forms.AFTER_LOSS(**counts, **sides.goodputs),
        "ideal_goodput_per_gpu": forms.IDEAL_GOODPUT(**sides.goodputs, **sides.sizes),
        "ideal_ratio": forms.IDEAL_RATIO(**sides.goodputs),
        **_colocated(inputs, rate, each),
        "best_prefill_instances": best.prefill_instances,
        "best_decode_instances": best.decode_instances,
        "best_goodput": best.goodput,
    }


def _waste(planned: float, sides: Sides, working: dict[str, int]) -> float | None:
    """Return the share of the working accelerators that the planned rate leaves idle; to rounding, not below none."""
    if not all(working.values()):
        return None
    waste: float = forms.WASTED(carried_rate=planned, **sides.goodputs, **sides.sizes, **working)
    return max(0.0, waste)


def _colocated(inputs: PoolsInputs, rate: float, each: float) -> dict[str, Any]:
    """Return what an instance that does both carries, how many of those the rate would take, and the gain over them."""
    count = fewest_of(inputs, COLOCATED, rate * (1 + inputs.headroom))
    goodput = None if count is None else goodput_of(inputs, COLOCATED, count)
    if count is None or not goodput:
        return {"colocated_goodput": None, "gain_over_colocated": None, "colocated_gpus": None}
    alone = goodput / inputs.tp
    return {
        "colocated_goodput": goodput,
        "gain_over_colocated": forms.GAIN_OVER_COLOCATED(goodput_per_gpu=each, colocated_per_gpu=alone),
        "colocated_gpus": (count + inputs.spare) * inputs.tp,
    }


def _remarks(inputs: PoolsInputs, found: Goodputs, counts: dict[str, int] | None = None) -> tuple[str, ...]:
    said: list[str] = []
    if found.prefill is None:
        said.append(
            f"Too slow even unloaded: one prompt takes {readable(1e3 * prefill_side(inputs).prefill_s, 4)} ms, the TTFT target is "
            f"{readable(inputs.ttft_slo_ms)} ms. No number of prefill instances helps."
        )
    if found.decode is None:
        said.append(_decode_remark(inputs))
    if counts is not None and inputs.spare and min(counts.values()) <= inputs.spare:
        said.append(f"All instances of one kind are spares: with {inputs.spare} of each kept free, nothing is served.")
    if inputs.prefill_goodput is None and inputs.decode_goodput is None:
        said += histogram_remarks(inputs)
        said += hardware_remarks(part_of(Instance, inputs), inputs.prompt_tokens + inputs.output_tokens)
    return tuple(said)


def _decode_remark(inputs: PoolsInputs) -> str:
    pool = decode_side(inputs).pool
    if pool.steps == 0:
        return "A single output token comes with the prefill: there is nothing to decode, and no decode pool to size."
    if not pool.slots:
        where = f"{inputs.decode_tp or inputs.tp} × {inputs.decode_accelerator or inputs.accelerator}"
        return f"Does not fit: {where} has no room for {inputs.model} in {inputs.weight_dtype}, the reserve and one request."
    return (
        f"Too slow even alone: a decode step of one sequence takes {readable(pool.alone_ms, 4)} ms, the TPOT target is "
        f"{readable(inputs.tpot_slo_ms)} ms. No number of decode instances helps; more accelerators for each may."
    )
