from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulas.closed_form import DomainError
from formulas.experts import (
    DISTINCT_EXPERTS,
    DISTINCT_ON_RANK,
    EXCHANGE_BYTES,
    RANK_LOAD,
    RANK_LOAD_VARIANCE,
    busiest_distinct,
    busiest_load,
    inclusion_probabilities,
    place,
    ranks_visited,
    zipf_weights,
)
from formulas.montecarlo.confidence import mean_interval
from formulas.montecarlo.routing import route


def test_a_token_chooses_among_all_experts_not_among_the_local_ones():
    """256 experts on 32 ranks, 8 per token, 4 tokens from each rank: with k over the local 8 a rank would touch all."""
    given = {"experts": 256, "experts_per_token": 8, "ranks": 32}
    right = DISTINCT_ON_RANK(tokens=128, **given)
    assert right == pytest.approx(8 * (1 - (1 - 8 / 256) ** 128), rel=1e-12)
    few = DISTINCT_ON_RANK(tokens=4, **given)
    local = DISTINCT_EXPERTS(experts=8, experts_per_token=8, tokens=4)
    assert few == pytest.approx(0.9545, rel=1e-3)
    assert local == 8  # the mistake


@given(ranks=st.integers(1, 32), local=st.integers(1, 16), share=st.floats(0, 1), tokens=st.integers(1, 1000))
@settings(max_examples=60, deadline=None)
def test_ranks_add_up_to_the_layer(ranks, local, share, tokens):
    experts = ranks * local
    chosen = 1 + round(share * (experts - 1))
    given = {"experts": experts, "experts_per_token": chosen, "tokens": tokens}
    assert ranks * DISTINCT_ON_RANK(ranks=ranks, **given) == pytest.approx(DISTINCT_EXPERTS(**given), rel=1e-12)
    assert ranks * RANK_LOAD(experts_per_token=chosen, tokens=tokens, ranks=ranks) == pytest.approx(tokens * chosen)
    visited = ranks_visited(experts, chosen, ranks)
    assert max(1, chosen / local) - 1e-9 <= visited <= min(chosen, ranks) + 1e-9


def test_every_choice_counted():
    """6 experts on 3 ranks, 2 per token: all 15 choices."""
    choices = [np.bincount([e // 2 for e in choice], minlength=3) for choice in combinations(range(6), 2)]
    assert ranks_visited(6, 2, 3) == pytest.approx(np.mean([(c > 0).sum() for c in choices]), rel=1e-14)
    variance = RANK_LOAD_VARIANCE(experts=6, experts_per_token=2, tokens=5, ranks=3)
    assert variance == pytest.approx(5 * np.var([c[0] for c in choices]), rel=1e-13)


def simulated(experts, chosen, ranks, tokens, exponent, steps, seed=2):
    weights = zipf_weights(experts, exponent)
    rank = place(weights, ranks, "shuffled", seed=3)
    routed = route(weights, chosen, tokens, steps, seed, rank)
    return inclusion_probabilities(weights, chosen), rank, routed


@pytest.mark.parametrize(
    ("experts", "chosen", "ranks", "tokens", "exponent", "error"),
    [
        (128, 4, 8, 21, 0.0, 0.003),
        (256, 8, 32, 16, 0.0, 0.003),
        (8, 2, 4, 16, 0.0, 0.003),
        (128, 8, 16, 32, 1.2, 0.003),
        (8, 2, 4, 16, 1.0, 0.007),
        (256, 8, 64, 1, 0.0, 0.02),  # few choices
    ],
)
def test_busiest_rank_by_simulation(experts, chosen, ranks, tokens, exponent, error):
    p, rank, routed = simulated(experts, chosen, ranks, tokens, exponent, steps=4000)
    load = mean_interval(routed.busiest_load, 0.999)
    assert load.low * (1 - error) <= busiest_load(p, tokens, rank) <= load.high * (1 + error)
    touched = mean_interval(routed.busiest_distinct, 0.999)
    assert touched.low * 0.975 <= busiest_distinct(p, tokens, rank) <= touched.high * 1.013


@given(
    ranks=st.integers(1, 12),
    local=st.integers(1, 8),
    share=st.floats(0, 1),
    exponent=st.floats(0, 2),
    tokens=st.integers(1, 20_000),
)
@settings(max_examples=50, deadline=None)
def test_busiest_rank_has_at_least_the_mean_and_at_most_all(ranks, local, share, exponent, tokens):
    experts = ranks * local
    chosen = 1 + round(share * (experts - 1))
    weights = zipf_weights(experts, exponent)
    p, rank = inclusion_probabilities(weights, chosen), place(weights, ranks, "balanced")
    mean = np.bincount(rank, p).max() * tokens
    load = busiest_load(p, tokens, rank)
    assert mean * (1 - 1e-6) - 1e-6 <= load <= tokens * min(chosen, local) * (1 + 1e-9)
    touched = busiest_distinct(p, tokens, rank)
    assert (1 - (1 - p) ** tokens).sum() / ranks - 1e-6 <= touched <= local + 1e-9


def test_balance_helps_and_order_by_popularity_hurts():
    weights = zipf_weights(256, 0.8)
    p = inclusion_probabilities(weights, 8)
    balanced, shuffled, ordered = (
        busiest_load(p, 64, place(weights, 16, how)) for how in ("balanced", "shuffled", "by popularity")
    )
    assert 64 * 8 / 16 < balanced < shuffled < ordered


def test_placements_fill_every_rank_alike():
    for how in ("shuffled", "balanced", "by popularity"):
        assert np.bincount(place(zipf_weights(64, 1), 8, how)).tolist() == [8] * 8
    assert place(zipf_weights(4, 1), 2, "by popularity").tolist() == [0, 0, 1, 1]
    assert (place(np.ones(64), 8, "shuffled", 1) != place(np.ones(64), 8, "shuffled", 2)).any()


def test_exchange_leaves_the_own_rank_out():
    given = {"tokens_per_rank": 128, "hidden": 7168, "element_bytes": 1}
    assert EXCHANGE_BYTES(ranks=1, ranks_visited=1, **given) == 0
    visited = ranks_visited(256, 8, 8)
    assert EXCHANGE_BYTES(ranks=8, ranks_visited=visited, **given) == pytest.approx(128 * visited * 7 / 8 * 7168)
    assert visited < 8 * (1 - 0.125) ** 0  # several of the 8 choices meet on a rank


def test_outside_the_domain():
    with pytest.raises(DomainError, match="do not divide over 3 ranks"):
        ranks_visited(8, 2, 3)
    with pytest.raises(DomainError, match="do not divide"):
        place(np.ones(8), 5, "shuffled")
    with pytest.raises(DomainError, match="more ranks than experts"):
        DISTINCT_ON_RANK(experts=8, experts_per_token=2, tokens=4, ranks=16)
