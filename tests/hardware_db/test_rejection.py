"""Each kind of faulty record is refused, by file, record and field, with what is allowed."""

import pytest

from hardware_db import Accelerator, DatabaseError, Link, Model, accelerators, links, load_folder
from hardware_db.load import check_links

ACCELERATOR = {
    "vendor": '"V"',
    "name": '"Chip"',
    "form": '"SXM"',
    "launch_year": "2022",
    "memory_type": '"HBM3"',
    "memory_label": '"80 GB"',
    "memory_bytes": "85_520_809_984",
    "memory_basis": '"driver: 81559 MiB"',
    "memory_bandwidth_gb_s": "3350",
    "dense_tflops": "{ tf32 = 494.5, bf16 = 989, fp16 = 989, fp8 = 1979 }",
    "measured_bf16_gemm_efficiency": "0.8",
    "scale_up_link": '"NVLink 4"',
    "scale_up_gb_s": "450",
    "scale_up_peer_gb_s": "450",
    "scale_up_domain": "8",
    "price_usd_per_hour": '{ low = 2.0, high = 5.0, source = ["skypilot"] }',
    "confidence": '"one-source"',
    "sources": '["aiconfigurator"]',
}
LINK = {
    "name": '"Link"',
    "kind": '"scale-up"',
    "gb_s": "450",
    "both_directions_gb_s": "900",
    "per_link_gb_s": "25",
    "links": "18",
    "applies_to": '"Chip"',
    "latency_us": "10",
    "efficiency": "0.82",
    "year": "2022",
    "confidence": '"one-source"',
    "sources": '["ml-engineering"]',
}
DENSE = {
    "hf_repo": '"org/dense"',
    "kind": '"dense"',
    "layers": "32",
    "hidden": "4096",
    "vocab": "128256",
    "tied_embeddings": "false",
    "tied_basis": '"config"',
    "attention": '"GQA"',
    "heads": "32",
    "kv_heads": "8",
    "head_dim": "128",
    "v_head_dim": "128",
    "full_attention_layers": "32",
    "ffn_width": "14336",
    "ffn_matrices": "3",
    "native_format": '"bf16"',
    "native_weights": '"BF16"',
    "max_context": "131072",
    "kv_bytes_per_token_bf16": "131072",
    "confidence": '"one-source"',
    "sources": '["litgpt"]',
}
MOE = DENSE | {
    "kind": '"moe"',
    "moe": "{ experts = 8, experts_per_token = 2, shared_experts = 0, expert_width = 14336, "
    "first_dense_layers = 0, moe_layers = 32 }",
}
LATENT = DENSE | {
    "kv_heads": None,
    "head_dim": None,
    "mla": "{ kv_lora_rank = 512, qk_rope_head_dim = 64, qk_nope_head_dim = 128 }",
    "kv_bytes_per_token_bf16": str(32 * 576 * 2),
}
HYBRID = DENSE | {
    "full_attention_layers": "8",
    "linear_layers": "24",
    "linear_mixer": '{ kind = "lightning", key_heads = 32, value_heads = 32, key_dim = 128, value_dim = 128 }',
    "linear_state_elements": str(24 * 32 * 128 * 128),
    "kv_bytes_per_token_bf16": "32768",
}
SHARED = DENSE | {
    "kv_heads": "1",
    "window_layers": "32",
    "window_tokens": "128",
    "full_attention_layers": "32",
    "shared_latent": "{ q_rank = 1024, rope_dim = 64, output_groups = 8, output_rank = 1024, "
    "compressed = [{ layers = 32, ratio = 4 }] }",
    "kv_bytes_per_token_bf16": str(32 * 128 // 4 * 2),
    "window_kv_bytes_per_token_bf16": str(32 * 128 * 2),
}


def load(folder, record_type, record, heading="[it]"):
    lines = [f"{key} = {value}" for key, value in record.items() if value is not None]
    (folder / "family.toml").write_text("\n".join([heading, *lines]))
    return load_folder(folder, record_type)


@pytest.mark.parametrize(
    ("record_type", "record"),
    [
        (Accelerator, ACCELERATOR),
        (Link, LINK),
        (Model, DENSE),
        (Model, MOE),
        (Model, LATENT),
        (Model, HYBRID),
        (Model, SHARED),
    ],
)
def test_the_records_below_are_valid_before_they_are_broken(tmp_path, record_type, record):
    assert list(load(tmp_path, record_type, record)) == ["it"]


def refused(folder, record_type, record, field, allowed):
    with pytest.raises(DatabaseError) as caught:
        load(folder, record_type, record)
    error = caught.value
    assert (error.file.name, error.record, error.field) == ("family.toml", "it", field)
    message = str(error)
    assert message.startswith(f"family.toml, record [it], field {field}: ")
    assert allowed in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("change", "field", "allowed"),
    [
        ({"sources": "[]"}, "sources", "at least 1 item"),
        ({"sources": None}, "sources", "required"),
        ({"sources": '["a blog"]'}, "sources", "data/sources.toml"),
        ({"confidence": '"certain"'}, "confidence", "confirmed-two-sources"),
        ({"memory_bandwidth_gb_s": "-1"}, "memory_bandwidth_gb_s", "greater than 0"),
        ({"memory_bandwidth_gb_s": "nan"}, "memory_bandwidth_gb_s", "finite"),
        ({"memory_bandwidth_gb_s": "inf"}, "memory_bandwidth_gb_s", "finite"),
        ({"memory_bandwidth_gb_s": '"3350"'}, "memory_bandwidth_gb_s", "valid number"),
        ({"tdp_w": "true"}, "tdp_w", "valid number"),
        ({"memory_bytes": "85520809984.5"}, "memory_bytes", "valid integer"),
        ({"memory_bytes": "80_000_000_000"}, "memory_bytes", "81559 MiB = 85520809984"),
        ({"memory_basis": '"the sheet"'}, "memory_basis", "must end with the amount"),
        ({"memory_label": '"141 GB"'}, "memory_bytes", "within 12 % of the label"),
        ({"memory_bw": "3350"}, "memory_bw", "not permitted"),
        ({"dense_tflops": "{ fp6 = 1 }"}, "dense_tflops.fp6", "not permitted"),
        # The sparse BF16 headline beside dense neighbours, then the sparse FP8 one.
        ({"dense_tflops": "{ tf32 = 494.5, bf16 = 1979 }"}, "dense_tflops.bf16", "without sparsity"),
        ({"dense_tflops": "{ bf16 = 1979, fp8 = 1979 }"}, "dense_tflops.fp8", "unusual_rates"),
        ({"dense_tflops": "{ bf16 = 989, fp8 = 3958 }"}, "dense_tflops.fp8", "without sparsity"),
        ({"dense_tflops": "{ bf16 = 989, fp16 = 494 }"}, "dense_tflops.fp16", "without sparsity"),
        ({"dense_tflops": "{ fp8 = 4500, fp4 = 18000 }"}, "dense_tflops.fp4", "without sparsity"),
        ({"sparsity_unstated": '["fp4"]'}, "sparsity_unstated", "no rate"),
        (
            {"measured_bf16_gemm_efficiency": "1.07"},
            "measured_bf16_gemm_efficiency",
            "less than or equal to 1",
        ),
        ({"measured_bf16_gemm_efficiency": "0"}, "measured_bf16_gemm_efficiency", "greater than 0"),
        ({"scale_up_peer_gb_s": "900"}, "scale_up_peer_gb_s", "exceeds scale_up_gb_s = 450"),
        ({"scale_up_gb_s": None}, "scale_up_peer_gb_s", "needs scale_up_gb_s"),
        ({"scale_up_domain": "1"}, "scale_up_domain", "greater than or equal to 2"),
        ({"peer_over_host_gb_s": "63"}, "peer_over_host_gb_s", "without scale_up_gb_s"),
        ({"unverified_fields": '["bandwidth"]'}, "unverified_fields", "'bandwidth' is not a field"),
        ({"unverified_fields": '["tdp_w"]'}, "unverified_fields", "name one that is set"),
        ({"unverified_fields": '["dense_tflops.fp4"]'}, "unverified_fields", "'dense_tflops.fp4'"),
        ({"unverified_fields": '["data_types"]'}, "unverified_fields", "'data_types'"),
        (
            {"price_usd_per_hour": '{ low = 5.0, high = 2.0, source = ["skypilot"] }'},
            "price_usd_per_hour.low",
            "above high = 2",
        ),
        (
            {"price_usd_per_hour": '{ low = 1.0, high = 2.0, source = ["hearsay"] }'},
            "price_usd_per_hour.source",
            "data/sources.toml",
        ),
        (
            {"memory_tiers": '[{ name = "SRAM", bytes = 1, bandwidth_gb_s = 2 }]'},
            "memory_tiers",
            "one tier must have",
        ),
        (
            {
                "memory_tiers": '[{ name = "slow", bytes = 9, bandwidth_gb_s = 1 }, '
                '{ name = "fast", bytes = 85_520_809_984, bandwidth_gb_s = 3350 }]'
            },
            "memory_tiers",
            "fastest first",
        ),
        ({"launch_year": "1999"}, "launch_year", "greater than or equal to 2000"),
        ({"notes": '""'}, "notes", "at least 1 character"),
        ({"id": '"other"'}, "id", "the heading is the id"),
    ],
)
def test_faulty_accelerators(tmp_path, change, field, allowed):
    refused(tmp_path, Accelerator, ACCELERATOR | change, field, allowed)


