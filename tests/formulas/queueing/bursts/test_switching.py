import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm

from formulas.closed_form import DomainError
from formulas.queueing import md1
from formulas.queueing.bursts import (
    SWITCHING_DISPERSION,
    SWITCHING_MEAN_WAIT,
    Switching,
    burst_process,
    switching_mean_wait,
    switching_wait_quantile,
    switching_wait_survival,
)
from formulas.queueing.bursts.switching_queue import SwitchingQueue

LEVELS = np.array([0.5, 0.9, 0.99])
rates = st.floats(0.0, 3.0)
leaves = st.floats(0.01, 5.0)


def stable(first, second, leave_first, leave_second, load):
    process = Switching(first, second + 0.01, leave_first, leave_second)
    return process.scaled(load / process.mean_rate)


def by_iteration(process, steps=1200):
    """State of an idle server, and mean wait, by the matrix equation of Lucantoni (1991) with unit service."""
    q = np.array([[-process.leave_first, process.leave_first], [process.leave_second, -process.leave_second]])
    arrivals = np.diag([process.first_rate, process.second_rate])
    g = np.eye(2)
    for _ in range(steps):
        before, g = g, expm(q - arrivals + arrivals @ g)
        if np.abs(g - before).max() < 1e-15:
            break
    states = np.array([process.leave_second, process.leave_first]) / (process.leave_first + process.leave_second)
    idle = np.linalg.solve(np.vstack([(g.T - np.eye(2))[0], np.ones(2)]), [0.0, 1.0])
    rho, rate = process.mean_rate, arrivals.diagonal()
    inner = np.linalg.solve(q + np.outer(np.ones(2), states), rate)
    virtual = (2 * rho + rho - 2 * ((1 - rho) * idle + states @ arrivals) @ inner) / 2 / (1 - rho)
    return idle[0], (virtual - rho / 2) / rho


@pytest.mark.parametrize("index", range(2))
def test_reference_values(single_server, index):
    case = single_server["mmpp2_d1"][index]
    process = Switching(*case["rates"], *case["switching"])
    assert switching_mean_wait(process, 1.0) == pytest.approx(case["mean_wait"], rel=1e-12)
    assert process.dispersion() == pytest.approx(case["dispersion"], rel=1e-12)
    for name, level in (("p90", 0.9), ("p99", 0.99)):
        value, error = case["simulated"][name]
        assert abs(switching_wait_quantile(level, process, 1.0) - value) < 4 * error


@pytest.mark.parametrize(
    "process", [Switching(0.2, 1.4, 0.05, 0.1), Switching(1.2, 0.0, 0.7, 0.9), Switching(0.4, 8.0, 0.1, 4.0)]
)
def test_idle_state_and_mean_are_those_of_the_matrix_equation(process):
    idle, mean = by_iteration(process)
    assert SwitchingQueue(process, 1.0).idle_first == pytest.approx(idle, rel=1e-10)
    assert switching_mean_wait(process, 1.0) == pytest.approx(mean, rel=1e-9)


@pytest.mark.parametrize("rho", [0.1, 0.5, 0.9, 0.99])
def test_equal_states_are_md1(rho):
    process = Switching(rho, rho, 0.3, 0.1)
    assert switching_mean_wait(process, 1.0) == pytest.approx(md1.MEAN_WAIT(rate=rho, service_time=1.0), rel=1e-12)
    assert process.dispersion(3.0) == 1.0
    exact = md1.wait_quantile(LEVELS, rho)
    np.testing.assert_allclose(switching_wait_quantile(LEVELS, process, 1.0), exact, rtol=2e-9, atol=1e-13)
    t = np.array([0.0, 0.4, 1.0, 1.01, 2.0, 3.3, 9.1])
    np.testing.assert_allclose(switching_wait_survival(t, process, 1.0), md1.wait_survival(t, rho), atol=1e-9)


@given(first=rates, second=rates, leave_first=leaves, leave_second=leaves, load=st.floats(0.05, 0.97))
@settings(max_examples=50, deadline=None)
def test_the_names_of_the_states_do_not_matter(first, second, leave_first, leave_second, load):
    a = stable(first, second, leave_first, leave_second, load)
    b = Switching(a.second_rate, a.first_rate, a.leave_second, a.leave_first)
    assert switching_mean_wait(a, 1.0) == pytest.approx(switching_mean_wait(b, 1.0), rel=1e-8)
    assert SwitchingQueue(a, 1.0).idle_first == pytest.approx(1 - SwitchingQueue(b, 1.0).idle_first, abs=1e-9)
    assert switching_wait_survival(0.7, a, 1.0) == pytest.approx(switching_wait_survival(0.7, b, 1.0), abs=1e-8)


