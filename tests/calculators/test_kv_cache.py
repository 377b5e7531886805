"""The kv_cache calculator: published figures, sizes for every kind of attention, transfer, memory, overlap."""

import math
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hardware_db
from calculators import outputs
from calculators.kv_cache import curves, figures, wording
from calculators.kv_cache.check import check
from calculators.kv_cache.compute import KvCacheInputs, compare_links, compute
from calculators.kv_cache.explanation import facts, formulas
from calculators.kv_transfer import VERDICTS
from calculators.memory import cache_of, moved_bytes
from formulas.closed_form import DomainError

FIGURES = tomllib.loads((Path(__file__).parent / "fixtures" / "kv_figures.toml").read_text())["figure"]

some = st.builds(
    KvCacheInputs,
    rate=st.floats(0.01, 1000),
    model=st.sampled_from(list(hardware_db.models())),
    accelerator=st.sampled_from(["h100-sxm", "b200-sxm", "mi300x"]),
    prompt_tokens=st.integers(1, 100_000),
    tp=st.sampled_from([1, 2, 8]),
    pp=st.sampled_from([1, 2, 5]),
    link=st.sampled_from(list(hardware_db.links())),
    kv_dtype=st.sampled_from(list(hardware_db.KV_BYTES)),
    message_overhead_us=st.sampled_from([0.0, 2.0]),
)


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure["id"])
def test_published_figures(figure):
    result = compute(KvCacheInputs(**figure["inputs"]))
    for key, expected in figure["expected"].items():
        assert getattr(result, key) == pytest.approx(expected, rel=figure["rel"]), key


@settings(max_examples=80)
@given(some)
def test_no_number_is_infinite_nan_or_negative(inputs):
    result = compute(inputs)
    for name, value in outputs.as_dict(result).items():
        if isinstance(value, float | int):
            assert math.isfinite(value), name
            assert value >= 0, name
    assert result.verdict in VERDICTS
    assert (result.verdict == "not_sustainable") == (result.link_utilization >= 1) == (result.mean_transfer_ms is None)


@settings(max_examples=80)
@given(some)
def test_sending_layer_by_layer_is_never_later_than_at_the_end(inputs):
    result = compute(inputs)
    assert result.exposed_ms <= result.transfer_ms * (1 + 1e-9)


@settings(max_examples=80)
@given(some)
def test_the_size_shown_as_a_product_is_the_size(inputs):
    result = compute(inputs)
    model = hardware_db.models()[inputs.model]
    assert moved_bytes(model, inputs.prompt_tokens, inputs.kv_dtype) == pytest.approx(result.transfer_bytes)
    ranks = [cache_of(model, inputs.prompt_tokens, inputs.kv_dtype, tp).sequence_per_rank for tp in (1, 2, 4, 8)]
    assert ranks == sorted(ranks, reverse=True)


def test_the_overhead_of_messages_dominates_on_small_blocks():
    plain = compute(KvCacheInputs(model="llama-3.1-70b", prompt_tokens=15_000, message_overhead_us=0))
    small = compute(KvCacheInputs(model="llama-3.1-70b", prompt_tokens=15_000, message_overhead_us=10, block_tokens=16))
    large = compute(
        KvCacheInputs(model="llama-3.1-70b", prompt_tokens=15_000, message_overhead_us=10, block_tokens=256)
    )
    assert small.transfer_ms - plain.transfer_ms == pytest.approx(80 * math.ceil(15_000 / 16) * 0.010)
    assert small.transfer_ms > 5 * plain.transfer_ms
    assert large.transfer_ms < 2 * plain.transfer_ms


def test_links_side_by_side_and_efficiency_scale_the_bytes_not_the_latency():
    one = KvCacheInputs(link_gb_s=50, link_latency_us=5)
    eight = compute(replace(one, links_used=8)).transfer_ms
    assert eight == pytest.approx((compute(one).transfer_ms - 0.005) / 8 + 0.005)
    half = compute(replace(one, link_efficiency=0.5)).transfer_ms
    assert half == pytest.approx(2 * (compute(one).transfer_ms - 0.005) + 0.005)


def test_every_link_of_the_database_has_a_verdict_and_all_four_occur():
    inputs = KvCacheInputs(model="llama-3.1-70b", tp=8, prompt_tokens=4000, rate=20)
    found = compare_links(inputs)
    assert len(found) == len(hardware_db.links())
    verdicts = {moved.verdict for _, moved in found}
    assert verdicts >= {"free", "hidden", "not_sustainable"}
    table = wording.links_table(found, compute(inputs).prefill_ms)
    assert table["Transfer (ms)"] == sorted(table["Transfer (ms)"])


