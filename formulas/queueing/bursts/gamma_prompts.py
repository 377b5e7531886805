r"""Gamma arrivals and prompts of any lengths (Gamma/G/1): mean, survival and percentiles, numerically exact.

The step of the wait, a service less a gap, has :math:`\phi(s) = B(s)\,(1 - s/\beta)^{-\alpha}` with
:math:`\beta = \alpha\rho` in units of the mean service. By Pollaczek's factorization, for a line C between 0 and
:math:`\beta`,

.. math:: \ln W(s) = \ln P_0 + \frac{1}{2\pi i} \int_C \ln\frac{1-\phi(w)}{r(w)}\, \frac{dw}{w-s},
          \qquad r(w) = \frac{w(w-2a)}{(w-a)^2},

to the right of C, and :math:`W = P_0\, r\, e^{(\cdot)} / (1-\phi)` to the left. The fraction r takes out the zero at 0. C is bent to
the right, where services and gaps both make :math:`\phi` vanish. It needs no moment generating function, so that
log-normal prompts are as good as any. The transform of the wait is inverted as in :mod:`formulas.queueing.mg1_distribution`.

Errors measured against M/G/1, and against the closed form for exponential prompts, for shapes from 0.1 to 10 and
utilizations from 0.05 to 0.999: of a probability below 4e-7, typically 1e-8; of the mean a relative 2e-8, typically 1e-12. Where the
service time has atoms or kinks the distribution has kinks that are not taken out: near one of them an error is 1e-6
to 1e-5, and behind bursty arrivals up to 1e-3. For equal prompts :mod:`formulas.queueing.bursts.gamma_arrivals` is exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from formulas.closed_form import DomainError
from formulas.queueing import pollaczek_khinchine as pk
from formulas.queueing.bursts.gamma_law_queue import GammaLawQueue, gamma_law_queue
from formulas.queueing.mg1_distribution import LEVEL
from formulas.queueing.service.law import ServiceLaw

LEAST_SHAPE, MOST_SHAPE = 0.1, 10.0
_SHAPES = f"For prompts of any lengths the shape of the gaps lies between {LEAST_SHAPE:g} and {MOST_SHAPE:g}."


def gamma_law_mean_wait(rate: Any, shape: Any, law: ServiceLaw) -> Any:
    """Mean wait behind gamma arrivals, prompts of any lengths.

    Parameters
    ----------
    rate
        Prompts per second, above zero [1/s].
    shape
        Shape of the gaps: one over their squared coefficient of variation, between 0.1 and 10 [].
    law
        Distribution of the service time.

    Returns
    -------
    float or ndarray
        Mean wait; NaN in an array outside the domain [s].

    Examples
    --------
    >>> from formulas.queueing.service import LognormalLengths, service_law
    >>> law = service_law(LognormalLengths(1.0, 1.0), lambda length: length)
    >>> gamma_law_mean_wait(0.8, [0.5, 1.0, 4.0], law)
    array([6.30594834, 4.        , 2.29344614])
    """
    return _each(lambda queue: queue.mean * law.mean, law, rate, shape)


def gamma_law_wait_quantile(level: Any, rate: Any, shape: Any, law: ServiceLaw) -> Any:
    """Wait that a share `level` of the prompts do not exceed [s].

    Parameters
    ----------
    level
        Share, in (0, 1) [].
    rate, shape, law
        As in :func:`gamma_law_mean_wait`.

    Examples
    --------
    >>> from formulas.queueing.service import LognormalLengths, service_law
    >>> gamma_law_wait_quantile(0.99, 0.8, 1.0, service_law(LognormalLengths(1.0, 1.0), lambda length: length))
    23.368157
    """
    return _each(lambda queue, p: queue.quantile(p, ttft=False) * law.mean, law, rate, shape, _levels(level))


def gamma_law_ttft_quantile(level: Any, rate: Any, shape: Any, law: ServiceLaw) -> Any:
    """Time to first token that a share `level` do not exceed [s]; arguments as in :func:`gamma_law_wait_quantile`.

    Examples
    --------
    >>> from formulas.queueing.service import LognormalLengths, service_law
    >>> gamma_law_ttft_quantile(0.99, 0.8, 1.0, service_law(LognormalLengths(1.0, 1.0), lambda length: length))
    24.495770
    """
    return _each(lambda queue, p: queue.quantile(p, ttft=True) * law.mean, law, rate, shape, _levels(level))


def gamma_law_wait_survival(t: Any, rate: Any, shape: Any, law: ServiceLaw) -> Any:
    """Probability that a prompt waits longer than `t` [s]; the other arguments as in :func:`gamma_law_mean_wait`."""
    return _each(lambda queue, x: _after(queue, x / law.mean, ttft=False), law, rate, shape, t)


def gamma_law_ttft_survival(t: Any, rate: Any, shape: Any, law: ServiceLaw) -> Any:
    """Probability that the first token takes longer than `t` [s]; as :func:`gamma_law_wait_survival`."""
    return _each(lambda queue, x: _after(queue, x / law.mean, ttft=True), law, rate, shape, t)


def _after(queue: GammaLawQueue, t: float, ttft: bool) -> float:
    if t <= 0:
        return 1.0 if ttft or t < 0 else 1.0 - queue.no_wait
    return min(max(queue.point(t, ttft)[0], 0.0), 1.0)


def _levels(level: Any) -> Any:
    levels = np.asarray(level, float)
    if not np.all((levels > 0) & (levels < 1)):
        raise DomainError(LEVEL)
    return levels


def _each(value: Any, law: ServiceLaw, rate: Any, shape: Any, *others: Any) -> Any:
    load, alpha, *more = np.broadcast_arrays(
        *(np.asarray(x, float) for x in (np.asarray(rate) * law.mean, shape, *others))
    )
    shapes = (alpha >= LEAST_SHAPE) & (alpha <= MOST_SHAPE)
    problems = ((load >= 1, pk.UNSTABLE), (~(load > 0), "The arrival rate is above zero."), (~shapes, _SHAPES))
    for broken, sentence in problems if not load.ndim else ():
        if broken:
            raise DomainError(sentence)
    result = np.full(load.shape, np.nan)
    for index in np.ndindex(load.shape):
        if 0 < load[index] < 1 and shapes[index]:
            queue = gamma_law_queue(law, float(load[index]), float(alpha[index]))
            result[index] = value(queue, *(float(x[index]) for x in more))
    return result if result.ndim else float(result)
