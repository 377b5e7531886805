import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from formulas.closed_form import DomainError
from formulas.kv_cache import (
    BOUNDARY_BYTES,
    CACHE_MEMORY,
    FETCH_BREAK_EVEN,
    LARGEST_BATCH,
    REUSE_BANDWIDTH,
    TOKENS_IN_MEMORY,
    fetch_break_even_bandwidth,
    memory,
)


def test_mooncakes_thresholds(course):
    figures = course["mooncake_reuse"]
    names = ("tokens", "hidden", "element_bytes", "gqa", "attention_factor", "linear_factor")
    model = {name: figures[name] for name in names}
    for peak, bandwidth in zip(figures["peak_flops"], figures["bandwidth"], strict=True):
        assert REUSE_BANDWIDTH(flops_s=8 * peak, **model) == pytest.approx(bandwidth, rel=1e-3)


def test_threshold_is_bytes_over_time():
    size, work, general, threshold = (step.equation.rhs for step in REUSE_BANDWIDTH.steps)
    assert general == memory.BYTES.symbol / memory.COMPUTE_TIME.symbol
    assert sp.simplify(size / work - threshold) == 0
    assert threshold == REUSE_BANDWIDTH.expression
    assert FETCH_BREAK_EVEN.expression == general


@given(size=st.floats(1e5, 1e12), time=st.floats(1e-4, 1e3))
def test_break_even_takes_as_long_as_computing(size, time):
    assert size / fetch_break_even_bandwidth(size, time) == pytest.approx(time, rel=1e-12)


def test_longer_prefixes_are_worth_fetching_over_slower_links():
    model = {"hidden": 8192, "element_bytes": 2, "gqa": 8, "attention_factor": 4, "linear_factor": 22, "flops_s": 1e15}
    short, long = (REUSE_BANDWIDTH(tokens=tokens, **model) for tokens in (1024, 131072))
    assert long < short
    halved = REUSE_BANDWIDTH(tokens=1024, **model | {"flops_s": 0.5e15})
    assert halved == pytest.approx(short / 2, rel=1e-12)


def test_memory_left_by_hand():
    """An H100's 81559 MiB at 90 %, Llama-3.1-8B's 8,030,261,248 parameters in two bytes each, 2 GB of reserve."""
    left = CACHE_MEMORY(memory_bytes=81559 * 2**20, memory_share=0.9, weight_bytes=2 * 8030261248, reserve_bytes=2e9)
    assert left == pytest.approx(0.9 * 85520809984 - 16060522496 - 2e9)
    tokens = TOKENS_IN_MEMORY(cache_bytes=left, bytes_per_token_per_rank=131072)
    assert tokens == 449433
    assert LARGEST_BATCH(cache_bytes=left, bytes_per_sequence_per_rank=2000 * 131072) == 224


@given(tokens=st.integers(1, 10**8), size=st.integers(1, 10**6), part=st.floats(0, 0.999))
def test_exactly_so_many_fit(tokens, size, part):
    assert TOKENS_IN_MEMORY(cache_bytes=tokens * size, bytes_per_token_per_rank=size) == tokens
    below = tokens * size - max(1, int(part * size))
    assert TOKENS_IN_MEMORY(cache_bytes=below, bytes_per_token_per_rank=size) == tokens - 1


def test_what_does_not_fit_is_a_sentence():
    with pytest.raises(DomainError, match=r"^Does not fit"):
        CACHE_MEMORY(memory_bytes=80e9, memory_share=0.9, weight_bytes=140e9, reserve_bytes=0)
    with pytest.raises(DomainError, match="at most 1"):
        CACHE_MEMORY(memory_bytes=80e9, memory_share=1.1, weight_bytes=14e9, reserve_bytes=0)
    assert CACHE_MEMORY(memory_bytes=80e9, memory_share=1, weight_bytes=80e9, reserve_bytes=0) == 0


def test_activations_that_cross_nodes():
    """OPT-66B, 512 tokens, two stages: 9.4 MB of activations instead of 1.2 GB of cache."""
    crossing = BOUNDARY_BYTES(tokens=512, hidden=9216, element_bytes=2, stages=2)
    assert crossing == 512 * 9216 * 2
    assert 64 * 2 * crossing == 1207959552
    assert BOUNDARY_BYTES(tokens=512, hidden=9216, element_bytes=2, stages=1) == 0
