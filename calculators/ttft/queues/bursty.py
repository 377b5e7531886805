"""Equal prompts that come in batches, or in calm and busy spells: solved exactly, also behind a choice at random."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np

from calculators.ttft.arrivals import BurstyArrivals, spells
from calculators.ttft.queues.base import Array, Queue
from formulas.queueing.bursts import (
    BATCH_MEAN_WAIT,
    Switching,
    batch_wait_quantile,
    switching_mean_wait,
    switching_wait_quantile,
)
from formulas.queueing.bursts.switching_queue import SwitchingQueue
from formulas.queueing.service import ListedLengths

_SMALLEST_SHARE = 1e-15
_LARGEST_QUICK = 64


@dataclass(frozen=True, eq=False)
class BatchD1(Queue):
    """Batches at Poisson times; at random, each prompt of a batch chooses its instance by itself."""

    arrivals: BurstyArrivals = field(default_factory=BurstyArrivals)

    @property
    def name(self) -> str:
        """The method in a sentence."""
        at = "" if self.servers == 1 else "A choice at random; at each instance "
        return f"{at}Batch-Poisson arrivals and equal prompts (M[X]/D/1): exact, by inversion of the transform."

    @property
    def error(self) -> str | None:
        """How far off it may be."""
        return "Relative error of a percentile below 2e-8."

    @property
    def quick(self) -> bool:
        """Whether it may be looked for the instances needed unasked."""
        return self.arrivals.burst <= _LARGEST_QUICK

    @cached_property
    def sizes(self) -> ListedLengths:
        """Prompts of a batch that come to one instance, of the batches that bring it any."""
        return thinned(self.arrivals.burst, self.servers)

    def batch_rate(self, rate: float) -> float:
        """Batches per second that bring prompts to one instance."""
        return rate / self.servers / float(self.sizes.mean)

    def formula_values(self, rate: float) -> dict[str, float]:
        """Return what the formula of the mean wait takes."""
        lengths, shares = self.sizes.lengths, self.sizes.shares
        return {
            "batch_rate": self.batch_rate(rate),
            "batch_mean": float(lengths @ shares),
            "batch_second_moment": float(lengths**2 @ shares),
            "mean_service": self.service_ms / 1e3,
            "service_variance": 0.0,
        }

    def mean_wait_ms(self, rate: float) -> float:
        """Mean wait, also for those before it in its own batch."""
        return float(1e3 * BATCH_MEAN_WAIT(**self.formula_values(rate)))

    def ttft_ms(self, levels: Array, rate: float) -> Array:
        """Percentiles of TTFT."""
        waits = batch_wait_quantile(levels, self.batch_rate(rate), self.sizes, self.service_ms / 1e3)
        return np.asarray(self.service_ms + 1e3 * waits)

    def idle_ms(self, level: float | None) -> float:
        """TTFT where batches are so rare that each finds an idle instance: its own batch still comes before it."""
        return self.service_ms * (1 + _ahead(self.sizes, level))


def _ahead(sizes: ListedLengths, level: float | None) -> float:
    """Return how many of its own batch come before a prompt: at a level, or on average."""
    ahead = np.arange(int(sizes.lengths[-1]))
    larger = 1 - np.append(0.0, np.cumsum(sizes.shares))[np.searchsorted(sizes.lengths, ahead, side="right")]
    shares = larger / larger.sum()
    if level is None:
        return float(ahead @ shares)
    return float(np.searchsorted(np.cumsum(shares), level * (1 - 1e-12)))


@lru_cache(maxsize=64)
def thinned(burst: int, servers: int) -> ListedLengths:
    """Return how many of a burst's prompts come to one of several instances at random, where any do.

    Examples
    --------
    >>> thinned(2, 2)
    ListedLengths(lengths=array([1., 2.]), shares=array([0.66666667, 0.33333333]))
    """
    if servers == 1:
        return ListedLengths(float(burst))
    from scipy.special import gammaln  # slow to import, and needed by few

    counts = np.arange(1, burst + 1)
    ways = gammaln(burst + 1) - gammaln(counts + 1) - gammaln(burst - counts + 1)
    chances = np.exp(ways - counts * np.log(servers) + (burst - counts) * np.log1p(-1 / servers))
    kept = chances > _SMALLEST_SHARE
    return ListedLengths(counts[kept].astype(float), chances[kept] / chances[kept].sum())


@dataclass(frozen=True, eq=False)
class SwitchingD1(Queue):
    """Poisson arrivals whose rate switches; at random, each instance sees its part of both rates."""

    arrivals: BurstyArrivals = field(default_factory=BurstyArrivals)

    @property
    def name(self) -> str:
        """The method in a sentence."""
        at = "" if self.servers == 1 else "A choice at random; at each instance "
        return f"{at}Poisson arrivals of two rates and equal prompts (MMPP/D/1): exact, by inversion of the transform."

    @property
    def error(self) -> str | None:
        """How far off it may be."""
        return "Error of a probability below 1e-9."

    def process(self, rate: float) -> Switching:
        """Return the arrivals at one instance."""
        return spells(self.arrivals, rate).scaled(1 / self.servers)

    def idle_calm(self, rate: float) -> float:
        """Share of an instance's idle time that is in calm spells."""
        return SwitchingQueue(self.process(rate), self.service_ms / 1e3).idle_first

    def mean_wait_ms(self, rate: float) -> float:
        """Mean wait."""
        return 1e3 * switching_mean_wait(self.process(rate), self.service_ms / 1e3)

    def ttft_ms(self, levels: Array, rate: float) -> Array:
        """Percentiles of TTFT."""
        return np.asarray(
            self.service_ms + 1e3 * switching_wait_quantile(levels, self.process(rate), self.service_ms / 1e3)
        )
