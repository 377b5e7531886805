import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from formulas.closed_form import DomainError
from formulas.kv_cache import (
    EXPOSED_TIME,
    LINK_MAX_RATE,
    LINK_MEAN_TRANSFER,
    LINK_SHARED_MEAN_TRANSFER,
    LINK_TIME,
    LINK_UTILIZATION,
    REQUIRED_BANDWIDTH,
    TRANSFER_FRACTION,
    TRANSFER_TIME,
    gantt,
    transfer,
    transfer_quantile,
)
from formulas.queueing import md1
from formulas.step_time import Machine, StepLoad, attended_pairs, attention_flops, matmul_flops, step_time

PLAIN = {"links": 1, "link_efficiency": 1, "messages": 0, "message_overhead_s": 0}


def test_course_exercise(course):
    figures = course["kv_exercise"]
    time = TRANSFER_TIME(
        kv_bytes=figures["kv_bytes"], link_bytes_s=figures["link_bytes_s"], latency_s=figures["latency_s"], **PLAIN
    )
    assert time == pytest.approx(figures["transfer_s"], rel=1e-12)
    needed = REQUIRED_BANDWIDTH(rate=figures["rate"], kv_bytes=figures["kv_bytes"])
    assert needed == pytest.approx(figures["required_bytes_s"], rel=1e-12)
    assert 8e-9 * needed == pytest.approx(figures["required_gbit_s"], rel=1e-12)


def test_opt_66b(course):
    figures = course["kv_opt_66b"]
    needed = REQUIRED_BANDWIDTH(rate=figures["rate"], kv_bytes=figures["kv_bytes"])
    assert needed == pytest.approx(figures["required_bytes_s"], rel=1e-12)
    assert 8e-9 * needed == pytest.approx(figures["required_gbit_s"], rel=1e-9)


def test_opt_175b_over_eight_links(course):
    figures = course["kv_opt_175b"]
    time = TRANSFER_TIME(
        kv_bytes=figures["kv_bytes"], link_bytes_s=figures["link_bytes_s"], latency_s=0,
        **PLAIN | {"links": figures["links"]},
    )  # fmt: skip
    assert time == pytest.approx(figures["transfer_s"], rel=1e-12)


def test_llama_70b_on_100_gigabit(course):
    figures = course["kv_llama_70b"]
    needed = REQUIRED_BANDWIDTH(rate=figures["rate"], kv_bytes=figures["kv_bytes"])
    assert 8e-9 * needed == pytest.approx(figures["required_gbit_s"], rel=1e-12)
    busy = LINK_TIME(kv_bytes=figures["kv_bytes"], link_bytes_s=figures["link_bytes_s"], **PLAIN)
    assert LINK_MAX_RATE(link_time_s=busy) == pytest.approx(figures["max_rate"], rel=1e-5)


def prefill_s(course, name, tp):
    model = course[name]
    work = matmul_flops(model["matmul_params"], 512) + attention_flops(
        model["layers"], model["heads"], model["head_dim"], model["head_dim"], attended_pairs(512, 0)
    )
    load = StepLoad(work, 2 * model["matmul_params"], 0, model["kv_heads"], 512, model["hidden"], model["layers"])
    return step_time(load, Machine(tp=tp, **course["assumptions"])).total_s


@pytest.mark.parametrize(
    ("figure", "model", "tp", "bandwidth", "links"),
    [
        ("ib_8b", "llama_8b", 1, 50e9, 1),
        ("eth100_8b", "llama_8b", 1, 12.5e9, 1),
        ("nvlink_8b", "llama_8b", 1, 450e9, 1),
        ("ib_70b_tp8", "llama_70b", 8, 50e9, 1),
        ("eth100_70b_tp8", "llama_70b", 8, 12.5e9, 1),
        ("eight_nics_70b_tp8", "llama_70b", 8, 50e9, 8),
    ],
)
def test_fraction_of_prefill(course, figure, model, tp, bandwidth, links):
    figures = course["kv_fraction_of_prefill"]
    at = {"kv_bytes": 512 * course[model]["kv_bytes_per_token"], "link_bytes_s": bandwidth}
    time = TRANSFER_TIME(latency_s=figures["latency_s"].get(figure, 0), **at, **PLAIN | {"links": links})
    fraction = TRANSFER_FRACTION(transfer_s=time, prefill_s=prefill_s(course, model, tp))
    assert fraction == pytest.approx(figures[figure], rel=1e-4)


def test_small_messages_cost_more_than_bytes():
    """4.9 GB in 90,000 messages of 10 us each: the messages take 0.9 s, the bytes 0.1."""
    at = {"kv_bytes": 4.9e9, "link_bytes_s": 50e9, "links": 1, "link_efficiency": 1, "messages": 90_000}
    bytes_alone = LINK_TIME(message_overhead_s=0, **at)
    assert LINK_TIME(message_overhead_s=10e-6, **at) == pytest.approx(bytes_alone + 0.9, rel=1e-12)


links = {
    "kv_bytes": st.floats(1e5, 1e11), "link_bytes_s": st.floats(1e8, 1e12), "links": st.integers(1, 16),
    "link_efficiency": st.floats(0.1, 1), "messages": st.integers(0, 100_000), "message_overhead_s": st.floats(0, 1e-5),
}  # fmt: skip


@given(at=st.fixed_dictionaries(links), more=st.floats(1.01, 10))
def test_more_bandwidth_is_never_slower(at, more):
    slow, fast = (TRANSFER_TIME(latency_s=1e-6, **at | {"link_bytes_s": at["link_bytes_s"] * r}) for r in (1, more))
    assert fast < slow
    fixed = at["messages"] * at["message_overhead_s"] + 1e-6
    assert fast - fixed == pytest.approx((slow - fixed) / more, rel=1e-6, abs=1e-12)


