"""Three ways on the same accelerators: the lecture's findings, the event simulation, and what must always hold."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import hardware_db
from calculators import outputs
from calculators.compare import curves, explanation, search, wording
from calculators.compare.check import Bench, check
from calculators.compare.compute import WAYS, compute, fleets_of
from calculators.compare.inputs import CompareInputs, effective
from calculators.inputs import InputsError
from calculators.systems import ChunkedPrefill
from formulas.closed_form import DomainError

ROOT = Path(__file__).parents[2]
LECTURE = CompareInputs(rate=20)


def test_goodput_of_the_lecture():
    """About 29.7 colocated, and 1.7 times for each accelerator once split in proportion."""
    result = compute(LECTURE)
    assert result.prefill_first.goodput_per_gpu == pytest.approx(29.7, rel=0.05)
    assert result.ideal_gain_over_prefill_first == pytest.approx(1.7, rel=0.03)
    assert result.disaggregated.goodput_per_gpu * 4 == pytest.approx(3 * 59.14, rel=1e-3)
    assert (result.prefill_instances, result.decode_instances) == (3, 1)


@pytest.mark.parametrize("ttft_slo_ms", [60, 100])
def test_disaggregated_beats_prefill_first_by_half_at_most_on_four(ttft_slo_ms):
    """Lecture 5: 1.2 to 1.5 times, and less than chunks, whose tokens ride on the reading of the weights."""
    result = compute(replace(LECTURE, ttft_slo_ms=ttft_slo_ms))
    assert 1.2 < result.gain_over_prefill_first < 1.56
    assert result.gain_over_chunked < 1
    assert result.best == "chunked"


@pytest.mark.parametrize("ttft_slo_ms", [20, 25, 30])
def test_disaggregated_beats_chunks_where_the_first_token_is_urgent(ttft_slo_ms):
    result = compute(replace(LECTURE, ttft_slo_ms=ttft_slo_ms))
    assert result.best == "disaggregated"
    if result.chunked.goodput:
        assert result.gain_over_chunked > 1.1
    assert "even if mixed steps lose nothing" in wording.on_mixed(result)


def test_the_answer_turns_where_mixed_steps_lose_efficiency():
    result = compute(LECTURE)
    turn = result.turning_efficiency
    assert 0.8 < turn < 1
    apart = result.disaggregated.goodput
    above, below = (
        compute(replace(LECTURE, mixed_efficiency=factor * turn)).chunked.goodput for factor in (1.02, 0.98)
    )
    assert above > apart > below
    assert compute(replace(LECTURE, mixed_efficiency=0.98 * turn)).best == "disaggregated"


def test_the_best_budget_is_the_best_of_all():
    rows = curves.every_budget(LECTURE)
    best = max(rows, key=lambda row: row.goodput_per_gpu or 0)
    assert best.budget == search.best_budget(LECTURE) == compute(LECTURE).chunk_budget
    assert best.goodput_per_gpu == pytest.approx(compute(LECTURE).chunked.goodput_per_gpu)


def test_the_best_ratio_is_the_best_of_all():
    inputs = replace(LECTURE, fleet_gpus=8, output_tokens=400, prompt_tokens=300, tpot_slo_ms=12)
    targets = search.targets_of(inputs)
    rates = {prefills: search.split(inputs, prefills).goodput(targets) or 0 for prefills in range(1, 8)}
    assert search.best_prefills(inputs) == max(rates, key=lambda each: rates[each])


def test_the_tightest_scale_is_just_kept():
    inputs = replace(LECTURE, rate=40)
    result = compute(inputs)
    fleet = fleets_of(inputs)["disaggregated"]
    for factor, kept in ((1.01, True), (0.99, False)):
        targets = search.targets_of(inputs, factor * result.disaggregated.tightest_scale)
        assert (fleet.attainment(160, targets) >= 0.9) == kept
    assert result.prefill_first.tightest_scale > 1 > result.disaggregated.tightest_scale


def test_a_workload_brings_lengths_and_targets():
    inputs = replace(LECTURE, workload="chat-sharegpt", model="opt-13b", accelerator="a100-80-sxm")
    used = effective(inputs)
    assert (used.prompt_tokens, used.output_tokens, used.ttft_slo_ms, used.tpot_slo_ms) == (756, 200, 250, 100)
    assert effective(replace(inputs, workload=None)) == replace(inputs, workload=None)
    other = replace(LECTURE, workload="azure-conversation-2023", ttft_slo_ms=400)
    assert effective(other).output_cv == 0.771
    assert effective(other).ttft_slo_ms == 400
    warnings = compute(other).warnings
    assert any("sets no targets for llama-3.1-8b" in sentence for sentence in warnings)
    assert effective(other).prompt_cv == hardware_db.workloads()["azure-conversation-2023"].prompt_cv > 0.9


def test_the_simulation_agrees_at_random_and_a_router_does_better():
    found = check(replace(LECTURE, customers=12_000))
    for way in found.ways:
        assert way.formula_goodput == pytest.approx(way.simulated_goodput, rel=0.1), way
        assert way.formula_attainment == pytest.approx(way.simulated_attainment, abs=0.03), way
    apart = found.ways[-1]
    assert apart.routed_goodput > apart.formula_goodput
    means = [row for row in found.rows if row.label.startswith("mean")]
    assert max(abs(row.off_percent) for row in means) < 4


def test_a_degraded_mixed_step_is_slower_in_the_forms_and_in_the_simulation():
    inputs = replace(LECTURE, mixed_efficiency=0.7)
    fleet = search.chunked(inputs, 512)
    form = fleet.system.at(20.0)
    run = Bench(inputs, fleet).run(80.0, 12_000)
    assert form.mean_tpot_s == pytest.approx(run.tpot.mean(), rel=0.03)
    assert form.mean_ttft_s == pytest.approx(run.ttft.mean(), rel=0.05)
    plain = ChunkedPrefill(search.shared_of(inputs), 512).at(20.0)
    assert form.mean_tpot_s > 1.05 * plain.mean_tpot_s


def test_every_curve_falls():
    for curve in curves.against_rate(LECTURE):
        # Below an attainment of a per cent, two decreasing parts of an approximation may rise by less than that.
        assert np.all(np.diff(curve.attainment)[curve.attainment[:-1] > 0.01] <= 1e-6)
    for each in curves.tightened(LECTURE):
        assert np.all(np.diff(each.attainment) >= -1e-9)


def test_the_command_line_gives_the_keys_of_the_answer():
    command = [sys.executable, "-m", "calculators", "compare", "--rate", "20", "--json"]
    results = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)[
        "results"
    ]
    wanted = {
        f"{way}_{name}" for way in WAYS for name in ("goodput_per_gpu", "p90_ttft_ms", "p90_tpot_ms", "attainment")
    }
    assert set(results) >= wanted | {"best", "chunk_budget", "prefill_instances", "turning_efficiency"}
    assert results["best"] == "chunked"


@pytest.mark.parametrize(
    ("changes", "begins"),
    [
        ({"model": "llama-3.1-70b"}, "Does not fit"),
        ({"output_tokens": 1}, "A single output token"),
        ({"fleet_gpus": 3, "tp": 2}, "3 accelerators make up one instance"),
    ],
)
def test_what_has_no_answer_says_so(changes, begins):
    inputs = replace(LECTURE, **changes)
    result = compute(inputs)
    assert result.disaggregated.goodput is None
    assert any(sentence.startswith(begins) for sentence in result.warnings)
    assert wording.answer(inputs, result)
    if result.best is None:
        with pytest.raises(DomainError):
            check(inputs)


def test_fewer_accelerators_than_an_instance_are_refused():
    with pytest.raises(InputsError, match=r"^fleet_gpus = 2: one instance takes 4"):
        compute(replace(LECTURE, fleet_gpus=2, tp=4))


@pytest.mark.parametrize(
    "changes",
    [
        {"workload": "code-humaneval", "model": "opt-66b", "tp": 4, "fleet_gpus": 9},
        {"rate": 500},
        {"ttft_slo_ms": 1},
        {"mixed_efficiency": 0.05},
    ],
)
def test_every_scenario_has_an_answer(changes):
    inputs = replace(LECTURE, **{"ttft_slo_ms": 800, "tpot_slo_ms": 40} | changes)
    result = compute(inputs)
    assert wording.answer(inputs, result)
    for value in outputs.as_dict(result).values():
        assert not isinstance(value, float) or (np.isfinite(value) and value >= 0)
    assert explanation.facts(effective(inputs))
