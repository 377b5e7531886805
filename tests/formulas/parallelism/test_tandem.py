import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from formulas.closed_form import DomainError
from formulas.montecarlo.confidence import mean_interval
from formulas.montecarlo.tandem import simulate_chunked, simulate_tandem
from formulas.parallelism import (
    CHUNKED_MEAN_TTFT,
    PIPELINE_MEAN_TTFT,
    Lognormal,
    chunk_moments,
    tandem,
    tandem_mean,
    tandem_mean_ttft,
    tandem_mean_wait,
)
from formulas.queueing import pollaczek_khinchine as pk


def lognormal(mean, cv):
    sigma = np.sqrt(np.log(1 + cv**2))
    return stats.lognorm(sigma, scale=mean * np.exp(-(sigma**2) / 2))


def test_reference_means(parallelism_reference):
    """To 1e-9, or what the reference's own extrapolation from three meshes leaves open."""
    cases = parallelism_reference["two_stages_exact"]
    assert len(cases) == 5
    for case in cases:
        wait = tandem_mean_wait(2 * case["utilization"], Lognormal(0.5, case["cv"]))
        left_open = abs(case["levels"][-1] - case["total_wait"]) * 1e-4
        assert wait == pytest.approx(case["total_wait"], rel=1e-9, abs=left_open)


def test_simulated_reference_means(parallelism_reference):
    cases = [c for c in parallelism_reference["tandem_simulated"] if c["stages"] == 2 and c["cv"] > 0]
    assert len(cases) == 9
    for case in cases:
        mean, error = case["mean_wait"]
        exact = tandem_mean_wait(2 * case["utilization"], Lognormal(0.5, case["cv"]))
        assert abs(exact - mean) < 4 * error


@pytest.mark.parametrize(("cv", "load"), [(0.05, 0.5), (1.0, 0.99), (2.0, 0.9), (3.0, 0.5), (4.0, 0.1)])
def test_finer_panels_change_nothing(cv, load, monkeypatch):
    coarse = tandem_mean_wait(load, Lognormal(1.0, cv))
    monkeypatch.setattr(tandem, "_PANELS", 70)
    assert tandem_mean_wait(load, Lognormal(1.0, cv)) == pytest.approx(coarse, rel=1e-9)


def test_scipys_distribution_and_a_plain_function_agree_with_ours():
    ours = tandem_mean(1.6, Lognormal(0.5, 1.0))
    frozen = lognormal(0.5, 1.0)
    assert tandem_mean(1.6, frozen).total_wait == pytest.approx(ours.total_wait, rel=1e-11)
    assert tandem_mean(1.6, frozen.cdf).total_wait == pytest.approx(ours.total_wait, rel=1e-8)
    x = np.array([0.0, 0.01, 0.3, 2.0, 50.0])
    np.testing.assert_allclose(Lognormal(0.5, 1.0).sf(x), frozen.sf(x), rtol=1e-12)


def test_equal_prompts_are_the_simple_pipeline():
    """A point mass: nothing waits in the second stage."""
    found = tandem_mean(1.4, lambda x: np.asarray(x) >= 0.5, breaks=[0.5])
    assert found.second_wait == pytest.approx(0.0, abs=1e-9)
    assert found.ttft == pytest.approx(PIPELINE_MEAN_TTFT(rate=1.4, service_time=1.0, gpus=2), rel=1e-9)


def test_exponential_times_by_simulation():
    """Independent of the integral: 99.9 % interval of the second stage's wait."""
    rng = np.random.default_rng(12)
    gaps, services = rng.exponential(1 / 0.6, 400_000), rng.exponential(1.0, 400_000)
    waits = simulate_tandem(gaps, np.array([services, services])) - 2 * services
    exact = tandem_mean(0.6, stats.expon())
    assert mean_interval(waits[2000:], 0.999).contains(exact.total_wait)
    assert exact.first_wait == pytest.approx(0.6 / 0.4, rel=1e-11)