@given(first=rates, second=rates, leave_first=leaves, leave_second=leaves, load=st.floats(0.05, 0.97))
@settings(max_examples=40, deadline=None)
def test_correlated_arrivals_wait_longer_than_poisson_ones(first, second, leave_first, leave_second, load):
    process = stable(first, second, leave_first, leave_second, load)
    poisson = md1.MEAN_WAIT(rate=load, service_time=1.0)
    assert switching_mean_wait(process, 1.0) >= poisson * (1 - 1e-9)
    survival = switching_wait_survival(np.array([0.0, 0.5, 1.0, 2.5, 8.0]), process, 1.0)
    assert np.all((survival >= 0) & (survival <= 1))
    assert np.all(np.diff(survival) <= 1e-9)


@given(load=st.floats(0.1, 0.9), ratio=st.floats(1.0, 20.0), share=st.floats(0.05, 0.6), spell=st.floats(0.5, 50.0))
@settings(max_examples=30, deadline=None)
def test_quantile_and_survival_go_together(load, ratio, share, spell):
    process = burst_process(load / 0.05, ratio, share, 0.05 * spell)
    assert process.mean_rate == pytest.approx(load / 0.05, rel=1e-12)
    for level in (0.6, 0.95):
        wait = switching_wait_quantile(level, process, 0.05)
        late = switching_wait_survival(wait, process, 0.05)
        assert late == pytest.approx(1 - level, rel=1e-6) if wait > 0 else late <= 1 - level + 1e-9


def test_survivals_add_up_to_the_mean():
    process = Switching(0.2, 1.4, 0.05, 0.1)
    nodes, weights = np.polynomial.legendre.leggauss(10)
    edges = np.unique(np.concatenate([np.arange(0.0, 6.0), np.geomspace(5.0, 300.0, 25)]))
    half = np.diff(edges)[:, None] / 2
    area = (half * weights * switching_wait_survival(edges[:-1, None] + half * (1 + nodes), process, 1.0)).sum()
    assert area == pytest.approx(switching_mean_wait(process, 1.0), rel=1e-7)


def test_fast_changes_are_poisson_and_slow_ones_are_not():
    fast, slow = (burst_process(0.5, 8.0, 0.25, spell) for spell in (1e-4, 30.0))
    assert switching_mean_wait(fast, 1.0) == pytest.approx(0.5, rel=1e-3)
    assert switching_mean_wait(slow, 1.0) > 10


def test_dispersion_starts_at_one_and_grows_to_its_limit():
    process = Switching(0.1, 2.0, 0.01, 0.02)
    windows = np.geomspace(1e-3, 1e6, 30)
    found = np.array([process.dispersion(float(w)) for w in windows])
    assert found[0] == pytest.approx(1.0, abs=2e-3)
    assert np.all(np.diff(found) > 0)
    assert found[-1] == pytest.approx(process.dispersion(), rel=1e-3)


def test_dispersion_is_its_integral():
    last, before = SWITCHING_DISPERSION.steps[-1].equation.rhs, SWITCHING_DISPERSION.steps[-2].equation.rhs
    rate = SWITCHING_DISPERSION.steps[0].equation
    assert sp.simplify(before.doit().subs(rate.lhs, rate.rhs) - last) == 0


def test_mean_wait_is_the_slope_of_the_transform():
    """From the first two orders of numerator and denominator, as the derivation says."""
    numerator, denominator = (step.equation for step in SWITCHING_MEAN_WAIT.steps[1:3])
    s, rate = sp.Symbol("s", positive=True), sp.Symbol("mean_rate", positive=True)
    service = sp.Symbol("service_time", positive=True)
    transform = s * (1 - rate * service) * numerator / (rate * denominator)
    slope = -sp.diff(sp.cancel(transform), s).subs(s, 0)
    at = {
        "first_rate": 0.2,
        "second_rate": 1.4,
        "leave_first": 0.05,
        "leave_second": 0.1,
        "idle_first": 0.9,
        "service_time": 0.5,
    }
    values = {symbol: at[symbol.name] for symbol in SWITCHING_MEAN_WAIT.expression.free_symbols}
    mean_rate = (0.1 * 0.2 + 0.05 * 1.4) / 0.15
    assert float(slope.subs(rate, mean_rate).subs(values)) == pytest.approx(SWITCHING_MEAN_WAIT(**at), rel=1e-9)


def test_outside_the_domain():
    for wrong in ((0.0, 0.0, 1.0, 1.0), (1.0, 1.0, 0.0, 1.0), (-1.0, 1.0, 1.0, 1.0)):
        with pytest.raises(DomainError, match="Rates are not negative"):
            Switching(*wrong)
    with pytest.raises(DomainError, match="busy spell"):
        burst_process(1.0, 0.5, 0.5, 1.0)
    with pytest.raises(DomainError, match="no steady state"):
        switching_mean_wait(Switching(1.0, 1.0, 1.0, 1.0), 1.0)
    with pytest.raises(DomainError, match="service time"):
        switching_mean_wait(Switching(1.0, 1.0, 1.0, 1.0), 0.0)
    with pytest.raises(DomainError, match="lies between"):
        switching_wait_quantile(1.0, Switching(0.1, 1.0, 1.0, 1.0), 0.5)
    assert switching_wait_survival(-1.0, Switching(0.1, 1.0, 1.0, 1.0), 0.5) == 1.0
