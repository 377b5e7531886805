"""Traffic without a formula for its percentiles: simulated, each rate once, with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from calculators.scenario import Simulation
from calculators.ttft.arrivals import BurstyArrivals, clumping, gaps_of
from calculators.ttft.lengths import SpreadInputs
from calculators.ttft.queues import Kind, Queue
from formulas.montecarlo.agreement import estimates
from formulas.montecarlo.confidence import Interval
from formulas.montecarlo.routers import simulate_routed
from formulas.montecarlo.routing_check import routed_relaxation
from formulas.queueing.many_servers import LawTimes

Array = NDArray[np.float64]

MOST_REQUESTS = 300_000
"""Requests of a simulation that stands for an answer, however many are asked for: about a second."""

LEVELS = (0.5, 0.9, 0.95, 0.99, 0.999)


@dataclass(frozen=True, kw_only=True)
class SimulationInputs(Simulation, BurstyArrivals, SpreadInputs):
    """What a simulated queue depends on, the rate apart."""


@dataclass(frozen=True)
class Run:
    """A simulated queue after its warm-up; times in ms."""

    customers: int
    warm_up: int
    relaxation: float
    waits_ms: Array
    ttft_ms: Array

    @cached_property
    def intervals(self) -> Mapping[str, Interval]:
        """Intervals of TTFT by name: mean, P99."""
        return estimates(self.ttft_ms, LEVELS)


@dataclass(frozen=True, eq=False)
class Simulated(Queue):
    """Any arrivals, any prompts, any router, first come first served at each instance."""

    inputs: SimulationInputs = field(default_factory=SimulationInputs)
    kind: ClassVar[Kind] = "simulation"
    slow: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """The method in a sentence."""
        return f"No formula is known for this traffic: simulated, {self.customers:,} requests, seed {self.inputs.seed}."

    @property
    def exact_mean(self) -> bool:
        """Whether the mean is exact, although percentiles are simulated."""
        return False

    def error_at(self, rate: float) -> str:
        """How far off a simulated answer may be, in a sentence."""
        found = self.run(rate).intervals
        parts = [f"{name} ± {_half(found[name])}" for name in ("mean", "P90", "P99")]
        return f"Simulated TTFT, 95 % intervals: {', '.join(parts)}."

    def mean_wait_ms(self, rate: float) -> float:
        """Mean wait."""
        return float(self.run(rate).waits_ms.mean())

    def ttft_ms(self, levels: Array, rate: float) -> Array:
        """Percentiles of TTFT."""
        return np.asarray(np.quantile(self.run(rate).ttft_ms, levels, method="inverted_cdf"))

    def max_rate(self, limit_ms: float, level: float | None) -> float | None:  # noqa: ARG002 - one run for each rate
        """Not looked for: it would take a simulation for each rate that is tried."""
        return None

    def run(self, rate: float) -> Run:
        """Return the simulation at a rate, of no more requests than an answer needs."""
        return _kept_run(self, rate)

    @property
    def customers(self) -> int:
        """Requests of a simulation that stands for an answer."""
        return min(self.inputs.customers, MOST_REQUESTS)

    @property
    def _where(self) -> str:
        return "" if self.servers == 1 else "A choice at random; at each instance "

    def simulated(self, rate: float, customers: int) -> Run:
        """Simulate so many requests at a rate."""
        return simulate(self.inputs, self, rate, customers)


@lru_cache(maxsize=16)  # a few MB each
def _kept_run(queue: Simulated, rate: float) -> Run:
    return queue.simulated(rate, queue.customers)


def simulate(inputs: SimulationInputs, queue: Queue, rate: float, customers: int) -> Run:
    """Simulate first come, first served behind a router, any arrivals, any prompts."""
    generator = np.random.default_rng(inputs.seed)
    gaps = gaps_of(inputs, rate, customers, generator)
    times = queue.law.draw(customers, generator)
    arrivals = np.concatenate([[0.0], np.cumsum(gaps[:-1])])
    waits = simulate_routed(inputs.routing, arrivals, times, inputs.servers, inputs.seed)  # type: ignore[arg-type]
    return after_warm_up(inputs, queue, rate, waits, waits + times)


def after_warm_up(inputs: SimulationInputs, queue: Queue, rate: float, waits: Array, ttft: Array) -> Run:
    """Leave out the beginning of a run: ten relaxation times, but no more than half of it."""
    cv = LawTimes(queue.law).cv
    relaxation = routed_relaxation(inputs.routing, cv, inputs.servers, queue.utilization(rate))  # type: ignore[arg-type]
    relaxation *= clumping(inputs, rate)
    skipped = min(math.ceil(10 * relaxation), len(waits) // 2)
    return Run(len(waits), skipped, relaxation, 1e3 * waits[skipped:], 1e3 * ttft[skipped:])


def _half(interval: Interval) -> str:
    if not math.isfinite(interval.high):
        return "unknown (run too short)"
    return f"{(interval.high - interval.low) / 2 / interval.estimate:.1%}"
