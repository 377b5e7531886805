"""Poisson arrivals at each instance: equal prompts, and prompts that differ."""

from __future__ import annotations

import numpy as np

from calculators.ttft.queues.base import Array, Queue
from formulas.queueing import md1, mg1


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
