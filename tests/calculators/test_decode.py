"""The decode pool on real figures: the lecture's numbers, the event simulation, and what is out of bounds."""

import json
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hardware_db
from calculators import outputs
from calculators.decode import curves, halves, wording
from calculators.decode.check import check
from calculators.decode.compute import DecodeInputs, compute, load_curve
from calculators.decode.explanation import under_load
from calculators.decode.ways import ways
from calculators.decode_pool import pool_of
from calculators.inputs import InputsError
from formulas.closed_form import DomainError

ROOT = Path(__file__).parents[2]
KEYS = {
    "step_ms", "bound", "weights_ms", "kv_ms", "compute_ms", "collectives_ms", "overhead_ms", "attention_intensity",
    "projection_intensity", "ridge", "critical_batch", "max_batch", "mean_batch", "mean_tpot_ms", "p90_tpot_ms",
    "p99_tpot_ms", "stable", "max_rate",
}  # fmt: skip


def test_a_step_of_the_lecture():
    result = compute(DecodeInputs(batch=32, context_tokens=700))
    assert result.step_ms == pytest.approx(7.6960, rel=1e-4)
    assert result.bound == "weights"
    assert result.weights_ms + result.kv_ms + result.overhead_ms == pytest.approx(result.step_ms)
    assert result.ridge == pytest.approx(295.2239, rel=1e-6)
    assert result.critical_batch == pytest.approx(295.2239, rel=1e-6)


def test_exercise_9_at_the_peaks():
    """143.92 ms of arithmetic over 41.49 ms of weights: the projections alone, so at a context of one token."""
    peaks = {"compute_efficiency": 1, "memory_efficiency": 1}
    result = compute(DecodeInputs(model="llama-3.1-70b", batch=1024, context_tokens=1, **peaks))
    assert result.compute_ms == pytest.approx(143.9227, rel=1e-4)
    assert result.weights_ms == pytest.approx(41.4936, rel=1e-4)
    assert result.bound == "compute"
    assert result.attention_intensity == pytest.approx(8)
    assert result.projection_intensity == pytest.approx(1024)
    assert "do not fit in memory" in wording.answer(DecodeInputs(), result)


def test_what_is_read_decides_the_critical_batch():
    """Half the bytes for a weight, half the batch; experts one after another, a larger one."""
    fp8 = compute(DecodeInputs(weight_dtype="fp8", compute_dtype="bf16")).critical_batch
    assert fp8 == pytest.approx(295.2239 / 2, rel=0.1)  # lm_head stays in BF16
    mixture = compute(DecodeInputs(model="mixtral-8x7b", accelerator="h200-sxm")).critical_batch
    assert mixture > 2 * compute(DecodeInputs(accelerator="h200-sxm")).critical_batch


@pytest.mark.parametrize("rate", [100, 200, 300])
def test_the_pool_agrees_with_the_event_simulation(rate):
    for row in check(DecodeInputs(rate=rate, customers=30_000)).rows:
        limit = {"mean TPOT": 2.0, "P50 TPOT": 2.0, "P90 TPOT": 3.0, "P99 TPOT": 4.0}[row.label]
        assert abs(row.off_percent) < limit, row


@pytest.mark.parametrize(
    "inputs",
    [
        DecodeInputs(rate=440),  # memory's cap binds
        DecodeInputs(rate=300, output_cv=1),
        DecodeInputs(
            model="gpt-oss-120b", accelerator="h200-sxm", weight_dtype="mxfp4", compute_dtype="bf16", rate=100
        ),
        DecodeInputs(rate=50, cached_tokens=2000),
    ],
    ids=["cap", "spread", "experts and windows", "prefix"],
)
def test_the_mean_holds_where_the_forms_are_pressed(inputs):
    rows = {row.label: row for row in check(replace(inputs, customers=30_000)).rows}
    assert abs(rows["mean TPOT"].off_percent) < 2.5
    assert abs(rows["P90 TPOT"].off_percent) < 4


