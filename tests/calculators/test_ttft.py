"""The ttft calculator: published figures, verdicts, and what must always hold."""

import math
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calculators.inputs import InputsError
from calculators.ttft.check import check
from calculators.ttft.compute import PERCENTILES, compute, sweep
from calculators.ttft.explanation import facts, percentile_formulas, queue_formulas, service_formulas
from calculators.ttft.figures import ttft_against_rate
from calculators.ttft.inputs import TtftInputs
from calculators.ttft.sensitivity import sensitivities
from calculators.ttft.whatif import VERDICTS, alternatives
from calculators.ttft.wording import metrics, sentence
from formulas.closed_form import DomainError
from formulas.queueing.md1 import MEAN_TTFT

FIGURES = tomllib.loads((Path(__file__).parent / "fixtures" / "course_figures.toml").read_text())["figure"]
TIMES = ["mean_ttft_ms", *(f"{key}_ttft_ms" for key in PERCENTILES)]

typed = st.builds(
    TtftInputs,
    rate=st.floats(0.01, 1e4),
    service_ms=st.floats(0.01, 1e4),
    ttft_slo_ms=st.floats(0.01, 1e5),
    slo_statistic=st.sampled_from(["mean", "percentile"]),
    percentile=st.floats(1, 99.99),
)


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure["id"])
def test_published_figures(figure):
    result = compute(TtftInputs(**figure["inputs"]))
    for key, expected in figure["expected"].items():
        assert getattr(result, key) == pytest.approx(expected, rel=figure["rel"]), key


def test_the_lecture_p99_at_utilization_0_9_is_22_898_service_times_not_16():
    result = compute(TtftInputs(rate=9, service_ms=100))
    assert result.p99_ttft_ms == pytest.approx(2289.8237, rel=1e-7)
    assert result.p90_ttft_ms == pytest.approx(1178.2505, rel=1e-7)


@given(typed)
def test_one_verdict_and_it_is_the_true_one(inputs):
    result = compute(inputs)
    slo, at_rate, rate_limit = inputs.ttft_slo_ms, result.target_ttft_ms, result.max_rate
    match result.verdict:
        case "meets":
            assert at_rate <= slo * (1 + 1e-6) or result.utilization > 0.999
            assert result.instances == 1
        case "misses":
            assert at_rate > slo * (1 - 1e-6)
            assert rate_limit < inputs.rate
            assert result.instances >= 2
        case "unstable":
            assert at_rate is None
            assert result.instances >= 2
            assert result.utilization >= 1
        case "too_slow_unloaded":
            assert (rate_limit, result.instances) == (None, None)
            assert result.service_ms >= slo
        case other:
            pytest.fail(other)


@given(typed)
def test_no_number_is_infinite_nan_or_negative(inputs):
    result = compute(inputs)
    for name in (*TIMES, "mean_wait_ms", "max_rate", "target_ttft_ms", "service_ms", "utilization"):
        value = getattr(result, name)
        assert value is None or (math.isfinite(value) and value >= 0), name
    assert result.stable == (result.utilization < 1)
    assert all((getattr(result, name) is not None) == result.stable for name in TIMES)


@given(typed)
def test_percentiles_are_ordered_and_no_less_than_the_service_time(inputs):
    result = compute(inputs)
    if result.stable:
        percentiles = [getattr(result, f"{key}_ttft_ms") for key in PERCENTILES]
        assert percentiles == sorted(percentiles)
        assert percentiles[0] >= result.service_ms


@given(typed, st.floats(1.001, 3))
def test_ttft_grows_with_the_rate(inputs, factor):
    low, high = compute(inputs), compute(replace(inputs, rate=inputs.rate * factor))
    if high.stable:
        for name in TIMES:
            assert getattr(low, name) <= getattr(high, name) * (1 + 1e-12), name


@given(typed)
def test_at_the_highest_rate_the_target_is_just_met(inputs):
    limit = compute(inputs).max_rate
    if limit is not None and limit >= 0.001:
        at_limit = compute(replace(inputs, rate=limit))
        if at_limit.utilization < 0.999:  # closer to saturation, one digit of the rate is many of the TTFT
            assert at_limit.target_ttft_ms <= inputs.ttft_slo_ms * (1 + 1e-6)
        beyond = compute(replace(inputs, rate=limit * 1.001))
        assert beyond.verdict in ("misses", "unstable")


def test_too_slow_unloaded_names_what_helps():
    result = compute(TtftInputs(rate=1, service_ms=200, ttft_slo_ms=100))
    assert result.verdict == "too_slow_unloaded"
    assert result.mean_ttft_ms is not None
    assert "More instances cannot help" in result.warnings[0]