def test_what_fits_in_memory():
    result = compute(KvCacheInputs(model="llama-3.1-8b", prompt_tokens=1000, memory_share=0.9, reserve_gb=2))
    left = 0.9 * 85_520_809_984 - 16_060_522_496 - 2e9
    assert result.max_tokens_in_memory == pytest.approx(left / 131_072, rel=1e-3)
    assert result.max_batch == result.max_tokens_in_memory // 1000
    nothing = compute(KvCacheInputs(model="llama-3.1-70b"))
    assert (nothing.max_tokens_in_memory, nothing.max_batch) == (None, None)
    assert any("Does not fit" in warning for warning in nothing.warnings)
    assert compute(KvCacheInputs(model="llama-3.1-70b", tp=2, pp=2)).max_tokens_in_memory > 0


def test_stages_keep_the_cache_of_their_own_layers():
    one, four = (compute(KvCacheInputs(model="llama-3.1-70b", accelerator="gb200", pp=pp)) for pp in (1, 4))
    assert four.kv_bytes_per_token_per_rank == one.kv_bytes_per_token_per_rank / 4
    assert four.boundary_bytes == 3 * 512 * 8192 * 2
    assert one.boundary_bytes == 0


def test_a_prefix_is_worth_fetching_above_the_break_even_bandwidth():
    inputs = KvCacheInputs(prompt_tokens=8192)
    result = compute(inputs)
    at_break_even = compute(replace(inputs, link_gb_s=result.fetch_break_even_gb_s, link_latency_us=0))
    assert at_break_even.transfer_ms == pytest.approx(result.prefill_ms)


def test_the_chart_of_the_overlap_ends_where_the_formula_says():
    for inputs in (KvCacheInputs(), KvCacheInputs(link="eth-25g"), KvCacheInputs(model="gemma-3-27b", link="ib-hdr")):
        result = compute(inputs)
        assert 1e3 * figures.overlap(inputs, result).exposed_s == pytest.approx(result.exposed_ms)


def test_the_curves_pass_through_the_answer():
    inputs = KvCacheInputs(prompt_tokens=int(curves.PROMPTS[30]))
    chosen = curves.transfer_curves(inputs)[0]
    assert chosen.transfer_ms[30] == pytest.approx(compute(inputs).transfer_ms)
    assert curves.prefill_curve_ms(inputs)[30] == pytest.approx(compute(inputs).prefill_ms)
    by_id = {curve.id: curve.cache_bytes for curve in curves.cache_curves(inputs)}
    assert len(by_id) == len(hardware_db.models())
    assert np.all(np.diff(by_id["gemma-3-27b"]) > 0)


@pytest.mark.parametrize(
    "inputs", [KvCacheInputs(), KvCacheInputs(model="gpt-oss-120b", rate=5000), KvCacheInputs(service_ms=5)]
)
def test_every_shown_formula_gives_the_answers_own_number(inputs):
    result = compute(inputs)
    shown = formulas(inputs, result)
    values = [result.transfer_ms / 1e3, result.required_gb_s * 1e9, result.link_utilization, result.mean_transfer_ms]
    for each, value in zip(shown, values, strict=False):
        if value is None:
            assert each.form.violations(**each.values)
        else:
            expected = value / 1e3 if each is shown[3] else value
            assert each.form(**each.values) == pytest.approx(expected, rel=1e-9)
    assert "Size: " in shown[0].remark
    assert facts(inputs)


def test_simulation_and_closed_form_agree():
    checked = check(KvCacheInputs(rate=100, link_gb_s=10, link_latency_us=5, customers=500_000))
    assert 0.3 < checked.utilization < 0.9
    assert checked.agrees


def test_an_overloaded_link_is_not_simulated():
    with pytest.raises(DomainError):
        check(KvCacheInputs(rate=1000, link="eth-10g"))


def test_a_cached_prefix_is_part_of_the_cache():
    result = compute(KvCacheInputs(prompt_tokens=100, cached_tokens=100_000))
    assert result.kv_bytes_per_request == 100_100 * 131_072
    assert result.max_batch == result.max_tokens_in_memory // 100_100
    assert "100 tokens after 100,000 cached" in wording.answer(
        KvCacheInputs(prompt_tokens=100, cached_tokens=100_000), result
    )


def test_the_wait_for_the_link_counts_in_the_verdict():
    inputs = KvCacheInputs(rate=745)
    result = compute(inputs)
    assert result.link_utilization > 0.99
    assert result.verdict == "tight"
    assert "with the wait for the link" in wording.answer(inputs, result)


def test_more_stages_than_layers_are_remarked_on():
    assert any("64 stages" in warning for warning in compute(KvCacheInputs(pp=64)).warnings)
