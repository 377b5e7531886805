import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from formulas.closed_form import DomainError
from formulas.montecarlo.batch_service import simulate_batch_service
from formulas.montecarlo.confidence import mean_interval, quantile_interval
from formulas.queueing import md1
from formulas.queueing.batching import (
    BATCH_CAPACITY,
    LARGEST_BATCH_OF_PROMPTS,
    PAIR_SAVING,
    TAKE_ALL_BOUND,
    TAKE_ALL_HEAVY_BOUND,
    BatchServer,
    take_all_mean_ttft,
)

LEVELS = np.array([0.5, 0.9, 0.99, 0.999])


@pytest.mark.parametrize("rho", [0.01, 0.3, 0.8, 0.95, 0.99])
def test_batches_of_one_are_md1(rho):
    server = BatchServer(rho / 0.05, [0.05])
    assert server.mean_ttft == pytest.approx(md1.MEAN_TTFT(rate=rho / 0.05, service_time=0.05), rel=1e-11)
    assert server.busy == pytest.approx(rho, rel=1e-12)
    assert server.mean_batch == pytest.approx(1.0, rel=1e-12)
    np.testing.assert_allclose(
        server.ttft_quantile(LEVELS) - 0.05, 0.05 * md1.wait_quantile(LEVELS, rho), rtol=1e-9, atol=1e-15
    )
    t = np.array([0.0, 0.4, 1.0, 1.5, 2.0, 6.3])
    np.testing.assert_allclose(server.wait_survival(0.05 * t), md1.wait_survival(t, rho), atol=1e-11)


@pytest.mark.parametrize("index", range(15))
def test_taking_all_against_the_reference(single_server, index):
    """The exact mean lies below both bounds, which are the reference's, and within the simulation's error."""
    case = single_server["dynamic_batching"][index]
    fixed, each, rate = case["fixed"], case["each"], case["load"] / case["each"]
    exact = take_all_mean_ttft(rate, lambda prompts: fixed + each * prompts)
    value, error = case["simulated"]["mean"]
    assert abs(exact - value) < 4 * error
    at = {"rate": rate, "fixed_s": fixed, "each_s": each}
    light, heavy = TAKE_ALL_BOUND(**at), TAKE_ALL_HEAVY_BOUND(**at)
    assert light == pytest.approx(case["bound0"], rel=1e-12)
    assert heavy == pytest.approx(case["bound1"], rel=1e-12)
    assert exact <= min(light, heavy) * (1 + 1e-9)
    assert exact >= min(light, heavy) / 1.09


@pytest.mark.parametrize(
    ("rate", "times"),
    [(60.0, [0.05] * 4), (7.0, [1.0] * 8), (1.2, [1.0, 1.2, 1.9]), (6.0, (0.2 + 0.1 * np.arange(1, 17)).tolist())],
)
def test_agrees_with_its_simulation(rate, times):
    server = BatchServer(rate, times)
    gaps = np.random.default_rng(4).exponential(1 / rate, 150_000)
    waits, ttft = (found[3000:] for found in simulate_batch_service(gaps, times, len(times)))
    assert mean_interval(ttft, 0.999).contains(server.mean_ttft)
    assert abs(np.mean(waits > 0) - server.busy) < 0.01
    if np.ptp(times) == 0:
        for level in (0.5, 0.9, 0.99):
            assert quantile_interval(ttft, level, 0.999).contains(server.ttft_quantile(level))


def test_both_ways_to_the_law_agree():
    """Zeros and Fourier transform for equal durations; linear equations for durations that differ by next to nothing."""
    equal, nearly = BatchServer(5.0, [1.0] * 6), BatchServer(5.0, 1.0 + 1e-11 * np.arange(6))
    assert equal.mean_ttft == pytest.approx(nearly.mean_ttft, rel=1e-9)
    assert equal.mean_batch == pytest.approx(nearly.mean_batch, rel=1e-9)
    assert equal.busy == pytest.approx(nearly.busy, rel=1e-9)


@pytest.mark.parametrize(
    ("most", "rho", "wait"), [(2, 0.5, 0.17674105711283688), (8, 0.9, 0.44997325943581), (64, 0.9, 0.0267341275035)]
)
def test_queue_of_a_batch_is_that_of_so_many_servers(most, rho, wait):
    """Those left behind by a batch are the queue of M/D/b; reference means of its wait, 12 digits."""
    server = BatchServer(rho * most, [1.0] * most)
    left = server._left[most:] @ np.arange(len(server._left) - most)
    assert left / (rho * most) == pytest.approx(wait, rel=1e-9)


@given(most=st.integers(1, 40), rho=st.floats(0.02, 0.97))
@settings(max_examples=40, deadline=None)
def test_survival_of_batches_of_one_duration(most, rho):
    server = BatchServer(rho * most, [1.0] * most)
    t = np.linspace(0.0, 12.0, 60)
    survival = server.wait_survival(t)
    assert np.all(np.diff(survival) <= 1e-12)
    assert survival[0] == pytest.approx(server.busy, rel=1e-9)
    for level in (0.6, 0.99):
        ttft = server.ttft_quantile(level)
        late = server.wait_survival(ttft - 1.0)
        assert late == pytest.approx(1 - level, rel=1e-6) if ttft > 1 else late <= 1 - level + 1e-12


