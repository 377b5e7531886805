"""The experts calculator: the lecture's counts, records, skew, ranks, times; and mistakes that tools of its kind make."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hardware_db
from calculators import catalog, outputs
from calculators.__main__ import main
from calculators.experts import curves, figures, wording
from calculators.experts.check import check
from calculators.experts.compute import ExpertsInputs, compute, mixtures
from calculators.experts.explanation import facts, formulas
from calculators.experts.ranks import PLACEMENTS, divisors, ranks_table
from calculators.experts.routing import routing_of
from calculators.experts.steps import as_dense, load_of, time_of, whole_step_critical_tokens
from calculators.inputs import InputsError
from calculators.machine import machine_of
from formulas.closed_form import DomainError

COURSE = ExpertsInputs(experts=128, experts_per_token=4, tokens=21)
V3 = ExpertsInputs(model="deepseek-v3", weight_dtype="fp8", accelerator="h200-sxm")

some = st.builds(
    ExpertsInputs,
    model=st.sampled_from(list(hardware_db.models())),
    accelerator=st.sampled_from(["h100-sxm", "b200-sxm", "mi300x"]),
    batch=st.sampled_from([1, 7, 64, 5000]),
    tokens=st.none() | st.integers(1, 1_000_000),
    context_tokens=st.none() | st.integers(1, 100_000),
    zipf_exponent=st.sampled_from([0.0, 0.0, 1.0]),
    weight_dtype=st.sampled_from(["bf16", "fp8", "int4"]),
    tp=st.sampled_from([1, 2, 8]),
)


@pytest.fixture
def answer(capsys):
    def answer(*words):
        assert main(["experts", *words, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return answer


# --- counts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tokens", "distinct", "ratio"), [(1, 4.0, 1.0), (11, 37.7309566, 9.43273914), (21, 62.2862887, 15.5715722)]
)
def test_exercise_8_of_the_lecture(tokens, distinct, ratio):
    result = compute(replace(COURSE, tokens=tokens))
    assert result.distinct_experts == pytest.approx(distinct, rel=1e-6)
    assert result.ratio_to_one_token == pytest.approx(ratio, rel=1e-6)


def test_the_command_line_counts(answer):
    report = answer("--experts", "128", "--experts-per-token", "4", "--tokens", "21")
    results = report["results"]
    keys = ["distinct_experts", "distinct_experts_sd", "ratio_to_one_token", "coverage", "tokens_for_95_percent"]
    expected = [62.2862887, 3.0300410, 15.5715722, 0.4866116, 95]
    assert [results[key] for key in keys] == pytest.approx(expected, rel=1e-6)
    assert results["step_ms"] is None
    assert "typed in" in report["warnings"][0]


def test_the_command_line_with_a_record(answer):
    results = answer("--model", "deepseek-v3", "--tokens", "32")["results"]
    assert (results["experts"], results["experts_per_token"]) == (256, 8)
    assert results["distinct_experts"] == pytest.approx(163.3138, rel=1e-6)
    assert all(results[key] > 0 for key in ("expert_bytes_per_step", "step_ms", "critical_batch"))


def test_counts_typed_like_the_record_are_the_records(answer):
    typed = answer("--model", "deepseek-v3", "--experts", "256", "--experts-per-token", "8")["results"]
    assert typed == answer("--model", "deepseek-v3")["results"]
    other = answer("--model", "deepseek-v3", "--experts", "512")["results"]
    assert (other["experts"], other["experts_per_token"], other["step_ms"]) == (512, 8, None)


@pytest.mark.parametrize(("experts", "chosen", "tokens"), [(256, 8, 95), (64, 8, 23)])
def test_tokens_for_95_percent_as_published_by_moesd(experts, chosen, tokens):
    assert compute(ExpertsInputs(experts=experts, experts_per_token=chosen)).tokens_for_95_percent == tokens


def test_a_dense_model_is_answered_and_named(answer):
    report = answer()
    results = report["results"]
    assert results["distinct_experts"] is None
    assert results["step_ms"] > 0
    assert results["critical_batch"] is None
    said = report["warnings"][0]
    assert said.startswith("llama-3.1-8b is dense")
    assert "deepseek-v3" in said
    assert "experts_per_token" in said


def test_extremes():
    one = compute(ExpertsInputs(experts=1, experts_per_token=1, tokens=1_000_000))
    assert (one.distinct_experts, one.distinct_experts_sd, one.tokens_for_95_percent) == (1, 0, 1)
    every = compute(ExpertsInputs(experts=8, experts_per_token=8, tokens=1))
    assert (every.coverage, every.distinct_experts_sd) == (1, 0)
    most = compute(ExpertsInputs(experts=2048, experts_per_token=64, tokens=1_000_000, zipf_exponent=4))
    assert most.distinct_experts <= 2048


@settings(max_examples=60, deadline=None)
@given(some)
def test_no_number_is_infinite_nan_or_negative(inputs):
    try:
        result = compute(inputs)
    except InputsError:
        assert inputs.weight_dtype == "fp8" or inputs.tp > 1
        return
    for name, value in outputs.as_dict(result).items():
        if isinstance(value, float | int):
            assert math.isfinite(value), name
            assert value >= 0, name
    assert wording.answer(inputs, result)
    assert all(value for _, value, _ in wording.metrics(result))


# --- mistakes that tools of this kind make -----------------------------------------------------------------


def test_neither_all_experts_nor_those_of_one_token_are_read():
    """Each of 32 tokens routed on its own: 163.3 of 256, not 8, not 256."""
    result = compute(replace(V3, tokens=32))
    model = hardware_db.models()["deepseek-v3"]
    one = 58 * model.expert_bytes("fp8")
    assert result.expert_bytes_per_step == pytest.approx(163.3138 * one, rel=1e-6)
    assert 8 * one < result.expert_bytes_per_step < 256 * one
    dense = model.dense_weight_bytes("fp8")
    assert result.weight_bytes_per_step == pytest.approx(dense + result.expert_bytes_per_step, rel=1e-12)


def test_an_expert_has_its_own_width_not_the_dense_ffns():
    """DeepSeek-V3: moe_intermediate_size 2048, intermediate_size 18432; three matrices, hidden 7168."""
    result = compute(replace(V3, tokens=1))
    assert result.expert_bytes_per_step == pytest.approx(58 * 8 * 3 * 7168 * 2048, rel=1e-12)


def test_under_expert_parallelism_a_token_chooses_among_all_experts():
    """32 ranks of 8 experts, 32 tokens in all: 5.1 touched on a rank; 8 of the local 8 would be all of them."""
    ranks = compute(replace(V3, tokens=32, ep=32, tp_link="ib-ndr")).ranks
    assert ranks.mean_distinct == pytest.approx(8 * (1 - (1 - 8 / 256) ** 32), rel=1e-12)
    assert ranks.mean_load == 32 * 8 / 32
    assert 1 <= ranks.ranks_visited <= 8


def test_uneven_routing_touches_fewer_than_even_routing():
    even, uneven = compute(COURSE), compute(replace(COURSE, zipf_exponent=1))
    assert uneven.even_distinct_experts == pytest.approx(even.distinct_experts)
    assert uneven.distinct_experts == pytest.approx(42.1852, rel=1e-5)
    assert uneven.tokens_for_95_percent > even.tokens_for_95_percent


def test_attention_data_parallelism_adds_no_accelerators():
    assert compute(V3).accelerators == 1
    assert compute(replace(V3, tp=8)).accelerators == 8
    assert compute(replace(V3, ep=8)).accelerators == 8
    assert compute(replace(V3, ep=8, tp=4)).accelerators == 8  # two parts of four, on the same eight


@settings(max_examples=40, deadline=None)
@given(
    model=st.sampled_from(mixtures()),
    batch=st.integers(1, 20_000),
    tp=st.sampled_from([1, 8]),
    exponent=st.sampled_from([0.0, 0.8]),
)
def test_no_step_reads_or_computes_above_the_chips_roof(model, batch, tp, exponent):
    inputs = ExpertsInputs(model=model, batch=batch, tp=tp, zipf_exponent=exponent)
    result, machine = compute(inputs), machine_of(inputs)
    load = load_of(inputs, routing_of(inputs), batch)
    seconds = result.step_ms / 1e3
    assert (load.weight_bytes + load.kv_bytes) / seconds <= tp * machine.memory_bandwidth
    assert load.flops / seconds <= tp * machine.peak_flops


def test_shared_experts_and_dense_first_layers_are_read_by_every_step():
    result, count = compute(replace(V3, tokens=1)), hardware_db.models()["deepseek-v3"].parameters
    shared, first = 58 * 3 * 7168 * 2048, 3 * 3 * 7168 * 18432
    always = result.weight_bytes_per_step - result.expert_bytes_per_step
    others = count.attention + 2 * (count.lm_head + count.router)  # FP8, and 2 bytes each
    assert always == pytest.approx(shared + first + others, rel=1e-12)


# --- records: bytes, time, thresholds ----------------------------------------------------------------------


@pytest.mark.parametrize("name", mixtures())
def test_every_mixture_costs_between_dense_of_its_active_and_of_its_total_size(name):
    for batch in (1, 64, 4096):
        result = compute(ExpertsInputs(model=name, batch=batch, weight_dtype="bf16"))
        assert result.dense_active_step_ms * (1 - 1e-9) <= result.step_ms <= result.dense_total_step_ms * (1 + 1e-9)
        assert result.active_params_b <= result.equivalent_params_b <= result.total_params_b
    one = compute(ExpertsInputs(model=name, batch=1))
    assert one.step_ms == pytest.approx(one.dense_active_step_ms, rel=1e-9)


def test_a_mixture_becomes_compute_bound_at_the_ridge_times_experts_over_experts_per_token():
    """MegaScale-Infer (arXiv 2504.02263): A100, Mixtral-8x22B, at the peaks: 156 x 4."""
    peaks = {"compute_efficiency": 1, "memory_efficiency": 1}
    result = compute(ExpertsInputs(model="mixtral-8x22b", accelerator="a100-80-sxm", **peaks))
    chip = hardware_db.accelerators()["a100-80-sxm"]
    ridge = chip.peak_flops("bf16") / chip.memory_bandwidth_bytes_s
    assert result.critical_batch == result.reached_critical_batch == pytest.approx(4 * ridge, rel=1e-9)
    assert 600 < result.critical_batch < 625
    assumed = compute(ExpertsInputs(model="mixtral-8x22b", accelerator="a100-80-sxm"))
    assert assumed.critical_batch == result.critical_batch
    assert assumed.reached_critical_batch == pytest.approx(4 * ridge * 0.6 / 0.8, rel=1e-9)


@pytest.mark.parametrize("exponent", [0.0, 1.2])
@pytest.mark.parametrize("name", ["qwen3-30b-a3b", "deepseek-v3", "gpt-oss-120b"])
def test_at_the_critical_batch_of_the_whole_step_both_take_as_long(name, exponent):
    inputs = ExpertsInputs(model=name, context_tokens=200, zipf_exponent=exponent)
    routing = routing_of(inputs)
    critical = whole_step_critical_tokens(inputs, routing)
    time = time_of(inputs, load_of(inputs, routing, critical))
    assert time.compute_s == pytest.approx(time.memory_s, rel=1e-6)
    assert compute(replace(inputs, batch=int(critical) - 1)).bound == "memory"
    assert compute(replace(inputs, batch=int(critical) + 2)).bound == "compute"


def test_long_contexts_never_become_compute_bound():
    inputs = ExpertsInputs(model="qwen3-30b-a3b", context_tokens=100_000)
    assert compute(inputs).critical_batch_whole_step is None
    assert "Here it never does" in wording.on_threshold(compute(inputs))
    assert compute(replace(inputs, batch=100_000)).bound == "memory"


def test_as_a_dense_model_the_same_arithmetic_or_that_of_all_experts():
    model = hardware_db.models()["qwen3-30b-a3b"]
    inputs = ExpertsInputs(model=model.id)
    active, total = as_dense(inputs, 10.0, 8), as_dense(inputs, 10.0, 128)
    mine = load_of(inputs, routing_of(inputs), 10.0)
    assert active.flops == mine.flops
    assert total.flops - mine.flops == pytest.approx(2 * 10 * 120 * 48 * model.parameters.one_expert)
    assert total.weight_bytes == pytest.approx(model.dense_weight_bytes("bf16") + 128 * 48 * model.expert_bytes("bf16"))


def test_a_verified_draft_reads_the_cache_once_for_each_sequence():
    """32 sequences of 4 tokens read more experts than 32 of one, and the same cache."""
    decode, verify = (ExpertsInputs(model="qwen3-30b-a3b", batch=32, tokens=tokens) for tokens in (None, 128))
    loads = [load_of(each, routing_of(each), compute(each).tokens) for each in (decode, verify)]
    assert loads[0].kv_bytes == pytest.approx(loads[1].kv_bytes)
    assert compute(verify).distinct_experts == pytest.approx(compute(replace(decode, batch=128)).distinct_experts)
    assert "4 tokens in the step" in wording.on_costs(verify, compute(verify))


def test_the_step_is_that_of_the_decode_page():
    shared = {"model": "qwen3-30b-a3b", "batch": 48, "tp": 2, "prompt_tokens": 900, "output_tokens": 300}
    decode = catalog.CALCULATORS["decode"]
    assert compute(ExpertsInputs(**shared)).step_ms == pytest.approx(decode.compute(decode.inputs(**shared)).step_ms)


def test_what_does_not_fit_is_said_and_how_it_would():
    assert any("Does not fit" in warning for warning in compute(ExpertsInputs(model="deepseek-v3")).warnings)
    assert compute(replace(V3, ep=8)).warnings == ()
    assert compute(replace(V3, tp=8)).warnings == ()


# --- popularities and ranks --------------------------------------------------------------------------------


def test_popularities_typed_in():
    zipf = compute(ExpertsInputs(experts=4, experts_per_token=2, tokens=3, zipf_exponent=1))
    typed = compute(ExpertsInputs(experts=4, experts_per_token=2, tokens=3, popularity="1, 0.5 .3333333333333333;.25"))
    assert typed.distinct_experts == pytest.approx(zipf.distinct_experts, rel=1e-12)
    short = compute(ExpertsInputs(experts=128, experts_per_token=4, tokens=21, popularity="8x5, 120x1"))
    assert short.distinct_experts < 62
    even = compute(ExpertsInputs(experts=128, experts_per_token=4, tokens=21, popularity="128x3"))
    assert even.distinct_experts == pytest.approx(62.2862887, rel=1e-8)


@pytest.mark.parametrize(
    ("wrong", "name", "said"),
    [
        ({"experts": 4, "experts_per_token": 8}, "experts_per_token", "no more than there are"),
        ({"model": "deepseek-v3", "experts": 4}, "experts", "no more than there are"),
        ({"experts": 128}, "experts_per_token", "a value is needed"),
        ({"experts_per_token": 4}, "experts", "a value is needed"),
        ({"experts": 4, "experts_per_token": 2, "popularity": "1,2,3"}, "popularity", "3 popularities for 4 experts"),
        ({"experts": 3, "experts_per_token": 2, "popularity": "1,two,3"}, "popularity", "8x5"),
        ({"experts": 3, "experts_per_token": 2, "popularity": "1,-2,3"}, "popularity", "not understood"),
        ({"experts": 3, "experts_per_token": 2, "popularity": "1,0,3"}, "popularity", "positive"),
        ({"experts": 2, "experts_per_token": 1, "popularity": "1e20,1"}, "popularity", "orders of magnitude"),
        (
            {"experts": 2, "experts_per_token": 1, "popularity": "2,1", "zipf_exponent": 1.0},
            "zipf_exponent",
            "one or the other",
        ),
        ({"model": "deepseek-v3", "ep": 7}, "ep", "allowed: 1, 2, 4, 8"),
        ({"model": "deepseek-v3", "ep": 4, "tp": 8}, "ep", "a multiple of 8"),
        ({"model": "deepseek-v3", "ep": 64}, "ep", "name the link"),
        ({"model": "deepseek-v3", "weight_dtype": "fp8", "accelerator": "a100-80-sxm"}, "weight_dtype", "A100"),
    ],
)
def test_a_wrong_input_is_named_with_what_is_allowed(wrong, name, said):
    with pytest.raises(InputsError) as refused:
        compute(ExpertsInputs(**wrong))
    assert [error.name for error in refused.value.errors] == [name]
    assert said in str(refused.value)


def test_divisors_are_whole():
    assert divisors(160) == [1, 2, 4, 5, 8, 10, 16, 20, 32, 40, 80, 160]


def test_the_busiest_rank_waits_for_popularity_and_placement():
    inputs = replace(V3, batch=64, ep=16, tp_link="ib-ndr", zipf_exponent=0.8)
    found = {place: compute(replace(inputs, placement=place)).ranks for place in PLACEMENTS}
    assert 1 < found["balanced"].imbalance < found["shuffled"].imbalance < found["by_popularity"].imbalance
    assert len({each.mean_load for each in found.values()}) == 1
    assert found["shuffled"].sent_bytes == pytest.approx(4 * found["shuffled"].ranks_visited * 15 / 16 * 7168 * 2)


def test_a_group_of_one_rank_is_the_instance():
    inputs = replace(V3, batch=128)
    alone = ranks_table(inputs, routing_of(inputs))[0]
    assert alone.imbalance == pytest.approx(1, rel=1e-9)
    assert alone.busiest_distinct == pytest.approx(compute(inputs).distinct_experts, rel=1e-12)
    assert alone.step_ms == pytest.approx(compute(inputs).step_ms, rel=1e-9)
    assert alone.exchange_ms == 0


def test_a_group_step_counted_by_hand():
    """Mixtral on two H200: each reads the dense weights, half of the experts at this batch, half of the cache."""
    inputs = ExpertsInputs(model="mixtral-8x7b", accelerator="h200-sxm", ep=2, batch=256, context_tokens=1000)
    result, model = compute(inputs), hardware_db.models()["mixtral-8x7b"]
    cache = 128 * 1000 * model.kv_bytes_per_token_bf16
    read = model.dense_weight_bytes("bf16") + 4 * 32 * model.expert_bytes("bf16") + cache
    memory_s = read / (0.8 * 4.8e12)
    visited = 2 * (1 - (4 * 3) / (8 * 7))
    sent = 128 * visited / 2 * 4096 * 2
    assumed = hardware_db.assumptions()["course"]
    exchange_s = 2 * 32 * (sent / (assumed.link_efficiency * 450e9) + 2e-6)
    assert result.ranks.exchange_ms == pytest.approx(1e3 * exchange_s, rel=1e-6)
    assert result.step_ms == pytest.approx(1e3 * (memory_s + exchange_s + 1e-3), rel=1e-6)


def test_every_number_of_ranks_is_in_the_table():
    table = ranks_table(V3, routing_of(V3))
    assert [each.ranks for each in table] == divisors(256)
    assert table[3].step_ms is not None
    assert table[-1].step_ms is None  # no NVLink joins 256
    joined = ranks_table(replace(V3, tp_link="ib-ndr"), routing_of(V3))
    assert all(each.step_ms for each in joined)


# --- the page's pieces -------------------------------------------------------------------------------------


@pytest.mark.parametrize("inputs", [COURSE, V3, replace(COURSE, zipf_exponent=1), replace(V3, ep=8, batch=256)])
def test_every_shown_formula_gives_the_answers_own_number(inputs):
    result, routing = compute(inputs), routing_of(inputs)
    shown = {each.form.result.name: each.form(**each.values) for each in formulas(inputs, result, routing)}
    assert shown["distinct_experts"] == pytest.approx(result.even_distinct_experts, rel=1e-12)
    if routing.even:
        assert shown["distinct_variance"] == pytest.approx(result.distinct_experts_sd**2, rel=1e-9)
        assert shown["ratio_to_one_token"] == pytest.approx(result.ratio_to_one_token, rel=1e-12)
        assert math.ceil(shown["tokens_for_coverage"]) == result.tokens_for_95_percent
        assert shown["tokens_per_expert"] == pytest.approx(result.tokens_per_expert, rel=1e-12)
    if routing.recorded:
        assert shown["critical_batch"] == pytest.approx(result.reached_critical_batch, rel=1e-6)
        assert shown["effective_params"] == pytest.approx(1e9 * result.effective_params_b, rel=1e-12)
        assert shown["equivalent_params"] == pytest.approx(1e9 * result.equivalent_params_b, rel=1e-12)
        assert facts(inputs, routing)
    if result.ranks:
        assert shown["sent_bytes"] == pytest.approx(result.ranks.sent_bytes, rel=1e-12)
        assert shown["distinct_on_rank"] == pytest.approx(result.ranks.mean_distinct, rel=1e-12)


def test_the_bytes_shown_as_a_product_are_the_bytes():
    result = compute(V3)
    remark = next(e.remark for e in formulas(V3, result, routing_of(V3)) if e.form.result.name == "effective_params")
    left, right = remark.removeprefix("Bytes of the experts: ").removesuffix(" B.").split(" = ")
    factors = [float(part.split()[0].replace(",", "")) for part in left.split(" × ")]
    assert math.prod(factors) == pytest.approx(float(right.replace(",", "")), rel=1e-5)


def test_the_curves_pass_through_the_answer():
    inputs = replace(V3, batch=64)
    result, routing = compute(inputs), routing_of(inputs)
    curve = curves.touched_curve(inputs, routing)
    assert np.interp(64, curve.tokens, curve.touched) == pytest.approx(result.distinct_experts, rel=0.01)
    assert (curve.low <= curve.touched).all()
    assert (curve.touched <= curve.high).all()
    steps = curves.step_curve(inputs, routing, result)
    assert np.interp(64, steps.tokens, steps.step_ms) == pytest.approx(result.step_ms, rel=0.01)
    assert np.interp(64, steps.tokens, steps.dense_total_ms) == pytest.approx(result.dense_total_step_ms, rel=0.01)
    assert steps.tokens[-1] > result.reached_critical_batch


def test_every_mixture_of_the_database_is_in_the_table():
    found = {each.id: each for each in curves.every_mixture(ExpertsInputs(batch=32))}
    assert set(found) == {name for name, model in hardware_db.models().items() if model.kind == "moe"}
    assert found["deepseek-v3"].coverage == pytest.approx(0.63794, rel=1e-4)
    assert (found["deepseek-v3"].shared_experts, found["deepseek-v3"].dense_layers) == (1, 3)
    assert found["llama-4-maverick"].dense_layers == 24
    assert all(each.times_dense_active >= 1 - 1e-9 and each.times_dense_total <= 1 + 1e-9 for each in found.values())


@pytest.mark.parametrize(
    "inputs", [COURSE, replace(COURSE, zipf_exponent=1.2, ep=8), ExpertsInputs(model="qwen3-30b-a3b", ep=8)]
)
def test_simulation_and_formulas_agree(inputs):
    checked = check(replace(inputs, customers=60_000))
    assert checked.agrees
    for row in checked.rows:
        assert row.formula == pytest.approx(row.simulated, rel=0.05)
        assert row.kind == "exact" or inputs.zipf_exponent or "busiest" in row.label
    assert checked.histogram.simulated.sum() == pytest.approx(1)
    assert wording.agreement(checked).startswith("**Every exact figure")
    assert figures.simulated_counts(checked).data
    assert figures.popularity_of_experts(checked).data


def test_the_simulated_choices_are_those_of_the_exact_formula_not_of_the_rule_of_thumb():
    checked = check(replace(COURSE, zipf_exponent=1.2))
    choices = checked.choices
    assert choices.exact.sum() == pytest.approx(4)
    assert np.abs(choices.simulated - choices.exact).max() < 0.01
    assert np.abs(choices.rule_of_thumb - choices.exact).max() > 0.2


def test_what_cannot_be_simulated_is_a_sentence():
    with pytest.raises(DomainError, match="dense model routes nothing"):
        check(ExpertsInputs())
    with pytest.raises(DomainError, match="Steps of up to 4,096 tokens"):
        check(replace(COURSE, tokens=1_000_000))


def test_a_run_that_always_touched_all_says_nothing_of_the_spread():
    checked = check(ExpertsInputs(experts=8, experts_per_token=2, tokens=150, customers=10_000))
    assert checked.agrees is None
    assert "says nothing" in wording.agreement(checked)
