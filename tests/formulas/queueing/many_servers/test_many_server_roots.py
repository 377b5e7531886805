import mpmath
import numpy as np
import pytest

from formulas.queueing.roots import complex_roots, many_server_roots


@pytest.mark.parametrize("servers", [1, 2, 5, 64, 256])
@pytest.mark.parametrize("rho", [0.001, 0.3, 0.9, 0.99999])
def test_roots_solve_the_equation_and_lie_outside(servers, rho):
    roots = many_server_roots(np.array(rho), 40, servers)
    assert np.all(np.diff(np.abs(roots)) > 0)
    assert abs(roots[0]) > 1
    with mpmath.workdps(40):
        for m, root in enumerate(roots, start=1):
            turned = mpmath.mpf(rho) * mpmath.exp(-mpmath.mpf(rho)) * mpmath.expjpi(-mpmath.mpf(2 * m) / servers)
            u = mpmath.mpc(complex(root))
            slope = 1 - 1 / u
            error = (u - mpmath.log(u) + mpmath.log(turned)) / slope
            error -= 2j * mpmath.pi * mpmath.nint(mpmath.im(error * slope) / (2 * mpmath.pi)) / slope
            assert abs(error / u) < 1e-13


def test_with_one_server_they_are_the_complex_roots():
    rho = np.array([0.1, 0.5, 0.9])
    np.testing.assert_allclose(many_server_roots(rho, 10, 1), complex_roots(rho, 10), rtol=1e-12)