@given(
    layers=st.integers(1, 120), compute=st.floats(1e-6, 1.0), transfer_time=st.floats(1e-6, 1.0),
    latency=st.floats(0, 1e-3),
)  # fmt: skip
def test_exposed_time_is_that_of_the_gantt_chart(layers, compute, transfer_time, latency):
    chart = gantt(layers, compute, transfer_time, latency)
    at = {"link_time_s": layers * transfer_time, "prefill_s": layers * compute, "layers": layers}
    exposed = EXPOSED_TIME(latency_s=latency, **at)
    assert exposed == pytest.approx(chart.exposed_s, rel=1e-9, abs=1e-12)
    at_end = layers * transfer_time + latency
    assert exposed <= at_end * (1 + 1e-12)
    assert exposed >= (transfer_time + latency) * (1 - 1e-12)
    if layers == 1:
        assert exposed == pytest.approx(at_end, rel=1e-12)
    assert EXPOSED_TIME(latency_s=latency, **at | {"prefill_s": 0.0}) == pytest.approx(at_end, rel=1e-9)


@given(st.lists(st.tuples(st.floats(1e-3, 1), st.floats(1e-3, 1)), min_size=1, max_size=40))
def test_gantt_is_the_recursion(pairs):
    compute, sent = np.array(pairs).T
    chart = gantt(len(pairs), compute, sent)
    free = 0.0
    for layer, done in enumerate(np.cumsum(compute)):
        start = max(free, done)
        free = start + sent[layer]
        assert chart.compute_end[layer] == pytest.approx(done)
        assert chart.transfer_start[layer] == pytest.approx(start)
        assert chart.transfer_end[layer] == pytest.approx(free)
    np.testing.assert_allclose(chart.compute_end - chart.compute_start, compute, rtol=1e-9)
    assert chart.exposed_s == pytest.approx(free - compute.sum(), abs=1e-12)


def test_exposed_time_derived_and_at_its_two_ends():
    steps = EXPOSED_TIME.steps
    assert steps[-1].equation.rhs == EXPOSED_TIME.expression
    c, s = steps[0].equation.lhs, steps[1].equation.lhs
    layers, latency = transfer.LAYERS.symbol, transfer.LATENCY.symbol
    parts = {c: steps[0].equation.rhs, s: steps[1].equation.rhs}
    for given_s in (sp.Rational(1, 2), sp.Rational(3)):  # a link faster and slower than the layers, which take 1
        at = {transfer.LINK_S.symbol: 8 * given_s, transfer.PREFILL.symbol: 8, layers: 8, latency: 0}
        end = steps[2].equation.rhs.subs(parts).subs(at)
        assert end - 8 == EXPOSED_TIME.expression.subs(at) == steps[3].equation.rhs.subs(parts).subs(at)


def test_link_is_md1():
    at = {"rate": 120, "link_time_s": 5.24288e-3}
    assert LINK_UTILIZATION(**at) == md1.UTILIZATION(rate=120, service_time=5.24288e-3)
    expected = md1.MEAN_TTFT(rate=120, service_time=5.24288e-3) + 5e-6
    assert LINK_MEAN_TRANSFER(latency_s=5e-6, **at) == pytest.approx(expected, rel=1e-13)
    p99 = 5e-6 + 5.24288e-3 * (1 + md1.wait_quantile(0.99, 120 * 5.24288e-3))
    assert transfer_quantile(0.99, 120, 5.24288e-3, 5e-6) == pytest.approx(p99, rel=1e-13)


@given(load=st.floats(0.01, 0.95), more=st.floats(1.01, 1.05), busy=st.floats(1e-6, 10))
@settings(deadline=None)
def test_a_busier_link_takes_longer(load, more, busy):
    for form in (LINK_MEAN_TRANSFER, LINK_SHARED_MEAN_TRANSFER):
        slow, slower = (form(rate=load * r / busy, link_time_s=busy, latency_s=0) for r in (1, more))
        assert busy < slow < slower
    in_turn = LINK_MEAN_TRANSFER(rate=load / busy, link_time_s=busy, latency_s=0)
    shared = LINK_SHARED_MEAN_TRANSFER(rate=load / busy, link_time_s=busy, latency_s=0)
    assert shared - busy == pytest.approx(2 * (in_turn - busy), rel=1e-6)  # twice the wait, for equal sizes


def test_saturated_link_is_a_sentence():
    for call in (
        lambda: LINK_MEAN_TRANSFER(rate=200, link_time_s=5.24e-3, latency_s=0),
        lambda: transfer_quantile(0.99, 200, 5.24e-3),
    ):
        with pytest.raises(DomainError, match="transfers pile up"):
            call()
    np.testing.assert_array_equal(np.isnan(transfer_quantile(0.9, np.array([100, 200]), 5.24e-3)), [False, True])


def test_domain_of_a_transfer():
    with pytest.raises(DomainError, match="at most 1"):
        TRANSFER_TIME(kv_bytes=1e6, link_bytes_s=1e9, latency_s=0, **PLAIN | {"link_efficiency": 1.2})
    with pytest.raises(DomainError, match="at least one link"):
        TRANSFER_TIME(kv_bytes=1e6, link_bytes_s=1e9, latency_s=0, **PLAIN | {"links": 0})
    with pytest.raises(DomainError, match="cannot be negative"):
        TRANSFER_TIME(kv_bytes=1e6, link_bytes_s=1e9, latency_s=-1e-6, **PLAIN)
