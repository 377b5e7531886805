"""The parallelism calculator: published figures, crossovers, degrees, and what must always hold."""

import math
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hardware_db
from calculators import outputs
from calculators.degrees import pipeline_degrees, tensor_degrees
from calculators.inputs import InputsError
from calculators.parallelism import maps, wording
from calculators.parallelism.check import check
from calculators.parallelism.compute import LEVELS, ParallelismInputs, compute
from calculators.parallelism.explanation import facts, formulas
from formulas.closed_form import DomainError

FIGURES = tomllib.loads((Path(__file__).parent / "fixtures" / "parallelism_figures.toml").read_text())["figure"]

typed = st.builds(
    ParallelismInputs,
    rate=st.floats(0.01, 100),
    service_ms=st.floats(1, 1000),
    speedup=st.floats(1, 8),
    gpus=st.sampled_from([2, 3, 4, 8]),
    hop_us=st.sampled_from([0.0, 100.0]),
    prompt_cv=st.sampled_from([0.0, 1.0]),
)


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure["id"])
def test_published_figures(figure):
    result = compute(ParallelismInputs(**figure["inputs"]))
    for key, expected in figure["expected"].items():
        found = getattr(result, key)
        assert found == (expected if isinstance(expected, str) else pytest.approx(expected, rel=figure["rel"])), key


@settings(max_examples=60)
@given(typed)
def test_the_winner_is_the_lowest_and_changes_sides_at_the_crossover(inputs):
    result = compute(inputs)
    for name in LEVELS:
        times = {way: getattr(result, f"{way}_{name}_ttft_ms") for way in ("tp", "pp", "replicas")}
        if result.spread is not None:  # then only the means are known, and not of every pipeline
            if name != "mean":
                assert getattr(result, f"winner_{name}") is None
                continue
            if result.spread.pp_mean_ttft_ms is None and times["pp"] is not None:
                assert result.winner is None
                continue
            times = {way: getattr(result.spread, f"{way}_mean_ttft_ms") for way in times}
        stable = {way: time for way, time in times.items() if time is not None}
        winner = result.winner if name == "mean" else getattr(result, f"winner_{name}")
        assert winner == (min(stable, key=stable.get) if stable else None)
    crossing = result.crossover_rate
    if crossing is not None:
        below, above = (compute(replace(inputs, rate=crossing * factor)) for factor in (0.99, 1.01))
        assert below.tp_mean_ttft_ms < below.pp_mean_ttft_ms
        assert above.tp_mean_ttft_ms is None or above.tp_mean_ttft_ms > above.pp_mean_ttft_ms


@settings(max_examples=60)
@given(typed)
def test_no_number_is_infinite_nan_or_negative(inputs):
    for name, value in outputs.as_dict(compute(inputs)).items():
        if isinstance(value, float):
            assert math.isfinite(value), name
            assert value >= 0, name


def test_no_crossover_comes_from_rounding():
    assert compute(ParallelismInputs(service_ms=1.75, speedup=1, gpus=3)).crossover_rate is None


def test_no_crossover_where_one_wins_everywhere():
    always_tensor = compute(ParallelismInputs(service_ms=100, speedup=2, gpus=2))
    assert always_tensor.crossover_rate is None
    assert "Tensor parallel wins at every rate" in always_tensor.crossover_reason
    never_tensor = compute(ParallelismInputs(service_ms=100, speedup=1, gpus=2))
    assert never_tensor.crossover_rate is None
    assert "pipeline wins at every rate" in never_tensor.crossover_reason


def test_the_speedup_falls_with_short_prompts_slow_links_and_many_accelerators():
    base = ParallelismInputs(model="llama-3.1-70b", gpus=8)
    per_chip = {n: compute(replace(base, gpus=n)).speedup / n for n in (2, 4, 8)}
    assert per_chip[2] > per_chip[4] > per_chip[8]
    assert compute(replace(base, tp_link="pcie4-x16")).speedup < compute(base).speedup
    long_prompts = compute(replace(base, prompt_tokens=16_384)).speedup
    assert compute(replace(base, prompt_tokens=256)).speedup < long_prompts


def test_measured_speedups_are_below_the_ideal_ones():
    for each in hardware_db.speedups().values():
        if each.from_tp == 1 and each.model in hardware_db.models():
            inputs = ParallelismInputs(
                model=each.model, accelerator=each.accelerator, gpus=each.to_tp, prompt_tokens=each.prompt_tokens
            )
            assert each.speedup < compute(inputs).speedup


