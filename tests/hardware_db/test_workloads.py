"""Workloads: counts and sums, DistServe's table 1, what follows from a record, and faulty ones."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from hardware_db import DatabaseError, Workload, load_folder, models, workloads
from hardware_db.load import check_models

TRACES = Path(__file__).parents[3] / "shared" / "data"
RECORD = {
    "name": '"A service"',
    "kind": '"chat"',
    "prompt_tokens": "1000",
    "output_tokens": "200.5",
    "prompt_cv": "1.0",
    "median_prompt_tokens": "700",
    "slos": '[{ model = "opt-13b", ttft_s = 0.25, tpot_s = 0.1 }]',
    "confidence": '"one-source"',
    "sources": '["splitwise"]',
}


def load(folder, **changes):
    lines = "\n".join(f"{key} = {value}" for key, value in (RECORD | changes).items() if value is not None)
    (folder / "mine.toml").write_text(f"[mine]\n{lines}\n")
    return load_folder(folder, Workload)


# A changed figure changes a sum: whoever edits a record edits this table in the same commit and knows why.
@pytest.mark.parametrize(
    ("name", "count", "total"),
    [
        ("prompt_tokens", 9, 42336.19),
        ("output_tokens", 9, 1365.95),
        ("prompt_cv", 5, 4.436),
        ("output_cv", 5, 4.842),
        ("requests", 5, 67817),
    ],
)
def test_columns(name, count, total):
    values = [value for each in workloads().values() if (value := getattr(each, name)) is not None]
    assert len(values) == count
    assert sum(values) == pytest.approx(total, rel=1e-12)


def test_kinds():
    kinds = [each.kind for each in workloads().values()]
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "chat": 3, "code": 2, "summarization": 1, "agent": 1, "synthetic": 2,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("workload", "model", "ttft_ms", "tpot_ms"),
    [
        ("chat-sharegpt", "opt-13b", 250, 100),
        ("chat-sharegpt", "opt-66b", 2500, 150),
        ("chat-sharegpt", "opt-175b", 4000, 200),
        ("code-humaneval", "opt-66b", 125, 200),
        ("summarization-longbench", "opt-66b", 15000, 150),
    ],
)
def test_table_1_of_distserve(workload, model, ttft_ms, tpot_ms):
    slo = workloads()[workload].slo_for(model)
    assert (slo.ttft_ms, slo.tpot_ms) == (ttft_ms, tpot_ms)
    assert workloads()[workload].slo_for("llama-3.1-8b") is None


def test_means_that_no_one_read_are_marked():
    assert not workloads()["chat-sharegpt"].is_verified("prompt_tokens")
    assert workloads()["azure-conversation-2023"].is_verified("prompt_tokens")


def test_the_records_are_those_of_the_traces():
    conversation = TRACES / "azure_llm_conv.csv.gz"
    synthetic = TRACES / "mooncake_synthetic.jsonl.gz"
    if not conversation.exists():
        pytest.skip(f"the traces are not beside the project, in {TRACES}")
    with gzip.open(conversation, "rt") as lines:
        next(lines)
        rows = np.array([line.split(",")[1:] for line in lines], dtype=float)
    _agree(workloads()["azure-conversation-2023"], *rows.T)
    with gzip.open(synthetic, "rt") as lines:
        requests = [json.loads(line) for line in lines]
    lengths = [[each[f"{what}_length"] for each in requests] for what in ("input", "output")]
    _agree(workloads()["mooncake-synthetic"], *np.array(lengths, dtype=float))


def _agree(record, prompts, outputs):
    assert record.requests == len(prompts)
    for what, lengths in (("prompt", prompts), ("output", outputs)):
        assert getattr(record, f"{what}_tokens") == pytest.approx(lengths.mean(), abs=0.005)
        assert getattr(record, f"{what}_cv") == pytest.approx(lengths.std() / lengths.mean(), abs=5e-4)
        assert getattr(record, f"median_{what}_tokens") == np.median(lengths)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("prompt_tokens", "0.5"),
        ("output_tokens", "nan"),
        ("prompt_cv", "-0.1"),
        ("median_prompt_tokens", "3000"),
        ("kind", '"talk"'),
        (
            "slos",
            '[{ model = "opt-13b", ttft_s = 1.0, tpot_s = 1.0 }, { model = "opt-13b", ttft_s = 1.0, tpot_s = 1.0 }]',
        ),
        ("slos", '[{ model = "opt-13b", ttft_s = 0.0, tpot_s = 1.0 }]'),
        ("sources", '["nobody"]'),
        ("lengths", "3"),
    ],
)
def test_a_faulty_record_is_refused_by_file_record_and_field(tmp_path, field, value):
    assert load(tmp_path)
    with pytest.raises(DatabaseError) as caught:
        load(tmp_path, **{field: value})
    message = str(caught.value)
    assert "mine.toml" in message
    assert field in message


def test_targets_for_a_model_that_does_not_exist_are_refused(tmp_path):
    found = load(tmp_path, slos='[{ model = "opt-14b", ttft_s = 1.0, tpot_s = 1.0 }]')
    with pytest.raises(DatabaseError, match="opt-14b"):
        check_models(found, models())
