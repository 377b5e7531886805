"""Roots of increasing or decreasing functions, many at once."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def find_root(function: Callable[[Array], Array], low: Array, high: Array, *, tolerance: float = 1e-15) -> Array:
    """Root of a vectorised function between two points where its sign differs.

    Parameters
    ----------
    function
        Maps an array of the brackets' shape to one of the same shape, element by element.
    low, high
        Ends of the brackets. Where the function has one sign at both, the answer is NaN.
    tolerance
        Width of the final bracket, relative to the root.

    Notes
    -----
    Chandrupatla, Advances in Engineering Software 28 (1997) 145-149: inverse quadratic
    interpolation where it can be trusted, else bisection; no derivative, about ten evaluations.

    Examples
    --------
    >>> find_root(lambda x: x**2 - np.array([2.0, 9.0]), np.zeros(2), np.full(2, 5.0))
    array([1.41421356, 3.        ])
    """
    b, a = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    fb, fa = function(b), function(a)
    c, fc = a, fa
    bracketed = np.sign(fa) * np.sign(fb) <= 0
    fraction = np.full(a.shape, 0.5)
    for _ in range(100):
        x = a + fraction * (b - a)
        fx = function(x)
        same = np.sign(fx) == np.sign(fa)
        c, fc = np.where(same, a, b), np.where(same, fa, fb)
        b, fb = np.where(same, b, a), np.where(same, fb, fa)
        a, fa = x, fx
        best = np.where(np.abs(fa) < np.abs(fb), a, b)
        margin = (2e-16 + tolerance) * np.abs(best) + 1e-300
        with np.errstate(all="ignore"):
            share = margin / np.abs(b - a)
            open_brackets = (share <= 0.5) & (fa != 0) & (fb != 0) & bracketed
            if not open_brackets.any():
                break
            fraction = np.clip(_next_fraction((a, b, c), (fa, fb, fc)), share, 1.0 - share)
            fraction = np.where(np.isfinite(fraction), fraction, 0.5)
    return np.where(bracketed, best, np.nan)


def _next_fraction(points: tuple[Array, Array, Array], values: tuple[Array, Array, Array]) -> Array:
    (a, b, c), (fa, fb, fc) = points, values
    xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
    interpolate = (phi**2 < xi) & ((1.0 - phi) ** 2 < 1.0 - xi)
    quadratic = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
    return np.where(interpolate, quadratic, 0.5)
