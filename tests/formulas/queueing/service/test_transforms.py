import mpmath
import numpy as np
import pytest

from formulas.queueing.inversion import abscissae
from formulas.queueing.service import (
    GammaLengths,
    ListedLengths,
    LognormalLengths,
    equal_service,
    service_law,
)
from formulas.queueing.service.transforms import LawTransform, exponential_sums

WIDE = np.geomspace(1e-3, 1e3, 60)
LAWS = {
    "equal": equal_service(3.0),
    "two": service_law(ListedLengths([1.0, 30.0], [0.99, 0.01]), lambda x: x),
    "wide": service_law(ListedLengths(WIDE, 1 / (1 + WIDE)), lambda x: x),
}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("t", [0.03, 1.0, 25.0, 1000.0, 1e5])
def test_residual_complement_keeps_its_digits(name, t):
    """Against the same sum with 30 digits: nothing cancels, however small s is."""
    law = LAWS[name]
    got = LawTransform(law).residual_complement(t, 64)
    for k in (0, 1, 7, 64):
        with mpmath.workdps(30):
            s = mpmath.mpc(complex(abscissae(64)[k])) / t
            x = [s * mpmath.mpf(float(v)) / law.mean for v in law.all_values]
            terms = [float(w) * v / law.mean * (1 + mpmath.expm1(-y) / y)
                     for w, v, y in zip(law.all_weights, map(float, law.all_values), x, strict=True)]  # fmt: skip
            exact = complex(mpmath.fsum(terms))
        assert abs(got[k] - exact) < 1e-13 * abs(exact)


def test_gamma_laws_transform_is_known():
    law = service_law(GammaLengths(2.0, 0.5), lambda x: x)
    for t in (0.2, 3.0, 100.0):
        s = abscissae(64) / t  # per mean
        exact = 1 - (1 - (1 + s / 4) ** -4.0) / s
        np.testing.assert_allclose(LawTransform(law).residual_complement(t, 64), exact, rtol=1e-12)


def test_sums_of_exponentials_in_groups():
    shifts, weights = np.array([0.1, 0.5, 2.0]), np.array([0.2, 0.3, 0.5])
    together = exponential_sums(shifts, weights, 70)
    apart = exponential_sums(shifts, weights, 70, [1])
    direct = np.exp(-abscissae(70)[:, None] * shifts) @ weights
    np.testing.assert_allclose(together, direct, atol=1e-16)
    np.testing.assert_allclose(apart.sum(axis=0), direct, atol=1e-16)
    assert apart.shape == (2, 71)


def test_terms_are_limited_where_the_nodes_would_not_follow():
    smooth = LawTransform(service_law(LognormalLengths(1.0, 1.0), lambda x: x))
    assert 50 < smooth.most_terms(1.0) < 200
    assert smooth.most_terms(1000.0) > 300
    assert LawTransform(LAWS["equal"]).most_terms(1.0) == np.inf
