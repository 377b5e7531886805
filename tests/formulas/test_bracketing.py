import numpy as np
import pytest

from formulas.bracketing import find_root


def test_roots_of_many_functions_at_once():
    target = np.array([0.1, 0.5, 0.9, 0.999999])
    root = find_root(lambda x: np.tanh(x) ** 3 - target, np.zeros(4), np.full(4, 50.0))
    np.testing.assert_allclose(np.tanh(root) ** 3, target, rtol=1e-13)


def test_root_at_an_end_of_the_bracket():
    assert find_root(lambda x: x - 2.0, np.array([2.0]), np.array([5.0])) == pytest.approx(2.0)
    assert find_root(lambda x: x - 5.0, np.array([2.0]), np.array([5.0])) == pytest.approx(5.0)


def test_no_root_is_nan():
    assert np.isnan(find_root(lambda x: x + 1.0, np.array([0.0]), np.array([5.0])))[0]
