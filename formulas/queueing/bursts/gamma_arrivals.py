r"""Gamma arrivals, equal prompts (Gamma/D/1): the wait exactly, in units of the service time.

Gaps between arrivals have a gamma distribution of shape :math:`\alpha`: a squared coefficient of variation of
:math:`1/\alpha`. It is what load generators call burstiness; 1 is Poisson, below it arrivals come in bursts, above it
they are regular, and at infinity nobody waits. For a whole shape c it is what each of c instances sees under round robin.

One step of the wait is the service less a gap, with :math:`\phi(z) = E[e^{z(1-A)}] = e^z (1 + z/\beta)^{-\alpha}` and
:math:`\beta = \alpha\rho`. Spitzer's identity, with the contour to the right of z, gives

.. math:: \ln E[e^{zW}] = -\frac{1}{2\pi i} \int \ln(1 - \phi(w)) \Big(\frac{1}{w-z} - \frac1w\Big) dw,
          \qquad P(W > t) = \frac{1}{2\pi i} \int E[e^{zW}]\, \phi(z)^n e^{-zt}\, \frac{dz}{z}

for any n above t: the first n terms of a geometric series add nothing, as their contour closes on the right. Bent to the
left, both contours make :math:`\phi` fall off exponentially, whatever the shape. The zeros of :math:`1 - \phi` at 0 and at
:math:`\theta`, which close in on each other as the load grows, are divided out; the pole at :math:`\theta` is the tail
:math:`C e^{-\theta t}`.

Measured against M/D/1, and M/D/c for whole shapes, from utilization 0.01 to 0.999: errors below 1e-13.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import sympy as sp

from formulas.closed_form import ClosedForm, Condition, DomainError, Step, equation, less, variable
from formulas.queueing import md1
from formulas.queueing import pollaczek_khinchine as pk
from formulas.queueing.bursts.gamma_contour import MOST_EVEN, GammaQueue, gamma_queue
from formulas.queueing.mg1_distribution import LEVEL, NEGATIVE
from formulas.queueing.roots import ConjugateUtilization

SHAPE = variable("shape", r"\alpha", "", "shape of the gaps between arrivals: one over their squared variation")

_RHO, _ALPHA, _D = pk.RHO.symbol, SHAPE.symbol, md1.SERVICE.symbol
_U = ConjugateUtilization(_RHO)

_NO_SHAPE = "The shape of the gaps between arrivals is above zero."
_TOO_EVEN = (
    f"Gaps with a shape above {MOST_EVEN:g} are as good as equal: take an infinite shape, with which nobody waits."
)


def _decay_steps() -> tuple[Step, ...]:
    z, u = sp.symbols("z u", positive=True)
    gaps = sp.exp(z) * (1 + z / (_ALPHA * _RHO)) ** (-_ALPHA)
    return (
        Step("With time counted in services, the step of the wait has the transform", gaps),
        Step("The tail decays at the rate at which it is one. The root of order α is taken.",
             equation(sp.exp(z / _ALPHA), 1 + z / _ALPHA / _RHO)),
        Step("With z/α = u - ρ this is the equation of M/D/1.", equation(u * sp.exp(-u), _RHO * sp.exp(-_RHO))),
    )  # fmt: skip


GAMMA_DECAY_RATE = ClosedForm(
    "decay rate of the wait with gamma arrivals",
    md1.DECAY,
    _ALPHA * (_U - _RHO) / _D,
    (pk.RHO, SHAPE, md1.SERVICE),
    "Root of the step's transform; Asmussen, Applied Probability and Queues (2003), chapter XIII",
    (Condition(less(_RHO, 1), pk.UNSTABLE),),
    _decay_steps,
)


def gamma_mean_wait(utilization: Any, shape: Any) -> Any:
    """Mean wait behind gamma arrivals.

    Parameters
    ----------
    utilization
        Utilization, in [0, 1) [].
    shape
        Shape of the gaps, above zero: one over their squared coefficient of variation. Infinite if all are equal, else at most 100 [].

    Returns
    -------
    float or ndarray
        Mean wait in units of the service time []; NaN in an array where the queue is unstable.

    Examples
    --------
    >>> gamma_mean_wait(0.8, [0.5, 1.0, 2.0])
    array([4.26428477, 2.        , 0.90328388])
    """
    return _each(lambda queue: queue.mean, 0.0, utilization, shape)


def gamma_no_wait(utilization: Any, shape: Any) -> Any:
    """Share of the prompts that do not wait []; the arguments are those of :func:`gamma_mean_wait`.

    Examples
    --------
    >>> gamma_no_wait(0.5, [0.5, 1.0, 8.0])
    array([0.33856334, 0.5       , 0.94570758])
    """
    return _each(lambda queue: queue.no_wait, 1.0, utilization, shape)


def gamma_wait_survival(t: Any, utilization: Any, shape: Any) -> Any:
    """Probability that a prompt waits longer than `t`, in units of the service time [].

    Parameters
    ----------
    t
        Time, in units of the service time [].
    utilization, shape
        As in :func:`gamma_mean_wait`.

    Examples
    --------
    >>> gamma_wait_survival([0.0, 10.0], 0.8, 0.5)
    array([0.8730014 , 0.10676333])
    """
    survival = _each(lambda queue, x: queue.point(max(x, 0.0))[0], 0.0, utilization, shape, t)
    early = np.asarray(t) < 0
    return np.where(early & ~np.isnan(survival), 1.0, survival) if np.ndim(survival) else 1.0 if early else survival


def gamma_wait_quantile(level: Any, utilization: Any, shape: Any) -> Any:
    """Wait that a share `level` of the prompts do not exceed, in units of the service time [].

    Parameters
    ----------
    level
        Share, in (0, 1) [].
    utilization, shape
        As in :func:`gamma_mean_wait`.

    Examples
    --------
    >>> gamma_wait_quantile(0.99, 0.8, [0.25, 1.0, 4.0])
    array([42.32904008, 10.35588679,  2.45458441])
    """
    levels = np.asarray(level, float)
    inside = (levels > 0) & (levels < 1)
    if not (levels.ndim or inside):
        raise DomainError(LEVEL)
    found = _each(lambda queue, p: queue.quantile(p), 0.0, utilization, shape, np.where(inside, levels, 0.5))
    return np.where(inside, found, np.nan) if np.ndim(found) else found


def _each(value: Callable[..., float], alone: float, utilization: Any, shape: Any, *others: Any) -> Any:
    """Value of each queue; `alone` where nobody ever waits: at load zero, or with gaps that are all equal."""
    rho, alpha, *more = np.broadcast_arrays(*(np.asarray(x, float) for x in (utilization, shape, *others)))
    problems = (
        (rho >= 1, pk.UNSTABLE),
        (~(rho >= 0), NEGATIVE),
        (~(alpha > 0), _NO_SHAPE),
        ((alpha > MOST_EVEN) & (alpha < np.inf), _TOO_EVEN),
    )
    for broken, sentence in problems if not rho.ndim else ():
        if broken:
            raise DomainError(sentence)
    inside = (rho >= 0) & (rho < 1) & (alpha > 0) & ((alpha <= MOST_EVEN) | (alpha == np.inf))
    result = np.where(inside, alone, np.nan)
    for index in np.ndindex(rho.shape):
        if not (inside[index] and rho[index] > 0 and alpha[index] < np.inf):
            continue
        queue: GammaQueue = gamma_queue(float(rho[index]), float(alpha[index]))
        result[index] = value(queue, *(float(x[index]) for x in more))
    return result if result.ndim else float(result)
