import pytest

from formulas.montecarlo.routing_check import check_routing, routed_relaxation
from formulas.queueing.many_servers import Constant, LognormalTimes, mdc, own_queue_laws

ALL_INSIDE = dict.fromkeys(["mean", "P50", "P90", "P99"], "inside")


@pytest.mark.parametrize("router", ["random", "round_robin", "shared", "least_work"])
def test_equal_prompts_agree_with_the_closed_forms(router):
    check = check_routing(router, Constant(0.25), 4, 0.7, customers=300_000, level=0.999, seed=5)
    assert {row.name: row.verdict for row in check.rows} == ALL_INSIDE
    together = 1 if router == "random" else 4
    assert check.rows[0].exact == pytest.approx(0.25 * mdc.mean_wait(together, 0.7), rel=1e-12)
    assert check.rows[3].exact == pytest.approx(0.25 * mdc.wait_quantile(0.99, together, 0.7), rel=1e-9)


def test_mean_of_unequal_prompts_at_random():
    check = check_routing("random", LognormalTimes(0.25, 0.7), 4, 0.6, customers=300_000, level=0.999, seed=6)
    assert [(row.name, row.verdict) for row in check.rows] == [("mean", "inside")]


def test_round_robin_with_unequal_prompts_agrees_with_the_lattice():
    service = LognormalTimes(0.25, 0.7)
    check = check_routing("round_robin", service, 4, 0.6, customers=300_000, level=0.999, seed=7)
    assert check.rows == ()
    wait = own_queue_laws(service, 0.6, 4).wait
    assert check.simulated["mean"].contains(wait.mean)
    for name, level in (("P90", 0.9), ("P99", 0.99)):
        assert check.simulated[name].contains(wait.quantile(level))


def test_shortest_queue_has_intervals_only():
    check = check_routing("shortest_queue", Constant(1.0), 8, 0.8, customers=60_000)
    assert check.rows == ()
    assert check.simulated["mean"].low > mdc.mean_wait(8, 0.8)


def test_a_short_run_says_so():
    check = check_routing("shared", Constant(1.0), 8, 0.99, customers=20_000)
    assert {row.verdict for row in check.rows} == {"run too short"}
    assert check.warm_up == 10_000


def test_relaxation_counts_the_customers_of_all_servers():
    shared = routed_relaxation("shared", 1.0, 8, 0.9)
    assert routed_relaxation("random", 1.0, 8, 0.9) == pytest.approx(8 * (shared - 8) + 8)
    assert shared < routed_relaxation("round_robin", 1.0, 8, 0.9) < routed_relaxation("random", 1.0, 8, 0.9)
    assert routed_relaxation("round_robin", 0.0, 8, 0.9) == routed_relaxation("shared", 0.0, 8, 0.9)
