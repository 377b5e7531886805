"""What makes the answer checkable: its formulas with the user's numbers, and the facts it rests on."""

from __future__ import annotations

import numpy as np

import hardware_db
from calculators.decode_step import step_times_s
from calculators.facts import Fact, ShownFormula, fact_of, instance_facts
from calculators.interference.compute import InterferenceInputs, InterferenceResult, systems_of
from formulas import decode_pool, interference
from formulas.queueing import md1


def formulas(inputs: InterferenceInputs, result: InterferenceResult) -> list[ShownFormula]:
    """Return the formulas of a mixed step and of the three ways at the arrival rate, as far as they are closed."""
    slow = {"mixed_step_s": result.mixed_step_ms / 1e3, "decode_step_s": result.decode_step_ms / 1e3}
    shown = [ShownFormula(interference.SLOWDOWN, slow)]
    first, chunked, apart = systems_of(inputs)
    if not first.pool.serves:
        return shown
    prefill = {"rate": inputs.rate, "service_time": first.prefill_s}
    line = _line(inputs)
    times = first.at(inputs.rate)
    if times is not None:
        steps = times.law.steps  # type: ignore[attr-defined]
        work = {"rate": inputs.rate, "work_s": steps.work_s, "interruption_s": first.prefill_s}
        shown += [
            ShownFormula(interference.PREFILL_FIRST_TTFT, prefill | {"residual_s": steps.residual_s}),
            ShownFormula(interference.BUSY_MEAN, work, "A request's decode steps, interrupted by prompts."),
            ShownFormula(interference.BUSY_VARIANCE, work),
            ShownFormula(
                interference.PREFILL_FIRST_TPOT, prefill | line, _line_remark(result.prefill_first.mean_tpot_ms)
            ),
        ]
    mixed = chunked.at(inputs.rate)
    if mixed is not None:
        steps = mixed.law.steps  # type: ignore[attr-defined]
        work = {"rate": inputs.rate, "work_s": steps.work_s, "interruption_s": steps.interruption_s}
        reread = {"prompt_tokens": inputs.prompt_tokens, "chunks": result.chunk_steps or 1}
        shown += [
            ShownFormula(
                interference.BUSY_MEAN,
                work,
                "In chunks the same holds with the excess of a prompt's mixed steps in place of its time.",
            ),
            ShownFormula(
                interference.REREAD_TOKENS, reread, "Of equal chunks; the page counts chunks that fill the budget."
            ),
        ]
    if apart.at(inputs.rate) is not None:
        shown += [
            ShownFormula(md1.MEAN_TTFT, prefill, "Disaggregated: prompts alone."),
            ShownFormula(
                decode_pool.AFFINE_MEAN_TPOT,
                {"rate": inputs.rate, **line},
                _line_remark(result.disaggregated.mean_tpot_ms),
            ),
        ]
    return shown


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
