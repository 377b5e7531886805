r"""Decay rates of queues with equal service times: the roots of :math:`u e^{-u} = \rho e^{-\rho}`.

Every one is a branch of Lambert's function, :math:`u_k = -W_k(-\rho e^{-\rho})`. Branch 0 is :math:`\rho`
itself, branch -1 the real root above 1, which sets the tail of the wait; the others come in conjugate pairs.
They are found here by Newton's method rather than by ``scipy.special.lambertw``, which loses half of its
digits near :math:`\rho = 1` (the branch point) and takes a quarter of a second to import.
"""

from typing import Any

import numpy as np
import sympy as sp
from mpmath.libmp import prec_to_dps
from numpy.typing import NDArray

_SERIES = 1.0 / np.arange(3, 25, 2)


def conjugate_excess(utilization: Any) -> Any:
    r"""Distance :math:`u - 1` of the conjugate utilization from 1, to full relative precision.

    Parameters
    ----------
    utilization
        Utilization, in (0, 1) [].

    Returns
    -------
    float or ndarray
        :math:`u_{-1} - 1 > 0` [].

    Notes
    -----
    Solves :math:`\delta - \ln(1 + \delta) = -\ln(1 - \epsilon) - \epsilon` with :math:`\epsilon = 1 - \rho`.
    The left side is convex, so Newton's method from a point above the root decreases to it.

    Examples
    --------
    >>> conjugate_excess(0.5)
    0.75643120862617
    """
    rho = np.asarray(utilization, dtype=float)
    return excess(np.where(rho < 0.5, rho - 1.0 - np.log(rho), minus_log1p(rho - 1.0)))


def excess(level: Any) -> Any:
    r"""Solution :math:`\delta \ge 0` of :math:`\delta - \ln(1 + \delta) = x`, to full relative precision.

    Parameters
    ----------
    level
        The right side, at least 0 [].

    Returns
    -------
    float or ndarray
        :math:`\delta = -W_{-1}(-e^{-1-x}) - 1` [].

    Examples
    --------
    >>> excess(1.0)
    2.1461932206205825
    """
    given = np.asarray(level, dtype=float)
    delta = given + np.sqrt(2.0 * given)
    for _ in range(6):
        delta = delta - (minus_log1p(delta) - given) * (1.0 + delta) / np.where(delta > 0.0, delta, 1.0)
    return delta if given.ndim else float(delta)


def conjugate_utilization(utilization: Any) -> Any:
    r"""Load :math:`u > 1` with :math:`u e^{-u} = \rho e^{-\rho}` [].

    Examples
    --------
    >>> conjugate_utilization(0.9)
    1.1071465029
    """
    return 1.0 + conjugate_excess(utilization)


def complex_roots(utilization: NDArray[np.float64], branches: int) -> NDArray[np.complex128]:
    r"""Roots with a positive imaginary part, nearest first, along a new last axis.

    Parameters
    ----------
    utilization
        Utilizations, in (0, 1) [].
    branches
        How many; each stands for itself and its conjugate.
    """
    rho = np.asarray(utilization, dtype=float)[..., np.newaxis]
    turns = 2j * np.pi * np.arange(1, branches + 1)
    level = rho - np.log(rho) + turns
    root: NDArray[np.complex128] = level + np.log(level + np.log(level))
    for _ in range(2):
        root = root - (root - np.log(root) - level) * root / (root - 1.0)
    return root


def many_server_roots(utilization: NDArray[np.float64], count: int, servers: int) -> NDArray[np.complex128]:
    r"""Roots of :math:`u e^{-u} = \rho e^{-\rho} e^{-2\pi i m/c}` outside the unit circle, along a new last axis.

    Parameters
    ----------
    utilization
        Utilizations, in (0, 1) [].
    count
        Largest m, from 1; each root stands for itself and its conjugate [].
    servers
        Servers c; with one, these are :func:`complex_roots` [].

    Examples
    --------
    >>> many_server_roots(np.array([0.8]), 1, 8).round(6)
    array([[1.886378+1.436088j]])
    """
    rho = np.asarray(utilization, dtype=float)[..., np.newaxis]
    level = rho - np.log(rho) + 2j * np.pi * np.arange(1, count + 1) / servers
    # Near the branch point u = 1 the left side is a parabola; far from it u is the level and its logarithms.
    edge = np.sqrt(2.0 * (level - 1.0))
    far = level + np.log(level + np.log(level))
    root: NDArray[np.complex128] = np.where(np.abs(level - 1.0) < 2.0, 1.0 + edge + edge**2 / 3.0, far)
    for _ in range(4):
        root = root - (root - np.log(root) - level) * root / (root - 1.0)
    return root


def minus_log1p(x: Any) -> Any:
    """Return ``x - log(1 + x)`` without cancellation at small x: log(1 + x) is 2 atanh(x / (2 + x)).

    Examples
    --------
    >>> float(minus_log1p(1e-9)) * 2e18
    0.99999999933
    """
    x = np.asarray(x, dtype=float)
    s = x / (2.0 + x)
    square = np.where(np.abs(x) < 0.3, s * s, 0.0)
    tail = np.polynomial.polynomial.polyval(square, _SERIES)
    return np.where(np.abs(x) < 0.3, x * s - 2.0 * s**3 * tail, x - np.log1p(x))


class ConjugateUtilization(sp.Function):  # type: ignore[misc]
    r"""SymPy's view of :func:`conjugate_utilization`, drawn as :math:`u(\rho)`.

    Examples
    --------
    >>> ConjugateUtilization(sp.Rational(1, 2)).evalf(20)
    1.7564312086261696770
    """

    is_positive = True
    _imp_ = staticmethod(conjugate_utilization)

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        """Differentiate ``u exp(-u) = rho exp(-rho)`` implicitly."""
        del argindex
        rho = self.args[0]
        return self / rho * (1 - rho) / (1 - self)

    def _eval_rewrite_as_LambertW(self, rho: sp.Expr, **_: Any) -> sp.Expr:  # noqa: N802 - SymPy looks for it
        return -sp.LambertW(-rho * sp.exp(-rho), -1)

    def _eval_evalf(self, prec: int) -> sp.Expr:
        digits = prec_to_dps(prec)  # half of them are lost near the branch point
        return self.rewrite(sp.LambertW).evalf(2 * digits).evalf(digits)

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        power = f"^{{{exp}}}" if exp else ""
        return rf"u{power}\left({printer.doprint(self.args[0])}\right)"
