"""Pollaczek's contour integral behind :mod:`formulas.queueing.bursts.gamma_prompts`, in units of the mean service."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import floor, log, log2

import numpy as np
from numpy.typing import NDArray

from formulas.queueing.inversion import abscissae, invert
from formulas.queueing.root_of_tail import quantile_of
from formulas.queueing.service.law import ServiceLaw
from formulas.queueing.service.transforms import LawTransform

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

_STEP = 0.045  # of the parameter along the contour
_CROSSING, _BEND, _TURN, _SCALE = 0.3, 0.5, 4.0, 0.25  # of the contour, in units of beta or a little less
_FAR = 1e7
_NEAR = 20.0  # spacings of nodes within which the pole of the integrand is subtracted
_TERMS = ((64, 1e-8), (256, 1e-7), (1024, np.inf))
_ATOM = 1e-12
_SHORTEST = 1e-3  # mean services


@dataclass(frozen=True, eq=False)
class Contour:
    """Nodes, their weights over 2 pi i, and the service's transform at those of the upper half."""

    crossing: float
    turn: float
    scale: float
    nodes: Complex
    measure: Complex
    service: Complex

    def right_of(self, s: Complex) -> NDArray[np.bool_]:
        """Whether points lie to the right of the contour."""
        return np.asarray(s.real > self.crossing + _BEND * (np.hypot(s.imag, self.turn) - self.turn))

    def nearest(self, s: Complex) -> NDArray[np.int64]:
        """Index of the node at about the height of each point."""
        index = np.rint(np.arcsinh(s.imag / self.scale) / _STEP).astype(np.int64) + len(self.nodes) // 2
        return np.clip(index, 0, len(self.nodes) - 1)


@lru_cache(maxsize=32)
def _contour(law: ServiceLaw, unit: float, share: float) -> Contour:
    """Contour of a size, which serves all rates within a factor of two."""
    crossing, turn, scale = share * unit, _TURN * unit, _SCALE * unit
    count = int(np.arcsinh(_FAR * max(unit, 1.0) / scale) / _STEP)
    parameter = _STEP * np.arange(-count, count + 1)
    y, spread = scale * np.sinh(parameter), scale * np.cosh(parameter)
    root = np.hypot(y, turn)
    nodes = crossing + 1j * y + _BEND * (root - turn)
    measure = (1j + _BEND * y / root) * spread * (_STEP / 2j / np.pi)
    upper, values = nodes[count:], law.all_values / law.mean
    counts = law.all_weights > 1e-18
    service = np.zeros(len(upper), complex)
    alive = upper.real * values[counts][0] < 50.0
    service[alive] = np.exp(-upper[alive, np.newaxis] * values[counts]) @ law.all_weights[counts]
    return Contour(crossing, turn, scale, nodes, measure, service)