def test_weights_that_do_not_fit_are_a_verdict_of_their_own():
    result = compute(TtftInputs(model="llama-3.1-70b", rate=1, ttft_slo_ms=1000))
    assert (result.verdict, result.max_rate, result.instances) == ("does_not_fit", None, None)
    assert result.service_ms == pytest.approx(121.5146, rel=1e-5)
    assert "tp = 2 or more" in result.warnings[0]
    assert compute(TtftInputs(model="llama-3.1-70b", rate=1, ttft_slo_ms=1000, tp=2)).verdict == "meets"


@pytest.mark.parametrize(
    ("changes", "named", "said"),
    [
        ({"accelerator": "a100-80-sxm", "weight_dtype": "fp8"}, "weight_dtype", "no fp8 rate"),
        ({"accelerator": "h100-sxm", "compute_dtype": "fp4"}, "compute_dtype", "no fp4 rate"),
        ({"accelerator": "v100-sxm2-32"}, "weight_dtype", "no bf16 rate"),
        ({"accelerator": "h100-sxm", "tp": 16}, "tp", "joins 8 accelerators"),
        ({"accelerator": "l4", "tp": 2}, "tp", "no scale-up link"),
    ],
)
def test_what_a_chip_cannot_do_is_an_error_that_says_so(changes, named, said):
    with pytest.raises(InputsError) as caught:
        compute(TtftInputs(**changes))
    (error,) = caught.value.errors
    assert error.name == named
    assert said in str(error)


def test_weight_only_quantization_computes_in_the_type_that_the_user_names():
    fp8_weights = compute(TtftInputs(accelerator="a100-80-sxm", weight_dtype="fp8", compute_dtype="bf16"))
    bf16 = compute(TtftInputs(accelerator="a100-80-sxm"))
    assert fp8_weights.service.compute_ms == bf16.service.compute_ms
    assert fp8_weights.service.weights_gb < 0.6 * bf16.service.weights_gb


def test_two_amd_chips_share_one_link_not_seven():
    pair = compute(TtftInputs(accelerator="mi300x", tp=2)).service
    expected_s = 32 * 2 * (2 * (1 / 2) * 512 * 4096 * 2 / 64e9 + 2e-6)
    assert pair.collectives_ms == pytest.approx(1e3 * expected_s, rel=1e-9)


def test_a_named_link_carries_more_ranks_than_the_node_has():
    across = compute(TtftInputs(tp=16, tp_link="ib-ndr"))
    assert across.service.collectives_ms > compute(TtftInputs(tp=8)).service.collectives_ms


def test_a_mixture_of_experts_reads_the_distinct_experts_only():
    one = compute(TtftInputs(model="gpt-oss-120b", prompt_tokens=1)).service.weights_gb
    many = compute(TtftInputs(model="gpt-oss-120b", prompt_tokens=4096)).service.weights_gb
    assert many / one > 10
    assert many == pytest.approx(2 * 116.8, rel=0.02)


def test_a_cached_prefix_costs_attention_but_no_products():
    plain, cached = compute(TtftInputs()), compute(TtftInputs(cached_tokens=2048))
    extra_flop = 4 * 32 * 128 * 32 * 512 * 2048
    assert cached.service.tflop - plain.service.tflop == pytest.approx(extra_flop / 1e12, rel=1e-9)


def test_overrides_replace_values_of_the_set_one_by_one():
    slow = compute(TtftInputs(compute_efficiency=0.3))
    assert slow.service.compute_ms == pytest.approx(2 * compute(TtftInputs()).service.compute_ms)
    assert slow.service.overhead_ms == 1.0
    assert compute(TtftInputs(step_overhead_ms=0.0)).service_ms == pytest.approx(13.0662, rel=1e-5)


def test_the_sweep_agrees_with_single_answers():
    curves = sweep(50.0)
    assert len(curves.rate) == 200
    assert np.all(np.diff(curves.rate) > 0)
    for index in (0, 57, 140, 199):
        alone = compute(TtftInputs(rate=max(curves.rate[index], 1e-9), service_ms=50))
        for name in TIMES:
            assert getattr(curves, name)[index] == pytest.approx(getattr(alone, name), rel=1e-9), name


def test_elasticities_add_up_to_one_in_time_and_rate():
    # TTFT has the unit of the service time: scaling D up and R down by one percent scales it by one percent.
    by_name = {row.name: row.elasticity for row in sensitivities(TtftInputs(rate=16, service_ms=50))}
    assert by_name["service_ms"] - by_name["rate"] == pytest.approx(1, abs=1e-4)


def test_elasticity_of_the_mean_is_that_of_the_closed_form():
    by_name = {row.name: row for row in sensitivities(TtftInputs(rate=16, service_ms=50, slo_statistic="mean"))}
    values = {"rate": 16, "service_time": 0.05}
    for name, symbol in (("rate", "rate"), ("service_ms", "service_time")):
        assert by_name[name].elasticity == pytest.approx(MEAN_TTFT.elasticity(symbol)(**values), rel=1e-4)


