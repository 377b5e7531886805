import numpy as np
import pytest

from formulas.closed_form import DomainError
from formulas.montecarlo.confidence import mean_interval, quantile_interval
from formulas.montecarlo.tandem import check_pipeline, lognormal_times, simulate_chunked, simulate_tandem
from formulas.parallelism import PIPELINE_MEAN_TTFT, Lognormal, even_stages, tandem_mean_ttft


def recursion(gaps, stage_times):
    """Each stage takes the next prompt when it is free and the prompt has left the stage before."""
    free = np.zeros(len(stage_times))
    arrival, times = 0.0, []
    for prompt in range(stage_times.shape[1]):
        ready = arrival
        for stage, duration in enumerate(stage_times[:, prompt]):
            ready = free[stage] = max(ready, free[stage]) + duration
        times.append(ready - arrival)
        arrival += gaps[prompt]
    return np.array(times)


@pytest.mark.parametrize("stages", [1, 2, 5])
def test_is_the_recursion(stages):
    rng = np.random.default_rng(3)
    gaps, times = rng.exponential(1.2, 800), rng.gamma(2.0, 0.5, (stages, 800))
    np.testing.assert_allclose(simulate_tandem(gaps, times), recursion(gaps, times), atol=1e-9)


def test_is_the_longest_path():
    """Same time in every stage: the largest sum from k to n, and the largest of them m - 1 times more."""
    rng = np.random.default_rng(6)
    gaps, times = rng.exponential(1.1, 60), rng.gamma(1.0, 1.0, 60)
    arrival = np.concatenate([[0.0], np.cumsum(gaps)[:-1]])
    found = simulate_tandem(gaps, np.tile(times, (4, 1)))
    for n in range(60):
        paths = [times[k : n + 1].sum() + 3 * times[k : n + 1].max() - arrival[n] + arrival[k] for k in range(n + 1)]
        assert found[n] == pytest.approx(max(paths), abs=1e-9)


@pytest.mark.parametrize("index", range(12))
def test_reference_simulation(parallelism_reference, index):
    """Another program's runs of the same pipelines: means and percentiles within both errors, four sigma."""
    case = parallelism_reference["tandem_simulated"][index]
    stages, cv, load = case["stages"], case["cv"], case["utilization"]
    rng = np.random.default_rng(21)
    customers = 1_000_000
    gaps = rng.exponential(1 / (stages * load), customers)
    lengths = lognormal_times(1.0, cv, customers, rng)
    ttft = simulate_tandem(gaps, np.tile(lengths / stages, (stages, 1)))[20_000:]
    waits = mean_interval(ttft - lengths[20_000:], 0.9999)
    mean, error = case["mean_wait"]
    assert waits.low - 4 * error < mean < waits.high + 4 * error
    ordered = np.sort(ttft)
    for p in (90, 99):
        value, error = case[f"p{p}_ttft"]
        interval = quantile_interval(ttft, p / 100, 0.9999, ordered=ordered)
        assert interval.low - 4 * error < value < interval.high + 4 * error


def test_equal_prompts_agree_with_the_closed_form():
    check = check_pipeline(3.2, even_stages(1.0, 4), hop=0.01, level=0.999, seed=2)
    assert {row.name: row.verdict for row in check.rows} == dict.fromkeys(["mean", "P50", "P90", "P99"], "inside")
    exact = PIPELINE_MEAN_TTFT(rate=3.2, service_time=1.0, gpus=4) + 0.03
    assert check.rows[0].exact == pytest.approx(exact, rel=1e-12)
    assert check.equal_prompts_mean == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("cv", [0.3, 0.5, 1.0])
def test_two_stages_agree_with_the_exact_mean(cv):
    check = check_pipeline(1.4, [0.5, 0.5], cv=cv, level=0.999, seed=3)
    assert [(row.name, row.verdict) for row in check.rows] == [("mean", "inside")]
    assert check.rows[0].exact == tandem_mean_ttft(1.4, Lognormal(0.5, cv))
    assert check.simulated["mean"].low > check.equal_prompts_mean


def test_one_stage_is_mg1_and_four_have_no_exact_value():
    single = check_pipeline(0.7, [1.0], cv=1.0, level=0.999)
    assert [(row.name, row.verdict) for row in single.rows] == [("mean", "inside")]
    four = check_pipeline(2.8, even_stages(1.0, 4), cv=1.0)
    assert four.rows == ()
    assert list(four.simulated) == ["mean", "P50", "P90", "P99"]
    assert check_pipeline(1.0, [0.4, 0.5], cv=1.0).rows == ()


def test_intervals_cover_as_often_as_they_say():
    """95 % intervals over 100 seeds; below 86 would be four sigma."""
    checks = [check_pipeline(1.2, [0.5, 0.5], cv=0.5, customers=40_000, seed=seed) for seed in range(100)]
    assert sum(check.rows[0].verdict == "inside" for check in checks) >= 86


def test_near_saturation_the_run_is_too_short_to_tell():
    check = check_pipeline(1.98, [0.5, 0.5], customers=100_000)
    assert {row.verdict for row in check.rows} == {"run too short"}
    assert check.warm_up == 50_000


def test_same_seed_same_check():
    one, same, other = (check_pipeline(1.4, [0.5, 0.5], 1.0, customers=20_000, seed=s) for s in (5, 5, 6))
    assert one == same
    assert one.simulated != other.simulated


def test_lognormal_times_have_the_moments_asked_for():
    times = lognormal_times(2.0, 0.7, 400_000, np.random.default_rng(9))
    assert abs(times.mean() - 2.0) < 4 * times.std() / np.sqrt(len(times))
    assert times.std() / times.mean() == pytest.approx(0.7, rel=0.02)


def test_chunks_leave_in_the_order_of_their_prompts():
    times = simulate_chunked([0.1, 0.1, 9.0], [3, 2, 4], 1.0, 2)
    np.testing.assert_allclose(times, [4.0, 5.9, 9.8])


@pytest.mark.parametrize("rate", [0.0, 2.0, 3.0])
def test_outside_the_domain(rate):
    with pytest.raises(DomainError):
        check_pipeline(rate, [0.5, 0.5], customers=1000)
