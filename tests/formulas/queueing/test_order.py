import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from formulas.closed_form import DomainError
from formulas.montecarlo.confidence import mean_interval
from formulas.montecarlo.lindley import simulate_waits
from formulas.montecarlo.priority import simulate_priority
from formulas.queueing import mg1, order
from formulas.queueing.service import (
    GammaLengths,
    ListedLengths,
    LognormalLengths,
    UniformLengths,
    equal_service,
    mixed_service,
    service_law,
)

LAWS = {
    "log-normal": service_law(LognormalLengths(1.0, 1.0), lambda x: x),
    "floor": service_law(GammaLengths(1.0, 1.0), lambda x: np.maximum(0.4, x)),
    "two": service_law(ListedLengths([0.5, 5.0], [0.9, 0.1]), lambda x: x),
    "mixed": mixed_service([equal_service(0.3), service_law(UniformLengths(0.1, 3.0), lambda x: x)], [0.5, 0.5]),
}
EACH = pytest.mark.parametrize("name", LAWS)


def halves(law, rate):
    """The law cut at its median into two classes."""
    median = law.quantile(0.5)
    values, weights = law.all_values, law.all_weights
    parts = [ListedLengths(values[keep], weights[keep]) for keep in (values <= median, values > median)]
    return [rate * float(weights[keep].sum()) for keep in (values <= median, values > median)], [
        service_law(part, lambda x: x) for part in parts
    ]


@pytest.mark.parametrize("index", range(3))
def test_reference_values(single_server, index):
    case = single_server["sjf_priority"][index]
    law, rate = service_law(LognormalLengths(1.0, case["cv"]), lambda x: x), case["utilization"]
    assert order.shortest_first_mean_wait(rate, law) == pytest.approx(case["shortest_first_mean"], rel=1e-10)
    value, error = case["simulated"]["shortest_first"]["mean"]
    assert abs(order.shortest_first_mean_wait(rate, law) - value) < 4 * error
    waits = order.priority_mean_waits(*halves(law, rate))
    np.testing.assert_allclose(waits, case["halves_first_mean"], rtol=1e-3)  # the median falls between two nodes


@EACH
def test_one_class_is_first_come_first_served(name):
    law = LAWS[name]
    rate = 0.8 / law.mean
    assert order.priority_mean_waits([rate], [law])[0] == pytest.approx(mg1.mean_wait(rate, law), rel=1e-12)


@given(loads=st.lists(st.floats(0.01, 0.3), min_size=1, max_size=6), cv=st.floats(0.1, 2.0))
@settings(max_examples=40, deadline=None)
def test_work_is_conserved(loads, cv):
    """Kleinrock's conservation law: the order moves waiting from one class to another, weighted by the loads."""
    loads = np.array(loads) / max(1.0, 1.05 * sum(loads))
    laws = [service_law(GammaLengths(1.0 + k, cv), lambda x: x) for k in range(len(loads))]
    rates = loads / [law.mean for law in laws]
    waits = order.priority_mean_waits(rates, laws)
    alike = sum(rate * law.second_moment for rate, law in zip(rates, laws, strict=True)) / 2 / (1 - loads.sum())
    assert loads @ waits == pytest.approx(loads.sum() * alike, rel=1e-10)
    assert np.all(np.diff(waits) >= 0)


@EACH
def test_shortest_first_conserves_work_too(name):
    law = LAWS[name]
    rate = 0.7 / law.mean
    waits = order.shortest_first_wait(law.all_values[::40], rate, law)
    assert np.all(np.diff(waits) >= -1e-12)
    fcfs = mg1.mean_wait(rate, law)
    everyone = order.shortest_first_wait(law.all_values, rate, law) if len(law.all_values) < 5 else None
    if everyone is not None:
        assert law.all_weights * law.all_values @ everyone == pytest.approx(law.mean * fcfs, rel=1e-12)
    assert order.shortest_first_mean_wait(rate, law) <= fcfs


@EACH
def test_mean_over_all_prompts_is_the_mean_over_lengths(name):
    law = LAWS[name]
    rate = 0.85 / law.mean
    levels = (np.arange(100) + 0.5) / 100
    waits = order.shortest_first_wait(law.quantile(levels), rate, law)
    assert order.shortest_first_mean_wait(rate, law) == pytest.approx(waits.mean(), rel=0.05)


@EACH
def test_shortest_first_agrees_with_its_simulation(name):
    law, load, customers = LAWS[name], 0.7, 60_000
    rng = np.random.default_rng(12)
    gaps, times = rng.exponential(law.mean / load, customers), law.draw(customers, rng)
    waits = simulate_priority(gaps, times, times)[1000:]
    rate = load / law.mean
    assert mean_interval(waits, 0.9999).contains(order.shortest_first_mean_wait(rate, law))
    low, high = law.quantile(0.8), law.quantile(0.9)
    band = (times[1000:] >= low) & (times[1000:] <= high)
    ends = order.shortest_first_wait(np.array([low, high]), rate, law)
    interval = mean_interval(waits[band], 0.9999)
    assert interval.low <= ends[1]
    assert interval.high >= ends[0]