def test_without_a_steady_state_there_is_no_elasticity():
    assert sensitivities(TtftInputs(rate=100)) == ()


@pytest.mark.parametrize(
    "inputs",
    [
        TtftInputs(),
        TtftInputs(tp=2, prompt_tokens=7),
        TtftInputs(rate=5),
        TtftInputs(rate=16, service_ms=50, percentile=99.9),
        TtftInputs(rate=1, service_ms=50, percentile=50),
        TtftInputs(model="deepseek-v3", accelerator="b200-sxm", tp=8, rate=3),
    ],
)
def test_every_shown_formula_gives_the_answers_own_number(inputs):
    result = compute(inputs)
    ms = {
        "total_s": result.service_ms,
        "utilization": 1e3 * result.utilization,
        "mean_wait": result.mean_wait_ms,
        "mean_ttft": result.mean_ttft_ms,
    }
    shown = [*service_formulas(inputs), *queue_formulas(inputs, result)]
    for each in shown:
        if each.form.result.name in ms:
            assert 1e3 * each.form(**each.values) == pytest.approx(ms[each.form.result.name], rel=1e-12)
    for each in percentile_formulas(inputs, result):
        if not each.form.violations(**each.values):
            assert each.form.substituted(**each.values)
    assert facts(inputs)


def test_the_percentile_formula_is_exact_where_it_says_so_and_near_where_it_says_so():
    for rate in (2, 7.7, 16, 19):
        inputs = TtftInputs(rate=rate, service_ms=50, percentile=99)
        result = compute(inputs)
        first = percentile_formulas(inputs, result)[0]
        wait_ms = 1e3 * first.form(**first.values)
        exact_ms = result.p99_ttft_ms - 50
        tolerance = 1e-9 if "Exact" in first.remark else 0.02
        assert wait_ms == pytest.approx(exact_ms, rel=tolerance)


@pytest.mark.parametrize("rate", [4, 14, 18])
def test_simulation_and_closed_form_agree(rate):
    checked = check(TtftInputs(rate=rate, service_ms=50, customers=1_000_000, seed=1))
    assert checked.agrees
    assert [row.label for row in checked.rows] == ["mean", "P50", "P90", "P95", "P99"]
    shares = checked.distribution
    assert shares.simulated.sum() == pytest.approx(1)
    assert np.allclose(shares.simulated[:5], shares.exact[:5], rtol=0.05, atol=2e-3)


def test_a_run_too_short_says_so_instead_of_agreeing():
    checked = check(TtftInputs(rate=19.98, service_ms=50, customers=100_000))
    assert checked.agrees is None
    assert checked.needed_for_one_percent > 1e9


def test_short_runs_undershoot_at_utilization_0_9_as_the_lecture_did():
    checked = check(TtftInputs(rate=18, service_ms=50, customers=100_000))
    assert checked.exact_p99_ms == pytest.approx(22.898237 * 50, rel=1e-6)
    medians = [run.median_ms for run in checked.short_runs]
    assert medians == sorted(medians)
    shortest = checked.short_runs[0]
    assert shortest.median_ms < 16 * 50 < checked.exact_p99_ms


def test_the_same_seed_gives_the_same_simulation():
    inputs = TtftInputs(rate=10, service_ms=50, customers=50_000, seed=3)
    assert check(inputs).rows == check(inputs).rows
    assert check(inputs).rows != check(replace(inputs, seed=4)).rows


def test_an_unstable_instance_is_not_simulated():
    with pytest.raises(DomainError, match="no steady state"):
        check(TtftInputs(rate=21, service_ms=50))


@settings(max_examples=30)
@given(st.sampled_from(TtftInputs.__dataclass_fields__["model"].metadata["input"].options), st.integers(1, 100_000))
def test_every_model_has_a_prefill_time(model, prompt_tokens):
    result = compute(TtftInputs(model=model, accelerator="b200-sxm", prompt_tokens=prompt_tokens, rate=0.01))
    assert 1 < result.service_ms < 1e7
    longer = compute(TtftInputs(model=model, accelerator="b200-sxm", prompt_tokens=2 * prompt_tokens, rate=0.01))
    assert longer.service_ms >= result.service_ms


@given(typed)
def test_at_the_highest_rate_the_verdict_is_that_one_instance_meets_the_target(inputs):
    limit = compute(inputs).max_rate
    if limit is not None and 0.001 <= limit <= 1e6:
        at_limit = compute(replace(inputs, rate=limit))
        assert (at_limit.verdict, at_limit.instances) == ("meets", 1)


def test_exactly_at_the_target_it_is_met():
    result = compute(TtftInputs(rate=16, service_ms=50, slo_statistic="mean", ttft_slo_ms=150))
    assert (result.verdict, result.instances) == ("meets", 1)


