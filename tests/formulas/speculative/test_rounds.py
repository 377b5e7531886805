from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from formulas.closed_form import DomainError
from formulas.speculative import (
    ACCEPTED_TOKENS,
    CERTAIN_SPEEDUP,
    CERTAIN_TOKENS_PER_ROUND,
    IID_ERROR,
    OPERATIONS_RATIO,
    SPEEDUP,
    TOKENS_PER_ROUND,
    accepted_tokens,
    operations_ratio,
    speedup,
    tokens_per_round,
)

acceptances = st.floats(0, 1)
lengths = st.integers(0, 200)


def test_exercise(published):
    case = published["exercise"]
    given = {"acceptance": case["acceptance"], "draft_tokens": case["draft_tokens"]}
    costs = {"draft_cost": case["draft_cost"], "verify_cost": case["verify_cost"]}
    assert ACCEPTED_TOKENS(**given) == pytest.approx(case["accepted_tokens"], rel=1e-12)
    assert TOKENS_PER_ROUND(**given) == pytest.approx(case["tokens_per_round"], rel=1e-12)
    assert SPEEDUP(**given, **costs) == pytest.approx(case["speedup"], rel=1e-9)
    assert speedup(**given, **costs) == pytest.approx(case["speedup"], rel=1e-9)


def test_published_table(published):
    table = {name: np.array(column) for name, column in published["table_1"].items()}
    given = {"acceptance": table["acceptance"], "draft_tokens": table["draft_tokens"]}
    np.testing.assert_allclose(OPERATIONS_RATIO(**given, draft_operations=0), table["operations"], atol=0.005)
    np.testing.assert_allclose(SPEEDUP(**given, draft_cost=0, verify_cost=1), table["speedup"], atol=0.0051)


def test_honest_error_is_that_of_the_published_measurements(published):
    table = {name: np.array(column) for name, column in published["measured_speedup"].items()}
    formula = speedup(table["acceptance"], table["draft_tokens"], table["draft_cost"])
    np.testing.assert_allclose(formula, table["expected"], atol=0.07)  # the paper rounds, its costs too
    error = formula / table["measured"] - 1
    assert error.min() == pytest.approx(-0.23, abs=0.01)
    assert error.max() == pytest.approx(0.47, abs=0.01)
    assert np.count_nonzero(np.abs(error) > IID_ERROR) == 2


def test_one_acceptance_overrates_a_long_draft(published):
    case = published["long_draft"]
    predicted = tokens_per_round(case["acceptance"], case["draft_tokens"])
    assert predicted == pytest.approx(case["predicted"], abs=0.005)
    assert predicted / case["measured"] > 1.6


def test_the_bonus_token_counts_in_a_round_of_one_draft():
    assert tokens_per_round(0.93, 1) == pytest.approx(1.93)
    assert accepted_tokens(0.93, 1) == pytest.approx(0.93)


@pytest.mark.parametrize("form", [ACCEPTED_TOKENS, TOKENS_PER_ROUND, SPEEDUP, OPERATIONS_RATIO])
def test_names_say_whether_the_bonus_token_counts(form):
    text = f"{form.name} {form.result.description}"
    assert ("bonus token" in text) == (form in {ACCEPTED_TOKENS, TOKENS_PER_ROUND})


def test_sum_of_the_powers_is_the_closed_form():
    a = ACCEPTED_TOKENS.argument("acceptance").symbol
    g = ACCEPTED_TOKENS.argument("draft_tokens").symbol
    for n in range(7):
        total = sum(a**i for i in range(1, n + 1))
        assert sp.cancel(ACCEPTED_TOKENS.expression.subs(g, n) - total) == 0
        assert sp.cancel(TOKENS_PER_ROUND.expression.subs(g, n) - total - 1) == 0


@pytest.mark.parametrize("form", [ACCEPTED_TOKENS, TOKENS_PER_ROUND, SPEEDUP, OPERATIONS_RATIO])
def test_derivations_hold_line_by_line(form):
    symbols = {v.symbol for v in (*form.arguments, *form.mentions, form.result)}
    at = {s: sp.Rational(1, 3) if str(s) == "acceptance" else sp.Integer(4) for s in symbols if s != form.result.symbol}
    known = {ACCEPTED_TOKENS.result.symbol: sp.Rational(40, 81), TOKENS_PER_ROUND.result.symbol: sp.Rational(121, 81)}
    last = sp.nsimplify(form.expression.subs(at))
    known[form.result.symbol] = last
    equations = [step.equation for step in form.steps if isinstance(step.equation, sp.Eq)]
    for line in equations:
        left, right = (side.subs(known).subs(at).doit() for side in (line.lhs, line.rhs))
        assert sp.simplify(left - right) == 0
    assert form.steps[-1].equation == sp.Eq(form.result.symbol, form.expression, evaluate=False)


