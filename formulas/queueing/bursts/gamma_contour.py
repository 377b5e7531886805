r"""Contour integrals behind :mod:`formulas.queueing.bursts.gamma_arrivals`, in units of the service time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import floor, log, sqrt

import numpy as np
from numpy.typing import NDArray

from formulas.queueing.root_of_tail import quantile_of
from formulas.queueing.roots import conjugate_excess

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

_STEP = 0.06  # of the parameter along a contour, for shapes up to 16; for others it falls with their square root
_SCALE = 0.5  # length on which its nodes begin to spread
_FAR, _FARTHER = 1e8, 1e14  # how far the contours of the transform and of the survival go
_INNER, _OUTER = 0.3, 1.0  # how far to the right of the tail's pole they cross the axis
_CLOSER = 40.0  # shape above which they cross at half of that distance, as more poles come near
_ATOM = 1e-14

MOST_EVEN = 100.0  # largest shape for which the nodes are placed well


@dataclass(frozen=True, eq=False)
class GammaQueue:
    """One server, equal prompts and gamma gaps.

    Parameters
    ----------
    utilization
        Utilization, in (0, 1) [].
    shape
        Shape of the gaps, above zero and at most :data:`MOST_EVEN` [].
    """

    utilization: float
    shape: float

    @cached_property
    def decay(self) -> float:
        """Decay rate of the tail."""
        return self.shape * (float(conjugate_excess(self.utilization)) + (1.0 - self.utilization))

    @cached_property
    def mean(self) -> float:
        """Mean wait: the derivative of the transform's logarithm at zero."""
        w, measure, logarithm = self._inner
        return 1.0 / self.decay - 1.0 / self._high - float((logarithm * measure / w**2).sum().real)

    @cached_property
    def no_wait(self) -> float:
        """Share of the prompts that do not wait: the transform far to the left."""
        w, measure, logarithm = self._inner
        return self.decay / self._high * float(np.exp((logarithm * measure / w).sum()).real)

    @cached_property
    def tail_constant(self) -> float:
        """Constant in front of the tail."""
        share = (self._high - self.decay) / self._high
        return share * float(np.exp(-self._cauchy(np.array([self.decay + 0j])))[0].real)

    def point(self, t: float) -> tuple[float, float]:
        """Survival and density at t >= 0."""
        z, weights = self._outer
        terms = weights * np.exp(self._log_step(z) * (floor(t) + 1) - z * t)
        tail = self.tail_constant * float(np.exp(-self.decay * t))
        survival = tail + float((terms / z).sum().real)
        return survival, max(self.decay * tail + float(terms.sum().real), 0.0)

    def quantile(self, level: float) -> float:
        """Wait that a share `level` do not exceed."""
        if level <= self.no_wait + _ATOM:
            return 0.0
        late = 1.0 - level
        start = max(log(self.tail_constant / late) / self.decay, 1e-3 / self.decay)
        return quantile_of(self.point, late, start)

    @property
    def _low(self) -> float:
        return 1.0 + 2.0 * self.shape * self.utilization

    @property
    def _high(self) -> float:
        return self._low + self.decay  # makes the fraction divided out one, to the second order, far away

    def _log_step(self, w: Complex) -> Complex:
        """Logarithm of the transform of a service less a gap."""
        return w - self.shape * np.log1p(w / (self.shape * self.utilization))

    def _regular(self, w: Complex) -> Complex:
        """One less the step's transform, without its zeros at 0 and at the decay rate."""
        with np.errstate(over="ignore", under="ignore"):
            rest = -np.expm1(self._log_step(w))
        divided: Complex = rest * ((w + self._low) / w) * ((self._high - w) / (self.decay - w))
        return divided

    @cached_property
    def _inner(self) -> tuple[Complex, Complex, Complex]:
        """Nodes of the contour of the transform, their weights, and the regular part's logarithm."""
        w, measure = self._contour(_INNER, 2.0, _FAR)
        value = self._regular(w)
        angle = np.unwrap(np.angle(value))
        return w, measure, np.log(np.abs(value)) + 1j * (angle - angle[len(w) // 2])

    @cached_property
    def _outer(self) -> tuple[Complex, Complex]:
        """Nodes of the survival's contour, its upper half, and the transform there with the weights."""
        z, measure = self._contour(_OUTER, 1.0, _FARTHER)
        z, measure = z[len(z) // 2 :], 2.0 * measure[len(measure) // 2 :]
        measure[0] /= 2.0
        poles = self.decay / self._high * (self._high - z) / (self.decay - z)
        return z, measure * poles * np.exp(-self._cauchy(z)) / self._regular(z)

    def _cauchy(self, z: Complex) -> Complex:
        w, measure, logarithm = self._inner
        weighted = logarithm * measure
        total: Complex = (weighted / (w - z[:, np.newaxis])).sum(axis=1) - (weighted / w).sum()
        return total

    def _contour(self, right: float, bend: float, far: float) -> tuple[Complex, Complex]:
        """Nodes that spread exponentially along a hyperbola, and their weights over 2 pi i.

        It stays outside of the circle about -beta through 0, which holds the other zeros of the step's equation.
        """
        step = _STEP / max(1.0, sqrt(self.shape / 16.0))
        count = int(np.arcsinh(far / _SCALE) / step)
        parameter = step * np.arange(-count, count + 1)
        y, spread = _SCALE * np.sinh(parameter), _SCALE * np.cosh(parameter)
        root = np.hypot(y, self._low)
        right = right if self.shape <= _CLOSER else right / 2.0
        nodes = self.decay + right + 1j * y - bend * (root - self._low)
        return nodes, (1j - bend * y / root) * spread * (step / 2j / np.pi)


@lru_cache(maxsize=256)
def gamma_queue(utilization: float, shape: float) -> GammaQueue:
    """Queue with its integrals kept."""
    return GammaQueue(utilization, shape)
