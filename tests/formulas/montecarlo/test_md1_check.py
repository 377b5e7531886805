import numpy as np
import pytest

from formulas.montecarlo.md1_check import check_md1, short_run_percentiles
from formulas.queueing import md1


@pytest.mark.parametrize("load", [0.05, 0.3, 0.6, 0.8, 0.9])
def test_simulation_and_formula_agree(load):
    check = check_md1(load, level=0.999, seed=2)
    assert [row.name for row in check.rows] == ["mean", "P50", "P90", "P95", "P99"]
    assert [row.verdict for row in check.rows] == ["inside"] * 5
    assert all(row.simulated.level == 0.999 for row in check.rows)
    assert check.rows[0].exact == pytest.approx(md1.MEAN_TTFT(rate=load, service_time=1.0))
    assert check.rows[4].exact == 1 + md1.wait_quantile(0.99, load)


def test_intervals_cover_as_often_as_they_say():
    """95 % intervals over 100 seeds; below 86 would be four sigma."""
    inside = np.zeros(5)
    for seed in range(100):
        inside += [row.verdict == "inside" for row in check_md1(0.7, 60_000, seed).rows]
    assert np.all(inside >= 86)


def test_saturated_run_is_too_short_to_tell():
    check = check_md1(0.99, customers=200_000)
    assert {row.verdict for row in check.rows} == {"run too short"}
    assert check.warm_up == 100_000


def test_unbounded_percentile_is_too_short_to_tell():
    verdicts = {row.name: row.verdict for row in check_md1(0.5, customers=700).rows}
    assert verdicts["P99"] == "run too short"


def test_histogram_counts_every_kept_customer():
    check = check_md1(0.8, customers=50_000)
    assert check.counts.sum() == check.customers - check.warm_up
    assert len(check.edges) == len(check.counts) + 1
    share = check.counts[0] / check.counts.sum()
    assert share == pytest.approx(md1.wait_cdf(check.edges[1] - 1, 0.8), abs=0.03)


def test_same_seed_same_check():
    assert check_md1(0.8, 50_000, seed=9).rows == check_md1(0.8, 50_000, seed=9).rows
    assert check_md1(0.8, 50_000, seed=9).rows != check_md1(0.8, 50_000, seed=8).rows


def test_short_runs_undershoot_as_the_lecture_does(course):
    figure = course["finite_run"]
    runs = short_run_percentiles(figure["utilization"])
    assert runs.exact == pytest.approx(figure["p99_ttft"], rel=1e-7)
    assert all(runs.low[i] < runs.median[i] < runs.high[i] for i in range(5))
    assert list(runs.median) == sorted(runs.median)
    assert runs.median[2] < runs.exact
    assert runs.low[1] < figure["stated_p99_ttft"] < runs.high[1]  # what a thousand customers may well say
    assert runs.high[4] - runs.low[4] < runs.high[0] - runs.low[0]


def test_short_runs_are_reproducible():
    first = short_run_percentiles(0.8, (300, 1000), 0.9, replicas=20, seed=4)
    assert first == short_run_percentiles(0.8, (300, 1000), 0.9, replicas=20, seed=4)
    assert first.replicas == (20, 20)
