import numpy as np
import pytest

from formulas.closed_form import DomainError
from formulas.kv_cache import LINK_MEAN_TRANSFER
from formulas.montecarlo.confidence import mean_interval
from formulas.montecarlo.shared_link import check_link, prefill_departures, simulate_link


def test_poisson_transfers_agree_with_the_closed_forms():
    check = check_link(150.0, 5.24288e-3, 5e-6, level=0.999, seed=4)
    assert {row.name: row.verdict for row in check.rows} == dict.fromkeys(["mean", "P50", "P90", "P99"], "inside")
    assert check.utilization == pytest.approx(0.786432)


def test_sizes_that_differ_agree_in_the_mean():
    check = check_link(100.0, 5e-3, 1e-4, cv=1.0, level=0.999, seed=5)
    assert [(row.name, row.verdict) for row in check.rows] == [("mean", "inside")]
    assert check.rows[0].exact == pytest.approx(1e-4 + 5e-3 + 100 * 2 * 25e-6 / (2 * 0.5), rel=1e-12)
    assert list(check.simulated) == ["mean", "P50", "P90", "P99"]


def test_transfers_take_their_turns():
    np.testing.assert_allclose(simulate_link([0.0, 1.0, 1.5, 9.0], [2.0, 1.0, 1.0, 3.0]), [2.0, 2.0, 2.5, 3.0])


def test_one_instance_never_waits_for_itself():
    departures = prefill_departures(8.0, 0.1, 1, 20_000, seed=1)
    np.testing.assert_allclose(simulate_link(departures, 0.0999), 0.0999, rtol=1e-6)
    assert simulate_link(departures, 0.12)[1000:].mean() > 0.13


def test_few_instances_wait_less_than_poisson_and_many_as_much():
    """Same link, same load of 0.5: one formula is safe for few instances and right for many."""
    link, rate, prefill = 0.05, 10.0, 0.08
    poisson = LINK_MEAN_TRANSFER(rate=rate, link_time_s=link, latency_s=0) - link
    waits = {
        n: mean_interval(
            simulate_link(prefill_departures(rate, prefill, n, 400_000, seed=2), link)[5000:] - link, 0.999
        )
        for n in (2, 4, 64)
    }
    assert waits[2].high < waits[4].low
    assert waits[4].high < poisson
    assert waits[64].estimate == pytest.approx(poisson, rel=0.05)


def test_departures_are_ordered_and_no_faster_than_the_instances():
    departures = prefill_departures(30.0, 0.1, 4, 50_000, seed=3)
    assert np.all(np.diff(departures) >= 0)
    counts, _ = np.histogram(departures, np.arange(0.0, departures[-1], 10.0))
    assert counts.max() <= 4 * (100 + 1)
    assert counts[5:-1].mean() == pytest.approx(300, rel=0.02)


def test_near_saturation_the_run_is_too_short_to_tell():
    check = check_link(1.98, 0.5, transfers=50_000)
    assert {row.verdict for row in check.rows} == {"run too short"}


def test_same_seed_same_check():
    one, same, other = (check_link(100.0, 5e-3, transfers=20_000, seed=s) for s in (5, 5, 6))
    assert one == same
    assert one.simulated != other.simulated


@pytest.mark.parametrize(("rate", "sentence"), [(0.0, "above zero"), (200.0, "pile up"), (300.0, "pile up")])
def test_outside_the_domain(rate, sentence):
    with pytest.raises(DomainError, match=sentence):
        check_link(rate, 5e-3, transfers=1000)