def test_unusual_rates_may_be_explained(tmp_path):
    change = {"dense_tflops": "{ bf16 = 459, fp8 = 459 }", "unusual_rates": '"FP8 runs at the BF16 rate."'}
    assert load(tmp_path, Accelerator, ACCELERATOR | change)["it"].peak_flops("fp8") == 459e12


@pytest.mark.parametrize(
    ("change", "field", "allowed"),
    [
        ({"both_directions_gb_s": "450"}, "both_directions_gb_s", "not twice gb_s = 450"),
        ({"efficiency": "1.07"}, "efficiency", "less than or equal to 1"),
        ({"efficiency": "0"}, "efficiency", "greater than 0"),
        ({"latency_us": "-1"}, "latency_us", "greater than 0"),
        ({"links": "9"}, "per_link_gb_s", "9 links of 25 give 225"),
        ({"kind": '"wireless"'}, "kind", "scale-up"),
        ({"gb_s": None}, "gb_s", "required"),
    ],
)
def test_faulty_links(tmp_path, change, field, allowed):
    refused(tmp_path, Link, LINK | change, field, allowed)


def test_uneven_directions_may_be_explained(tmp_path):
    change = {"both_directions_gb_s": "600", "both_directions_note": '"The way back is narrower."'}
    assert load(tmp_path, Link, LINK | change)["it"].bytes_s == 450e9


