"""Shapes and what follows from them: KV cache, attention groups, parameters."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardware_db import models

CASES = tomllib.loads(Path(__file__).with_name("kv_cases.toml").read_text())["case"]
MODELS = sorted(models())


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['model']}: {case['fault']}")
def test_kv_cache(case):
    model, element = models()[case["model"]], case.get("kv_element_bytes", 2)
    if "bytes_per_token" in case:
        assert model.kv_elements_per_token * element == case["bytes_per_token"]
    if "tp" in case:
        per_rank = case["bytes_per_token_and_rank"]
        assert model.kv_elements_per_token * element / model.kv_shards(case["tp"]) == per_rank
        assert model.kv_elements_per_rank(1, case["tp"]) * element == per_rank
    if "prompt_tokens" in case:
        assert model.kv_elements(case["prompt_tokens"]) * element == case["bytes_per_request"]
    assert model.state_elements_per_sequence == case.get("state_elements", 0)


def test_every_case_states_a_figure():
    assert len(CASES) == 13
    assert all({"bytes_per_token", "bytes_per_request"} & set(case) for case in CASES)


@pytest.mark.parametrize(
    ("name", "head_dim"),
    [
        ("qwen3-32b", 128),
        ("qwen3-235b-a22b", 128),
        ("qwen3-30b-a3b", 128),
        ("gpt-oss-120b", 64),
        ("glm-4.5", 128),
        ("mistral-nemo-12b", 128),
        ("gemma-3-27b", 128),
        ("minimax-m2", 128),
        ("qwen3-next-80b-a3b", 256),
        ("mimo-v2-flash", 192),
    ],
)
def test_head_width_is_read_not_derived(name, head_dim):
    model = models()[name]
    assert model.head_dim == head_dim
    assert model.head_dim != model.hidden / model.heads
    assert model.head_dim_explicit


@pytest.mark.parametrize(
    ("name", "heads", "kv_heads"),
    [
        ("falcon-7b", 71, 1),
        ("falcon-40b", 128, 8),
        ("command-r-35b", 64, 64),
        ("command-r-08-2024", 64, 8),
        ("llama-2-70b", 64, 8),
        ("bloom-176b", 112, 112),
        ("kimi-k2", 64, None),
        ("deepseek-v3", 128, None),
    ],
)
def test_kv_heads(name, heads, kv_heads):
    assert (models()[name].heads, models()[name].kv_heads) == (heads, kv_heads)


def test_latent_attention_has_one_group_with_uneven_heads():
    (group,) = models()["deepseek-v3"].attention_groups
    assert (group.layers, group.heads, group.qk_head_dim, group.v_head_dim) == (61, 128, 192, 128)
    assert group.cached_elements_per_layer == 576
    assert group.window_tokens is None


def test_groups_of_models_whose_layers_differ():
    full, window = models()["gemma-4-31b"].attention_groups
    assert (full.layers, full.kv_heads, full.qk_head_dim, full.window_tokens) == (10, 4, 512, None)
    assert (window.layers, window.kv_heads, window.qk_head_dim, window.window_tokens) == (50, 16, 256, 1024)
    full, window = models()["mimo-v2-flash"].attention_groups
    assert (full.kv_heads, window.kv_heads) == (4, 8)
    assert (full.qk_head_dim, full.v_head_dim) == (192, 128)


def test_linear_layers_are_in_no_group():
    model = models()["qwen3-next-80b-a3b"]
    assert sum(group.layers for group in model.attention_groups) == 12
    assert model.layers - model.linear_layers == 12


def test_compressed_latent_keeps_one_entry_for_several_tokens():
    model = models()["deepseek-v4-flash"]
    assert [group.tokens_per_entry for group in model.attention_groups] == [4, 128, 1]
    assert model.kv_elements_per_token == (21 * 512) // 4 + (20 * 512) // 128
    assert model.kv_shards(8) == 1


def test_sparse_selection_limits_what_is_read_but_not_the_cache():
    (sparse,), (dense,) = models()["deepseek-v3.2"].attention_groups, models()["deepseek-v3"].attention_groups
    assert (sparse.selected_entries, dense.selected_entries) == (2048, None)
    assert sparse.cached_elements == dense.cached_elements
    first, rest = models()["minimax-m3"].attention_groups
    assert (first.layers, first.selected_entries, rest.layers, rest.selected_entries) == (3, None, 57, 2048)


def test_uneven_groups_divide_each_by_its_own_heads():
    model = models()["gemma-4-31b"]
    assert model.kv_shards(16) == 4
    # Full layers have 4 KV heads, sliding ones 16: at tp 16 a rank holds 1/4 and 1/16.
    expected = 8192 * model.kv_elements_per_token / 4 + 1024 * model.window_kv_elements_per_token / 16
    assert model.kv_elements_per_rank(8192, 16) == expected


def test_a_rank_count_of_zero_is_an_error():
    with pytest.raises(ValueError, match="at least one rank, not 0"):
        models()["llama-3.1-8b"].kv_shards(0)


@given(name=st.sampled_from(MODELS), tokens=st.integers(0, 200_000), tp=st.sampled_from([1, 2, 4, 8, 16, 32]))
def test_cache_grows_and_never_divides_by_more_than_tp(name, tokens, tp):
    model = models()[name]
    whole, rank = model.kv_elements(tokens), model.kv_elements_per_rank(tokens, tp)
    assert model.kv_elements(tokens + 1) >= whole
    assert model.kv_elements(2 * tokens) <= 2 * whole
    assert whole / tp <= rank * (1 + 1e-12)
    assert rank <= whole / model.kv_shards(tp) * (1 + 1e-12)
    assert model.kv_elements_per_rank(tokens, 1) == whole


# --- parameters ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_counted_total_is_the_published_one_or_the_record_says_why(name):
    model = models()[name]
    if model.published_total_b is None:
        assert model.parameter_note is None
        return
    gap = abs(model.parameters.total / 1e9 / model.published_total_b - 1)
    assert (gap > 0.015) == (model.parameter_note is not None)
    assert gap < 0.10


def test_llama_3_1_8b_is_exact():
    count = models()["llama-3.1-8b"].parameters
    assert count.matmul_active == 7504658432
    # What the checkpoint holds, norms included.
    assert count.total == 8030261248


# Total, active, and active without the input embedding [1e9], one model for each kind of architecture.
@pytest.mark.parametrize(
    ("name", "total", "active", "no_input"),
    [
        ("opt-13b", 12.85, 12.85, 12.85),  # MHA, two FFN matrices, learned positions, tied
        ("llama-2-70b", 68.98, 68.98, 68.71),  # GQA
        ("falcon-7b", 6.92, 6.92, 6.92),  # MQA
        ("gemma-3-27b", 27.01, 27.01, 27.01),  # sliding and full layers, tied
        ("gemma-4-31b", 30.7, 30.7, 30.7),  # two head widths, key projection reused for values
        ("mixtral-8x7b", 46.7, 12.88, 12.75),  # MoE
        ("qwen3-235b-a22b", 235.09, 22.19, 21.57),  # MoE, explicit head width
        ("qwen3-next-80b-a3b", 79.67, 3.87, 3.56),  # gated attention and Gated DeltaNet
        ("qwen3.5-27b", 26.9, 26.9, 25.62),  # the same, dense
        ("deepseek-v2-lite", 15.71, 2.66, 2.45),  # MLA without query compression
        ("deepseek-v3", 671.03, 37.55, 36.63),  # MLA
        ("deepseek-v3.2", 671.88, 38.4, 37.48),  # MLA with an indexer
        ("deepseek-v4-flash", 283.81, 13.28, 12.75),  # shared latent, grouped output
        ("kimi-k3", 2779.25, 105.13, 103.96),  # delta attention, gated MLA, latent experts
        ("gpt-oss-120b", 116.79, 5.71, 5.13),  # sliding MoE
        ("llama-4-maverick", 400.71, 17.18, 16.15),  # every second layer MoE
        ("minimax-m1", 456.09, 48.4, 47.17),  # lightning attention
        ("mimo-v2-flash", 308.78, 15.45, 14.82),  # K and V of different widths
        ("nemotron-3-nano-30b-a3b", 31.58, 3.58, 3.23),  # Mamba-2, separate blocks
        ("nemotron-3-super-120b-a12b", 120.67, 12.77, 12.23),  # latent MoE
        ("gemma-4-26b-a4b", 25.23, 3.82, 3.82),  # dense MLP beside the experts
    ],
)
def test_counted_parameters(name, total, active, no_input):
    count = models()[name].parameters
    without_input = count.active - (0 if count.tied else count.input_embedding)
    assert count.total / 1e9 == pytest.approx(total, abs=0.006)
    assert count.active / 1e9 == pytest.approx(active, abs=0.006)
    assert without_input / 1e9 == pytest.approx(no_input, abs=0.006)


@pytest.mark.parametrize("name", MODELS)
def test_counts_are_consistent(name):
    model = models()[name]
    count = model.parameters
    assert model.moe_layers * model.experts * count.one_expert == count.routed_experts
    assert count.total - count.active == count.routed_experts - count.active_experts
    # The active matrix products are the active parameters without input table and norms, the head always in.
    without_products = count.other + (0 if count.tied else count.input_embedding)
    assert count.matmul_active == count.active - without_products
    assert (count.total == count.active) == (model.kind == "dense")


def test_dense_models_have_no_experts():
    model = models()["llama-3.1-8b"]
    assert (model.moe_layers, model.experts, model.experts_per_token) == (0, 0, 0)
    assert model.expert_bytes("bf16") == 0


def test_expert_counts():
    model = models()["deepseek-v3"]
    assert (model.moe_layers, model.experts, model.experts_per_token) == (58, 256, 8)
    assert model.parameters.one_expert == 3 * 7168 * 2048
