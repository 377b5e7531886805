"""Prompts that do not keep the order of their arrival: exact means, simulated percentiles."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from calculators.ttft.arrivals import gaps_of, is_poisson
from calculators.ttft.simulated import Run, Simulated, after_warm_up
from formulas.montecarlo.priority import simulate_priority
from formulas.queueing.order import COBHAM_WAIT, shortest_first_mean_wait

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Ordered(Simulated):
    """Short prompts first, or the shortest, at each instance; whoever is in service is not interrupted."""

    @property
    def name(self) -> str:
        """The method in a sentence."""
        formula = "Phipps" if self.inputs.order == "shortest" else "Cobham"
        mean = f"the mean is exact ({formula})" if self.exact_mean else "no formula is known"
        size = f"{self.customers:,} requests, seed {self.inputs.seed}"
        return f"{self._where}{mean}; percentiles are simulated: {size}."

    @property
    def exact_mean(self) -> bool:
        """Whether the mean is exact: for Poisson arrivals."""
        return is_poisson(self.inputs)

    @property
    def split_s(self) -> float:
        """Service time up to which a prompt counts as short: that of all prompts on average."""
        return self.law.mean

    @cached_property
    def classes(self) -> tuple[float, float]:
        """Share of the prompts that are short, and their part of the mean service time [s]."""
        share, part, _ = self.law.below(self.split_s)
        return share, part

    def mean_wait_ms(self, rate: float) -> float:
        """Mean wait: exact for Poisson arrivals."""
        if not self.exact_mean:
            return super().mean_wait_ms(rate)
        each = rate / self.servers
        if self.inputs.order == "shortest":
            return 1e3 * shortest_first_mean_wait(each, self.law)
        short, long = self.class_waits_ms(rate)
        share = self.classes[0]
        return share * short + (1 - share) * long

    def class_waits_ms(self, rate: float) -> tuple[float, float]:
        """Mean waits of the short prompts and of the others, for Poisson arrivals."""
        each, (_, part) = rate / self.servers, self.classes
        residual = each * self.law.second_moment / 2
        loads = ((0.0, each * part), (each * part, each * self.law.mean))
        short, long = (
            1e3 * COBHAM_WAIT(residual_work=residual, load_before=before, load_with=within) for before, within in loads
        )
        return short, long

    def simulated(self, rate: float, customers: int) -> Run:
        """Simulate one instance with its share of the requests."""
        inputs, generator = self.inputs, np.random.default_rng(self.inputs.seed)
        gaps = gaps_of(inputs, rate / self.servers, customers, generator)
        times = self.law.draw(customers, generator)
        ranks = times if inputs.order == "shortest" else (times > self.split_s).astype(float)
        waits = simulate_priority(gaps, times, ranks)
        return after_warm_up(inputs, self, rate, waits, waits + times)
