"""What makes the answer checkable: its formulas with the user's numbers, and the facts it rests on."""

from __future__ import annotations

import numpy as np

import hardware_db
from calculators.decode_step import step_times_s
from calculators.facts import Fact, ShownFormula, fact_of, instance_facts
from calculators.interference.compute import InterferenceInputs, InterferenceResult, systems_of
from calculators.lengths import spread_of
from calculators.systems import ChunkedPrefill, PrefillFirst, System
from formulas import decode_pool, interference
from formulas.queueing import bursts, md1, mg1


def formulas(inputs: InterferenceInputs, result: InterferenceResult) -> list[ShownFormula]:
    """Return the formulas of a mixed step and of the three ways at the arrival rate, as far as they are closed."""
    slow = {"mixed_step_s": result.mixed_step_ms / 1e3, "decode_step_s": result.decode_step_ms / 1e3}
    shown = [ShownFormula(interference.SLOWDOWN, slow)]
    first, chunked, apart = systems_of(inputs)
    if not first.pool.serves:
        return shown
    if first.at(inputs.rate) is not None:
        shown += _prefill_first(inputs, result, first)
    if chunked.at(inputs.rate) is not None:
        shown += _chunked(inputs, result, chunked)
    if apart.at(inputs.rate) is not None:
        shown += _first_token(inputs, first, "Disaggregated: prompts alone.", result.disaggregated.mean_ttft_ms)
        values = {"rate": inputs.rate, **_line(inputs)}
        remark = _line_remark(result.disaggregated.mean_tpot_ms)
        shown.append(ShownFormula(decode_pool.AFFINE_MEAN_TPOT, values, remark))
    return shown


def _is_even(inputs: InterferenceInputs) -> bool:
    return not spread_of(inputs) and inputs.arrival_scv == 1


def _first_token(
    inputs: InterferenceInputs, system: System, remark: str, answer_ms: float | None
) -> list[ShownFormula]:
    """Return the formula of the mean TTFT of prompts alone."""
    law = system.prefill_law
    if _is_even(inputs):
        return [ShownFormula(md1.MEAN_TTFT, {"rate": inputs.rate, "service_time": law.mean}, remark)]
    if inputs.arrival_scv == 1:
        moments = {"mean_service": law.mean, "service_second_moment": law.second_moment}
        return [ShownFormula(mg1.MEAN_TTFT, {"rate": inputs.rate, **moments}, remark)]
    values = {
        "utilization": inputs.rate * law.mean,
        "arrival_scv": inputs.arrival_scv,
        "service_scv": law.scv,
        "mean_service": law.mean,
    }
    exact = (
        f"{remark} Of the wait; the answer takes it exactly, behind gamma arrivals: a mean TTFT of {answer_ms:.5g} ms."
    )
    return [ShownFormula(bursts.ALLEN_CUNNEEN, values, exact)]


def _prefill_first(inputs: InterferenceInputs, result: InterferenceResult, system: PrefillFirst) -> list[ShownFormula]:
    steps = system.at(inputs.rate).law.steps  # type: ignore[union-attr]
    prefill = {"rate": inputs.rate, "service_time": system.prefill_s}
    work = {"rate": inputs.rate, "work_s": steps.work_s, "interruption_s": system.prefill_s}
    busy = ShownFormula(interference.BUSY_MEAN, work, "A request's decode steps, interrupted by prompts.")
    if _is_even(inputs):
        return [
            ShownFormula(interference.PREFILL_FIRST_TTFT, prefill | {"residual_s": steps.residual_s}),
            busy,
            ShownFormula(interference.BUSY_VARIANCE, work),
            ShownFormula(
                interference.PREFILL_FIRST_TPOT,
                prefill | _line(inputs),
                _line_remark(result.prefill_first.mean_tpot_ms),
            ),
        ]
    uneven = prefill | {"arrival_scv": inputs.arrival_scv, "service_scv": system.prefill_law.scv}
    rest = f"Prompts among themselves; the rest of a decode step, {1e3 * steps.residual_s:.4g} ms, comes on top."
    return [
        *_first_token(inputs, system, rest, result.prefill_first.mean_ttft_ms),
        busy,
        ShownFormula(interference.NUMBER_DISPERSION, uneven, "Of equal prompts at random times it is 1 / (1 - R D)²."),
        ShownFormula(interference.TIME_DISPERSION, uneven, "What the percentiles of TPOT are drawn to."),
    ]


def _chunked(inputs: InterferenceInputs, result: InterferenceResult, system: ChunkedPrefill) -> list[ShownFormula]:
    steps = system.at(inputs.rate).law.steps  # type: ignore[union-attr]
    work = {"rate": inputs.rate, "work_s": steps.work_s, "interruption_s": steps.interruption_s}
    reread = {"prompt_tokens": inputs.prompt_tokens, "chunks": result.chunk_steps or 1}
    same = "In chunks the same holds with the excess of a prompt's mixed steps in place of its time."
    equal = "Of equal chunks; the page counts chunks that fill the budget."
    return [
        ShownFormula(interference.BUSY_MEAN, work, same),
        ShownFormula(interference.REREAD_TOKENS, reread, equal),
    ]


def _line(inputs: InterferenceInputs) -> dict[str, float]:
    """Return the decode step as a straight line through one sequence and twice the batch that is looked at."""
    pool = systems_of(inputs)[0].pool
    other = 2.0 * inputs.batch
    one_s, other_s = map(float, step_times_s(inputs, np.array([1.0, other]), pool.context_tokens))
    slope_s = (other_s - one_s) / (other - 1)
    return {"tokens": float(pool.steps), "fixed_s": one_s - slope_s, "slope_s": slope_s}


def _line_remark(answer_ms: float | None) -> str:
    return (
        "With the decode step as a straight line through the batch; the answer uses the step times themselves, and the waits: "
        f"{answer_ms:.5g} ms."
    )


def facts(inputs: InterferenceInputs) -> list[Fact]:
    """Return the records that the answer rests on."""
    found = instance_facts(inputs)
    if inputs.link_gb_s is None:
        link = hardware_db.links()[inputs.link]
        found.append(fact_of(link, "Link between the pools", figures={"one way": f"{link.gb_s:g} GB/s"}))
    return found
