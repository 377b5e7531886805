import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulas.closed_form import DomainError
from formulas.montecarlo.speculative import check_rounds, simulate_rounds
from formulas.montecarlo.speculative_sampling import (
    check_sampling,
    chi_square,
    models_with_acceptance,
    sample_tokens,
)
from formulas.speculative import conditional_rates, tokens_by_length, tokens_per_round

ZIPF, FLAT = np.arange(1, 21.0) ** -1.1, np.ones(20)
P, Q = ZIPF / ZIPF.sum(), FLAT / FLAT.sum()


@pytest.mark.parametrize(("alpha", "length"), [(0.8, 4), (0.5, 1), (0.95, 20), (0.0, 3), (1.0, 5)])
def test_rounds_agree_with_the_formula(alpha, length):
    check = check_rounds([alpha] * length, 0.1, 1.2, level=0.999, seed=2)
    assert {row.verdict for row in check.rows} == {"inside"}
    exact = {row.name: row.exact for row in check.rows}
    assert exact["tokens per round"] == pytest.approx(tokens_per_round(alpha, length), rel=1e-12)
    assert exact["speedup"] == pytest.approx(tokens_per_round(alpha, length) / (0.1 * length + 1.2), rel=1e-12)


def test_rounds_by_position_agree():
    rates = conditional_rates([0.71, 0.50, 0.36, 0.26, 0.18])  # EAGLE on SpecBench, vLLM pull request 26498
    check = check_rounds(rates, 0.1, level=0.999, seed=3)
    assert {row.verdict for row in check.rows} == {"inside"}
    assert check.rows[1].exact == pytest.approx(tokens_by_length(rates)[-1])
    assert chi_square(check.counts, check.expected / check.rounds)[2] > 0.001


def test_the_wrong_acceptance_is_outside():
    right = check_rounds([0.8] * 4, 0.1)
    wrong = check_rounds([0.81] * 4, 0.1)
    assert not right.rows[0].simulated.contains(wrong.rows[0].exact)


def test_rounds_beyond_the_memory_of_one_batch():
    accepted = simulate_rounds([0.9] * 300, 30_000, seed=1)
    assert len(accepted) == 30_000
    assert accepted.mean() == pytest.approx(9, abs=0.3)


def test_sampling_leaves_the_target_as_it_is():
    check = check_sampling(P, Q, 4, seed=5, level=0.999)
    assert check.verdict == "inside"
    assert check.acceptance.verdict == "inside"
    assert check.acceptance.exact == pytest.approx(1 - 0.5 * np.abs(P - Q).sum(), rel=1e-12)
    assert check.tokens == pytest.approx(50_000 * tokens_per_round(check.acceptance.exact, 4), rel=0.01)


def test_lengths_of_sampled_rounds_follow_the_independent_model():
    """Here acceptance is independent, because every position has the same two distributions."""
    _, accepted = sample_tokens(P, Q, 5, 50_000, seed=6)
    alpha = np.minimum(P, Q).sum()
    law = [(1 - alpha) * alpha**i for i in range(5)] + [alpha**5]
    assert chi_square(np.bincount(accepted, minlength=6), law)[2] > 0.001


def test_neighbouring_tokens_are_independent():
    tokens, _ = sample_tokens(P, Q, 4, 60_000, seed=7)
    common = np.minimum(tokens, 4)
    pairs = np.bincount(5 * common[:-1:2] + common[1::2], minlength=25)
    law = np.append(P[:4], P[4:].sum())
    assert chi_square(pairs, np.outer(law, law).ravel())[2] > 0.001


def test_replacing_a_refused_draft_from_the_target_itself_would_show():
    """The same rounds with p where max(0, p - q) belongs: the test has the power to tell."""
    rng = np.random.default_rng(8)
    drafts = rng.choice(20, size=(50_000, 4), p=Q)
    kept = rng.random(drafts.shape) < np.minimum(1, P / Q)[drafts]
    first = np.where(kept.all(axis=1), 4, kept.argmin(axis=1))
    out = [row[:n] for row, n in zip(drafts, first, strict=True)] + [rng.choice(20, size=50_000, p=P)]
    assert chi_square(np.bincount(np.concatenate(out), minlength=20), P)[2] < 1e-9


def test_taking_every_draft_would_show():
    tokens = np.random.default_rng(9).choice(20, size=20_000, p=Q)
    assert chi_square(np.bincount(tokens, minlength=20), P)[2] < 1e-9


def test_equal_models_accept_everything():
    check = check_sampling(P, P, 3, rounds=5_000)
    assert check.acceptance.simulated.estimate == 1
    assert check.tokens == 20_000


def test_disjoint_models_accept_nothing():
    check = check_sampling([0.0, 0.0, 0.3, 0.7], [0.5, 0.5, 0.0, 0.0], 3, rounds=5_000, level=0.999)
    assert check.acceptance.simulated.estimate == 0
    assert check.tokens == 5_000
    assert check.verdict == "inside"


def test_a_token_that_cannot_be_settles_it():
    statistic, _, chance = chi_square([10, 1], [1.0, 0.0])
    assert statistic == np.inf
    assert chance == 0


def test_rare_tokens_are_counted_together():
    p = np.array([0.5, 0.4999, 0.00005, 0.00005])
    assert chi_square([5000, 4999, 1, 0], p)[1] == 2


@given(alpha=st.floats(0, 1))
@settings(max_examples=40)
def test_models_of_a_given_acceptance(alpha):
    p, q = models_with_acceptance(alpha)
    assert np.minimum(p, q).sum() == pytest.approx(alpha, abs=1e-12)
    assert p.sum() == pytest.approx(1)
    assert q.sum() == pytest.approx(1)
    assert q.min() >= 0


def test_same_seed_same_check():
    one, same, other = (check_rounds([0.7] * 3, 0.1, rounds=5_000, seed=s) for s in (4, 4, 5))
    assert one.rows == same.rows
    assert one.rows != other.rows


def test_probabilities_add_up():
    with pytest.raises(DomainError, match="add up to 1"):
        sample_tokens([0.5, 0.6], [0.5, 0.5], 2, 10, seed=1)
    with pytest.raises(DomainError, match="between 0 and 1"):
        models_with_acceptance(1.2)
