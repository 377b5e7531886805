import numpy as np
import pytest
import sympy as sp
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from formulas.closed_form import DomainError
from formulas.speculative import (
    BREAK_EVEN_VERIFY_COST,
    OPTIMAL_DRAFT_TOKENS,
    best_length,
    break_even_acceptance,
    optimal_draft_tokens,
    optimal_speedup,
    speculation_limit,
    speedup,
    speedup_by_length,
    tokens_per_round,
)
from formulas.speculative.length import OuterLambert

acceptances, draft_costs, verify_costs = st.floats(0.02, 0.98), st.floats(0.005, 1.5), st.floats(0.3, 6)
MANY = np.arange(1, 3000)


def test_published_optima(published):
    table = published["optimal"]
    found = optimal_draft_tokens(np.array(table["acceptance"]), np.array(table["draft_cost"])[:, np.newaxis])
    np.testing.assert_array_equal(found, table["draft_tokens"])


@given(alpha=acceptances, cost=draft_costs, verify=verify_costs)
def test_search_beside_the_closed_form_finds_the_best_of_all_lengths(alpha, cost, verify):
    gains = np.append(1.0, speedup(alpha, MANY, cost, verify))
    length = optimal_draft_tokens(alpha, cost, verify)
    reached = 1.0 if length == 0 else speedup(alpha, length, cost, verify)
    assert reached == pytest.approx(gains.max(), rel=1e-11)
    assert length <= np.argmax(gains)  # of two that are equal to rounding, the shorter
    assert optimal_speedup(alpha, cost, verify) == pytest.approx(reached, rel=1e-14)


@given(alpha=acceptances, cost=draft_costs, verify=verify_costs)
def test_the_speedup_has_one_peak(alpha, cost, verify):
    gains = speedup(alpha, np.arange(0, 400), cost, verify)
    rises = np.diff(gains) > 1e-12 * gains[1:]
    falls = np.diff(gains) < -1e-12 * gains[1:]
    assert not falls.any() or not rises[np.argmax(falls) :].any()


@given(alpha=acceptances, cost=draft_costs, verify=verify_costs)
def test_the_closed_form_is_where_the_derivative_vanishes(alpha, cost, verify):
    assume(cost < 0.95 * verify)
    found = OPTIMAL_DRAFT_TOKENS(acceptance=alpha, draft_cost=cost, verify_cost=verify)
    numeric = minimize_scalar(
        lambda g: -(1 - alpha ** (g + 1)) / (g * cost + verify), bounds=(-0.999, found + 50), method="bounded",
        options={"xatol": 1e-9},
    )  # fmt: skip
    assert found == pytest.approx(numeric.x, abs=2e-3 * (2 + found))


def test_the_slope_of_the_derivation_vanishes_at_the_closed_form():
    slope = OPTIMAL_DRAFT_TOKENS.steps[-4].equation
    at = {"acceptance": sp.Rational(4, 5), "draft_cost": sp.Rational(1, 10), "verify_cost": 1}
    best = OPTIMAL_DRAFT_TOKENS.exact(**at).evalf(40)
    values = {OPTIMAL_DRAFT_TOKENS.argument(name).symbol: x for name, x in at.items()}
    values[OPTIMAL_DRAFT_TOKENS.result.symbol] = best
    assert abs(sp.N((slope.lhs - slope.rhs).subs(values), 30)) < 1e-25


def test_the_slope_of_the_derivation_is_the_derivative():
    g = BREAK_EVEN_VERIFY_COST.argument("draft_tokens").symbol
    slope = OPTIMAL_DRAFT_TOKENS.steps[-4].equation
    gain = OPTIMAL_DRAFT_TOKENS.steps[-5].equation.rhs
    written = (slope.lhs - slope.rhs).subs(OPTIMAL_DRAFT_TOKENS.result.symbol, g)
    below = sp.fraction(gain)[1]
    assert sp.simplify(sp.diff(gain, g) * below**2 / (1 - _alpha()) - written) == 0


def _alpha():
    return OPTIMAL_DRAFT_TOKENS.argument("acceptance").symbol


@given(x=st.floats(0, 800))
def test_outer_branch_of_lambert(x):
    exact = OuterLambert(sp.Float(x, 40)).evalf(30) if x else sp.Integer(1)
    assert OuterLambert._imp_(x) == pytest.approx(float(exact), rel=1e-14)
    assert OuterLambert._imp_(x) >= 1


