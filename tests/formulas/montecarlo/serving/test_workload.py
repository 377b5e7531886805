import numpy as np
import pytest

from formulas.closed_form import DomainError
from formulas.montecarlo.serving import Lengths, Workload, poisson_workload


def test_same_seed_same_requests():
    one, same, other = (poisson_workload(5.0, 500, Lengths(100, 0.5), Lengths(20, 1.0), s) for s in (3, 3, 4))
    for name in ("arrivals", "prompt_tokens", "output_tokens"):
        np.testing.assert_array_equal(getattr(one, name), getattr(same, name))
        assert not np.array_equal(getattr(one, name), getattr(other, name))


def test_another_rate_is_the_same_requests_faster():
    slow, fast = (poisson_workload(rate, 500, Lengths(100, 0.5), Lengths(20), 3) for rate in (2.0, 8.0))
    np.testing.assert_allclose(slow.arrivals, 4 * fast.arrivals)
    np.testing.assert_array_equal(slow.prompt_tokens, fast.prompt_tokens)


def test_moments():
    """Four standard errors each; rounding to whole tokens adds nothing to the mean."""
    count = 200_000
    workload = poisson_workload(5.0, count, Lengths(300, 0.7), Lengths(64), 5)
    gaps, prompts = np.diff(workload.arrivals), workload.prompt_tokens
    assert abs(gaps.mean() - 0.2) < 4 * 0.2 / np.sqrt(count)
    assert gaps.std() == pytest.approx(0.2, rel=0.02)
    assert abs(prompts.mean() - 300) < 4 * prompts.std() / np.sqrt(count)
    assert prompts.std() / prompts.mean() == pytest.approx(0.7, rel=0.03)
    assert set(workload.output_tokens) == {64}


def test_lengths_are_cut():
    lengths = Lengths(10, 2.0, longest=50).draw(10_000, np.random.default_rng(1))
    assert lengths.min() == 1
    assert lengths.max() == 50


@pytest.mark.parametrize(
    ("arrivals", "prompts", "outputs", "sentence"),
    [
        ([1.0, 0.5], [1, 1], [1, 1], "order of time"),
        ([0.0, 0.5], [1, 1], [1], "same length"),
        ([0.0, 0.5], [0, 1], [1, 1], "at least one"),
        ([0.0, 0.5], [1, 1], [1, 1.5], "whole number"),
    ],
)
def test_requests_that_make_no_sense(arrivals, prompts, outputs, sentence):
    with pytest.raises(ValueError, match=sentence):
        Workload(arrivals, prompts, outputs)


def test_a_rate_of_zero():
    with pytest.raises(DomainError, match="above zero"):
        poisson_workload(0.0, 10, Lengths(1), Lengths(1), 1)
