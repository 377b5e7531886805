"""What every queue answers, whatever its traffic: TTFT at a rate, the capacity, the highest rate within a target."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from calculators.fleet import ROUNDING
from formulas.closed_form import DomainError
from formulas.queueing import md1
from formulas.queueing.service import ServiceLaw

Array = NDArray[np.float64]
Kind = Literal["exact", "numerical", "approximation", "simulation"]

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
    def quick(self) -> bool:
        """Whether it may be looked for the instances needed unasked: a dozen pools, each at one rate."""
        return self.kind == "exact"

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

    def idle_ms(self, level: float | None) -> float:
        """TTFT at a level, or its mean, where the rate is next to nothing."""
        return self.unloaded_ms(level)

    def max_rate(self, limit_ms: float, level: float | None) -> float | None:
        """Highest rate at which the TTFT at a level, or its mean, is within the limit; ``None`` if there is none."""
        if self.unloaded_ms(level) > limit_ms:
            return None
        return self._largest(limit_ms, level) * self.capacity or None

    def _largest(self, limit_ms: float, level: float | None) -> float:
        """Largest load, by halving in its distance from 1, in which TTFT grows about as a power."""

        def excess(x: float) -> float:
            try:
                return math.log(self.value_ms(level, self.capacity * -math.expm1(-x)) / limit_ms) - ROUNDING
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