def test_two_lengths_of_prompt():
    """A distribution with jumps, given by its breaks, against a simulation."""
    rng = np.random.default_rng(13)
    services = np.where(rng.random(400_000) < 0.8, 0.25, 2.0)
    gaps = rng.exponential(1 / 1.1, 400_000)
    exact = tandem_mean(1.1, lambda x: 0.8 * (np.asarray(x) >= 0.25) + 0.2 * (np.asarray(x) >= 2.0), breaks=[0.25, 2.0])
    waits = simulate_tandem(gaps, np.array([services, services])) - 2 * services
    assert mean_interval(waits[2000:], 0.999).contains(exact.total_wait)
    second = 0.8 * 0.25**2 + 0.2 * 4
    assert exact.first_wait == pytest.approx(
        pk.MEAN_WAIT(rate=1.1, mean_service=0.6, service_second_moment=second), rel=1e-10
    )


@given(cv=st.floats(0.1, 3.0), load=st.floats(0.05, 0.95), mean=st.floats(1e-3, 1e3))
@settings(max_examples=25, deadline=None)
def test_properties(cv, load, mean):
    found = tandem_mean(load / mean, Lognormal(mean, cv))
    first = pk.MEAN_WAIT(rate=load / mean, mean_service=mean, service_second_moment=mean**2 * (1 + cv**2))
    assert found.first_wait == pytest.approx(first, rel=1e-9)
    assert found.second_wait > 0
    assert found.ttft == pytest.approx(2 * mean + found.total_wait, rel=1e-12)
    assert tandem_mean_ttft(load / mean, Lognormal(mean, cv)) == found.ttft
    unit = tandem_mean(load, Lognormal(1.0, cv))
    assert found.total_wait == pytest.approx(mean * unit.total_wait, rel=1e-8)
    assert tandem_mean(1.02 * load, Lognormal(1.0, cv)).total_wait > unit.total_wait


def test_the_simple_formula_is_too_low_by_the_stated_factor():
    """1.3 to 1.6 times at a cv of 0.5, 2 to 3 at 2."""
    for cv, low, high in ((0.5, 1.25, 1.65), (2.0, 1.95, 2.95)):
        for load in (0.5, 0.8, 0.9):
            found = tandem_mean(load, Lognormal(1.0, cv))
            assert low < found.total_wait / found.first_wait < high


def test_chunk_moments_are_those_of_the_rounded_length():
    rng = np.random.default_rng(3)
    mean, second = chunk_moments(Lognormal(1.0, 0.8), 0.3)
    sigma = Lognormal(1.0, 0.8).sigma
    chunks = np.ceil(rng.lognormal(-(sigma**2) / 2, sigma, 400_000) / 0.3)
    for exact, values in ((mean, chunks), (second, chunks**2)):
        assert abs(values.mean() - exact) < 4 * values.std() / np.sqrt(len(values))
    assert chunk_moments(lambda x: np.asarray(x) >= 0.9, 0.4) == (3.0, 9.0)


def test_small_chunks_restore_a_single_stage():
    """Their cost is one service of the whole prompt in one stage: the second stage's wait is gone."""
    distribution, rate, chunk = Lognormal(0.5, 1.0), 1.6, 0.005
    mean, second = chunk_moments(distribution, chunk)
    chunked = CHUNKED_MEAN_TTFT(rate=rate, chunk_time=chunk, mean_chunks=mean, chunks_second_moment=second, stages=2)
    limit = 0.5 + pk.MEAN_WAIT(rate=rate, mean_service=0.5, service_second_moment=0.5)
    assert chunked == pytest.approx(limit, rel=0.03)
    assert chunked > limit
    assert tandem_mean_ttft(rate, distribution) == pytest.approx(4.60487, rel=1e-5)


def test_chunked_mean_by_simulation():
    rng = np.random.default_rng(5)
    sigma = Lognormal(1.0, 1.0).sigma
    chunks = np.ceil(rng.lognormal(-(sigma**2) / 2, sigma, 300_000) / 0.5).astype(int)
    gaps = rng.exponential(1 / 0.5, 300_000)
    mean, second = chunk_moments(Lognormal(1.0, 1.0), 0.5)
    exact = CHUNKED_MEAN_TTFT(rate=0.5, chunk_time=0.5, mean_chunks=mean, chunks_second_moment=second, stages=4)
    assert mean_interval(simulate_chunked(gaps, chunks, 0.5, 4)[1000:], 0.999).contains(exact)


def test_outside_the_domain():
    with pytest.raises(DomainError, match="no steady state"):
        tandem_mean(2.0, Lognormal(0.5, 1.0))
    with pytest.raises(ValueError, match="above zero"):
        Lognormal(1.0, 0.0)
