import numpy as np
import pytest
from scipy import stats

from formulas.closed_form import DomainError
from formulas.montecarlo.arrivals import batch_gaps, gamma_gaps, switching_gaps
from formulas.queueing.bursts import Switching
from formulas.queueing.service import ListedLengths


@pytest.mark.parametrize("shape", [0.3, 1.0, 5.0])
def test_gamma_gaps_have_their_distribution(shape):
    gaps = gamma_gaps(4.0, shape, 20_000, np.random.default_rng(2))
    assert stats.kstest(gaps, stats.gamma(shape, scale=0.25 / shape).cdf).pvalue > 1e-3


def test_switching_gaps_have_rate_and_dispersion():
    process = Switching(0.5, 6.0, 0.2, 1.0)
    times = np.cumsum(switching_gaps(process, 400_000, np.random.default_rng(4)))
    window = 10.0
    counts = np.bincount((times / window).astype(int))[:-1]
    assert counts.mean() / window == pytest.approx(process.mean_rate, rel=0.02)
    assert counts.var() / counts.mean() == pytest.approx(process.dispersion(window), rel=0.04)


def test_switching_gaps_start_in_the_long_run_mix():
    process = Switching(0.1, 10.0, 1.0, 9.0)
    first = [switching_gaps(process, 1, np.random.default_rng(seed)).size for seed in range(50)]
    assert first == [1] * 50


def test_batches_are_complete_and_as_frequent_as_they_should():
    sizes = ListedLengths([1, 5], [0.5, 0.5])
    gaps = batch_gaps(2.0, sizes, 60_000, np.random.default_rng(3))
    ends = np.flatnonzero(gaps > 0)
    assert ends[-1] == len(gaps) - 1
    lengths = np.diff(np.concatenate([[-1], ends]))
    assert set(lengths.tolist()) == {1, 5}
    assert np.mean(lengths == 5) == pytest.approx(0.5, abs=0.02)
    assert gaps[ends].mean() == pytest.approx(0.5, rel=0.03)


def test_same_seed_same_gaps():
    process = Switching(0.5, 6.0, 0.2, 1.0)
    one, same, other = (switching_gaps(process, 100, np.random.default_rng(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_outside_the_domain():
    for wrong in ((0.0, 1.0), (1.0, 0.0)):
        with pytest.raises(DomainError, match="above zero"):
            gamma_gaps(*wrong, 10, np.random.default_rng(1))
    with pytest.raises(DomainError, match="above zero"):
        batch_gaps(0.0, ListedLengths(2), 10, np.random.default_rng(1))


def test_of_spells_that_never_end_only_what_is_needed_is_drawn():
    seen = [switching_gaps(Switching(1.0, 9.0, 1e-12, 1e-12), 2000, np.random.default_rng(seed)) for seed in range(300)]
    means = np.array([gaps.mean() for gaps in seen])
    busy = means < 0.3
    assert (
        abs(busy.mean() - 0.5) < 4 * 0.5 / 300**0.5
    )  # each run is in one of the two states, as often in the one as the other
    for rate, group in ((1.0, ~busy), (9.0, busy)):
        gaps = rate * np.concatenate([each for each, there in zip(seen, group, strict=True) if there])
        assert abs(gaps.mean() - 1) < 4 / len(gaps) ** 0.5
        assert abs((gaps > 1).mean() - np.exp(-1)) < 4 * 0.5 / len(gaps) ** 0.5  # exponential


def test_spells_that_are_cut_off_look_as_those_that_are_not():
    process, needed = Switching(1.0, 20.0, 0.02, 0.02), 40  # one busy spell holds a thousand: nearly all are cut off
    short = [switching_gaps(process, needed, np.random.default_rng(seed)) for seed in range(2000)]
    whole = [switching_gaps(process, 2000, np.random.default_rng(10_000 + seed))[:needed] for seed in range(2000)]
    cut, uncut = (np.array([gaps.sum() for gaps in each]) for each in (short, whole))
    error = ((cut.var() + uncut.var()) / 2000) ** 0.5
    assert abs(cut.mean() - uncut.mean()) < 4 * error
    slow_cut, slow_uncut = ((each > 10).mean() for each in (cut, uncut))
    assert abs(slow_cut - slow_uncut) < 4 * (0.5 / 2000) ** 0.5
