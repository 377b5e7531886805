import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import poisson

from formulas.queueing.many_servers.ladder import factorise


@pytest.mark.parametrize(("c", "rho"), [(1, 0.25), (4, 0.4), (16, 0.7), (64, 0.85)])
def test_coefficients_are_spitzers_sums(c, rho):
    ladder = factorise(c, rho)
    assert ladder.light[0]
    n = np.arange(1, 300)
    for k in (0, 1, 2, 5, 3 * c):
        exact = np.sum(poisson.pmf(n * c + k, n * c * rho) / n)
        found = ladder.level[0] if k == 0 else ladder.up[0, k - 1]
        assert found == pytest.approx(exact, rel=1e-11)
    assert ladder.down[0, 0] / rho == pytest.approx(np.sum(poisson.pmf(n * c - 1, n * c * rho) / n), rel=1e-10)


@pytest.mark.parametrize(("c", "rho"), [(1, 0.9), (2, 0.7), (5, 0.95), (40, 0.9)])
def test_the_queue_is_that_of_the_chain(c, rho):
    """From one service time to the next: c leave at most, a Poisson number arrives."""
    size = 4000 // c * c
    arrivals = poisson.pmf(np.arange(size), c * rho)
    chain = np.zeros(size)
    chain[0] = 1.0
    for _ in range(4000):
        present = np.convolve(chain, arrivals[: 12 * c + 60])[:size]
        new = np.concatenate([[present[: c + 1].sum()], present[c + 1 :], np.zeros(c)])[:size]
        done = np.abs(new - chain).max() < 1e-14
        chain = new
        if done:
            break
    queue = factorise(c, rho).queue[0]
    np.testing.assert_allclose(queue, chain[: len(queue)], rtol=1e-8, atol=1e-13)


def test_light_and_heavy_meet():
    """Where the method changes, the mean of one side follows from the other: a cubic through it has no step."""
    switch = brentq(lambda rho: 8 * (rho - 1 - np.log(rho)) - 0.5, 0.5, 0.9)
    rho = switch + 1e-4 * np.array([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0])
    ladder = factorise(8, rho)
    assert list(ladder.light) == [True, True, True, False, False, False]
    for values in (ladder.mean_wait, ladder.wait_probability, ladder.queue[:, 2]):
        below = np.polynomial.Polynomial.fit(rho[:4], values[:4], 3)
        assert below(rho[4]) == pytest.approx(values[4], rel=1e-10)


def test_nothing_waits_in_a_nearly_idle_system():
    ladder = factorise(64, [0.0, 1e-12, 1e-3])
    np.testing.assert_array_equal(ladder.mean_wait < 1e-100, True)
    np.testing.assert_array_equal(ladder.wait_probability >= 0, True)
