import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from formulas.closed_form import DomainError
from formulas.experts import (
    CRITICAL_BATCH,
    EFFECTIVE_PARAMETERS,
    EQUIVALENT_PARAMETERS,
    RIDGE_TOKENS,
    TOKENS_PER_EXPERT,
    balanced_batch,
    critical_batch,
)

PEAKS = {"compute_efficiency": 1, "memory_efficiency": 1}
A100 = {"peak_flops": 312e12, "memory_bandwidth": 2.0e12}


def test_mixtral_on_a100_as_published():
    """MegaScale-Infer (arXiv 2504.02263): a dense matrix is busy at 156 tokens, an expert of 8 with 2 chosen at 624."""
    ridge = RIDGE_TOKENS(parameter_bytes=2, **A100, **PEAKS)
    assert ridge == pytest.approx(156, rel=1e-12)
    assert CRITICAL_BATCH(ridge_tokens=ridge, experts=8, experts_per_token=2) == pytest.approx(4 * 156, rel=1e-12)
    per_expert = TOKENS_PER_EXPERT(experts=8, experts_per_token=2, tokens=156)
    assert per_expert / ridge == pytest.approx(0.25, rel=1e-12)  # and its arithmetic is a quarter busy at 156


def test_ridge_of_the_course():
    """Lecture 8.4: 295 operations a byte on an H100 at its peaks, so 295 tokens in 16 bits."""
    ridge = RIDGE_TOKENS(parameter_bytes=2, peak_flops=989e12, memory_bandwidth=3.35e12, **PEAKS)
    assert ridge == pytest.approx(295.2239, rel=1e-6)
    half = RIDGE_TOKENS(parameter_bytes=1, peak_flops=989e12, memory_bandwidth=3.35e12, **PEAKS)
    assert half == pytest.approx(ridge / 2, rel=1e-14)


@given(experts=st.integers(2, 512), share=st.floats(0, 0.99), ridge=st.floats(1.01, 500))
@settings(max_examples=60, deadline=None)
def test_equals_the_closed_form_by_lambert(experts, share, ridge):
    """Root of b k/N = r (1 - (1-k/N)^b), by the principal branch of Lambert's function."""
    chosen = 1 + int(share * (experts - 1))
    rate, scale = -mpmath.log(1 - mpmath.mpf(chosen) / experts), mpmath.mpf(ridge) * experts / chosen
    exact = scale + mpmath.lambertw(-rate * scale * mpmath.exp(-rate * scale)).real / rate
    found = critical_batch(experts, chosen, ridge)
    assert found == pytest.approx(float(exact), rel=1e-9)
    assert 1 <= found <= float(scale) * (1 + 1e-12)


def test_error_of_full_coverage_is_as_stated():
    excess = [CRITICAL_BATCH(ridge_tokens=r, experts=256, experts_per_token=8) / critical_batch(256, 8, r) - 1
              for r in (2, 5, 20)]  # fmt: skip
    assert excess == pytest.approx([0.242, 0.0065, 1.5e-9], rel=0.01)


def test_where_one_token_is_enough():
    assert critical_batch(8, 2, 0.5) == 2.0
    assert critical_batch(8, 8, 0.25) == 1.0
    assert critical_batch(8, 8, 300) == 300.0


@given(
    compute=st.floats(1e-7, 1e-3),
    fixed=st.floats(1e-5, 1.0),
    cache=st.floats(0, 0.95),
    experts=st.integers(4, 256),
    weight=st.floats(0, 100),
)
@settings(max_examples=60)
@example(compute=1e-7, fixed=1.0, cache=0.75, experts=4, weight=26.0)
def test_balanced_batch_balances(compute, fixed, cache, experts, weight):
    def memory_s(b):
        return fixed + cache * compute * b + weight * fixed * (1 - (1 - 2 / experts) ** b)

    found = balanced_batch(lambda b: compute * b, memory_s)
    everything_s = fixed * (1 + weight)  # with every expert touched, which only the caches grow beyond
    if everything_s > compute * (1 - cache) * 2.0**30:
        assert found is None  # the largest batch sought
        return
    assert found is not None
    if found > 1:
        assert compute * found == pytest.approx(memory_s(found), rel=1e-9)
    else:
        assert compute >= memory_s(1.0)


def test_experts_alone_agree_with_the_critical_batch():
    """Without dense weights, the whole step is its experts."""
    ridge, n, k = 24.0, 64, 6
    memory = balanced_batch(lambda b: b * k / ridge, lambda b: n * (1 - (1 - k / n) ** b))
    assert memory == pytest.approx(critical_batch(n, k, ridge), rel=1e-9)


def test_long_contexts_never_become_bound_by_arithmetic():
    assert balanced_batch(lambda b: 1e-5 * b, lambda b: 1e-3 + 1.1e-5 * b) is None
    assert balanced_batch(lambda b: 1e-5 * b, lambda b: 1e-3 + 0 * b, most=99) is None
    with pytest.raises(DomainError, match="finite time"):
        balanced_batch(lambda b: np.nan * b, lambda b: 1 + b)


def test_parameters():
    read = EFFECTIVE_PARAMETERS(dense_params=17e9, expert_params=654e9, coverage=8 / 256)
    assert read == pytest.approx(37.4375e9)
    assert EQUIVALENT_PARAMETERS(active_params=13e9, total_params=47e9) == pytest.approx(24.72e9, rel=1e-3)
    with pytest.raises(DomainError, match="no more than all"):
        EQUIVALENT_PARAMETERS(active_params=48e9, total_params=47e9)