@pytest.mark.parametrize(("alpha", "cost", "length"), [
    (0.5, 0.5, 0),  # acceptance equal to the cost: nothing gained
    (0.8, 0.8, 0),
    (0.5, 0.2, 1),  # the second draft adds 0.25 tokens to 1.5 and 0.2 steps to 1.2: equal, so the shorter
    (0.50001, 0.2, 2),
    (0.0, 0.1, 0),
    (1.0, 1.0, 0),
    (1.0, 2.0, 0),
])  # fmt: skip
def test_ties_go_to_the_shorter_draft(alpha, cost, length):
    assert optimal_draft_tokens(alpha, cost) == length


def test_endless_drafts_need_a_limit():
    for alpha, cost in ((1.0, 0.1), (0.5, 0.0), (0.5, 5e-324)):
        with pytest.raises(DomainError, match="No draft is too long"):
            optimal_draft_tokens(alpha, cost)
        assert optimal_draft_tokens(alpha, cost, longest=32) == 32
    assert optimal_speedup(1.0, 0.1, longest=10) == pytest.approx(11 / 2)
    assert optimal_draft_tokens(0.0, 0.0, longest=32) == 0


@given(alpha=acceptances, cost=draft_costs, verify=verify_costs, longest=st.integers(1, 12))
def test_a_limit_cuts_the_best_length(alpha, cost, verify, longest):
    gains = np.append(1.0, speedup(alpha, np.arange(1, longest + 1), cost, verify))
    length = optimal_draft_tokens(alpha, cost, verify, longest)
    assert length <= longest
    assert gains[length] == pytest.approx(gains.max(), rel=1e-11)


@given(alpha=acceptances, cost=draft_costs)
def test_with_a_plain_verification_speculation_pays_if_acceptance_exceeds_the_cost(alpha, cost):
    assume(abs(alpha - cost) > 1e-9)
    assert (optimal_draft_tokens(alpha, cost) > 0) == (alpha > cost)


@given(alpha=acceptances, cost=draft_costs)
def test_the_limit_of_the_verification_separates(alpha, cost):
    limit = speculation_limit(alpha, cost)
    assert limit >= 1
    assert optimal_draft_tokens(alpha, cost, limit * (1 + 1e-9)) == 0
    if limit > 1:
        assert optimal_draft_tokens(alpha, cost, limit * (1 - 1e-9)) > 0
    best = max(1.0, *(tokens_per_round(alpha, MANY) - cost * MANY))
    assert limit == pytest.approx(best, rel=1e-12)


def test_limit_for_one_length():
    limit = BREAK_EVEN_VERIFY_COST(acceptance=0.8, draft_tokens=4, draft_cost=0.1)
    assert speedup(0.8, 4, 0.1, limit) == pytest.approx(1, rel=1e-14)
    with pytest.raises(DomainError, match="No draft is too long"):
        speculation_limit(1.0, 0.1)
    np.testing.assert_allclose(speculation_limit(np.array([0.8, 0.05]), 0.1), [3.5705032704, 1.0])


@given(gamma=st.integers(1, 50), cost=draft_costs, verify=verify_costs)
def test_acceptance_that_breaks_even(gamma, cost, verify):
    found = break_even_acceptance(gamma, cost, verify)
    price = gamma * cost + verify
    if found is None:
        assert speedup(1.0, gamma, cost, verify) < 1
    elif found == 0:
        assert price <= 1
    else:
        assert tokens_per_round(found, gamma) == pytest.approx(price, rel=1e-12)


def test_any_shape_of_tokens_and_verification():
    gamma = np.arange(9)
    gains = speedup_by_length(tokens_per_round(0.8, gamma), 0.1, 1.0)
    np.testing.assert_allclose(gains, speedup(0.8, gamma, 0.1), rtol=1e-14)
    assert best_length(gains) == optimal_draft_tokens(0.8, 0.1)
    growing = speedup_by_length(tokens_per_round(0.8, gamma), 0.1, 1 + 0.3 * gamma)
    assert best_length(growing) < best_length(gains)
    both = best_length(np.stack((gains, growing)))
    np.testing.assert_array_equal(both, [best_length(gains), best_length(growing)])


def test_of_no_draft_the_speedup_is_one_whatever_a_verification_costs():
    assert speedup_by_length([1.0, 1.5], 0.1, 3.0)[0] == 1


@pytest.mark.parametrize(("given", "sentence"), [
    ({"acceptance": 0, "draft_cost": 0.1, "verify_cost": 1}, "never accepted"),
    ({"acceptance": 1, "draft_cost": 0.1, "verify_cost": 1}, "too long"),
    ({"acceptance": 0.5, "draft_cost": 0, "verify_cost": 1}, "too long"),
    ({"acceptance": 0.5, "draft_cost": 2, "verify_cost": 1}, "costs more"),
])  # fmt: skip
def test_closed_form_says_why_it_has_no_value(given, sentence):
    with pytest.raises(DomainError, match=sentence):
        OPTIMAL_DRAFT_TOKENS(**given)
