import mpmath
import numpy as np
import pytest
import sympy as sp

from formulas.queueing.roots import ConjugateUtilization, complex_roots, conjugate_excess

LOADS = [1e-6, 0.001, 0.1, 0.49, 0.51, 0.69, 0.71, 0.9, 0.99, 0.9999, 0.9999999]


def lambert(rho, branch):
    with mpmath.workdps(50):
        z = -mpmath.mpf(rho) * mpmath.exp(-mpmath.mpf(rho))
        return -mpmath.lambertw(z, branch)


@pytest.mark.parametrize("rho", LOADS)
def test_real_root_keeps_its_digits_near_the_branch_point(rho):
    with mpmath.workdps(50):
        assert abs(conjugate_excess(rho) / (lambert(rho, -1) - 1) - 1) < 1e-14


@pytest.mark.parametrize("rho", LOADS)
def test_complex_roots_are_the_branches_of_lamberts_function(rho):
    for k, root in enumerate(complex_roots(np.array(rho), 15), start=1):
        with mpmath.workdps(50):
            assert abs(mpmath.mpc(complex(root)) / lambert(rho, -1 - k) - 1) < 1e-12


def test_sympy_function_differentiates_and_rewrites():
    rho = sp.Symbol("rho", positive=True)
    u = ConjugateUtilization(rho)
    slope = sp.diff(u, rho).subs(rho, sp.Rational(9, 10)).evalf(20)
    h = 1e-6
    assert float(slope) == pytest.approx((conjugate_excess(0.9 + h) - conjugate_excess(0.9 - h)) / (2 * h), rel=1e-8)
    near = sp.Rational(9999, 10000)
    assert float((u - 1).subs(rho, near).evalf(25)) == pytest.approx(conjugate_excess(0.9999), rel=1e-11)