def test_whole_layers_lm_head_last_and_hops_make_a_pipeline_slower_than_d_over_n():
    base = ParallelismInputs(model="llama-3.1-70b", gpus=6, rate=1)
    equal, layers = compute(base), compute(replace(base, stages="layers"))
    (stages,) = [way.stage_times_ms for way in layers.ways if way.id == "pp"]
    assert len(stages) == 6
    assert stages[0] > stages[2]  # 80 layers: two stages of 14, four of 13
    assert stages[-1] > stages[-2]  # lm_head
    assert layers.pp_capacity < equal.pp_capacity
    assert layers.pp_mean_ttft_ms > equal.pp_mean_ttft_ms
    hops = compute(replace(base, hop_us=1000))
    assert hops.pp_mean_ttft_ms == pytest.approx(equal.pp_mean_ttft_ms + 5)


def test_every_split_of_the_accelerators_is_listed():
    for n, mixed in ((4, {"tp2pp2"}), (8, {"tp2pp4", "tp4pp2"}), (16, {"tp2pp8", "tp4pp4", "tp8pp2"})):
        result = compute(ParallelismInputs(model="llama-3.1-70b", accelerator="gb200", gpus=n))
        assert {way.id for way in result.ways} == {"tp", "pp", "replicas"} | mixed
        assert all(way.tp * way.pp * way.replicas == n for way in result.ways)


def test_spread_prompts_cost_a_pipeline_more_than_its_formula_says():
    # queueing of two stages with log-normal prompts: total wait 3.60487 whole-prompt times at cv 1, stage load 0.8
    result = compute(ParallelismInputs(rate=1.6, service_ms=1000, speedup=1.9, gpus=2, prompt_cv=1))
    assert result.spread.pp_mean_ttft_ms == pytest.approx(1000 * (1 + 3.60487), rel=1e-5)
    assert result.pp_mean_ttft_ms == pytest.approx(1000 * (1 + 1.0), rel=1e-9)
    assert any("equal prompts" in warning for warning in result.warnings)
    assert result.spread.pp_chunked_mean_ttft_ms < result.spread.pp_mean_ttft_ms
    longer = compute(ParallelismInputs(rate=1.6, service_ms=1000, speedup=3, gpus=4, prompt_cv=1))
    assert longer.spread.pp_chunked_mean_ttft_ms > 0
    assert longer.spread.pp_mean_ttft_ms is None
    assert "simulation" in wording.on_spread(ParallelismInputs(gpus=4, prompt_cv=1), longer)


@pytest.mark.parametrize("cv", [0.0, 1.0])
def test_simulation_and_closed_form_agree(cv):
    inputs = ParallelismInputs(rate=1.2, service_ms=1000, speedup=1.7, gpus=2, prompt_cv=cv, customers=500_000)
    checked = check(inputs)
    assert checked.agrees
    names = {row.label for row in checked.rows}
    assert {"Tensor, mean", "Pipeline, mean", "Replicas, mean"} <= names
    assert ("Pipeline, P99" in names) == (cv == 0)
    assert ("Pipeline, P99" in {row.label for row in checked.simulated}) == (cv == 1)


def test_nothing_stable_is_not_simulated():
    with pytest.raises(DomainError, match="no steady state"):
        check(ParallelismInputs(rate=100, service_ms=1000, speedup=1.5, gpus=2))


@pytest.mark.parametrize(
    ("model", "degree", "said"),
    [
        ("llama-3.1-70b", 3, "64 query heads"),
        ("llama-3.1-70b", 16, "joins 8"),
        ("llama-3.1-70b", 1, "141.1 GB of weights"),
        ("qwen3-30b-a3b", 12, "32 query heads"),
        ("falcon-40b", 3, "8 KV heads"),
    ],
)
def test_refused_tensor_degrees_have_their_reason(model, degree, said):
    (found,) = tensor_degrees(ParallelismInputs(model=model), [degree])
    assert not found.allowed
    assert any(said in reason for reason in found.reasons)


def test_allowed_degrees_say_what_they_cost():
    by_degree = {each.degree: each for each in tensor_degrees(ParallelismInputs(model="qwen3-30b-a3b"))}
    assert by_degree[8].allowed
    assert any("each is held by 2 ranks" in note for note in by_degree[8].notes)
    (latent,) = tensor_degrees(ParallelismInputs(model="deepseek-v3", accelerator="gb200"), [16])
    assert "whole latent cache" in latent.notes[0]
    (uneven,) = pipeline_degrees(ParallelismInputs(model="llama-3.1-70b"), [3])
    assert uneven.allowed
    assert "2 stages of 27 layers and 1 of 26" in uneven.notes[0]
    (too_many,) = pipeline_degrees(ParallelismInputs(model="llama-3.2-1b"), [64])
    assert "64 stages, and the model has 16 layers" in too_many.reasons