@pytest.mark.parametrize("form", [CERTAIN_TOKENS_PER_ROUND, CERTAIN_SPEEDUP])
def test_limits_are_taken(form):
    limit, taken = (step.equation.rhs for step in form.steps[-2:])
    assert sp.simplify(limit.doit() - taken) == 0


def test_where_every_draft_is_accepted():
    with pytest.raises(DomainError, match=r"γ \+ 1"):
        TOKENS_PER_ROUND(acceptance=1, draft_tokens=4)
    assert tokens_per_round(1, 4) == CERTAIN_TOKENS_PER_ROUND(draft_tokens=4) == 5
    assert speedup(1, 4, 0.1, 1.2) == pytest.approx(CERTAIN_SPEEDUP(draft_tokens=4, draft_cost=0.1, verify_cost=1.2))
    assert operations_ratio(1, 4, 0) == 1


def test_where_none_is():
    assert (accepted_tokens(0, 4), tokens_per_round(0, 4)) == (0, 1)
    assert speedup(0, 4, 0.1) == pytest.approx(1 / 1.4)
    assert ACCEPTED_TOKENS(acceptance=0, draft_tokens=4) == 0


def test_without_a_draft_it_is_plain_decoding():
    for alpha in (0.0, 0.3, 1.0):
        assert accepted_tokens(alpha, 0) == 0
        assert tokens_per_round(alpha, 0) == 1
        assert speedup(alpha, 0, 0.5) == operations_ratio(alpha, 0, 0.5) == 1


@given(alpha=acceptances, gamma=lengths)
def test_agrees_with_many_digits(alpha, gamma):
    with mpmath.workdps(40):
        total = float(mpmath.fsum(mpmath.mpf(alpha) ** i for i in range(gamma + 1)))
    assert tokens_per_round(alpha, gamma) == pytest.approx(total, rel=1e-13)


def test_near_certainty_to_full_precision():
    for distance in (1e-3, 1e-7, 1e-12, 2.0**-53):
        alpha = 1.0 - distance
        exact = sum(Fraction(alpha) ** i for i in range(9))
        assert tokens_per_round(alpha, 8) == pytest.approx(float(exact), rel=2e-15)


@given(alpha=acceptances, gamma=lengths)
def test_bounds(alpha, gamma):
    accepted, tokens = accepted_tokens(alpha, gamma), tokens_per_round(alpha, gamma)
    assert 0 <= accepted <= gamma * (1 + 1e-12)
    assert tokens == pytest.approx(1 + accepted, rel=1e-12)
    assert tokens_per_round(alpha, gamma + 1) >= tokens * (1 - 1e-12)
    assert operations_ratio(alpha, gamma, 0) >= 1 - 1e-12


@given(alpha=st.floats(0.01, 0.99), cost=st.floats(0, 2))
def test_the_first_draft_gives_the_bound_of_the_corollary(alpha, cost):
    assert speedup(alpha, 1, cost) == pytest.approx((1 + alpha) / (1 + cost), rel=1e-12)


def test_arrays_broadcast():
    table = speedup(np.array([[0.5], [1.0]]), np.arange(3), 0.1)
    assert table.shape == (2, 3)
    assert table[1, 2] == pytest.approx(3 / 1.2)


@pytest.mark.parametrize("call", [
    lambda: tokens_per_round(1.1, 4),
    lambda: tokens_per_round(-0.1, 4),
    lambda: tokens_per_round(float("nan"), 4),
    lambda: accepted_tokens(0.5, -1),
    lambda: accepted_tokens(0.5, float("inf")),
    lambda: speedup(0.5, 4, -0.1),
    lambda: speedup(0.5, 4, float("inf")),
    lambda: speedup(0.5, 4, 0.1, 0.0),
    lambda: operations_ratio(0.5, 4, -1),
])  # fmt: skip
def test_outside_the_domain_is_a_sentence(call):
    with pytest.raises(DomainError, match=r"\.$"):
        call()
