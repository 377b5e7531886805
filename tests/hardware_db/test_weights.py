"""Weight formats and the bytes they give."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardware_db import FORMATS, UnknownFormat, accelerators, models, weight_format

MODELS = sorted(models())


@pytest.mark.parametrize(
    ("name", "bytes_per_parameter"),
    [
        ("fp32", 4),
        ("bf16", 2),
        ("fp16", 2),
        ("fp8", 1),
        ("int8", 1),
        ("nvfp4", 9 / 16),
        ("mxfp4", 17 / 32),
        ("int4", 0.515625),
    ],
)
def test_bytes_per_parameter_include_scales(name, bytes_per_parameter):
    assert weight_format(name).bytes_per_parameter == bytes_per_parameter


def test_an_unknown_format_is_an_error_that_lists_the_known_ones():
    with pytest.raises(UnknownFormat) as caught:
        weight_format("fp6")
    for name in ("'fp6'", *FORMATS):
        assert name in str(caught.value)
    with pytest.raises(UnknownFormat):
        models()["llama-3.1-8b"].weight_bytes("q4_k_m")


def test_llama_by_hand():
    model = models()["llama-3.1-8b"]
    table, layers, norms = 128256 * 4096, 6979321856, 65 * 4096
    assert model.weight_bytes("bf16") == 2 * 8030261248
    assert model.weight_bytes("fp8") == 2 * 2 * table + layers + 2 * norms
    assert model.dense_weight_bytes("bf16") == 2 * 7504658432
    assert model.dense_weight_bytes("nvfp4") == 2 * table + layers * 9 / 16


def test_a_tied_table_is_stored_once_and_read_as_the_head():
    model = models()["llama-3.2-1b"]
    count = model.parameters
    assert count.tied
    assert model.weight_bytes("bf16") == 2 * count.total
    assert model.dense_weight_bytes("bf16") == 2 * (count.quantizable_dense + 128256 * 2048)


@pytest.mark.parametrize(("name", "gib"), [("gpt-oss-120b", 60.8), ("gpt-oss-20b", 12.8)])
def test_mxfp4_gives_the_size_of_the_published_checkpoint(name, gib):
    # Sizes of the model card. FP4 on every layer would give 58.7 and 11.4.
    assert models()[name].weight_bytes("mxfp4") / 2**30 == pytest.approx(gib, rel=0.005)


def test_mxfp4_covers_experts_only():
    model = models()["gpt-oss-120b"]
    assert model.dense_weight_bytes("mxfp4") == model.dense_weight_bytes("bf16")
    assert model.expert_bytes("mxfp4") == 3 * 2880 * 2880 * 17 / 32
    llama = models()["llama-3.1-8b"]
    assert llama.weight_bytes("mxfp4") == llama.weight_bytes("bf16")


def test_deepseek_v3_in_fp8_fits_eight_h200_but_not_in_bf16():
    room = 8 * accelerators()["h200-sxm"].memory_bytes
    model = models()["deepseek-v3"]
    assert model.weight_bytes("fp8") < room < model.weight_bytes("bf16")


@pytest.mark.parametrize("name", MODELS)
def test_native_formats_are_known(name):
    model = models()[name]
    assert weight_format(model.native_format).id == model.native_format
    assert model.weight_bytes(model.native_format) <= model.weight_bytes("bf16")


@given(name=st.sampled_from(MODELS))
def test_narrower_formats_are_smaller_and_all_keep_the_tables(name):
    model = models()[name]
    sizes = [model.weight_bytes(form) for form in ("fp32", "bf16", "fp8", "nvfp4", "int4")]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == len(sizes)
    assert sizes[0] == 2 * sizes[1]
    assert sizes[-1] >= 2 * model.parameters.input_embedding


@given(name=st.sampled_from(MODELS), form=st.sampled_from(sorted(FORMATS)))
def test_memory_is_the_sum_of_what_is_read(name, form):
    model, kept = models()[name], weight_format(form).kept_bytes
    count = model.parameters
    all_experts = model.moe_layers * model.experts * model.expert_bytes(form)
    unread = kept * (count.other + (0 if count.tied else count.input_embedding))
    read = model.dense_weight_bytes(form) + all_experts
    assert model.weight_bytes(form) == pytest.approx(read + unread, rel=1e-12)


@pytest.mark.parametrize(
    ("form", "chip", "dtype"),
    [
        ("fp8", "h100-sxm", "fp8"),
        ("fp8", "a100-80-sxm", "bf16"),  # no FP8 units: unpacked
        ("nvfp4", "b200-sxm", "fp4"),
        ("nvfp4", "h100-sxm", "bf16"),
        ("mxfp4-fp8", "h100-sxm", "fp8"),
        ("int4", "h100-sxm", "fp16"),  # weight-only
        ("bf16", "v100-sxm2-32", "fp16"),
        ("bf16", "tpu-8i", None),  # only FP4 is published
    ],
)
def test_the_type_that_products_run_in(form, chip, dtype):
    assert weight_format(form).compute_dtype(accelerators()[chip].data_types) == dtype
