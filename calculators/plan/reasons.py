"""Should one disaggregate: each reason of the literature with its own number for the scenario, for or against.

Lecture, section 9; DistServe, sections 2 and 3; the companion articles. A reason counts where its number lies beyond
a bound that is named; between the bounds it is said and counts for neither side.
"""

from __future__ import annotations

from dataclasses import dataclass

import hardware_db
from calculators.decode_step import step_of
from calculators.inputs import part_of
from calculators.lengths import spread_of
from calculators.machine import MachineInputs, machine_of
from calculators.outputs import counted, output, short
from calculators.plan.deployments import Deployment
from calculators.scenario import ServiceLevels
from calculators.step_load import StepContents
from calculators.systems import ServingInputs


@dataclass(frozen=True)
class Reason:
    """One reason, with its number."""

    reason: str = output("Reason")
    side: str = output("Speaks", "", "for or against disaggregating, or neither")
    number: float = output("Number")
    unit: str = output("Unit")
    sentence: str = output("In words")


@dataclass(frozen=True)
class Compared:
    """What the reasons weigh: the scenario, and the best deployment of either kind where there is one."""

    inputs: ServingInputs
    targets: ServiceLevels
    rate: float
    colocated: Deployment | None
    apart: Deployment | None


def reasons(case: Compared) -> list[Reason]:
    """Return every reason that can be computed for the scenario."""
    found = [_load(case), _prompts(case), _first_token(case), _link(case), _rounding(case)]
    found += [_weights(case), _tail(case), _lengths(case), _degrees(case)]
    return [each for each in found if each is not None]


def _verdict(number: float, for_it: tuple[float, float], *, low_is_for: bool = False) -> str:
    """Return the side of a number: ``for_it`` are the bounds against and for."""
    against, favours = for_it
    if low_is_for:
        return "for" if number <= favours else "against" if number >= against else "neither"
    return "for" if number >= favours else "against" if number <= against else "neither"


def _load(case: Compared) -> Reason | None:
    if case.colocated is None:
        return None
    busy = case.rate / case.colocated.can_take(case.targets)
    few = case.colocated.prefill.instances == 1
    side = "against" if few and busy < LOW_LOAD else "neither"
    return Reason(
        "low load", side, 100 * busy, "%",
        f"The best colocated deployment is {case.colocated.prefill.instances} instance"
        f"{'s' * (not few)}, at {short(100 * busy)} % of what it takes within the targets.",
    )  # fmt: skip


def _prompts(case: Compared) -> Reason | None:
    batch = 32 if case.colocated is None or case.colocated.latency is None else case.colocated.latency.mean_batch
    deployment = case.colocated or case.apart
    if deployment is None:
        return None
    system = deployment.system
    machine, context = part_of(MachineInputs, system.inputs), system.pool.context_tokens
    sequences = {"sequences": max(1.0, batch), "context_tokens": context}
    plain = step_of(machine, StepContents(**sequences)).step_ms
    mixed = step_of(machine, StepContents(prompt_tokens=case.inputs.prompt_tokens, **sequences)).step_ms
    slow = mixed / plain
    return Reason(
        "long prompts interfere", _verdict(slow, (1.1, 2.0)), slow, "times",
        f"A prompt in a step of {counted(batch, 'sequence')} makes it {short(slow)} times as long.",
    )  # fmt: skip


def _first_token(case: Compared) -> Reason | None:
    deployment = case.colocated or case.apart
    if deployment is None:
        return None
    system = deployment.system
    slack = 1e-3 * case.targets.ttft_slo_ms / system.prefill_s
    return Reason(
        "tight first token", _verdict(slack, (15.0, 5.0), low_is_for=True), slack, "prefills",
        f"The target of the first token is {short(slack)} times one prefill: below 5 chunks cost too much, above 15 they do not.",
    )  # fmt: skip


def _link(case: Compared) -> Reason | None:
    if case.apart is None:
        return None
    moved = case.apart.system.hand_off(case.rate)  # type: ignore[attr-defined]
    share = (moved.mean_ms or moved.transfer_ms) / (1e3 * case.apart.system.prefill_s)
    return Reason(
        "fast link", _verdict(share, (0.5, 0.1), low_is_for=True), 100 * share, "% of a prefill",
        f"Moving a cache takes {short(moved.mean_ms or moved.transfer_ms, 'ms')}, {short(100 * share)} % of a prefill; the link "
        f"is {short(100 * moved.utilization)} % busy.",
    )  # fmt: skip


