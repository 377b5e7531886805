"""Pools whose instances share a queue or take their turns, with Poisson arrivals."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np

from calculators.ttft.queues.base import Array, Kind, Queue
from formulas.queueing.many_servers import (
    MEASURED_ERRORS,
    Law,
    LawTimes,
    mdc,
    mgc_mean_wait,
    own_queue_laws,
    shared_queue_laws,
)
from formulas.queueing.many_servers.bursty import BURSTY_ERROR, bursty_queue_laws
from formulas.queueing.many_servers.lattice import LatticeLaw
from formulas.queueing.service import LognormalLengths

Laws = tuple[Law | LatticeLaw, Law | LatticeLaw]


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


MOST_MEASURED = 32
"""Instances up to which the errors were measured."""


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
        lognormal = all(isinstance(part.lengths, LognormalLengths) for part in self.law.parts)
        if not lognormal or self.servers > MOST_MEASURED:
            what = "lengths of this law" if not lognormal else "so many instances"
            return f"An approximation, whose error is not measured for {what}."
        for band in MEASURED_ERRORS:
            if cv <= band.cv:
                return (
                    f"An approximation: mean wait within {band.mean:.0%}, P99 TTFT within {band.ttft_p99:.0%} (measured: log-normal "
                    f"service times, cv up to {band.cv:g}, 2 to 32 instances)."
                )
        return f"An approximation, whose error is not measured for service times as spread as these (cv {cv:.2g})."

    def mean_wait_ms(self, rate: float) -> float:
        """Mean wait: Kimura's, which needs no lattice."""
        return float(1e3 * self.law.mean * mgc_mean_wait(self.servers, self.utilization(rate), self.times.cv))

    def laws_at(self, load: float) -> Laws:
        """Compute the laws of the wait and of TTFT."""
        found = shared_queue_laws(self.times, self.servers, load)
        return found.wait, found.ttft


@dataclass(frozen=True, eq=False)
class SharedBursty(OnLattice):
    """Prompts that differ, gamma gaps, and a queue that all instances share.

    Attributes
    ----------
    arrival_scv
        Squared coefficient of variation of the gaps.
    """

    arrival_scv: float = 1.0
    kind: ClassVar[Kind] = "approximation"

    @property
    def name(self) -> str:
        """The method in a sentence."""
        return "G/G/c, one queue for all: the distribution of M/G/c, with what bursts add to equal prompts, for which it is exact."

    @property
    def error(self) -> str | None:
        """How far off it may be."""
        lognormal = all(isinstance(part.lengths, LognormalLengths) for part in self.law.parts)
        measured = 0.25 <= self.arrival_scv <= 4 and self.times.cv <= 2 and self.servers <= MOST_MEASURED
        if not (lognormal and measured):
            return "An approximation, whose error is not measured for lengths, gaps or instances like these."
        return f"An approximation: {BURSTY_ERROR}"

    def laws_at(self, load: float) -> Laws:
        """Compute the laws of the wait and of TTFT."""
        found = bursty_queue_laws(self.times, self.servers, load, self.arrival_scv)
        return found.wait, found.ttft
