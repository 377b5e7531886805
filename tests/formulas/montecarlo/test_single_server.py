import ciw
import numpy as np
import pytest

from formulas.closed_form import DomainError
from formulas.montecarlo.confidence import mean_interval, quantile_interval
from formulas.montecarlo.single_server import (
    check_batches,
    check_gamma_arrivals,
    check_mg1,
    check_switching,
    simulate_ttft,
)
from formulas.queueing import mg1
from formulas.queueing.bursts import Switching, gamma_mean_wait
from formulas.queueing.service import (
    GammaLengths,
    ListedLengths,
    LognormalLengths,
    equal_service,
    mixed_service,
    service_law,
)

INSIDE = dict.fromkeys(["mean", "P50", "P90", "P99"], "inside")
LAWS = {
    "log-normal": service_law(LognormalLengths(1000.0, 1.0), lambda x: 1e-3 + 2e-5 * x),
    "roofline": service_law(GammaLengths(1000.0, 0.7), lambda x: 1e-3 + np.maximum(0.01, 2e-5 * x)),
    "hit or miss": mixed_service(
        [equal_service(0.02), service_law(ListedLengths([0.2, 0.4]), lambda x: x)], [0.7, 0.3]
    ),
}


def verdicts(check):
    return {row.name: row.verdict for row in check.rows}


@pytest.mark.parametrize("name", LAWS)
def test_any_prompts_agree_with_the_exact_values(name):
    law = LAWS[name]
    assert verdicts(check_mg1(0.7 / law.mean, law, 300_000, seed=4, level=0.999)) == INSIDE


@pytest.mark.parametrize("shape", [0.25, 3.0])
def test_gamma_arrivals_agree_with_the_exact_values(shape):
    check = check_gamma_arrivals(16.0, shape, equal_service(0.05), 300_000, seed=3, level=0.999)
    assert verdicts(check) == INSIDE
    assert check.utilization == pytest.approx(0.8)


def test_switching_and_batches_agree_with_the_exact_values():
    assert verdicts(check_switching(Switching(4.0, 28.0, 1.0, 2.0), 0.05, 400_000, seed=2, level=0.999)) == INSIDE
    assert verdicts(check_batches(2.5, ListedLengths([1, 8]), 0.05, 300_000, seed=2, level=0.999)) == INSIDE


def test_without_an_exact_value_there_are_no_rows():
    check = check_gamma_arrivals(0.7, 30.0, LAWS["hit or miss"], 50_000)
    assert check.rows == ()
    assert list(check.simulated) == ["mean", "P50", "P90", "P99"]


@pytest.mark.parametrize("shape", [0.3, 4.0])
@pytest.mark.parametrize("name", LAWS)
def test_gamma_arrivals_of_any_prompts_agree_with_the_exact_values(name, shape):
    law = LAWS[name]
    assert verdicts(check_gamma_arrivals(0.7 / law.mean, shape, law, 300_000, seed=8, level=0.999)) == INSIDE


def test_intervals_cover_as_often_as_they_say():
    """95 % intervals of the mean over 100 seeds; below 86 would be four sigma."""
    law = LAWS["log-normal"]
    checks = [check_mg1(0.5 / law.mean, law, 20_000, seed=seed) for seed in range(100)]
    assert sum(check.rows[0].verdict == "inside" for check in checks) >= 86


def test_agrees_with_an_independent_simulator():
    """Ciw, the formula and our own run, for gamma gaps and gamma services: 99.9 % intervals overlap."""
    ciw.seed(5)
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Gamma(0.5, 2.5)],  # shape, scale: a mean of 1.25
        service_distributions=[ciw.dists.Gamma(4.0, 0.25)],
        number_of_servers=[1],
    )
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_customers(15_000, method="Finish")
    records = sorted(simulation.get_all_records(), key=lambda r: r.arrival_date)
    theirs = np.array([r.waiting_time + r.service_time for r in records][500:])
    check = check_gamma_arrivals(0.8, 0.5, service_law(GammaLengths(1.0, 0.5), lambda x: x), 400_000, level=0.999)
    assert verdicts(check) == INSIDE
    for name, interval in (("mean", mean_interval(theirs, 0.999)), ("P90", quantile_interval(theirs, 0.9, 0.999))):
        ours = check.simulated[name]
        assert max(interval.low, ours.low) <= min(interval.high, ours.high)


def test_ciw_agrees_with_the_exact_percentiles_of_lognormal_prompts():
    law = service_law(LognormalLengths(1.0, 0.8), lambda x: x)
    sigma = np.log(1.64) ** 0.5
    ciw.seed(9)
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(0.6)],
        service_distributions=[ciw.dists.Lognormal(-(sigma**2) / 2, sigma)],
        number_of_servers=[1],
    )
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_customers(15_000, method="Finish")
    records = sorted(simulation.get_all_records(), key=lambda r: r.arrival_date)
    times = np.array([r.waiting_time + r.service_time for r in records][300:])
    assert mean_interval(times, 0.999).contains(mg1.mean_ttft(0.6, law))
    for level in (0.5, 0.9):
        assert quantile_interval(times, level, 0.999).contains(mg1.ttft_quantile(level, 0.6, law))


def test_ttft_is_wait_and_service():
    np.testing.assert_allclose(simulate_ttft([1.0, 0.5, 2.0], 2.0), [2.0, 3.0, 4.5])


def test_equal_gaps_never_wait():
    check = check_gamma_arrivals(0.9, np.inf, equal_service(1.0), 10_000)
    assert check.simulated["P99"].estimate == pytest.approx(1.0)
    assert gamma_mean_wait(0.9, np.inf) == 0.0


def test_same_seed_same_check():
    one, same, other = (check_mg1(0.5, equal_service(1.0), 20_000, seed=s) for s in (5, 5, 6))
    assert one == same
    assert one.simulated != other.simulated


def test_near_saturation_the_run_is_too_short_to_tell():
    check = check_mg1(0.99, equal_service(1.0), 50_000)
    assert set(verdicts(check).values()) == {"run too short"}


def test_outside_the_domain():
    for rate, sentence in ((1.0, "no steady state"), (0.0, "above zero")):
        with pytest.raises(DomainError, match=sentence):
            check_mg1(rate, equal_service(1.0), 1000)
    with pytest.raises(DomainError, match="no steady state"):
        check_switching(Switching(1.0, 2.0, 1.0, 1.0), 1.0, 1000)
    with pytest.raises(DomainError, match="no steady state"):
        check_batches(0.5, ListedLengths(2), 1.0, 1000)
