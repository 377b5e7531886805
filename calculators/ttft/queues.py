"""What the traffic makes of the queue, one class for each method: the mean and the percentiles of TTFT at any rate.

Rates are those of the whole pool [requests/s]; times are in ms.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from calculators.ttft.lengths import LawTimes
from formulas.closed_form import DomainError
from formulas.queueing import md1, mg1
from formulas.queueing.bursts import (
    gamma_law_mean_wait,
    gamma_law_ttft_quantile,
    gamma_mean_wait,
    gamma_wait_quantile,
)
from formulas.queueing.many_servers import MEASURED_ERRORS, Law, mdc, own_queue_laws, shared_queue_laws
from formulas.queueing.many_servers.lattice import LatticeLaw
from formulas.queueing.service import ServiceLaw

Array = NDArray[np.float64]
Kind = Literal["exact", "numerical", "approximation", "simulation"]

Laws = tuple[Law | LatticeLaw, Law | LatticeLaw]

MOST_LOAD = 1 - 1e-7
"""Utilization up to which the highest rate is looked for."""


@dataclass(frozen=True, eq=False)
class Queue(ABC):
    """A pool of instances under one kind of traffic.

    Attributes
    ----------
    law
        Distribution of the service time [s].
    servers
        Instances.
    kind, name
        How far its answers can be trusted, and the method in a sentence.
    error
        The error in a sentence, or ``None`` where it is exact.
    exact_ms
        Service time of equal prompts to the last digit, or 0 where they differ.
    nodes
        Loads at which a curve is computed; between them it is interpolated.
    slow
        Whether one rate takes so long that a page computes it on demand.
    near
        To which the highest rate is found, on the logarithm of its distance from capacity.
    """

    law: ServiceLaw
    servers: int = 1
    exact_ms: float = 0.0
    kind: ClassVar[Kind] = "exact"
    nodes: ClassVar[int] = 10
    near: ClassVar[float] = 1e-9
    slow: ClassVar[bool] = False

    @property
    @abstractmethod
    def name(self) -> str:
        """The method in a sentence."""

    @property
    def error(self) -> str | None:
        """How far off it may be, in a sentence."""
        return None

    @property
    def service_ms(self) -> float:
        """Mean service time."""
        return self.exact_ms or 1e3 * self.law.mean

    @property
    def capacity(self) -> float:
        """Rate that it stays below [requests/s]."""
        return 1e3 * self.servers / self.service_ms

    def utilization(self, rate: float) -> float:
        """Share of the time that an instance is busy; 1 or more where there is no steady state."""
        return float(md1.UTILIZATION(rate=rate / self.servers, service_time=self.service_ms / 1e3))

    @abstractmethod
    def mean_wait_ms(self, rate: float) -> float:
        """Mean wait."""

    @abstractmethod
    def ttft_ms(self, levels: Array, rate: float) -> Array:
        """Percentiles of TTFT by their levels, in (0, 1)."""

    def mean_ttft_ms(self, rate: float) -> float:
        """Mean TTFT."""
        return self.mean_wait_ms(rate) + self.service_ms

    def curve_ms(self, levels: Array, rates: Array) -> Array:
        """Percentiles of TTFT, a row for each level, at many rates."""
        return np.stack([self.ttft_ms(levels, float(rate)) for rate in rates], axis=1)

    def value_ms(self, level: float | None, rate: float) -> float:
        """TTFT at a level, or its mean."""
        if level is None:
            return self.mean_ttft_ms(rate)
        return float(self.ttft_ms(np.array([level]), rate)[0])

    def unloaded_ms(self, level: float | None) -> float:
        """TTFT at a level, or its mean, where nobody waits."""
        return self.service_ms if level is None else 1e3 * float(self.law.quantile(level))

    def max_rate(self, limit_ms: float, level: float | None) -> float | None:
        """Highest rate at which the TTFT at a level, or its mean, is within the limit; ``None`` if there is none."""
        if self.unloaded_ms(level) > limit_ms:
            return None
        return self._largest(limit_ms, level) * self.capacity or None

    def _largest(self, limit_ms: float, level: float | None) -> float:
        """Largest load, by halving in its distance from 1, in which TTFT grows about as a power."""

        def excess(x: float) -> float:
            try:
                return math.log(self.value_ms(level, self.capacity * -math.expm1(-x)) / limit_ms)
            except DomainError:  # too near saturation to be computed: far too long
                return 50.0

        end = -math.log1p(-MOST_LOAD)
        high = 0.25
        while high < end and excess(high) < 0:
            high *= 2
        if high >= end:
            return MOST_LOAD
        low = 0.0 if high == 0.25 else high / 2
        from scipy.optimize import brentq  # slow to import, and needed by few

        start = max(low, 1e-9)
        if excess(start) >= 0:
            return 0.0
        return -math.expm1(-float(brentq(excess, start, high, xtol=self.near, rtol=1e-10)))


class Md1(Queue):
    """Equal prompts and Poisson arrivals at each instance."""

    @property
    def name(self) -> str:
        """The method in a sentence."""
        return "M/D/1: exact." if self.servers == 1 else "A choice at random, M/D/1 at each instance: exact."

    def mean_wait_ms(self, rate: float) -> float:
        """Mean wait."""
        return float(1e3 * md1.MEAN_WAIT(rate=rate / self.servers, service_time=self.service_ms / 1e3))

    def mean_ttft_ms(self, rate: float) -> float:
        """Mean TTFT."""
        return float(1e3 * md1.MEAN_TTFT(rate=rate / self.servers, service_time=self.service_ms / 1e3))

    def ttft_ms(self, levels: Array, rate: float) -> Array:
        """Percentiles of TTFT."""
        return np.asarray(self.service_ms * (1 + md1.wait_quantile(levels, self.utilization(rate))))


class Mg1(Queue):
    """Prompts that differ and Poisson arrivals at each instance."""

    @property
    def name(self) -> str:
        """The method in a sentence."""
        where = "" if self.servers == 1 else "A choice at random, "
        return f"{where}M/G/1{' at each instance' if where else ''}: exact percentiles, by inversion of the transform."

    @property
    def error(self) -> str | None:
        """How far off it may be."""
        return "Relative error of a percentile below 2e-8."

    def mean_wait_ms(self, rate: float) -> float:
        """Mean wait."""
        return float(1e3 * mg1.mean_wait(rate / self.servers, self.law))

    def ttft_ms(self, levels: Array, rate: float) -> Array:
        """Percentiles of TTFT."""
        return np.asarray(1e3 * mg1.ttft_quantile(levels, rate / self.servers, self.law))

    def _largest(self, limit_ms: float, level: float | None) -> float:
        if level is None:
            wait = limit_ms / 1e3 - self.law.mean
            return 2 * wait / (self.law.second_moment / self.law.mean + 2 * wait)
        return float(mg1.max_rate(limit_ms / 1e3, level, self.law)) * self.law.mean


@dataclass(frozen=True, eq=False)
class GammaD1(Queue):
    """Equal prompts, and gamma gaps between those that come to one instance.

    Attributes
    ----------
    shape
        Shape of those gaps; infinite for a steady beat. Instances that take their turns, or for equal prompts share
        a queue, each get every c-th prompt.
    """

    shape: float = 1.0

    @property
    def name(self) -> str:
        """The method in a sentence."""
        if self.shape == math.inf:
            return "A steady beat of equal prompts: below capacity nobody waits."
        each = (
            f"; each instance gets every {self.servers}th prompt, whichever is free first" if self.servers > 1 else ""
        )
        return f"Gamma/D/1{each}: exact."

    @property
    def error(self) -> str | None:
        """How far off it may be."""
        return None if self.shape == math.inf else "Error below 1e-13 of the service time."

    def mean_wait_ms(self, rate: float) -> float:
        """Mean wait."""
        return float(self.service_ms * gamma_mean_wait(self.utilization(rate), self.shape))

    def ttft_ms(self, levels: Array, rate: float) -> Array:
        """Percentiles of TTFT."""
        return np.asarray(self.service_ms * (1 + gamma_wait_quantile(levels, self.utilization(rate), self.shape)))


@dataclass(frozen=True, eq=False)
class GammaG1(Queue):
    """Prompts that differ, and gamma gaps between those that come to one instance; see :class:`GammaD1`."""

    shape: float = 1.0
    kind: ClassVar[Kind] = "numerical"
    nodes: ClassVar[int] = 5
    near: ClassVar[float] = 1e-5
    slow: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """The method in a sentence."""
        each = f"; each instance gets every {self.servers}th prompt" if self.servers > 1 else ""
        return f"Gamma/G/1{each}: by Pollaczek's contour integral."

    @property
    def error(self) -> str | None:
        """How far off it may be."""
        return "Numerically exact: error of a probability below 4e-7, of the mean a relative 2e-8."

    def mean_wait_ms(self, rate: float) -> float:
        """Mean wait."""
        return float(1e3 * gamma_law_mean_wait(rate / self.servers, self.shape, self.law))

    def ttft_ms(self, levels: Array, rate: float) -> Array:
        """Percentiles of TTFT."""
        return np.asarray(1e3 * gamma_law_ttft_quantile(levels, rate / self.servers, self.shape, self.law))


class SharedEqual(Queue):
    """Equal prompts, Poisson arrivals, and a queue that all instances share."""

    nodes = 80

    @property
    def name(self) -> str:
        """The method in a sentence."""
        return "M/D/c, one queue for all (for equal prompts the same as round robin and as least work): exact."

    def mean_wait_ms(self, rate: float) -> float:
        """Mean wait."""
        return float(self.service_ms * mdc.mean_wait(self.servers, self.utilization(rate)))

    def ttft_ms(self, levels: Array, rate: float) -> Array:
        """Percentiles of TTFT."""
        return np.asarray(self.service_ms * (1 + mdc.wait_quantile(levels, self.servers, self.utilization(rate))))

    def curve_ms(self, levels: Array, rates: Array) -> Array:
        """Percentiles of TTFT, all at once."""
        load = np.asarray(rates) / self.capacity
        return np.asarray(self.service_ms * (1 + mdc.wait_quantile(levels[:, None], self.servers, load[None, :])))

    def _largest(self, limit_ms: float, level: float | None) -> float:
        if level is None:
            return super()._largest(limit_ms, level)
        return float(mdc.max_utilization(limit_ms / self.service_ms - 1, level, self.servers))


@dataclass(frozen=True, eq=False)
class OnLattice(Queue):
    """A queue whose laws of wait and TTFT are computed on a lattice, and kept for the last few rates."""

    nodes: ClassVar[int] = 6
    near: ClassVar[float] = 1e-5

    @abstractmethod
    def laws_at(self, load: float) -> Laws:
        """Compute the laws of the wait and of TTFT."""

    def laws(self, rate: float) -> Laws:
        """Return the laws of the wait and of TTFT, kept for the last rates that were asked for."""
        return _kept_laws(self, rate)

    @cached_property
    def times(self) -> LawTimes:
        """The service times as the many-server formulas take them."""
        return LawTimes(self.law)

    def mean_wait_ms(self, rate: float) -> float:
        """Mean wait."""
        return 1e3 * float(self.laws(rate)[0].mean)

    def ttft_ms(self, levels: Array, rate: float) -> Array:
        """Percentiles of TTFT."""
        return 1e3 * np.asarray(self.laws(rate)[1].quantile(levels))


@lru_cache(maxsize=64)
def _kept_laws(queue: OnLattice, rate: float) -> Laws:
    return queue.laws_at(queue.utilization(rate))


class RoundRobin(OnLattice):
    """Prompts that differ, Poisson arrivals, and instances that take their turns."""

    kind = "numerical"

    @property
    def name(self) -> str:
        """The method in a sentence."""
        return "Round robin, Erlang/G/1 at each instance: computed on a lattice."

    @property
    def error(self) -> str | None:
        """How far off it may be."""
        listed = " Lengths of a few kinds only: up to 3e-3." if len(self.law.atoms) > 1 else ""
        return f"Exact up to the lattice: 1e-5 of the mean wait, 1e-4 of P90 and above.{listed}"

    def laws_at(self, load: float) -> Laws:
        """Compute the laws of the wait and of TTFT."""
        found = own_queue_laws(self.times, load, self.servers)
        return found.wait, found.ttft


class SharedSpread(OnLattice):
    """Prompts that differ, Poisson arrivals, and a queue that all instances share."""

    kind = "approximation"

    @property
    def name(self) -> str:
        """The method in a sentence."""
        return "M/G/c, one queue for all: Kimura's mean, and the distribution of Tijms, van Hoorn and Federgruen."

    @property
    def error(self) -> str | None:
        """How far off it may be."""
        cv = self.times.cv
        for band in MEASURED_ERRORS:
            if cv <= band.cv:
                return (
                    f"An approximation: mean wait within {band.mean:.0%}, P99 of the wait within {band.p99:.0%}, P99 TTFT "
                    f"within {band.ttft_p99:.0%} (measured for log-normal service times with a coefficient of variation up "
                    f"to {band.cv:g}, 2 to 32 instances)."
                )
        return f"An approximation, whose error is not measured for service times as spread as these (cv {cv:.2g})."

    def laws_at(self, load: float) -> Laws:
        """Compute the laws of the wait and of TTFT."""
        found = shared_queue_laws(self.times, self.servers, load)
        return found.wait, found.ttft