@pytest.mark.parametrize(
    ("base", "change", "field", "allowed"),
    [
        (DENSE, {"kv_heads": "12"}, "kv_heads", "12 does not divide heads = 32"),
        (DENSE, {"kv_heads": None}, "kv_heads", "unless there is an mla table"),
        (DENSE, {"head_dim": None}, "head_dim", "unless there is an mla table"),
        (DENSE, {"head_dim": "80"}, "head_dim_explicit", "must be true"),
        (DENSE, {"full_attention_layers": "31"}, "full_attention_layers", "layers are 31, but layers = 32"),
        (DENSE, {"window_layers": "2", "full_attention_layers": "30"}, "window_tokens", "exactly when"),
        (DENSE, {"kv_bytes_per_token_bf16": "1048576"}, "kv_bytes_per_token_bf16", "not the 131072"),
        (DENSE, {"window_kv_bytes_per_token_bf16": "2"}, "window_kv_bytes_per_token_bf16", "not the 0"),
        (DENSE, {"linear_state_elements": "5"}, "linear_state_elements", "not the 0"),
        (DENSE, {"ffn_width": None}, "ffn_width", "needed in a dense model"),
        (DENSE, {"ffn_matrices": "4"}, "ffn_matrices", "2 or 3"),
        (DENSE, {"native_format": '"fp5"'}, "native_format", "mxfp4"),
        (DENSE, {"kind": '"moe"'}, "kind", "a 'moe' record has a moe table"),
        (MOE, {"kind": '"dense"'}, "kind", "a 'dense' one has none"),
        (LATENT, {"kv_heads": "32"}, "kv_heads", "the latent has no heads"),
        (HYBRID, {"linear_mixer": None}, "linear_mixer", "exactly when there are linear_layers"),
        (HYBRID, {"linear_state_elements": "7"}, "linear_state_elements", "12582912"),
        (SHARED, {"full_attention_layers": "31"}, "shared_latent.compressed", "every layer has a window"),
    ],
)
def test_faulty_models(tmp_path, base, change, field, allowed):
    refused(tmp_path, Model, base | change, field, allowed)