def test_the_highest_rate_is_where_the_target_is_just_met():
    inputs = DecodeInputs()
    highest = compute(inputs).max_rate
    at = compute(replace(inputs, rate=highest))
    assert at.target_tpot_ms == pytest.approx(inputs.tpot_slo_ms, rel=1e-6)
    assert at.verdict == "meets"
    assert at.instances == 1
    above = compute(replace(inputs, rate=1.001 * highest))
    assert (above.verdict, above.instances) == ("misses", 2)


@pytest.mark.parametrize("tokens", [50_000, 100_000])
def test_at_no_load_a_token_takes_what_it_takes_alone(tokens):
    """However much one more sequence would add: nobody else is there."""
    inputs = DecodeInputs(prompt_tokens=tokens, rate=0.002)
    assert compute(inputs).p90_tpot_ms == pytest.approx(pool_of(inputs).alone_ms, rel=0.01)


def test_a_target_that_is_met_at_every_computed_batch_is_no_misfit():
    result = compute(DecodeInputs(prompt_tokens=1, output_tokens=2, tpot_slo_ms=5000))
    assert result.verdict == "meets"
    assert result.max_rate > 1000


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"rate": 460}, "unstable"),
        ({"tpot_slo_ms": 5}, "too_slow_unloaded"),
        ({"model": "llama-3.1-70b"}, "does_not_fit"),
        ({"output_tokens": 1}, "nothing_to_decode"),
        ({"prompt_tokens": 2_000_000}, "does_not_fit"),
        ({"rate": 400}, "misses"),
    ],
)
def test_each_kind_of_no_has_a_sentence_and_no_numbers(changes, verdict):
    inputs = DecodeInputs(**changes)
    result = compute(inputs)
    assert result.verdict == verdict
    said = wording.answer(inputs, result)
    assert "None" not in said
    assert "nan" not in said
    if verdict in ("unstable", "does_not_fit", "nothing_to_decode"):
        assert result.mean_tpot_ms is None
        assert result.stable is False
        with pytest.raises(DomainError):
            check(inputs)
    assert set(outputs.as_dict(result)) >= KEYS


def test_the_curves_pass_through_the_answer():
    inputs = DecodeInputs(rate=250)
    pool, result = pool_of(inputs), compute(inputs)
    load = load_curve(pool, inputs.attainment)
    assert np.interp(250, load.rate, load.p90_tpot_ms) == pytest.approx(result.p90_tpot_ms, rel=5e-3)
    assert (np.diff(load.mean_tpot_ms) > 0).all()
    stack = curves.step_stack(inputs, result, pool)
    assert sum(stack.counted_ms.values()) == pytest.approx(stack.step_ms, rel=1e-12)
    law = curves.batch_law(inputs, pool)
    assert law.share.sum() == pytest.approx(1, abs=1e-4)
    assert law.batch @ law.share == pytest.approx(result.mean_batch, rel=1e-3)


def test_the_closed_form_is_the_answer_where_the_step_time_is_a_straight_line():
    inputs = DecodeInputs(rate=200)
    shown = {each.form.name: each for each in under_load(inputs, compute(inputs), pool_of(inputs))}
    mean = shown["mean time per output token of a decode pool"]
    law = pool_of(inputs).law(200)
    assert mean.form(**mean.values) == pytest.approx(law.mean_tpot, rel=1e-9)


