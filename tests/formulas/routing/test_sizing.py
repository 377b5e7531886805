import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulas.closed_form import DomainError
from formulas.queueing import md1
from formulas.queueing.many_servers import Constant, LognormalTimes, mdc
from formulas.routing import answer, instances_needed, needs_by_router


@given(st.floats(0.5, 200.0), st.floats(1.02, 4.0), st.sampled_from([0.5, 0.9, 0.99]))
@settings(max_examples=25)
def test_one_instance_fewer_misses_the_target(load, target, level):
    for router in ("random", "shared"):
        try:
            need = instances_needed(router, load, Constant(1.0), target, level)
        except DomainError as error:
            assert "more than 1024" in str(error)  # noqa: PT017 - a random split may need that many
            assert router == "random"
            continue
        assert need.reached_s <= target
        assert need.reached_s == need.answer.ttft[level]
        if need.instances > int(load) + 1:
            assert answer(router, load, Constant(1.0), need.instances - 1, (level,)).ttft[level] > target


def test_a_random_split_needs_its_largest_utilization():
    need = instances_needed("random", 10.0, Constant(0.5), 2.0, 0.99, "wait")
    utilization = md1.max_utilization(4.0, 0.99)
    assert need.instances == 9 == -(-5.0 // utilization)
    assert instances_needed("shared", 10.0, Constant(0.5), 2.0, 0.99, "wait").instances == 6


def test_what_a_router_saves():
    needs = {need.router: need for need in needs_by_router(
        50.0, LognormalTimes(0.1, 1.0), 0.8, routers=("random", "round_robin", "shared"))}  # fmt: skip
    assert needs["random"].instances > needs["round_robin"].instances > needs["shared"].instances
    assert all(need.reached_s <= 0.8 for need in needs.values())
    assert needs["round_robin"].answer.method == "numerical"


def test_the_shortest_queue_is_searched_both_ways():
    """Around the shared queue's need, from which its own search starts."""
    service = LognormalTimes(0.1, 1.0)
    need = instances_needed("shortest_queue", 50.0, service, 0.8, customers=40_000)
    assert need.answer.method == "simulation"
    assert need.reached_s <= 0.8
    if need.instances > 6:
        fewer = answer("shortest_queue", 50.0, service, need.instances - 1, (0.99,), customers=40_000)
        assert fewer.ttft[0.99] > 0.8


def test_a_quantile_of_zero_is_kept_by_the_stable_minimum_or_more():
    need = instances_needed("shared", 64.0 * 0.8, Constant(1.0), 0.05, 0.9, "wait")
    assert mdc.wait_quantile(0.9, need.instances, 51.2 / need.instances) <= 0.05


def test_outside_the_domain():
    with pytest.raises(DomainError, match="Too slow even unloaded"):
        instances_needed("shared", 1.0, Constant(0.5), 0.4)
    with pytest.raises(DomainError, match="Too slow even unloaded"):
        instances_needed("shared", 1.0, LognormalTimes(0.1, 1.0), 0.3)
    with pytest.raises(DomainError, match="more than 1024 instances"):
        instances_needed("random", 1000.0, Constant(0.5), 0.501)
    for rate, target in ((0.0, 1.0), (1.0, 0.0), (1.0, -1.0)):
        with pytest.raises(DomainError, match="above zero"):
            instances_needed("shared", rate, Constant(0.5), target)
