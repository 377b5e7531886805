"""A histogram as a law of lengths: against a mixture of uniform laws, which is the same, and in the queues that use it."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulas.closed_form import DomainError
from formulas.queueing import mg1
from formulas.queueing.bursts import gamma_law_mean_wait, gamma_law_ttft_survival
from formulas.queueing.mg1_distribution import ttft_survival
from formulas.queueing.service import HistogramLengths, UniformLengths, mixed_service, service_law

EDGES = (0.0, 100.0, 400.0, 1000.0, 3000.0, 16000.0)
SHARES = (5.0, 22.0, 38.0, 26.0, 9.0)
GAP = HistogramLengths((0.0, 900.0, 1000.0, 8000.0), (0.0, 5.0, 1.0))


def time_of(length):
    tokens = np.asarray(length, float)
    return 2e-3 + 2e-5 * tokens + 1e-10 * tokens**2


@pytest.fixture(scope="module")
def law():
    return service_law(HistogramLengths(EDGES, SHARES), time_of)


@pytest.fixture(scope="module")
def mixture():
    buckets = pairwise(EDGES)
    return mixed_service([service_law(UniformLengths(low, high), time_of) for low, high in buckets], SHARES)


def test_moments_are_those_of_the_mixture(law, mixture):
    for order in (1, 2, 3):
        assert law.moment(order) == pytest.approx(mixture.moment(order), rel=1e-12)


def test_percentiles_of_the_queue_are_those_of_the_mixture(law, mixture):
    levels = np.array([0.1, 0.5, 0.9, 0.99, 0.999])
    for load in (0.3, 0.8):
        found = mg1.ttft_quantile(levels, load / law.mean, law)
        assert found == pytest.approx(mg1.ttft_quantile(levels, load / law.mean, mixture), rel=2e-8)


@pytest.mark.parametrize("lengths", [HistogramLengths(EDGES, SHARES), GAP], ids=["smooth", "with an empty bucket"])
def test_gamma_gaps_of_shape_one_are_the_exact_queue(lengths):
    law = service_law(lengths, time_of)
    rate = 0.7 / law.mean
    times = np.linspace(0.2, 15, 40) * law.mean
    assert gamma_law_ttft_survival(times, rate, 1.0, law) == pytest.approx(ttft_survival(times, rate, law), abs=4e-7)
    assert gamma_law_mean_wait(rate, 1.0, law) == pytest.approx(mg1.mean_wait(rate, law), rel=2e-8)


@given(
    st.lists(st.floats(1.0, 1e4), min_size=1, max_size=12),
    st.lists(st.floats(0.0, 1e3), min_size=12, max_size=12).filter(lambda shares: shares[0] > 0),
)
def test_drawn_lengths_and_the_distribution_agree(widths, shares):
    lengths = HistogramLengths(tuple(np.cumsum([0.0, *widths]).tolist()), tuple(shares[: len(widths)]))
    levels = np.linspace(0.01, 0.99, 50)
    found = lengths.quantile(levels)
    assert np.all(np.diff(found) >= 0)
    assert lengths.cdf(found) == pytest.approx(levels, abs=1e-9)
    drawn = lengths.draw(20_000, np.random.default_rng(1))
    error = 5 * lengths.mean * lengths.cv / 20_000**0.5
    assert drawn.mean() == pytest.approx(lengths.mean, abs=error)
    assert lengths.scaled_to(10.0).mean == pytest.approx(10.0)
    assert lengths.scaled_to(10.0).cv == pytest.approx(lengths.cv)


def test_refusals():
    for edges, shares in (((0.0, 1.0), ()), ((0.0, 2.0, 1.0), (1, 1)), ((0.0, 1.0), (0,)), ((0.0, 1.0), (-1,))):
        with pytest.raises(DomainError):
            HistogramLengths(edges, shares)