def test_several_accelerators_as_in_figure_5_of_distserve():
    """Tensor parallel shortens the step with diminishing returns; a pipeline multiplies the throughput."""
    found = {(way.way, way.degree): way for way in ways(DecodeInputs(model="opt-13b", batch=128, prompt_tokens=256))}
    tensor = [found["tensor", n].tpot_ms for n in (1, 2, 4, 8)]
    assert all(later < before for before, later in pairwise(tensor))
    gains = [before / later for before, later in pairwise(tensor)]
    assert gains == sorted(gains, reverse=True)
    one = found["tensor", 1]
    for stages in (2, 4, 8):
        pipeline = found["pipeline", stages]
        assert pipeline.tpot_ms >= one.tpot_ms
        assert stages * 128 / pipeline.tokens_per_second == pytest.approx(pipeline.tpot_ms / 1e3)  # Little's law
        assert pipeline.tokens_per_second == pytest.approx(stages * one.tokens_per_second, rel=0.35)
        assert found["replicas", stages].tokens_per_second == pytest.approx(stages * one.tokens_per_second)


def test_what_does_not_divide_is_said():
    found = {(way.way, way.degree): way for way in ways(DecodeInputs(model="llama-3.1-70b", accelerator="l40s"))}
    assert "141.1 GB of weights" in found["tensor", 1].remark
    assert found["tensor", 2].tpot_ms is None
    assert "scale-up link" in found["tensor", 2].remark


def test_chips_with_more_bandwidth_for_their_arithmetic_suit_attention():
    inputs = DecodeInputs(model="llama-3.1-70b", batch=1024, context_tokens=4096)
    rows = {row.accelerator: row for row in halves.halves(inputs)}
    chosen = rows["h100-sxm"]
    assert chosen.suits == "the one chosen"
    assert rows["h20-sxm" if "h20-sxm" in rows else "h200-sxm"].suits == "attention"
    for row in rows.values():
        if row.suits in ("attention", "projections and FFN") and row.projections_bound == "compute":
            assert (row.ridge < chosen.ridge) == (row.suits == "attention")
    crossing = halves.crossing(inputs, 100.0)
    assert crossing.mb_per_layer == pytest.approx(2 * 1024 * 8192 * 2 / 1e6)
    assert crossing.mb_per_step == pytest.approx(80 * crossing.mb_per_layer)
    assert crossing.gb_s == pytest.approx(crossing.mb_per_step / 100)


def test_the_command_line_gives_the_keys_of_the_answer():
    words = "--model llama-3.1-8b --accelerator h100-sxm --batch 32 --context-tokens 700 --rate 200"
    words += " --prompt-tokens 512 --output-tokens 64 --json"
    command = [sys.executable, "-m", "calculators", "decode", *words.split()]
    report = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)
    assert set(report["results"]) >= KEYS
    assert report["results"]["step_ms"] == pytest.approx(7.6960, rel=1e-4)
    assert report["results"]["mean_tpot_ms"] == pytest.approx(10.05, rel=0.02)
    assert report["results"]["stable"] is True


@settings(max_examples=20, deadline=None)
@given(
    st.sampled_from(list(hardware_db.models())),
    st.sampled_from(list(hardware_db.accelerators())),
    st.sampled_from([1, 4, 8]),
    st.floats(0.001, 1e5),
    st.integers(1, 100_000),
    st.integers(1, 10_000),
    st.sampled_from([0, 0.5, 3]),
)
def test_every_scenario_has_an_answer_in_order(model, accelerator, tp, rate, prompt, output, spread):
    inputs = DecodeInputs(
        model=model, accelerator=accelerator, tp=tp, rate=rate, prompt_tokens=prompt, output_tokens=output,
        output_cv=spread,
    )  # fmt: skip
    try:
        result = compute(inputs)
    except (
        InputsError
    ):  # a chip without the data type or the link; tests/calculators/test_service_time.py has the words
        return
    assert wording.answer(inputs, result)
    for value in outputs.as_dict(result).values():
        assert not isinstance(value, float) or (np.isfinite(value) and value >= 0)
    if result.stable:
        assert result.p50_tpot_ms <= result.p90_tpot_ms <= result.p99_tpot_ms
        assert result.mean_tpot_ms >= pool_of(inputs).alone_ms * (1 - 1e-9)
