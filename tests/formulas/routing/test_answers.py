import pytest

from formulas.closed_form import DomainError
from formulas.montecarlo.routers import ROUTERS
from formulas.queueing import md1
from formulas.queueing.many_servers import Constant, LognormalTimes, ObservedTimes, mdc
from formulas.routing import answer, compare_routers


@pytest.fixture(scope="module")
def equal():
    return {found.router: found for found in compare_routers(6.4, Constant(1.0), 8, customers=60_000)}


@pytest.fixture(scope="module")
def spread():
    return {found.router: found for found in compare_routers(6.4, LognormalTimes(1.0, 2.0), 8, customers=100_000)}


def test_every_router_is_answered_with_method_and_error(equal, spread):
    assert set(equal) == set(spread) == set(ROUTERS)
    for found in (*equal.values(), *spread.values()):
        assert found.error.endswith(".")
        assert set(found.wait) == set(found.ttft) == {0.5, 0.9, 0.99}
        assert found.utilization == pytest.approx(0.8)
        assert found.mean_ttft == pytest.approx(found.mean_wait + 1.0)
    methods = {"random": "exact", "round_robin": "exact", "least_work": "exact", "shared": "exact"}
    assert {router: found.method for router, found in equal.items() if router in methods} == methods
    methods = {"random": "numerical", "round_robin": "numerical", "least_work": "approximation",
               "shared": "approximation", "shortest_queue": "simulation", "shortest_of_two": "simulation"}  # fmt: skip
    assert {router: found.method for router, found in spread.items()} == methods


def test_equal_prompts_are_exact(equal):
    assert equal["random"].wait[0.99] == pytest.approx(md1.wait_quantile(0.99, 0.8), rel=1e-9)
    assert equal["shared"].wait[0.99] == pytest.approx(1.1695954587521224, rel=1e-9)
    assert equal["round_robin"].wait == equal["shared"].wait
    assert equal["shared"].ttft[0.99] == equal["shared"].wait[0.99] + 1.0
    assert equal["shared"].mean_wait == mdc.mean_wait(8, 0.8)


def test_order_of_the_routers(equal, spread):
    """Round robin is the best for equal prompts, and nearly the worst for spread ones."""
    for waits in ({r: f.mean_wait for r, f in equal.items()}, {r: f.wait[0.99] for r, f in equal.items()}):
        assert waits["round_robin"] < waits["shortest_queue"] < waits["shortest_of_two"] < waits["random"]
    for waits in ({r: f.mean_wait for r, f in spread.items()}, {r: f.wait[0.99] for r, f in spread.items()}):
        assert waits["shared"] < waits["shortest_queue"] < waits["shortest_of_two"] < waits["round_robin"]
        assert waits["round_robin"] < waits["random"]


def test_figures_of_the_reference(spread):
    """P99 at 8 instances, utilization 0.8 and a cv of 2, by 8 million simulated prompts each."""
    assert spread["round_robin"].wait[0.99] == pytest.approx(66.2, rel=0.03)
    assert spread["random"].wait[0.99] == pytest.approx(74.0755, rel=1e-5)
    assert spread["shared"].wait[0.99] == pytest.approx(5.78, rel=0.23)
    assert (
        spread["shortest_queue"].intervals["wait P99"].low < 11.9 < spread["shortest_queue"].intervals["wait P99"].high
    )


def test_a_simulation_brings_its_intervals(spread):
    found = spread["shortest_queue"]
    assert set(found.intervals) == {f"{w} {n}" for w in ("wait", "ttft") for n in ("mean", "P50", "P90", "P99")}
    assert found.intervals["ttft P99"].estimate == found.ttft[0.99]
    assert found.error.startswith("Simulation of 100,000 prompts: mean ± ")
    assert spread["shared"].intervals == {}


def test_one_instance_needs_no_router():
    answers = compare_routers(0.7, LognormalTimes(1.0, 1.0), 1)
    assert {found.method for found in answers} == {"numerical"}
    assert {round(found.mean_wait, 9) for found in answers} == {round(answers[0].mean_wait, 9)}
    assert answers[0].mean_wait == pytest.approx(0.7 * 2 / 2 / 0.3, rel=1e-6)


def test_units_are_seconds():
    found = answer("shared", 64.0, Constant(0.1), 8)
    assert found.mean_wait == pytest.approx(0.1 * mdc.mean_wait(8, 0.8), rel=1e-12)
    assert found.ttft[0.99] == pytest.approx(0.1 + 0.11695954587521224, rel=1e-9)


def test_spread_beyond_what_was_measured_says_so():
    service = ObservedTimes([0.1] * 99 + [5.0])
    assert "not measured" in answer("shared", 10.0, service, 4).error


def test_outside_the_domain():
    with pytest.raises(DomainError, match="no steady state"):
        answer("shared", 8.0, Constant(1.0), 8)
    with pytest.raises(DomainError, match="rate is above zero"):
        answer("shared", 0.0, Constant(1.0), 8)
    with pytest.raises(DomainError, match="whole number"):
        answer("shared", 1.0, Constant(1.0), 2.5)
    with pytest.raises(DomainError, match="lies between"):
        answer("round_robin", 1.0, LognormalTimes(1.0, 1.0), 2, levels=(1.0,))
