import numpy as np
import pytest

from formulas.closed_form import DomainError
from formulas.experts import distinct_law, inclusion_probabilities, place, zipf_weights
from formulas.montecarlo.routing import check_routing, route, sd_interval


def test_even_routing_agrees_with_the_exact_law():
    check = check_routing(np.ones(128), 4, 21, steps=4000, seed=3, level=0.999)
    assert [(row.name, row.verdict) for row in check.rows] == [("mean", "inside"), ("standard deviation", "inside")]
    assert check.approximate == ()
    assert check.counts.sum() == 4000
    expected = 4000 * distinct_law(128, 4, 21)
    seen = expected > 5
    chi = ((check.counts - expected)[seen] ** 2 / expected[seen]).sum()
    assert chi < seen.sum() + 5 * np.sqrt(2 * seen.sum())


@pytest.mark.parametrize("exponent", [0.5, 1.2])
def test_uneven_routing_agrees(exponent):
    weights = zipf_weights(64, exponent)
    check = check_routing(weights, 6, 12, place(weights, 8, "shuffled"), steps=3000, seed=4, level=0.999)
    verdicts = {row.name: row.verdict for row in check.rows}
    assert verdicts["mean"] == "inside"
    assert check.approximate == ("standard deviation", "load of the busiest rank", "experts of the busiest rank")
    for row in check.rows:
        assert row.exact == pytest.approx(row.simulated.estimate, rel=0.05)


def test_how_often_each_expert_is_chosen():
    """Binomial over tokens for each expert: the probabilities by quadrature are those of the simulated choice."""
    weights, tokens = zipf_weights(32, 1.0), 40_000
    p = inclusion_probabilities(weights, 4)
    chosen = route(weights, 4, tokens=100, steps=tokens // 100, seed=5).chosen
    deviation = (chosen - tokens * p) / np.sqrt(tokens * p * (1 - p))
    assert np.abs(deviation).max() < 4


def test_a_token_chooses_different_experts():
    routed = route(np.ones(8), 8, tokens=3, steps=50, seed=1)
    assert (routed.distinct == 8).all()
    assert (routed.chosen == 150).all()
    assert (route(zipf_weights(16, 3), 5, tokens=1, steps=400, seed=1).distinct == 5).all()


def test_busiest_rank_is_counted_in_the_same_step():
    routed = route(np.ones(12), 3, tokens=7, steps=300, seed=2, rank=np.arange(12) // 4)
    assert (routed.busiest_load >= 7).all()
    assert (routed.busiest_load <= 21).all()
    assert (routed.busiest_distinct <= 4).all()
    one_rank = route(np.ones(12), 3, tokens=7, steps=300, seed=2)
    assert (one_rank.busiest_load == 21).all()
    np.testing.assert_array_equal(one_rank.distinct, routed.distinct)


def test_steps_in_parts_are_the_same_number():
    assert route(np.ones(256), 8, tokens=512, steps=17, seed=1).distinct.size == 17


def test_same_seed_same_check():
    one, same, other = (check_routing(np.ones(32), 2, 9, steps=640, seed=s) for s in (1, 1, 2))
    assert one.rows == same.rows
    assert one.rows != other.rows


def test_a_rare_outcome_that_was_not_seen_is_no_verdict():
    """All experts touched in every step of the run, but not in every step there is."""
    rows = check_routing(np.ones(16), 4, 60, steps=320).rows
    assert rows[0].simulated.low == rows[0].simulated.high == 16
    assert [row.verdict for row in rows] == ["run too short", "run too short"]
    assert check_routing(np.ones(16), 4, 1, steps=320).rows[0].verdict == "inside"


def test_interval_of_the_spread_covers():
    """Normal values of standard deviation 2: the 90 % interval holds it in most of 100 runs."""
    values = np.random.default_rng(6).normal(0, 2, (100, 640))
    inside = sum(sd_interval(v, 0.9).contains(2.0) for v in values)
    assert 80 <= inside <= 98


def test_outside_the_domain():
    with pytest.raises(DomainError, match="no more experts per token than there are"):
        route(np.ones(4), 5, tokens=1, steps=1, seed=1)
