"""What makes the answer checkable: its formulas with the user's numbers, and the facts it rests on."""

from __future__ import annotations

import numpy as np

from calculators.decode.compute import DecodeInputs, DecodeResult, context_of
from calculators.decode_pool import Pool
from calculators.decode_step import step_times_s
from calculators.facts import Fact, ShownFormula, instance_facts
from calculators.step_formulas import step_formulas
from calculators.step_load import StepContents
from formulas import decode_pool as forms


def one_step(inputs: DecodeInputs, pool: Pool) -> list[ShownFormula]:
    """Return the formulas of the step that is looked at."""
    return step_formulas(inputs, StepContents(sequences=inputs.batch, context_tokens=context_of(inputs, pool)))


def under_load(inputs: DecodeInputs, result: DecodeResult, pool: Pool) -> list[ShownFormula]:
    """Return the pool in closed form: the step time as a straight line through the mean batch.

    The answer sums the law of the very step times. The line is their secant between one sequence and twice the mean
    batch; the remark says how far the closed form is from the answer.
    """
    if not pool.serves:
        return []
    other = max(2.0, 2 * (result.mean_batch or 1.0))
    one_s, other_s = map(float, step_times_s(inputs, np.array([1.0, other]), pool.context_tokens))
    slope_s = (other_s - one_s) / (other - 1)
    line = {"tokens": float(pool.steps), "fixed_s": one_s - slope_s, "slope_s": slope_s}
    if min(line.values()) <= 0:
        return []
    loaded = {"rate": inputs.rate, **line}
    shown = [
        ShownFormula(forms.AFFINE_RATIO, {name: loaded[name] for name in ("rate", "tokens", "slope_s")}),
        ShownFormula(forms.AFFINE_SHAPE, {name: loaded[name] for name in ("fixed_s", "slope_s")}),
        ShownFormula(forms.AFFINE_MEAN_BATCH, loaded),
        ShownFormula(forms.AFFINE_MEAN_TPOT, loaded, _remark(inputs, result, pool, loaded)),
        ShownFormula(forms.AFFINE_TPOT_VARIANCE, loaded),
        ShownFormula(
            forms.AFFINE_MAX_RATE,
            {"mean_tpot": inputs.tpot_slo_ms / 1e3, **line},
            "For the mean, without waits and without memory's cap on the batch.",
        ),
    ]
    law = pool.law(inputs.rate)
    if law is not None and law.ratio > 0:
        shown.append(ShownFormula(forms.FIXED_AVERAGING, {"ratio": law.ratio}))
    return shown


def _remark(inputs: DecodeInputs, result: DecodeResult, pool: Pool, loaded: dict[str, float]) -> str:
    law = pool.law(inputs.rate)
    if law is None or forms.AFFINE_MEAN_TPOT.violations(**loaded):
        return "Outside its domain: without a cap on the batch there is no steady state at this rate."
    off = forms.AFFINE_MEAN_TPOT(**loaded) / law.mean_tpot - 1
    waits_ms = (result.mean_tpot_ms or 0) - 1e3 * law.mean_tpot
    return (
        f"With the step times themselves instead of a straight line, and memory's cap, it is {1e3 * law.mean_tpot:.5g} ms (this "
        f"form: {off:+.1e}); waits for the step in progress and for a slot add {waits_ms:.3g} ms to the mean TPOT of the answer."
    )


def facts(inputs: DecodeInputs) -> list[Fact]:
    """Return the records that the answer rests on."""
    return instance_facts(inputs)
