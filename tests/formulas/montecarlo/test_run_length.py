import numpy as np
import pytest
import sympy as sp

from formulas.montecarlo import run_length as rl
from formulas.montecarlo.lindley import md1_waits
from formulas.queueing import md1
from formulas.queueing import pollaczek_khinchine as pk


def test_potential_solves_poissons_equation_for_any_service_time():
    """-g'(x) + R E[g(x + S) - g(x)] = E[W] - x, with g(x) = x^2 / (2(1 - rho)) and E[W] from the formula."""
    x, rate = sp.symbols("x rate", positive=True)
    m1, m2 = pk.MEAN_SERVICE.symbol, pk.SECOND_MOMENT.symbol
    scale = 1 / (2 * (1 - rate * m1))
    drift = -2 * x * scale + rate * scale * (2 * x * m1 + m2)
    assert sp.simplify(drift - (pk.MEAN_WAIT.expression - x)) == 0


def test_derivation_reaches_the_variance():
    innovation = rl.ASYMPTOTIC_VARIANCE.steps[2].equation
    x, rho = rl.WORK.symbol, md1.UTILIZATION.expression
    assert sp.simplify(innovation - x / (1 - rho)) == 0
    squared = md1.WAIT_SECOND_MOMENT.expression / (1 - rho) ** 2
    assert sp.simplify(rl.ASYMPTOTIC_VARIANCE.expression - squared) == 0


def test_run_length_is_the_variance_over_the_squared_mean():
    share = rl.ASYMPTOTIC_VARIANCE.expression / md1.MEAN_WAIT.expression**2
    unit = share.subs({md1.RATE.symbol: md1.RHO.symbol, md1.SERVICE.symbol: 1})
    z, r = rl.NORMAL.symbol, rl.HALF_WIDTH.symbol
    assert sp.simplify(rl.RUN_LENGTH.expression - z**2 * unit / r**2) == 0
    heavy = sp.limit(unit * (1 - md1.RHO.symbol) ** 2, md1.RHO.symbol, 1)
    assert heavy == 2


@pytest.mark.parametrize(("load", "customers"), [(0.3, 3_000), (0.6, 6_000), (0.8, 12_000)])
def test_simulated_variance_of_the_mean(load, customers):
    """Four standard errors of the simulated variance, and the share 2 m / n that a finite run leaves out."""
    skipped = rl.warm_up(load)
    waits = md1_waits(load, skipped + customers, 5, replicas=800)[:, skipped:]
    one = {"rate": load, "service_time": 1.0}
    squares = customers * (waits.mean(axis=1) - md1.MEAN_WAIT(**one)) ** 2
    exact = rl.ASYMPTOTIC_VARIANCE(**one)
    finite = exact * 2 * rl.RELAXATION_CUSTOMERS(utilization=load) / customers
    assert abs(squares.mean() - exact) < 4 * squares.std() / np.sqrt(len(squares)) + finite


@pytest.mark.parametrize(("load", "customers"), [(0.3, 60), (0.6, 200), (0.8, 800)])
def test_simulated_deficit_of_an_empty_start(load, customers):
    """The paths' noise is reduced by regression on sums of their own gaps, whose means are known."""
    gaps = np.random.default_rng(6).standard_exponential((20_000, customers))
    walk = np.cumsum(1.0 - gaps[:, :-1] / load, axis=1)
    walk = np.concatenate([np.zeros((len(gaps), 1)), walk], axis=1)
    waits = walk - np.minimum.accumulate(walk, axis=1)
    one = {"rate": load, "service_time": 1.0}
    missed = (md1.MEAN_WAIT(**one) - waits).sum(axis=1)
    time = np.arange(customers) / customers
    controls = np.stack([(gaps - 1).sum(axis=1), ((gaps - 1) * time).sum(axis=1), ((gaps - 1) ** 2 - 1).sum(axis=1)], 1)
    design = np.column_stack([np.ones(len(missed)), controls])
    fit, *_ = np.linalg.lstsq(design, missed, rcond=None)
    error = (missed - design @ fit).std() / np.sqrt(len(missed))
    assert abs(fit[0] - rl.START_DEFICIT(**one)) < 4 * error


def test_customers_needed():
    assert rl.customers_needed(0.9, 0.01) == pytest.approx(8.25e6, rel=1e-3)
    assert isinstance(rl.customers_needed(0.9, 0.01), int)
    many = rl.customers_needed(np.array([0.5, 0.9]), 0.01)
    assert many[1] == rl.customers_needed(0.9, 0.01)
    assert rl.customers_needed(0.9, 0.01, 0.99) > rl.customers_needed(0.9, 0.01)


def test_warm_up_grows_like_the_relaxation_time():
    assert rl.warm_up(0.99) == pytest.approx(20 / 0.01**2, rel=0.02)
    assert rl.warm_up(0.1) < 10


def test_derivations_end_at_the_formula():
    for form in (rl.ASYMPTOTIC_VARIANCE, rl.START_DEFICIT, rl.RUN_LENGTH, rl.RELAXATION_CUSTOMERS):
        assert form.steps[-1].equation.rhs == form.expression


def test_relaxation_exponent_is_the_least():
    rho, s = md1.RHO.symbol, sp.Symbol("s", positive=True)
    exponent = rl.RELAXATION_CUSTOMERS.steps[0].equation
    assert sp.simplify(sp.diff(exponent, s).subs(s, -sp.log(rho))) == 0
    rate = rl.RELAXATION_CUSTOMERS.steps[1].equation
    assert sp.simplify(rl.RELAXATION_CUSTOMERS.expression + rho / rate) == 0