def test_survivals_integrate_to_the_mean():
    nodes, weights = np.polynomial.legendre.leggauss(10)
    server = BatchServer(3.2, [1.0] * 4)
    t = np.arange(60)[:, None] + (1 + nodes) / 2
    area = (weights / 2 * server.wait_survival(t)).sum()
    assert area + 1.0 == pytest.approx(server.mean_ttft, rel=1e-9)


@given(single=st.floats(0.5, 2.0), ratio=st.floats(1.0, 2.0), rate=st.floats(0.002, 0.02))
@settings(max_examples=40, deadline=None)
def test_at_low_rates_the_saving_of_a_pair_decides(single, ratio, rate):
    alone, paired = BatchServer(rate, [single]), BatchServer(rate, [single, ratio * single])
    saving = PAIR_SAVING(single_s=single, pair_s=ratio * single)
    if abs(saving) > 0.05 * single:
        assert (alone.mean_ttft > paired.mean_ttft) == (saving > 0)


@given(most=st.integers(2, 8), load=st.floats(0.1, 0.9))
@settings(max_examples=25, deadline=None)
def test_beyond_saturation_batching_only_delays(most, load):
    """Time proportional to the prompts: no capacity is won, and each waits for the arithmetic of the others."""
    single, batched = BatchServer(load, [1.0]), BatchServer(load, np.arange(1.0, most + 1))
    assert batched.mean_ttft > single.mean_ttft
    assert batched.utilization == pytest.approx(single.utilization)


@given(most=st.integers(1, 12), load=st.floats(0.05, 0.95))
@settings(max_examples=25, deadline=None)
def test_below_saturation_batching_only_helps(most, load):
    """Time independent of the prompts: the larger the largest batch, the sooner."""
    smaller, larger = BatchServer(load * most, [1.0] * most), BatchServer(load * most, [1.0] * (most + 1))
    assert larger.mean_ttft <= smaller.mean_ttft * (1 + 1e-10)


@given(load=st.floats(0.05, 0.9), fixed=st.floats(0.05, 3.0))
@settings(max_examples=25, deadline=None)
def test_a_large_enough_batch_takes_all(load, fixed):
    exact = take_all_mean_ttft(load, lambda prompts: fixed + prompts)
    at = {"rate": load, "fixed_s": fixed, "each_s": 1.0}
    assert exact <= min(TAKE_ALL_BOUND(**at), TAKE_ALL_HEAVY_BOUND(**at)) * (1 + 1e-9)
    if load < 0.5:
        assert BatchServer(load, fixed + np.arange(1.0, 61.0)).mean_ttft == pytest.approx(exact, rel=1e-6)


def test_more_load_is_later():
    means = [BatchServer(rate, [1.0, 1.1, 1.2]).mean_ttft for rate in np.linspace(0.1, 2.4, 12)]
    assert np.all(np.diff(means) > 0)
    quantiles = [BatchServer(rate, [1.0] * 3).ttft_quantile(0.99) for rate in np.linspace(0.1, 2.9, 12)]
    assert np.all(np.diff(quantiles) >= 0)


def test_closed_forms():
    assert LARGEST_BATCH_OF_PROMPTS(saturation_tokens=512, prompt_tokens=100) == 5
    assert BATCH_CAPACITY(most=5, service_time=0.02) == 250
    assert PAIR_SAVING(single_s=1.0, pair_s=2.0) == -0.5
    assert sp.simplify(PAIR_SAVING.steps[-1].equation.rhs - PAIR_SAVING.expression) == 0
    with pytest.raises(DomainError, match="fills the accelerator alone"):
        LARGEST_BATCH_OF_PROMPTS(saturation_tokens=512, prompt_tokens=600)


def test_simulation_by_hand():
    waits, ttft = simulate_batch_service([0.5, 0.1, 0.1, 9.0], lambda size: 1.0 + size)
    np.testing.assert_allclose(waits, [0.0, 1.5, 1.4, 1.3])
    np.testing.assert_allclose(ttft, [2.0, 5.5, 5.4, 5.3])


def test_outside_the_domain():
    for rate, times, sentence in (
        (2.0, [1.0, 1.0], "no steady state"), (0.0, [1.0], "rate above zero"), (0.1, [], "between one and"),
        (0.1, [1.0, 0.9], "no less"), (0.1, [0.0], "above zero"), (0.1, [1.0] * 200, "between one and"),
    ):  # fmt: skip
        with pytest.raises(DomainError, match=sentence):
            BatchServer(rate, times)
    with pytest.raises(DomainError, match="same time"):
        BatchServer(0.1, [1.0, 1.5]).wait_survival(1.0)
    with pytest.raises(DomainError, match="same time"):
        BatchServer(0.1, [1.0, 1.5]).ttft_quantile(0.9)
    with pytest.raises(DomainError, match="lies between"):
        BatchServer(0.1, [1.0]).ttft_quantile(0.0)
    with pytest.raises(DomainError, match="near to saturation"):
        _ = BatchServer(1.9999, [1.0, 1.00001]).mean_ttft
    with pytest.raises(DomainError, match="no steady state"):
        take_all_mean_ttft(1.0, lambda prompts: 0.1 + prompts)
    with pytest.raises(DomainError, match="rate above zero"):
        take_all_mean_ttft(0.0, lambda prompts: 0.1 + prompts)
    with pytest.raises(DomainError, match="no less"):
        take_all_mean_ttft(0.1, lambda prompts: 1.0 / prompts)
