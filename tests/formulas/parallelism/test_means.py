import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from formulas.closed_form import DomainError
from formulas.montecarlo.tandem import simulate_chunked
from formulas.parallelism import (
    CHUNKED_MEAN_TTFT,
    PIPELINE_CAPACITY,
    PIPELINE_MEAN_TTFT,
    REPLICAS_MEAN_TTFT,
    STAGES_MEAN_TTFT,
    TENSOR_CAPACITY,
    TENSOR_MEAN_TTFT,
    means,
)
from formulas.queueing import md1
from formulas.queueing import pollaczek_khinchine as pk

R, D, K, N = (v.symbol for v in (means.RATE, means.SERVICE, means.SPEEDUP, means.GPUS))
ALL = (PIPELINE_MEAN_TTFT, TENSOR_MEAN_TTFT, REPLICAS_MEAN_TTFT, STAGES_MEAN_TTFT, CHUNKED_MEAN_TTFT)


def equal(a, b):
    return sp.simplify(a - b) == 0


def test_course_exercise(course):
    for case in course["parallelism"]:
        given = {"rate": case["rate"], "service_time": case["service_s"]}
        tensor = TENSOR_MEAN_TTFT(speedup=case["speedup"], **given)
        pipeline = PIPELINE_MEAN_TTFT(gpus=case["gpus"], **given)
        assert tensor == pytest.approx(case["tensor_mean_s"], rel=1e-12)
        assert pipeline == pytest.approx(case["pipeline_mean_s"], rel=1e-12)


def test_distserve_equations_2_and_3():
    assert equal(PIPELINE_MEAN_TTFT.expression.subs(N, 2), D + R * D**2 / (4 * (2 - R * D)))
    assert equal(TENSOR_MEAN_TTFT.expression, D / K + R * D**2 / (2 * K * (K - R * D)))


def test_each_is_md1_with_its_own_service_time():
    wait = md1.MEAN_WAIT.expression
    assert equal(PIPELINE_MEAN_TTFT.expression, D + wait.subs(D, D / N))
    assert equal(TENSOR_MEAN_TTFT.expression, md1.MEAN_TTFT.expression.subs(D, D / K))
    assert equal(REPLICAS_MEAN_TTFT.expression, md1.MEAN_TTFT.expression.subs(R, R / N))


def test_stages_cover_the_pipeline_and_a_single_accelerator():
    even = {means.BOTTLENECK.symbol: D / N, means.LATENCY.symbol: D}
    assert equal(STAGES_MEAN_TTFT.expression.subs(even), PIPELINE_MEAN_TTFT.expression)
    one = md1.MEAN_TTFT.expression
    assert equal(PIPELINE_MEAN_TTFT.expression.subs(N, 1), one)
    assert equal(REPLICAS_MEAN_TTFT.expression.subs(N, 1), one)
    assert equal(TENSOR_MEAN_TTFT.expression.subs(K, 1), one)


def test_derivations_end_at_the_formula():
    for form in ALL:
        assert form.steps[-1].equation.rhs == form.expression


@given(load=st.floats(0.01, 0.98), more=st.floats(1.001, 1.01), gpus=st.integers(2, 16), service=st.floats(1e-3, 10))
def test_grows_with_the_rate_up_to_the_capacity(load, more, gpus, service):
    capacity = PIPELINE_CAPACITY(service_time=service, gpus=gpus)
    assert capacity == pytest.approx(gpus / service)
    assert TENSOR_CAPACITY(service_time=service, speedup=gpus) == pytest.approx(capacity)
    for form in (PIPELINE_MEAN_TTFT, REPLICAS_MEAN_TTFT):
        times = [form(rate=load * r * capacity, service_time=service, gpus=gpus) for r in (1, more)]
        assert service < times[0] < times[1]
        with pytest.raises(DomainError, match="no steady state"):
            form(rate=1.0001 * capacity, service_time=service, gpus=gpus)


@given(load=st.floats(0.01, 0.99), gpus=st.integers(2, 16))
def test_a_pipeline_without_hops_beats_replicas(load, gpus):
    at = {"rate": load * gpus, "service_time": 1.0, "gpus": gpus}
    saved = REPLICAS_MEAN_TTFT(**at) - PIPELINE_MEAN_TTFT(**at)
    assert saved == pytest.approx((1 - 1 / gpus) * md1.MEAN_WAIT(rate=load, service_time=1.0), rel=1e-9)


def test_one_chunk_each_is_the_simple_pipeline():
    m, d = means.STAGES.symbol, means.CHUNK_TIME.symbol
    single = {means.MEAN_CHUNKS.symbol: 1, means.SECOND_CHUNKS.symbol: 1}
    assert equal(CHUNKED_MEAN_TTFT.expression.subs(single), PIPELINE_MEAN_TTFT.expression.subs({D: m * d, N: m}))


def test_chunks_are_one_service_in_the_first_stage_path_by_path():
    """Every prompt: the wait of a single server whose services are X d, then X d, then (m - 1) d."""
    from formulas.montecarlo.lindley import simulate_waits

    rng = np.random.default_rng(4)
    gaps, chunks = rng.exponential(0.7, 20_000), rng.geometric(0.4, 20_000)
    for stages in (1, 2, 5):
        expected = simulate_waits(gaps, 0.2 * chunks) + 0.2 * chunks + 0.2 * (stages - 1)
        np.testing.assert_allclose(simulate_chunked(gaps, chunks, 0.2, stages), expected, atol=1e-8)


def test_chunked_mean_is_pollaczek_khinchines():
    d, first, second = 0.2, 2.5, 10.0
    wait = pk.MEAN_WAIT(rate=1.2, mean_service=d * first, service_second_moment=d**2 * second)
    mean = CHUNKED_MEAN_TTFT(rate=1.2, chunk_time=d, mean_chunks=first, chunks_second_moment=second, stages=3)
    assert mean == pytest.approx(wait + d * first + 2 * d, rel=1e-13)
    with pytest.raises(DomainError, match="at least the square"):
        CHUNKED_MEAN_TTFT(rate=1.2, chunk_time=d, mean_chunks=2.0, chunks_second_moment=3.9, stages=3)


def test_a_stage_is_part_of_the_whole():
    with pytest.raises(DomainError, match="cannot take longer"):
        STAGES_MEAN_TTFT(rate=1, bottleneck_time=0.2, latency=0.1)
