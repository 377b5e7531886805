r"""Numerical inversion of Laplace transforms on the positive axis: Fourier series with Euler's summation.

.. math:: f(t) \approx \frac{e^{A/2}}{2t} \hat f\Big(\frac{A}{2t}\Big)
          + \frac{e^{A/2}}{t} \sum_{k=1}^{N} w_k (-1)^k\, \mathrm{Re} \hat f\Big(\frac{A + 2\pi i k}{2t}\Big)

with weights that fall from 1 to 0 over the second half like a binomial distribution's tail. For the survival function of a
positive time the error of the series is at most :math:`e^{-A} f(3t)`, relative to the answer itself; rounding
adds about :math:`10^{-16} e^{A/2}`. Kinks of the function near t are what spoils it: they are taken out beforehand
(:mod:`formulas.queueing.kinks`), and the change from three quarters of the terms to all of them tells what is left.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

DAMPING = 22.0  # A: a series error of 3e-10 of the value at three times t, a rounding error of 1e-11


@lru_cache(maxsize=16)
def abscissae(terms: int) -> Complex:
    """Products s t of the points at which the transform is needed, from the real one on.

    Examples
    --------
    >>> abscissae(1)
    array([11.+0.j        , 11.+3.14159265j])
    """
    return np.asarray(DAMPING / 2 + 1j * np.pi * np.arange(terms + 1), dtype=np.complex128)


@lru_cache(maxsize=16)
def _weights(terms: int) -> Array:
    """Weights of all the terms, and of three quarters of them, with signs and the factor in front."""
    table = np.zeros((terms + 1, 2))
    for column, used in enumerate((terms, 3 * terms // 4)):
        table[: used + 1, column] = _falling(used) * (-1.0) ** np.arange(used + 1)
    table[0] /= 2
    table *= np.exp(DAMPING / 2)
    table.setflags(write=False)
    return table


def _falling(terms: int) -> Array:
    """Ones, then the tail of a binomial distribution over the second half."""
    fair = terms // 2
    j = np.arange(1, fair + 1)
    log_pmf = np.concatenate([[0.0], np.cumsum(np.log((fair - j + 1) / j))]) - fair * np.log(2.0)
    at_least = np.cumsum(np.exp(log_pmf)[::-1])[::-1]
    return np.concatenate([np.ones(terms - fair), at_least])[: terms + 1]


def invert(transform_over_t: Complex) -> tuple[Array, Array]:
    """Value at t, and how much it owes to the last quarter of the terms.

    Parameters
    ----------
    transform_over_t
        The transform divided by t, at ``abscissae(terms) / t`` along the last axis.

    Returns
    -------
    tuple of ndarray
        Values and changes, without the last axis.

    Examples
    --------
    >>> value, change = invert(1 / (abscissae(48) + 2.0))  # exp(-2 t) at t = 1
    >>> float(value)
    0.1353352832
    """
    both = transform_over_t.real @ _weights(transform_over_t.shape[-1] - 1)
    return both[..., 0], np.abs(both[..., 0] - both[..., 1])