@dataclass(frozen=True, eq=False)
class GammaLawQueue:
    """One server, gamma gaps and prompts of any lengths; times in units of the mean service.

    Parameters
    ----------
    law
        Distribution of the service time.
    load
        Utilization, in (0, 1) [].
    shape
        Shape of the gaps [].
    """

    law: ServiceLaw
    load: float
    shape: float

    @property
    def _beta(self) -> float:
        return self.shape * self.load

    @cached_property
    def _contour(self) -> Contour:
        return _contour(self.law, 2.0 ** floor(log2(self._beta)), _CROSSING * min(1.0, 2.5 / self.shape))

    @cached_property
    def _transform(self) -> LawTransform:
        return LawTransform(self.law)

    @cached_property
    def _logarithm(self) -> Complex:
        """Logarithm of the regular part on the contour, continuous from the real point on."""
        upper = self._contour.nodes[len(self._contour.nodes) // 2 :]
        with np.errstate(over="ignore", under="ignore"):
            step = self._contour.service * np.exp(-self.shape * np.log1p(-upper / self._beta))
        value = (1.0 - step) / self._zero(upper)
        angle = np.unwrap(np.angle(value))
        half = np.log(np.abs(value)) + 1j * (angle - angle[0])
        return np.concatenate([np.conj(half[:0:-1]), half])

    def _zero(self, s: Complex) -> Complex:
        """Evaluate the fraction that takes out the zero at 0, one to the second order far away."""
        a = 2.0 * self._beta
        return s * (s - 2.0 * a) / (s - a) ** 2

    @cached_property
    def no_wait(self) -> float:
        """Share of the prompts that do not wait []."""
        c = self._contour
        at_zero = float((self._logarithm * c.measure / c.nodes).sum().real)
        return (1.0 - self.load) / self.load * self._beta * float(np.exp(-at_zero))

    @cached_property
    def mean(self) -> float:
        """Mean wait: the slope of the transform's logarithm at zero."""
        c, rho, alpha = self._contour, self.load, self.shape
        second = self.law.second_moment / self.law.mean**2 - 2.0 / rho + (alpha + 1.0) / alpha / rho**2
        step = second / 2.0 / (1.0 / rho - 1.0)  # of (1 - phi) / s, relative
        fraction = 1.5 / 2.0 / self._beta
        return step - fraction - float((self._logarithm * c.measure / c.nodes**2).sum().real)

    def point(self, t: float, ttft: bool) -> tuple[float, float]:
        """Survival and density at t > 0, of the wait or of the time to first token."""
        if t < _SHORTEST:  # the contour does not reach the frequencies that this takes: on a straight line
            there = self.point(_SHORTEST, ttft)
            first = 1.0 if ttft else 1.0 - self.no_wait
            return first + (there[0] - first) * t / _SHORTEST, there[1]
        most = self._transform.most_terms(t)
        for terms, change in _TERMS:
            s, rest = abscissae(terms) / t, self._transform.residual_complement(t, terms)
            wait = self._wait(s, rest)
            tail, waiting, served = (1.0 - wait) / s, wait - self.no_wait, 1.0 - rest
            both = np.stack([tail + waiting * served, waiting * (1.0 - s * served)] if ttft else [tail, waiting])
            values, changes = invert(both / t)
            if changes[0] <= change or 2 * terms > most:
                break
        survival, density = float(values[0]), float(values[1])
        if ttft:
            below, _, own = self.law.below(t * self.law.mean)
            survival += self.no_wait * (1.0 - below)
            density += self.no_wait * own * self.law.mean
        return survival, max(density, 0.0)

    def quantile(self, level: float, ttft: bool) -> float:
        """Wait, or time to first token, that a share `level` do not exceed."""
        if not ttft and level <= self.no_wait + _ATOM:
            return 0.0
        late, some = 1.0 - level, 1.0 - self.no_wait
        start = self.mean / some * max(log(some / late), 0.1) + (1.0 if ttft else 0.0)
        least = float(self.law.all_values[0]) / self.law.mean * (1.0 - 1e-12) if ttft else 0.0
        jumps = (self.law.atoms / self.law.mean, self.law.shares * self.no_wait) if ttft else (np.empty(0), np.empty(0))
        return quantile_of(lambda t: self.point(t, ttft), late, max(start, 1.001 * least), least, jumps)

    def _wait(self, s: Complex, rest: Complex) -> Complex:
        """Transform of the wait, from one less that of the residual service."""
        with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
            gaps = np.expm1(-self.shape * np.log1p(-s / self._beta))
            idle = (1.0 - self.load) / self.load
            step = s * (gaps - (gaps / s - 1.0 / self.load) - idle - rest * (1.0 + gaps))  # 1 - phi
            regular = step / self._zero(s)
            right = self._contour.right_of(s)
            value = self.no_wait * np.exp(self._cauchy(s, np.log(regular), right))
            return np.where(right, value, value / regular)

    def _cauchy(self, s: Complex, logarithm: Complex, right: NDArray[np.bool_]) -> Complex:
        """Integrate, with the pole subtracted where it comes near a contour."""
        c = self._contour
        inverse = c.measure / (c.nodes - s[:, np.newaxis])
        total: Complex = (inverse * self._logarithm).sum(axis=1)
        index = c.nearest(s)
        aside = np.abs(s - c.nodes[index])
        near = np.flatnonzero(aside < _NEAR * 2.0 * np.pi * np.abs(c.measure[index]))
        if len(near):
            there = self._logarithm[index[near]]
            own = logarithm[near] + 2j * np.pi * np.rint((there - logarithm[near]).imag / 2.0 / np.pi)
            ends = np.log(c.nodes[[0, -1], np.newaxis] - s[near])
            turn = (ends[1] - ends[0]) / 2j / np.pi - right[near]  # of the constant, along the contour
            halved = inverse[near]
            halved[:, [0, -1]] /= 2.0
            total[near] = (halved * (self._logarithm - own[:, np.newaxis])).sum(axis=1) + own * turn
        return total


@lru_cache(maxsize=256)
def gamma_law_queue(law: ServiceLaw, load: float, shape: float) -> GammaLawQueue:
    """Queue with its integrals kept."""
    return GammaLawQueue(law, load, shape)
