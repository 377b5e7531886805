"""The rows and the fit behind the sets of assumptions; no file of measurements is needed but for one test."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from benchmarks.calibration.__main__ import held_out_lines
from benchmarks.calibration.fit import VALUES, errors, fit, loop_of
from benchmarks.calibration.rows import diagonals, read
from benchmarks.calibration.sets import SETS

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data" / "measured_serving.csv.gz"
FIXTURE = ROOT / "tests" / "calculators" / "fixtures" / "measured_tpot.csv"
PLAIN = {
    "backend": "vllm", "backend_version": "0.12.0", "model_path": "meta-llama/Llama-3.1-70B", "system": "h200_sxm",
    "precision": "fp8", "mode": "agg", "isl": "1000", "osl": "1000", "tp_size": "4.0", "attention_dp_size": "1.0",
    "moe_tp_size": "4.0", "moe_ep_size": "1.0", "silicon_ttft_ms": "90", "silicon_tpot_ms": "10", "concurrency": "8.0",
    "measured_on": "2025-10-29",
}  # fmt: skip


def rows_of(folder, *changes):
    file = folder / "rows.csv"
    lines = [",".join(PLAIN), *(",".join((PLAIN | change).values()) for change in changes)]
    file.write_text("\n".join(lines) + "\n")
    return read(file)


def test_a_row_is_read_with_the_lengths_that_were_drawn(tmp_path):
    (row,), left_out = rows_of(tmp_path, {})
    assert not left_out
    assert (row.inputs.prompt_tokens, row.inputs.output_tokens, row.lengths) == (900, 900, (1000, 1000))
    assert (row.inputs.tp, row.inputs.in_flight, row.inputs.kv_dtype, row.inputs.weight_dtype) == (4, 8, "fp8", "fp8")
    (row,), _ = rows_of(tmp_path, {"measured_on": "", "system": "h100_sxm"})
    assert row.inputs.prompt_tokens == 1000


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"mode": "disagg"}, "instances of their own"),
        ({"model_path": "deepseek-ai/DeepSeek-R1"}, "speculative decoding"),
        ({"system": "gb200"}, "another model or chip"),
        ({"concurrency": ""}, "not given"),
        ({"attention_dp_size": "4.0"}, "data parallel"),
        ({"tp_size": "64.0"}, "contradict"),
        ({"model_path": "openai/gpt-oss-120b", "precision": "fp4", "moe_ep_size": "4.0"}, "contradict"),
        (
            {"model_path": "openai/gpt-oss-120b", "precision": "fp4", "moe_tp_size": "2", "moe_ep_size": "2"},
            "contradict",
        ),
        ({"measured_on": ""}, "without a date"),
        ({"backend_version": "nightly-1"}, "nightly"),
        ({"tp_size": "1.0", "isl": "8192", "concurrency": "128"}, "does not fit"),
        ({"silicon_ttft_ms": "4000"}, "held back"),
    ],
)
def test_a_row_that_no_closed_loop_describes_is_left_out_and_counted(tmp_path, change, reason):
    rows, left_out = rows_of(tmp_path, change, {"silicon_tpot_ms": "12"})
    assert len(rows) == 1
    (found,) = left_out
    assert reason in found
    assert left_out[found] == 1


def test_a_row_that_is_given_twice_counts_once(tmp_path):
    rows, left_out = rows_of(tmp_path, {}, {}, {"silicon_tpot_ms": "11"})
    assert len(rows) == 2
    assert left_out == Counter({"given twice": 1})


def test_each_degree_and_each_pair_of_lengths_is_fitted_but_not_every_one_together(tmp_path):
    degrees, prompts = ("2.0", "4.0", "8.0"), ("1000", "2000", "4000")
    rows, _ = rows_of(tmp_path, *({"tp_size": tp, "moe_tp_size": tp, "isl": isl} for tp in degrees for isl in prompts))
    on = diagonals(rows)
    assert sorted(Counter(on).values()) == [3, 3, 3]
    fitted = [row for row, diagonal in zip(rows, on, strict=True) if diagonal]
    assert {row.inputs.tp for row in fitted} == {2, 4, 8}
    assert len({row.lengths for row in fitted}) == 3


def test_a_fit_finds_the_assumptions_that_made_the_rows(tmp_path):
    true = {"compute_efficiency": 0.62, "memory_efficiency": 0.75, "link_efficiency": 0.4}
    true |= {"step_overhead_ms": 3.0, "allreduce_latency_us": 12.0}
    changes = [
        {"tp_size": tp, "moe_tp_size": tp, "isl": isl, "osl": osl, "concurrency": n}
        for tp, isl, osl, n in (
            ("2", "1000", "1000", "4"), ("2", "8000", "1000", "32"), ("4", "1000", "200", "16"), ("4", "1000", "8000", "4"),
            ("8", "1000", "1000", "64"), ("8", "8000", "1000", "4"), ("8", "1000", "200", "8"), ("2", "1000", "8000", "16"),
        )
    ]  # fmt: skip
    drawn, _ = rows_of(tmp_path, *changes)
    made = [f"{1e3 * loop_of(row, true).mean_tpot:.9g}" for row in drawn]
    rows, _ = rows_of(tmp_path, *(change | {"silicon_tpot_ms": ms} for change, ms in zip(changes, made, strict=True)))
    found = fit(rows)
    assert np.abs(errors(rows, found)).max() < 0.01
    assert found["compute_efficiency"] == pytest.approx(0.62, rel=0.05)
    assert found["memory_efficiency"] == pytest.approx(0.75, rel=0.05)
    assert set(found) == set(VALUES)


@pytest.mark.skipif(not DATA.exists(), reason="the file of all measurements is not on this machine")
def test_the_rows_held_out_are_those_of_the_file():
    rows, left_out = read(DATA)
    assert len(rows) + left_out.total() == 2820
    given = FIXTURE.read_text().splitlines()
    names = dict.fromkeys(line.split(",")[0] for line in given[2:])
    held = {}
    for name in names:
        own = [row for row in rows if SETS[name].has(row)]
        held[name] = [row for row, diagonal in zip(own, diagonals(own), strict=True) if diagonal == 0]
    assert held_out_lines(held) == given