def test_classes_agree_with_their_simulation():
    laws = [equal_service(0.5), service_law(GammaLengths(1.0, 1.0), lambda x: x), equal_service(2.0)]
    rates = np.array([0.4, 0.3, 0.12])
    rng = np.random.default_rng(5)
    customers = 80_000
    classes = rng.choice(3, customers, p=rates / rates.sum())
    times = np.choose(classes, [law.draw(customers, rng) for law in laws])
    waits = simulate_priority(rng.exponential(1 / rates.sum(), customers), times, classes)
    for index, exact in enumerate(order.priority_mean_waits(rates, laws)):
        assert mean_interval(waits[classes == index][500:], 0.9999).contains(exact)


def test_in_overload_the_first_classes_are_still_served():
    laws = [equal_service(0.5), equal_service(1.0), equal_service(2.0)]
    rates = [0.6, 0.4, 0.5]
    waits = order.priority_mean_waits(rates, laws)
    np.testing.assert_array_equal(np.isnan(waits), [False, False, True])
    rng = np.random.default_rng(8)
    customers = 60_000
    classes = rng.choice(3, customers, p=np.array(rates) / 1.5)
    times = np.array([0.5, 1.0, 2.0])[classes]
    found = simulate_priority(rng.exponential(1 / 1.5, customers), times, classes)[:40_000]
    for index in (0, 1):
        assert mean_interval(found[classes[:40_000] == index][2000:], 0.9999).contains(waits[index])


def test_in_overload_the_shortest_are_still_served():
    law = LAWS["log-normal"]
    assert np.isnan(order.shortest_first_wait(5.0, 1.5, law))
    rng = np.random.default_rng(3)
    times = law.draw(60_000, rng)
    waits = simulate_priority(rng.exponential(1 / 1.5, 60_000), times, times)[5_000:30_000]
    band = (times[5_000:30_000] > 0.4) & (times[5_000:30_000] < 0.5)
    interval = mean_interval(waits[band], 0.9999)
    low, high = order.shortest_first_wait(np.array([0.4, 0.5]), 1.5, law)
    assert interval.low <= high
    assert interval.high >= low


def test_a_long_prompt_delays_those_behind_it():
    """Two runs that differ in one prompt; the difference is the convoy, on average over its moment."""
    rate, long, law = 0.7, 8.0, service_law(GammaLengths(1.0, 1.0), lambda x: x)
    rng = np.random.default_rng(3)
    gaps, times = rng.exponential(1 / rate, (1500, 1200)), law.draw(1_800_000, rng).reshape(1500, 1200)
    times[:, 300] = 0.0
    without = simulate_waits(gaps, times)
    times[:, 300] = long
    extra = (simulate_waits(gaps, times) - without)[:, 301:]
    at = {"rate": rate, "long_service": long, "mean_wait": mg1.mean_wait(rate, law), "utilization": rate}
    total, affected = order.CONVOY_TOTAL(**at), order.CONVOY_AFFECTED(**at)
    for value, sample in ((total, extra.sum(axis=1)), (affected, (extra > 1e-9).sum(axis=1))):
        assert abs(sample.mean() - value) < 4 * sample.std() / np.sqrt(len(sample))
    mean = order.CONVOY_EXTRA_WAIT(long_service=long, mean_wait=at["mean_wait"])
    assert mean == pytest.approx(total / affected, rel=1e-12)
    assert long / 2 < mean < long


def test_derivations_end_at_the_formulas():
    before, lone, last = (step.equation for step in order.COBHAM_WAIT.steps)
    earlier = sp.solve(lone, lone.lhs)[0]
    wait = order.COBHAM_WAIT.result.symbol
    solved = sp.solve(before.subs(lone.lhs, earlier), wait)[0]
    assert sp.simplify(solved - last.rhs) == 0
    assert sp.simplify(order.CONVOY_TOTAL.steps[-1].equation.rhs - order.CONVOY_TOTAL.expression) == 0


def test_outside_the_domain():
    law = LAWS["two"]
    with pytest.raises(DomainError, match="no steady state"):
        order.shortest_first_mean_wait(1 / law.mean, law)
    with pytest.raises(DomainError, match="cannot be negative"):
        order.shortest_first_wait(1.0, -1.0, law)
    with pytest.raises(DomainError, match="Each class"):
        order.priority_mean_waits([0.1, 0.2], [law])
    with pytest.raises(DomainError, match="Starved"):
        order.COBHAM_WAIT(residual_work=1.0, load_before=0.5, load_with=1.0)


def test_priority_by_hand():
    waits = simulate_priority([0.0, 0.0, 0.0, 0.0], [1.0, 2.0, 1.0, 3.0], [2, 1, 0, 1])
    np.testing.assert_allclose(waits, [6.0, 1.0, 0.0, 3.0])