def test_accelerators_are_instances_times_the_degree():
    inputs = TtftInputs(model="llama-3.1-70b", tp=2, prompt_tokens=1000, rate=12, percentile=95, ttft_slo_ms=500)
    result = compute(inputs)
    assert (result.instances, result.accelerators) == (3, 6)
    assert "3 instances of 2, 6 accelerators" in sentence(inputs, result)


def test_no_sentence_and_no_number_is_in_scientific_notation():
    for inputs in (TtftInputs(rate=19.9, service_ms=50), TtftInputs(prompt_tokens=100_000), TtftInputs(rate=1e6)):
        result = compute(inputs)
        shown = [sentence(inputs, result), *result.warnings, *(value for _, value, _ in metrics(inputs, result))]
        assert not any(re.search(r"\de[+-]\d", text) for text in shown)


@pytest.mark.parametrize("percentile", [75, 90, 95, 99.9])
def test_the_curve_of_the_targets_percentile_passes_through_the_users_point(percentile):
    inputs = TtftInputs(percentile=percentile)
    result = compute(inputs)
    figure = ttft_against_rate(inputs, result, sweep(result.service_ms, percentile))
    (curve,) = [trace for trace in figure.data if trace.line.width == 4]
    assert curve.name == f"P{percentile:g}"
    assert np.interp(inputs.rate, curve.x, curve.y) == pytest.approx(result.target_ttft_ms, rel=2e-3)


def test_each_alternative_is_what_the_calculation_says_of_it():
    inputs = TtftInputs(model="llama-3.1-70b", tp=2, rate=12, percentile=95, ttft_slo_ms=500, prompt_tokens=1000)
    rows = {row.change: row for row in alternatives(inputs)}
    for change, changed in {
        "as it is": inputs,
        "tensor parallel 8": replace(inputs, tp=8),
        "weights and products in FP8": replace(inputs, weight_dtype="fp8"),
        "twice the prompt": replace(inputs, prompt_tokens=2000),
    }.items():
        result = compute(changed)
        row = rows[change]
        assert row.service_ms == result.service_ms
        expected = result.target_ttft_ms
        assert row.target_ttft_ms == (None if expected is None else pytest.approx(expected, rel=1e-9))
        assert (row.max_rate, row.accelerators) == (result.max_rate, result.accelerators)
        assert row.verdict == VERDICTS[result.verdict]
    assert rows["tensor parallel 1"].verdict == "the weights do not fit"
    assert {row.change for row in alternatives(TtftInputs(service_ms=10))} == {
        "as it is",
        "twice the rate",
        "half the service time",
        "twice the service time",
    }
    no_link = {row.change: row for row in alternatives(TtftInputs(accelerator="l4"))}["tensor parallel 2"]
    assert no_link.service_ms is None
    assert "no scale-up link" in no_link.verdict


@pytest.mark.parametrize(("service_ms", "slo", "percentile"), [(50, 300, 99.5), (50, 70, 99.95), (100, 599, 99.99)])
def test_targets_of_a_few_service_times_have_a_highest_rate(service_ms, slo, percentile):
    inputs = TtftInputs(rate=0.1, service_ms=service_ms, ttft_slo_ms=slo, percentile=percentile)
    limit = compute(inputs).max_rate
    assert compute(replace(inputs, rate=limit)).target_ttft_ms == pytest.approx(slo, rel=1e-6)


def test_near_saturation_what_matters_is_the_rate_and_the_service_time():
    for rate in (19.99, 19.9999, 19.999999):
        by_name = {row.name: row.elasticity for row in sensitivities(TtftInputs(rate=rate, service_ms=50))}
        assert by_name["service_ms"] - by_name["rate"] == pytest.approx(1, rel=1e-2)
        assert by_name["rate"] == pytest.approx(1 / (1 - rate / 20), rel=0.2)


def test_near_saturation_the_simulation_says_that_it_is_too_short():
    checked = check(TtftInputs(rate=19.99999999, service_ms=50, customers=10_000))
    assert checked.agrees is None


def test_figures_that_are_compared_are_told_apart():
    close = TtftInputs(rate=1, service_ms=100.0000001, ttft_slo_ms=100)
    assert "100.0000001 ms" in sentence(close, compute(close))
    nearly = TtftInputs(rate=19.9999, service_ms=50)
    values = {label: value for label, value, _ in metrics(nearly, compute(nearly))}
    assert values["Utilization"] not in ("1", "1.0")


def test_no_degree_is_advised_that_the_inputs_refuse():
    result = compute(TtftInputs(model="kimi-k2", accelerator="groq-lpu1", weight_dtype="int8"))
    assert "Not even tp = 128" in result.warnings[-1] + "".join(result.warnings)