@pytest.mark.parametrize(
    ("old", "new", "field", "allowed"),
    [
        ("experts_per_token = 2", "experts_per_token = 9", "moe.experts_per_token", "exceeds experts = 8"),
        ("moe_layers = 32", "moe_layers = 31", "moe.moe_layers", "is not layers = 32"),
        ("shared_experts = 0", "shared_experts = 1", "moe.shared_width", "exactly when"),
        ("experts = 8,", "experts = -8,", "moe.experts", "greater than 0"),
    ],
)
def test_faulty_experts(tmp_path, old, new, field, allowed):
    refused(tmp_path, Model, MOE | {"moe": MOE["moe"].replace(old, new, 1)}, field, allowed)


def test_dense_layers_of_a_mixture_need_a_width(tmp_path):
    moe = MOE["moe"].replace("first_dense_layers = 0, moe_layers = 32", "first_dense_layers = 1, moe_layers = 31")
    refused(tmp_path, Model, MOE | {"moe": moe, "ffn_width": None}, "ffn_width", "needed for the dense layers")


def test_several_faults_are_counted(tmp_path):
    with pytest.raises(DatabaseError, match=r"and 1 more in this record"):
        load(tmp_path, Link, LINK | {"efficiency": "2", "latency_us": "-1"})


def test_an_id_in_two_files_is_refused(tmp_path):
    load(tmp_path, Link, LINK)
    (tmp_path / "other.toml").write_text((tmp_path / "family.toml").read_text())
    with pytest.raises(DatabaseError, match=r"other.toml, record \[it\]: the id is already used in family.toml"):
        load_folder(tmp_path, Link)


def test_a_file_that_is_not_toml_is_refused(tmp_path):
    (tmp_path / "family.toml").write_text("[it\n")
    with pytest.raises(DatabaseError, match=r"family.toml: is not valid TOML"):
        load_folder(tmp_path, Link)


def test_a_value_outside_a_record_is_refused(tmp_path):
    with pytest.raises(DatabaseError, match=r"family.toml, field name: stands outside a record"):
        load(tmp_path, Link, LINK, heading="")


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(DatabaseError, match=r"no .toml file"):
        load_folder(tmp_path / "nothing", Link)


def test_records_keep_the_order_of_files_and_of_lines(tmp_path):
    load(tmp_path, Link, LINK, heading="[zeta]")
    text = (tmp_path / "family.toml").read_text()
    (tmp_path / "family.toml").write_text(text + "\n" + text.replace("[zeta]", "[alpha]"))
    (tmp_path / "early.toml").write_text(text.replace("[zeta]", "[mid]"))
    assert list(load_folder(tmp_path, Link)) == ["mid", "zeta", "alpha"]


@pytest.mark.parametrize("name", ["H100-SXM", "h100 sxm", "h100<b>&=1", "-h100"])
def test_an_id_that_cannot_go_into_a_link_is_refused(tmp_path, name):
    (tmp_path / "family.toml").write_text(f'["{name}"]\nx = 1\n')
    with pytest.raises(DatabaseError, match="an id has lower-case letters"):
        load_folder(tmp_path, Accelerator)


def test_an_accelerator_claims_no_more_than_its_link_carries_one_way():
    chip = accelerators()["h100-sxm"]
    check_links({"h100-sxm": chip}, links())
    both_ways = chip.model_copy(update={"scale_up_gb_s": 900.0})
    with pytest.raises(DatabaseError, match="give one direction"):
        check_links({"h100-sxm": both_ways}, links())
    dangling = chip.model_copy(update={"host_link_id": "pcie55"})
    with pytest.raises(DatabaseError, match="not the id of a link"):
        check_links({"h100-sxm": dangling}, links())
