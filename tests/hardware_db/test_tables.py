"""The tables as a whole: how many rows, what the columns sum to, and that all cross-references hold."""

import re
import tomllib
from pathlib import Path

import pytest

import hardware_db
from hardware_db import accelerators, cite, links, models, sources, workloads
from hardware_db.sources import SOURCES_FILE

DATA = Path(hardware_db.__file__).parent / "data"


def column(records, name):
    values = []
    for record in records.values():
        value = record
        for part in name.split("."):
            value = getattr(value, part)
        if value is not None:
            values.append(value)
    return values


# A changed figure changes a sum: whoever edits a record edits this table in the same commit and knows why.
@pytest.mark.parametrize(
    ("name", "count", "total"),
    [
        ("memory_bytes", 63, 7274016896640),
        ("memory_bandwidth_gb_s", 63, 21598427),
        ("dense_tflops.fp32", 46, 3452.98),
        ("dense_tflops.tf32", 35, 15614.4),
        ("dense_tflops.bf16", 50, 46775.15),
        ("dense_tflops.fp16", 51, 165997.15),
        ("dense_tflops.fp8", 37, 95013.7),
        ("dense_tflops.int8", 47, 62770.2),
        ("dense_tflops.fp4", 15, 182847),
        ("dense_tflops.int4", 7, 13221),
        ("scale_up_gb_s", 49, 23857.5),
        ("scale_up_peer_gb_s", 36, 11446.5),
        ("peer_over_host_gb_s", 11, 464.4),
        ("host_gb_s", 48, 4005),
        ("tdp_w", 48, 49444),
        ("measured_bf16_gemm_efficiency", 14, 10.738),
    ],
)
def test_accelerator_columns(name, count, total):
    values = column(accelerators(), name)
    assert len(values) == count
    assert sum(values) == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "count", "total"),
    [
        ("gb_s", 44, 16809.875),
        ("both_directions_gb_s", 44, 33619.75),
        ("latency_us", 39, 278.1),
        ("efficiency", 28, 23.455),
    ],
)
def test_link_columns(name, count, total):
    values = column(links(), name)
    assert len(values) == count
    assert sum(values) == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "count", "total"),
    [
        ("layers", 76, 4137),
        ("hidden", 76, 416576),
        ("vocab", 76, 11468576),
        ("max_context", 76, 25567808),
        ("published_total_b", 75, 15623.84),
        ("published_active_b", 73, 2511.04),
        ("kv_bytes_per_token_bf16", 76, 26180120),
        ("window_kv_bytes_per_token_bf16", 76, 3208192),
        ("linear_state_elements", 76, 393216000),
        ("experts", 76, 7880),
    ],
)
def test_model_columns(name, count, total):
    values = column(models(), name)
    assert len(values) == count
    assert sum(values) == pytest.approx(total, rel=1e-12)


def test_ids_are_unique_across_the_three_tables():
    ids = [*accelerators(), *links(), *models()]
    assert len(ids) == 63 + 44 + 76
    assert len(set(ids)) == len(ids)


def test_tables_are_read_once_and_cannot_be_changed():
    assert accelerators() is accelerators()
    with pytest.raises(TypeError):
        accelerators()["h100-sxm"] = None
    with pytest.raises(ValueError, match="frozen"):
        accelerators()["h100-sxm"].tdp_w = 1.0


def test_each_table_reads_its_own_folder_only():
    for reader in (accelerators, links, models):
        reader.cache_clear()
    links()
    assert accelerators.cache_info().misses == 0
    assert models.cache_info().misses == 0


def test_accelerators_name_links_that_exist_and_do_not_exceed_them():
    for chip in accelerators().values():
        for link_id, rate in (
            (chip.scale_up_link_id, chip.scale_up_gb_s),
            (chip.host_link_id, chip.host_gb_s),
        ):
            if link_id is not None and rate is not None:
                assert rate <= links()[link_id].gb_s, f"{chip.id} exceeds {link_id}"


def test_every_source_is_cited_and_every_citation_resolves():
    text = "".join(p.read_text() for p in DATA.rglob("*.toml") if p != SOURCES_FILE)
    idle = [key for key in sources() if f'"{key}"' not in text and f'"{key}:' not in text]
    assert idle == []
    for table in (accelerators(), links(), models(), workloads()):
        for record in table.values():
            assert all(str(citation) for citation in record.citations())


def test_a_citation_is_complete():
    text = str(cite("aiconfigurator: Qwen--Qwen3-8B"))
    for part in ("Qwen--Qwen3-8B", "ai-dynamo/aiconfigurator @095f58a", "2026-08-21", "https://github.com/"):
        assert part in text
    assert "low quality" in str(cite("yobitel"))


def test_unverified_figures_are_marked():
    h20 = accelerators()["h20"]
    assert not h20.is_verified("dense_tflops.tf32")
    assert h20.is_verified("dense_tflops.bf16")
    # A record that was recalled as a whole has no verified field.
    assert not links()["eth-10g"].is_verified("gb_s")
    assert links()["nvlink4"].is_verified("latency_us")
    assert not models()["qwen3-next-80b-a3b"].is_verified("linear_mixer")


def test_announced_parts_are_marked():
    announced = {chip.id for chip in accelerators().values() if chip.announced}
    assert announced == {
        *("rubin-r200", "rubin-cpx", "mi455x", "tpu-8i", "tpu-8t"),
        *("groq-3-lp30", "dmatrix-corsair", "cerebras-wse3"),
    }


def test_the_example_of_the_readme_is_the_real_record():
    readme = (DATA.parent / "README.md").read_text()
    (example,) = re.findall(r"```toml\n(.*?)```", readme, flags=re.DOTALL)
    real = tomllib.loads((DATA / "accelerators" / "nvidia_ada.toml").read_text())
    assert tomllib.loads(example) == {"l4": real["l4"]}


def test_the_snippet_of_the_readme_gives_what_it_says():
    h100, llama = accelerators()["h100-sxm"], models()["llama-3.1-70b"]
    assert h100.peak_flops("fp8") == 1.979e15
    assert h100.group_bandwidth_bytes_s(8) == 450e9
    assert llama.kv_shards(16) == 8
    assert links()["nvlink4"].latency_s == pytest.approx(1e-05)
