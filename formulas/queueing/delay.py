"""The wait of M/G/1 and an independent time after it: survival, density and percentiles in units of the mean service.

What it computes is described in :mod:`formulas.queueing.mg1_distribution`, which also checks the arguments.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from formulas.bracketing import find_root
from formulas.queueing.inversion import abscissae, invert
from formulas.queueing.kinks import Kinks
from formulas.queueing.root_of_tail import quantile_of
from formulas.queueing.service.law import ServiceLaw
from formulas.queueing.service.transforms import LawTransform

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

# Terms of the series, and the change of a probability by the last quarter of them that calls for more.
_TERMS = ((64, 1e-9), (256, 1e-8), (1024, 3e-8), (4096, np.inf))
_ATOM = 1e-15  # a level within this of 1 - rho is the atom's


@lru_cache(maxsize=64)
def delay_of(law: ServiceLaw, added: ServiceLaw | None) -> Delay:
    """Delay with what its transforms need, kept for every rate."""
    return Delay(law, added)


@dataclass(frozen=True, eq=False)
class Delay:
    """The wait, and an independent time after it; times in units of the mean service.

    Parameters
    ----------
    law
        Distribution of the service time.
    added
        Distribution of the time after the wait; None for none.
    """

    law: ServiceLaw
    added: ServiceLaw | None

    def survival(self, t: float, load: float) -> float:
        """Probability that the delay exceeds t."""
        if t < self._least * (1.0 - 1e-15):
            return 1.0
        if t == 0 or load == 0:
            return load + (1.0 - load) * (1.0 - self._added_below(t)[0])
        return min(max(self.point(t, load)[0], 0.0), 1.0)

    def point(self, t: float, load: float) -> tuple[float, float]:
        """Survival and density at t > 0."""
        most = min(transform.most_terms(t / scale) for transform, scale in self._transforms)
        for terms, change in _TERMS:
            both = self._of_those_who_wait(t, terms, load)
            if self._kinks.orders:
                both[0] -= self._kinks.transform(t, terms, load)
            values, changes = invert(both)
            if changes[0] <= change * (1.0 if self.added else load) or 2 * terms > most:
                break
        share, density = self._added_below(t)
        survival = float(values[0]) + (1.0 - load) * (1.0 - share)
        if self._kinks.orders:
            survival += self._kinks.survival(t, load)
        return survival, max(float(values[1]) + (1.0 - load) * density, 0.0)

    def quantile(self, level: float, load: float) -> float:
        """Delay that a share `level` do not exceed."""
        if level <= (1.0 - load) * self._added_below(0.0)[0] + _ATOM:
            return 0.0
        if load == 0 and self.added:
            return float(self.added.quantile(level)) / self.law.mean
        least, jumps = self._least * (1.0 - 1e-12), (np.empty(0), np.empty(0))
        if self.added:
            jumps = (self.added.atoms / self.law.mean, self.added.shares * (1.0 - load))
        else:  # no sooner than if nothing were served meanwhile
            least = float(np.log1p((level - 1.0 + load) / (1.0 - load)) / load)
            if least <= self.law.all_values[0] / self.law.mean:
                return least
        start = max(self._guess(level, load), least * (1.0 + 1e-9))
        return quantile_of(lambda t: self.point(t, load), 1.0 - level, start, least, jumps)

    def max_load(self, late: float, t: float) -> float:
        """Largest load at which no more than a share `late` take longer than t."""

        def excess(load: Array) -> Array:
            return np.array([np.log(max(self.survival(t, float(x)), 1e-300) / late) for x in load])

        found = find_root(excess, np.array([1e-12]), np.array([1.0 - 1e-9]), tolerance=1e-12)
        return 0.0 if np.isnan(found[0]) else float(found[0])

    @cached_property
    def _transforms(self) -> tuple[tuple[LawTransform, float], ...]:
        """Transforms of the service and of the time after the wait, and the means of both."""
        own = (LawTransform(self.law), 1.0)
        if self.added is None or self.added is self.law:
            return (own,)
        return own, (LawTransform(self.added), self.added.mean / self.law.mean)

    @cached_property
    def _kinks(self) -> Kinks:
        added = (self.added.atoms / self.law.mean, self.added.shares) if self.added else None
        return Kinks(self.law.atoms / self.law.mean, self.law.shares, added)

    @property
    def _least(self) -> float:
        return float(self.added.all_values[0]) / self.law.mean if self.added else 0.0

    def _added_below(self, t: float) -> tuple[float, float]:
        """Share of the times after the wait up to t, and their density."""
        if self.added is None:
            return 1.0, 0.0
        share, _, density = self.added.below(t * self.law.mean)
        return share, density * self.law.mean

    def _of_those_who_wait(self, t: float, terms: int, load: float) -> Complex:
        """Return the transforms over t of survival and density, without those who do not wait."""
        rests = [transform.residual_complement(t / scale, terms) for transform, scale in self._transforms]
        st, idle = abscissae(terms), 1.0 - load
        wait = idle / (idle + load * rests[0])
        waiting = wait * load * (1.0 - rests[0])
        tail = wait * load * rests[0] / idle / st
        if self.added is None:
            return np.stack([tail, waiting / t])
        added_tail = self._transforms[-1][1] * (1.0 - rests[-1]) / t
        return np.stack([tail + waiting * added_tail, waiting * (1.0 - st * added_tail) / t])

    def _guess(self, level: float, load: float) -> float:
        """Quantile of a gamma distribution with the first two moments, those of the wait given that there is one.

        By Wilson and Hilferty's cube root, which is near enough to start from.
        """
        second, third = self.law.second_moment / self.law.mean**2, self.law.third_moment / self.law.mean**3
        mean = load * second / 2.0 / (1.0 - load)
        variance = mean**2 + load * third / 3.0 / (1.0 - load)
        if self.added:
            mean, variance = mean + self.added.mean / self.law.mean, variance + self.added.variance / self.law.mean**2
        else:
            level = (level - 1.0 + load) / load
            mean, variance = mean / load, (variance + mean**2) / load - (mean / load) ** 2
        shape = mean**2 / variance if variance > 0 else 1e12
        deviate = NormalDist().inv_cdf(min(max(level, 1e-12), 1.0 - 1e-12))
        return float(mean * max(1.0 - 1.0 / (9.0 * shape) + deviate / (3.0 * shape**0.5), 0.05) ** 3)
