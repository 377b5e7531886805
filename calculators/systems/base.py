"""What a way to serve answers at a rate, and the largest rate at which it keeps its targets."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calculators.decode_pool import Pool, PoolInputs, pool_of
from calculators.inputs import InputError, InputsError, part_of
from calculators.lengths import lengths_of, spread_of
from calculators.routers import scv_at_one
from calculators.scenario import Burstiness, KvLink, PromptLaw, ServiceLevels
from calculators.service_time import PrefillInputs, prefill_times_ms
from formulas.closed_form import DomainError
from formulas.queueing.bursts.gamma_prompts import LEAST_SHAPE, MOST_SHAPE
from formulas.queueing.service import ServiceLaw, equal_service, service_law

Array = NDArray[np.float64]

PRECISION = 3e-4
"""Of a largest rate, relative to the capacity."""

LEAST_SCV, MOST_SCV = (1 + 1e-9) / MOST_SHAPE, (1 - 1e-9) / LEAST_SHAPE
"""Squared coefficients of variation of the gaps between which the forms hold."""

LEAST_MISSED = 1e-6
"""Share of requests beyond their targets below which it makes no difference how few they are."""

LOWEST = 1e-3
"""Share of the capacity below which no rate is worth looking for."""


@dataclass(frozen=True, kw_only=True)
class ServingInputs(KvLink, Burstiness, PromptLaw, PoolInputs):
    """What the three ways to serve depend on, beside the rate and the targets."""


class Latency(ABC):
    """Times at one rate, in seconds; the shares are over requests."""

    @property
    @abstractmethod
    def mean_ttft_s(self) -> float:
        """Mean time to first token."""

    @property
    @abstractmethod
    def mean_tpot_s(self) -> float:
        """Mean time per output token."""

    @property
    @abstractmethod
    def mean_batch(self) -> float:
        """Mean sequences in a decode step."""

    @abstractmethod
    def ttft_quantile_s(self, level: Any) -> Array:
        """Time to first token that a share `level` of the requests do not exceed."""

    @abstractmethod
    def tpot_quantile_s(self, level: Any) -> Array:
        """Time per output token that a share `level` of the requests do not exceed."""

    @abstractmethod
    def ttft_share_within(self, time_s: float) -> float:
        """Share of the requests whose first token comes within a time."""

    @abstractmethod
    def tpot_share_within(self, time_s: float) -> float:
        """Share of the requests whose tokens come within a time each."""

    def attainment(self, targets: ServiceLevels) -> float:
        """Share of the requests that meet both targets, the two times taken as independent."""
        first = self.ttft_share_within(1e-3 * targets.ttft_slo_ms)
        return first * self.tpot_share_within(1e-3 * targets.tpot_slo_ms)


@dataclass(frozen=True)
class System(ABC):
    """A way to serve on one set of instances; hashable, so that what was computed is kept.

    Attributes
    ----------
    inputs
        The instance and the workload.
    split
        Over how many such systems the requests are spread: bursts thin out.
    routing
        How they are spread, over systems and over the instances of one. For routers that look at the instances there is no form
        but for a queue of prompts that all share: elsewhere requests are taken in turn, which is about as even.
    """

    inputs: ServingInputs
    split: int = field(default=1, kw_only=True)
    routing: str = field(default="random", kw_only=True)

    name = ""
    key = ""

    def __post_init__(self) -> None:
        refuse_other_bursts(self.inputs)

    @property
    @abstractmethod
    def accelerators(self) -> float:
        """Accelerators of one set."""

    @property
    @abstractmethod
    def bound(self) -> float:
        """A rate [requests/s] above every one that has a steady state."""

    @abstractmethod
    def latency(self, rate: float) -> Latency:
        """Return the times at a rate [requests/s]; DomainError where there is no steady state."""

    def at(self, rate: float) -> Latency | None:
        """Return the times at a rate [requests/s], or ``None`` where there is no steady state."""
        return _at(self, rate)

    @cached_property
    def pool(self) -> Pool:
        """The decode pool of one instance."""
        return pool_of(self.inputs)

    @cached_property
    def prefill_law(self) -> ServiceLaw:
        """Distribution of the time of a prompt [s]."""
        return prefill_law_of(self.inputs)

    @property
    def prefill_s(self) -> float:
        """Mean time of a prompt alone [s]."""
        return self.prefill_law.mean

    def arrival_scv(self, instances: float = 1.0) -> float:
        """Squared coefficient of variation of the gaps at one of so many instances, no more even or uneven than the forms hold for []."""
        at_one = scv_at_one(self.inputs.arrival_scv, self.split * instances, in_turn=self.routing != "random")
        return min(max(at_one, LEAST_SCV), MOST_SCV)

    def goodput(self, targets: ServiceLevels) -> float | None:
        """Return the largest rate [requests/s] at which the targets are attained, or ``None`` if no rate is."""
        return _goodput(self, targets.ttft_slo_ms, targets.tpot_slo_ms, targets.attainment)


def refuse_other_bursts(inputs: Burstiness) -> None:
    """Raise InputsError where the gaps are more even, or more uneven, than the forms of serving hold for."""
    if not 1 / MOST_SHAPE <= inputs.arrival_scv <= 1 / LEAST_SHAPE:
        sentence = f"the forms of serving hold from {1 / MOST_SHAPE:g} to {1 / LEAST_SHAPE:g}"
        raise InputsError([InputError("arrival_scv", inputs.arrival_scv, sentence)])


def split_of(inputs: Burstiness, instances: int) -> int:
    """Return over how many instances bursts thin out: at Poisson times it makes no difference, and one answer does for all."""
    return instances if inputs.arrival_scv != 1 else 1


@dataclass(frozen=True, kw_only=True)
class PromptTimeInputs(PromptLaw, PrefillInputs):
    """What the times of all prompts depend on."""


def prefill_law_of(inputs: ServingInputs) -> ServiceLaw:
    """Return the distribution of the time of a prompt [s]: the step-time model, applied to each length."""
    return _prefill_law(part_of(PromptTimeInputs, inputs, service_ms=None))


@lru_cache(maxsize=256)
def _prefill_law(inputs: PromptTimeInputs) -> ServiceLaw:
    if not spread_of(inputs):
        return equal_service(1e-3 * float(prefill_times_ms(inputs, inputs.prompt_tokens)))
    return service_law(lengths_of(inputs), lambda length: 1e-3 * prefill_times_ms(inputs, length))


@lru_cache(maxsize=4096)
def _at(system: System, rate: float) -> Latency | None:
    try:
        return system.latency(rate)
    except DomainError:
        return None


@lru_cache(maxsize=1024)
def _goodput(system: System, ttft_slo_ms: float, tpot_slo_ms: float, attainment: float) -> float | None:
    from scipy.optimize import brentq

    targets = ServiceLevels(ttft_slo_ms=ttft_slo_ms, tpot_slo_ms=tpot_slo_ms, attainment=attainment)

    def spare(rate: float) -> float:
        """Logarithm of what may be missed over what is: of nearly one slope in the rate, so that few steps find its root."""
        times = system.at(rate)
        missed = 1.0 if times is None else 1 - times.attainment(targets)
        return math.log((1 - attainment) / max(missed, LEAST_MISSED))

    low, high = 0.0, 0.5 * system.bound
    while spare(high) < 0:
        if high < LOWEST * system.bound:
            return None
        low, high = high, high / 3
    if low:
        return float(brentq(spare, high, low, xtol=PRECISION * system.bound))
    while spare(high) >= 0:
        if high > (1 - PRECISION) * system.bound:
            return high
        low, high = high, (high + system.bound) / 2
    return float(brentq(spare, low, high, xtol=PRECISION * system.bound))


def overtaking_rates(rates: Array, one: Array, other: Array) -> list[float]:
    """Return the rates at which two curves cross, by straight lines between their points; NaN is no point.

    >>> overtaking_rates(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 4.0]), np.array([2.0, 2.5, 3.0]))
    [2.3333333333333335]
    """
    there = np.isfinite(one) & np.isfinite(other)
    x, gap = rates[there], (one - other)[there]
    turns = np.flatnonzero(np.sign(gap[:-1]) * np.sign(gap[1:]) < 0)
    return [float(x[i] + (x[i + 1] - x[i]) * gap[i] / (gap[i] - gap[i + 1])) for i in turns]
