"""Gamma gaps between arrivals, what load generators call burstiness: equal prompts, and prompts that differ."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calculators.ttft.queues.base import Array, Kind, Queue
from formulas.queueing.bursts import (
    gamma_law_mean_wait,
    gamma_law_ttft_quantile,
    gamma_mean_wait,
    gamma_wait_quantile,
)


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
