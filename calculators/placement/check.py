"""The finalists of both sides by event simulation, and whether they come in the order of the closed forms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

import hardware_db
from calculators.inputs import part_of
from calculators.lengths import spread_of
from calculators.machine import MachineInputs, machine_of
from calculators.outputs import output
from calculators.placement.candidates import SIDES, Candidate, Evaluator, Shape, Side
from calculators.placement.cluster import PlacementInputs, SearchInputs
from calculators.placement.search import Unit, evaluator_of, search
from calculators.simulation import output_lengths, workload_of
from calculators.step_load import StepContents, step_load
from formulas import step_time as step
from formulas.closed_form import DomainError
from formulas.montecarlo.pipelined_decode import StageTime, simulate_pipelined_decode
from formulas.montecarlo.serving import Lengths, gamma_workload
from formulas.montecarlo.tandem import simulate_tandem

Array = NDArray[np.float64]

FINALISTS = 5
"""Configurations of each side that are simulated: the best of the search."""

MOST_REQUESTS = 20_000

WIDTH = 0.005
"""Relative width of the bracket in which a simulated goodput is left."""

STAYS = 20
"""Requests simulated for each that is in an instance at once, at least: the beginning of a run is left out."""


@dataclass(frozen=True, kw_only=True)
class Finalist:
    """One configuration by closed form and by simulation."""

    side: str = output("Side")
    tp: int = output("Tensor degree")
    pp: int = output("Stages")
    gpus: int = output("Accelerators", "", "Of an instance")
    goodput: float = output("Goodput", "requests/s", "Of an instance, by closed form")
    simulated: float = output("simulated", "requests/s", "Of an instance")
    off_percent: float = output("Off by", "%", "Closed form above the simulation if positive")
    per_gpu: float = output("Goodput each", "requests/s", "Of an accelerator, by closed form")
    simulated_per_gpu: float = output("each, simulated", "requests/s", "Of an accelerator")


@dataclass(frozen=True, kw_only=True)
class PlacementCheck:
    """The simulated finalists beside the closed forms."""

    requests: int = output("Requests of a run")
    seed: int = output("Seed")
    prefill_rank_correlation: float | None = output(
        "Rank correlation of prefill", "", "Spearman, of the goodput for each accelerator; None for fewer than three"
    )
    decode_rank_correlation: float | None = output("Rank correlation of decode")
    prefill_regret: float | None = output(
        "Regret of prefill", "", "What the configuration chosen loses against the best simulated one, as a share"
    )
    decode_regret: float | None = output("Regret of decode")
    joint_rank_correlation: float | None = output(
        "Rank correlation of joint choices", "", "On a slow network, where the sides are not ranked by themselves"
    )
    joint_regret: float | None = output("Regret of the joint choice")
    largest_off_percent: float = output("Largest difference of a goodput", "%")
    rows: tuple[Finalist, ...] = output("Finalists")


def check(inputs: PlacementInputs) -> PlacementCheck:
    """Simulate the finalists of both sides, each at the rates among which its goodput lies.

    Raises
    ------
    DomainError
        If no configuration is left to be simulated.
    InputsError
        As for :func:`~calculators.placement.compute.compute`.
    """
    found = search(part_of(SearchInputs, inputs))
    evaluator = evaluator_of(inputs, found)
    units = found.units[:FINALISTS]
    chosen = {each.side: each for each in (found.best(side) for side in SIDES) if each}
    finalists = [
        each
        for side in SIDES
        for each in (_of_units(units, side) if found.joint else found.allowed(side)[:FINALISTS])
        if side in chosen
    ]
    if not finalists:
        raise DomainError("No configuration is left to be simulated.")
    rows = {each: _simulated(inputs, evaluator, each) for each in finalists}
    sides = {side: [] if found.joint else [row for row in rows.values() if row.side == side] for side in SIDES}
    joint = [_unit_pair(unit, rows) for unit in units]
    return PlacementCheck(
        requests=min(inputs.customers, MOST_REQUESTS),
        seed=inputs.seed,
        prefill_rank_correlation=rank_correlation(_pairs(sides["prefill"])),
        decode_rank_correlation=rank_correlation(_pairs(sides["decode"])),
        prefill_regret=regret(_pairs(sides["prefill"])),
        decode_regret=regret(_pairs(sides["decode"])),
        joint_rank_correlation=rank_correlation(joint),
        joint_regret=regret(joint),
        largest_off_percent=max(abs(row.off_percent) for row in rows.values()),
        rows=tuple(rows.values()),
    )


Pair = tuple[float, float]
"""Goodput for each accelerator by closed form, and simulated."""


def _pairs(rows: list[Finalist]) -> list[Pair]:
    return [(row.per_gpu, row.simulated_per_gpu) for row in rows]


def _of_units(units: tuple[Unit, ...], side: Side) -> list[Candidate]:
    return list(dict.fromkeys(unit.prefill if side == "prefill" else unit.decode for unit in units))


def _unit_pair(unit: Unit, rows: dict[Candidate, Finalist]) -> Pair:
    weaker = min(
        unit.prefill_instances * rows[unit.prefill].simulated, unit.decode_instances * rows[unit.decode].simulated
    )
    return unit.goodput_per_gpu, weaker / unit.gpus


def rank_correlation(pairs: list[Pair]) -> float | None:
    """Return Spearman's rank correlation of both goodputs for each accelerator; ``None`` for fewer than three.

    >>> rank_correlation([(3.0, 2.0), (2.0, 2.5), (1.0, 1.0)])
    0.5
    """
    from scipy.stats import spearmanr

    if len(pairs) < 3 or any(len(set(values)) == 1 for values in zip(*pairs, strict=True)):
        return None
    return float(spearmanr(*zip(*pairs, strict=True)).statistic)


def regret(pairs: list[Pair]) -> float | None:
    """Return what the first, the one chosen, loses against the best simulated one, as a share.

    >>> regret([(3.0, 2.0), (2.0, 2.5)])
    0.2
    """
    return 1 - pairs[0][1] / max(simulated for _, simulated in pairs) if pairs else None


def _simulated(inputs: PlacementInputs, evaluator: Evaluator, candidate: Candidate) -> Finalist:
    if candidate.side == "prefill":
        meets = _prefill_meets(inputs, evaluator, candidate)
    else:
        meets = _decode_meets(inputs, evaluator, candidate)
    goodput = candidate.goodput or 0.0
    simulated = largest_rate(lambda rate: meets(rate) >= inputs.level, goodput)
    if candidate.side == "prefill":
        simulated = min(simulated, evaluator.hand_off.max_rate if inputs.steps else simulated)
    return Finalist(
        side=candidate.side, tp=candidate.tp, pp=candidate.pp, gpus=candidate.gpus, goodput=goodput, simulated=simulated,
        off_percent=100 * (goodput / simulated - 1), per_gpu=goodput / candidate.gpus,
        simulated_per_gpu=simulated / candidate.gpus,
    )  # fmt: skip


def largest_rate(met: Callable[[float], bool], guess: float) -> float:
    """Return the largest rate at which something is met, by bisection from a guess.

    >>> round(largest_rate(lambda rate: rate < 10, 7.0), 1)
    10.0
    """
    low, high = 0.98 * guess, 1.02 * guess
    while not met(low) and low > 1e-3 * guess:
        low, high = 0.9 * low, low
    while met(high) and high < 4 * guess:
        low, high = high, 1.1 * high
    while high - low > WIDTH * low:
        middle = (low + high) / 2
        low, high = (middle, high) if met(middle) else (low, middle)
    return (low + high) / 2


def _prefill_meets(inputs: PlacementInputs, evaluator: Evaluator, candidate: Candidate) -> Callable[[float], float]:
    """Return the share of first tokens in time against the rate, in the pipeline that the candidate is."""
    shape = Shape(candidate.tp, candidate.pp, candidate.nodes)
    stages_s = evaluator.times.prefill_s(evaluator.inputs, shape.tp, shape.pp)[:, np.newaxis]
    hops = evaluator.prefill_pipeline(shape).latency_s - float(stages_s.sum())
    workload = workload_of(inputs, 1.0, min(inputs.customers, 10 * MOST_REQUESTS))
    requests, gaps = len(workload), np.diff(workload.arrivals, prepend=0.0)
    if spread_of(inputs):
        lengths = workload.prompt_tokens.astype(float)
        stages_s = stages_s * evaluator.times.relative_s(evaluator.inputs, shape.tp, lengths)

    def share(rate: float) -> float:
        times = simulate_tandem(gaps / rate, stages_s) + hops
        return float((times[requests // 10 :] <= 1e-3 * inputs.ttft_slo_ms).mean())

    return share


def _decode_meets(inputs: PlacementInputs, evaluator: Evaluator, candidate: Candidate) -> Callable[[float], float]:
    """Return the share of requests whose tokens are in time against the rate, micro-batch by micro-batch."""
    pipeline = evaluator.decode_pipeline(Shape(candidate.tp, candidate.pp, candidate.nodes), candidate.slots)
    stages = stage_clocks(inputs, candidate)
    hops = evaluator.decode_hops_s(Shape(candidate.tp, candidate.pp, candidate.nodes))
    outputs = output_lengths(inputs)
    inside = pipeline.law(candidate.goodput or 0.0).mean_batch  # a run many stays long, whatever the batch
    requests = min(inputs.customers, max(MOST_REQUESTS, int(STAYS * inside)))

    def share(rate: float) -> float:
        workload = gamma_workload(
            rate, requests, Lengths(inputs.prompt_context), outputs, inputs.seed, inputs.arrival_scv
        )
        done = simulate_pipelined_decode(workload, stages, hops, candidate.slots)
        times = (done - workload.arrivals) / np.maximum(workload.output_tokens - 1, 1)
        kept = slice(requests // 5, requests - requests // 20)
        return float((times[kept] <= evaluator.tpot_slo_s).mean())

    return share


def stage_clocks(inputs: PlacementInputs, candidate: Candidate) -> list[StageTime]:
    """Return the time of each stage for any micro-batch: exact at the mean context, by the slope there at others."""
    part, layers = part_of(MachineInputs, inputs, tp=candidate.tp), hardware_db.models()[inputs.model].layers
    counts = [len(each) for each in np.array_split(range(layers), candidate.pp)]
    most = min(candidate.slots or MOST_REQUESTS, 4 * MOST_REQUESTS)
    kinds = {(count, place == candidate.pp - 1) for place, count in enumerate(counts)}
    clocks = {kind: _clock(inputs, part, kind, most) for kind in kinds}
    return [clocks[count, place == candidate.pp - 1] for place, count in enumerate(counts)]


def _clock(inputs: PlacementInputs, part: MachineInputs, kind: tuple[int, bool], most: int) -> StageTime:
    batch, mean, machine = np.arange(most + 1.0), inputs.mean_context, machine_of(part)

    def times(context: float) -> Array:
        load = step_load(part, StepContents(sequences=batch, context_tokens=context), kind[0], with_output=kind[1])
        return np.asarray(step.step_time(load, machine).total_s)

    reach = max(1.0, min(mean - 1, inputs.steps / 2))
    low, middle, high = (times(mean + shift) for shift in (-reach, 0.0, reach))
    slope = (high - low) / (2 * reach * np.maximum(batch, 1))
    return partial(_stage_time, middle.tolist(), slope.tolist(), mean)


def _stage_time(base: list[float], slope: list[float], mean: float, sequences: int, context: int) -> float:
    return base[sequences] + slope[sequences] * (context - mean * sequences)
