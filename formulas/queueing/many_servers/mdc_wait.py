r"""The distribution of the wait in M/D/c, in units of the service time: two exact forms.

* Up to 16/c service times, rounded up to whole ones, the queue's probabilities, in sums of positive terms. With
  :math:`k = \lfloor t \rfloor + 1`, those queued a time k - t before the prompt arrives and those who arrive in between
  keep it waiting beyond t if they are kc or more: :math:`P(W > t) = P(Q + N(c\rho(k-t)) \ge kc)` (Franx, Operations
  Research Letters 29 (2001) 221, here in the queue Q, whose survival keeps its digits).
* Beyond, the expansion over the poles, :math:`\sum_m C_m e^{-c(u_m-\rho)t}`, with :math:`u_m` the roots of
  :math:`u e^{-u} = \rho e^{-\rho}` times the c-th roots of unity (:mod:`formulas.queueing.roots`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from formulas.bracketing import find_root
from formulas.queueing.many_servers.ladder import Ladder, whole_services
from formulas.queueing.roots import many_server_roots

Array = NDArray[np.float64]
Index = NDArray[np.intp]

_ATOM = 1e-15  # a share within this of those who wait counts as all of them
_SMALLEST = 1e-300  # a survival that rounds to nothing, where its logarithm is compared
_DIGITS = 16  # to which the roots are summed


def survival(t: Array, ladder: Ladder, row: Index) -> Array:
    """Probability of a wait longer than t.

    Parameters
    ----------
    t
        Times of at least 0, in units of the service time [].
    ladder
        The factorised queue at several utilizations.
    row
        Which of them each time belongs to.

    Examples
    --------
    >>> from formulas.queueing.many_servers.ladder import factorise
    >>> survival(np.array([0.0, 1.1695954587521224]), factorise(8, [0.8]), np.array([0, 0]))
    array([0.43379512, 0.01      ])
    """
    early = t < whole_services(ladder.servers)
    value = np.empty(t.shape)
    if early.any():
        value[early] = _early_survival(t[early], ladder, row[early])
    if not early.all():
        value[~early] = np.maximum(_Tail(ladder).survival(t[~early], row[~early])[0], 0.0)
    return value


def _early_survival(t: Array, ladder: Ladder, row: Index) -> Array:
    """P(Q + N >= kc) with k the next whole service time, by the queue's probabilities."""
    c = ladder.servers
    longer = np.array(ladder.queue)
    longer[:, 0] = 0.0  # summed from 1 on, so that rounding stays small against the probability of a queue
    longer = ladder.queue_probability[:, np.newaxis] - np.cumsum(longer, axis=1)
    services = np.floor(t) + 1.0
    mean = c * ladder.rho[row] * (services - t)
    arrivals = np.arange(c * int(services.max()) + int(10 * np.sqrt(c)) + 40)
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, len(arrivals))))])
    mean = mean[:, np.newaxis]
    with np.errstate(under="ignore"):
        poisson = np.exp(arrivals * np.log(mean) - mean - log_factorial)
    left = c * services.astype(int)[:, np.newaxis] - 1 - arrivals
    chance = np.where(left < 0, 1.0, longer[row[:, np.newaxis], np.maximum(left, 0)])
    return np.asarray(np.maximum(np.sum(poisson * chance, axis=1), 0.0))  # far in the tail the sum rounds below zero


class _Tail:
    """The expansion over the poles, from :func:`whole_services` on."""

    def __init__(self, ladder: Ladder) -> None:
        c = ladder.servers
        growth = 10.0 ** (_DIGITS / (c * whole_services(c)))  # of the nearest root's size, after which all is lost
        largest = 1.0 + float(ladder.excess.max())
        count = int(np.ceil(c * largest * np.sqrt(growth**2 - 1.0) / (2.0 * np.pi))) + 2
        beyond = np.empty((len(ladder.rho), count + 1), dtype=complex)  # 1: near saturation that has the digits
        beyond[:, 0] = ladder.excess
        beyond[:, 1:] = many_server_roots(ladder.rho, count, c) - 1.0
        self.rates = c * (beyond + (1.0 - ladder.rho)[:, np.newaxis])
        self.weights = 2.0 * ladder.weights(beyond)
        self.weights[:, 0] /= 2.0

    def one_term(self, late: Array, row: Index) -> Array:
        """Wait at which the nearest pole alone leaves a share `late`."""
        return np.asarray(np.log(self.weights[row, 0].real / late) / self.rates[row, 0].real)

    def survival(self, t: Array, row: Index) -> tuple[Array, Array]:
        """Survival and density."""
        rates = self.rates[row]
        with np.errstate(under="ignore"):
            terms = self.weights[row] * np.exp(-rates * t[:, np.newaxis])
        return terms.real.sum(axis=1), (rates * terms).real.sum(axis=1)


def quantile(late: Array, ladder: Ladder, row: Index) -> Array:
    """Wait that a share `late` exceeds, in units of the service time; see :func:`survival`.

    Examples
    --------
    >>> from formulas.queueing.many_servers.ladder import factorise
    >>> quantile(np.array([0.01]), factorise(8, [0.8]), np.array([0]))
    array([1.16959546])
    """
    waits = late < ladder.wait_probability[row] - _ATOM
    t = np.zeros(late.shape)
    if waits.any():
        loaded, row = np.unique(row[waits], return_inverse=True)
        t[waits] = _positive_quantile(late[waits], ladder.rows(loaded), row)
    return t


def _positive_quantile(late: Array, ladder: Ladder, row: Index) -> Array:
    last = float(whole_services(ladder.servers))
    tail = _Tail(ladder)
    far = late < tail.survival(np.full(late.shape, last), row)[0]
    t = np.empty(late.shape)
    if far.any():
        t[far] = _quantile_by_poles(late[far], tail, row[far], last)
    if not far.all():
        t[~far] = _quantile_by_queue(late[~far], ladder, row[~far], last)
    return t


def _quantile_by_poles(late: Array, tail: _Tail, row: Index, first: float) -> Array:
    """Newton's method on the logarithm of the survival, nearly straight, from the nearest pole alone."""
    t = np.maximum(tail.one_term(late, row), first)
    for _ in range(4):
        later, density = tail.survival(t, row)
        t = np.maximum(t + later / density * np.log(later / late), first)
    return t


def _quantile_by_queue(late: Array, ladder: Ladder, row: Index, last: float) -> Array:
    def excess(t: Array) -> Array:
        return np.asarray(np.log(np.maximum(_early_survival(t, ladder, row), _SMALLEST) / late))

    start, end = np.zeros(late.shape), np.full(late.shape, np.nextafter(last, 0.0))
    t = find_root(excess, start, end)
    # A share within rounding of those at one of the ends has no sign change between them.
    return np.where(np.isfinite(t), t, np.where(excess(start) < 0, start, end))