def _rounding(case: Compared) -> Reason | None:
    if case.apart is None:
        return None
    prefill, decode = case.apart.prefill, case.apart.decode
    used = case.rate * (prefill.tp / prefill.goodput + decode.tp / decode.goodput)
    waste = 1 - used / case.apart.gpus
    return Reason(
        "small scale", _verdict(waste, (0.2, 0.05), low_is_for=True), 100 * waste, "% lost",
        f"Whole instances of both kinds leave {short(100 * max(waste, 0.0))} % of the {counted(case.apart.gpus, 'accelerator')} idle.",
    )  # fmt: skip


def _weights(case: Compared) -> Reason | None:
    if case.apart is None:
        return None
    gb = hardware_db.models()[case.inputs.model].weight_bytes(case.inputs.weight_dtype) / 1e9
    memory = hardware_db.accelerators()[case.apart.decode.accelerator].memory_bytes / 1e9
    share = gb / (case.apart.decode.tp * memory)
    return Reason(
        "two copies of the weights", "against" if share >= HEAVY else "neither", 100 * share, "% of memory",
        f"The weights take {short(100 * share)} % of a decode instance's memory, and as much again where prompts are prefilled: "
        "what they take, no cache has.",
    )  # fmt: skip


def _tail(case: Compared) -> Reason | None:
    times = None if case.colocated is None else case.colocated.latency
    if times is None:
        return None
    level = case.targets.attainment
    ratio = float(times.tpot_quantile_s(0.99)) / times.mean_tpot_s
    return Reason(
        "tail of the tokens", _verdict(ratio, (1.2, 1.5)) if level >= TAIL else "neither", ratio, "times the mean",
        f"Colocated, the P99 of the time per token is {short(ratio)} times its mean; the attainment asked for is {level:g}.",
    )  # fmt: skip


def _lengths(case: Compared) -> Reason:
    prompts, outputs = spread_of(case.inputs), case.inputs.output_cv
    spread = max(prompts, outputs)
    return Reason(
        "mixed lengths", "neither" if spread < 1 else "for", spread, "coefficient of variation",
        f"Prompts spread by {short(prompts)} and outputs by {short(outputs)}: a long prompt holds up many tokens, and a long answer "
        "meets many prompts.",
    )  # fmt: skip


def _degrees(case: Compared) -> Reason | None:
    if case.apart is None:
        return None
    prefill, decode = case.apart.prefill.tp, case.apart.decode.tp
    chips = case.apart.prefill.accelerator, case.apart.decode.accelerator
    if chips[0] != chips[1]:
        system = case.apart.system
        ratio = _bytes_per_operation(system.pool.step_time.inputs) / _bytes_per_operation(
            part_of(MachineInputs, system.inputs)
        )
        return Reason(
            "chips of their own", "for" if ratio > 1 else "against", ratio, "times",
            f"Decode on {chips[1]} has {short(ratio)} times the memory bandwidth for each unit of arithmetic that {chips[0]} has: "
            + ("the phases suit different chips, and only apart can each have its own." if ratio > 1 else
               "the chip chosen for decode is the one that suits prompts better."),
        )  # fmt: skip
    return Reason(
        "parallelism of its own", "for" if prefill != decode else "neither", max(prefill, decode) / min(prefill, decode), "times",
        f"Prefill is best in tensor {prefill}, decode in tensor {decode}: "
        + ("only apart can each have its own." if prefill != decode else "one degree does for both."),
    )  # fmt: skip


def _bytes_per_operation(inputs: MachineInputs) -> float:
    """Return the bytes that an accelerator reads for each operation that it can do in the data type chosen."""
    machine = machine_of(inputs)
    return machine.memory_bandwidth / machine.peak_flops


HEAVY = 0.6
LOW_LOAD = 0.5
TAIL = 0.95
"""Bounds: share of a decode instance's memory that weights take, load of a single instance, and attainment from which the tail counts."""