@pytest.mark.parametrize(
    "inputs",
    [
        ParallelismInputs(rate=8, service_ms=100, speedup=1.6),
        ParallelismInputs(model="llama-3.1-70b", gpus=4, rate=5),
        ParallelismInputs(model="llama-3.1-70b", gpus=6, stages="layers", hop_us=50, rate=5),
        ParallelismInputs(rate=100, service_ms=100, speedup=1.6),
    ],
)
def test_every_shown_formula_gives_the_answers_own_number(inputs):
    result = compute(inputs)
    expected = [result.tp_mean_ttft_ms, result.pp_mean_ttft_ms, result.replicas_mean_ttft_ms]
    for shown, value in zip(formulas(inputs, result)[:3], expected, strict=True):
        if value is None:
            assert shown.form.violations(**shown.values)
        else:
            assert 1e3 * shown.form(**shown.values) == pytest.approx(value, rel=1e-9)
    crossover = formulas(inputs, result)[3]
    assert crossover.form(**crossover.values) == pytest.approx(result.crossover_rate, rel=1e-9)
    assert facts(inputs)


def test_the_map_and_the_crossover_say_the_same():
    inputs = ParallelismInputs(rate=8, service_ms=100, speedup=1.6, gpus=2)
    result = compute(inputs)
    chart = maps.winner_map(inputs, result, "mean", points=61)
    row = int(abs(chart.speedup - 1.6).argmin())
    assert chart.speedup[row] == pytest.approx(1.6)
    assert chart.crossover_rate[row] == pytest.approx(result.crossover_rate)


def test_mixed_ways_go_from_tensor_to_pipeline():
    result = compute(ParallelismInputs(model="llama-3.1-70b", gpus=8))
    by_id = {way.id: way for way in result.ways}
    order = [by_id[name] for name in ("tp", "tp4pp2", "tp2pp4", "pp")]
    assert [way.unloaded_ms for way in order] == sorted(way.unloaded_ms for way in order)
    assert [way.capacity for way in order] == sorted(way.capacity for way in order)


def test_more_accelerators_than_the_link_joins_are_refused_by_the_name_of_this_page():
    with pytest.raises(InputsError) as caught:
        compute(ParallelismInputs(gpus=16))
    assert str(caught.value).startswith("gpus = 16: the scale-up link of H100 SXM5 80GB joins 8")
    assert compute(ParallelismInputs(gpus=16, tp_link="ib-ndr")).tp_capacity > 0


def test_with_spread_prompts_the_answer_is_by_the_means_of_spread_prompts():
    inputs = ParallelismInputs(rate=12, service_ms=100, speedup=1.6, prompt_cv=1)
    result = compute(inputs)
    assert result.winner == "tp"  # 250.0 ms against 260.4 ms, although equal prompts would say the pipeline
    assert "tensor parallel**: mean TTFT **250 ms**, against 260.4 ms as the pipeline" in wording.answer(inputs, result)
    longer = replace(inputs, gpus=4, speedup=3)
    assert "Check by simulation" in wording.answer(longer, compute(longer))


def test_a_refused_degree_does_not_win():
    inputs = ParallelismInputs(rate=5, gpus=3)
    result = compute(inputs)
    assert result.winner in ("pp", "replicas")
    assert any(
        "Tensor parallelism is impossible: 3 does not divide the 32 query heads" in each for each in result.warnings
    )
    assert any(each.degree == 3 and each.way == "tensor" for each in result.degrees)


def test_where_nothing_fits_the_answer_says_so():
    inputs = ParallelismInputs(model="llama-3.1-405b", gpus=4, rate=1)
    assert "does not run on 4 × h100-sxm" in wording.answer(inputs, compute(inputs))


def test_at_the_capacity_itself_there_is_no_time():
    result = compute(ParallelismInputs(rate=19.99, service_ms=100, speedup=1.999))
    assert result.tp_mean_ttft_ms is None
    assert any("Tensor parallelism is unstable" in warning for warning in result.warnings)


def test_a_group_inside_a_node_uses_the_nodes_own_link():
    inputs = {"model": "llama-3.1-70b", "prompt_tokens": 2048}
    across = compute(ParallelismInputs(gpus=16, tp_link="ib-ndr", **inputs))
    inside = compute(ParallelismInputs(gpus=8, **inputs))
    (mixed,) = [way for way in across.ways if way.id == "tp8pp2"]
    assert mixed.unloaded_ms == pytest.approx(inside.tp_service_ms)
