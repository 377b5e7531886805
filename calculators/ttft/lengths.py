"""Service times of prompts that differ: the step-time model, applied to each length of the distribution."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from calculators.inputs import InputError, InputsError, part_of
from calculators.service_time import PrefillInputs, prefill_time, prefill_times_ms
from calculators.ttft.traffic import RealTraffic
from formulas.queueing.service import (
    GammaLengths,
    ListedLengths,
    LognormalLengths,
    ServiceLaw,
    UniformLengths,
    equal_service,
    service_law,
)
from formulas.queueing.service.lengths import Lengths

WIDEST_UNIFORM = 0.577
"""Coefficient of variation of lengths between nothing and twice the mean: 1/sqrt(3), rounded down."""


@dataclass(frozen=True, kw_only=True)
class SpreadInputs(RealTraffic, PrefillInputs):
    """What the service times of all prompts depend on."""


def lengths_of(distribution: str, mean: float, cv: float) -> Lengths:
    """Return the distribution of prompt lengths.

    Raises
    ------
    InputsError
        If lengths that may not be negative cannot have that spread.

    Examples
    --------
    >>> lengths_of("two_point", 100.0, 1.0)
    ListedLengths(lengths=array([ 50., 300.]), shares=array([0.8, 0.2]))
    """
    match distribution:
        case "gamma":
            return GammaLengths(mean, cv)
        case "uniform":
            if cv > WIDEST_UNIFORM:
                sentence = (
                    f"uniform lengths cannot be spread more than {WIDEST_UNIFORM}, or the shortest would be below nothing; "
                    "lower it, or choose another prompt_distribution"
                )
                raise InputsError([InputError("prompt_cv", cv, sentence)])
            return UniformLengths(mean * (1 - 3**0.5 * cv), mean * (1 + 3**0.5 * cv))
        case "two_point":
            long = 1 / (1 + 4 * cv**2)  # its share, with which the short ones have half the mean
            return ListedLengths([mean / 2, mean * (1 + 2 * cv**2)], [1 - long, long])
    return LognormalLengths(mean, cv)


def law_of(inputs: Any) -> ServiceLaw:
    """Return the law of the service times [s] of inputs that have those of :class:`SpreadInputs`.

    Raises
    ------
    InputsError
        As for :func:`~calculators.service_time.prefill_time`, and where the spread is too large for the distribution.
    """
    kept = {"servers": 1, "routing": "random", "arrival_scv": 1.0, "batch_size": 1, "order": "fcfs", "trace": None}
    if not inputs.prompt_cv:
        kept["prompt_distribution"] = "lognormal"
    return _law(part_of(SpreadInputs, inputs, **kept))


@lru_cache(maxsize=64)  # it depends on neither the rate nor the router
def _law(inputs: SpreadInputs) -> ServiceLaw:
    if not inputs.prompt_cv:
        return equal_service(prefill_time(inputs).service_ms / 1e3)
    lengths = lengths_of(inputs.prompt_distribution, float(inputs.prompt_tokens), inputs.prompt_cv)
    if inputs.service_ms is not None:
        each = inputs.service_ms / 1e3 / inputs.prompt_tokens
        return service_law(lengths, lambda length: each * np.asarray(length, float))
    return service_law(lengths, lambda length: prefill_times_ms(inputs, length) / 1e3)


@dataclass(frozen=True, eq=False)
class LawTimes:
    """A law of service times as the formulas for many servers ask for it."""

    law: ServiceLaw

    @property
    def mean(self) -> float:
        """Mean [s]."""
        return self.law.mean

    @property
    def cv(self) -> float:
        """Coefficient of variation []."""
        return float(self.law.scv**0.5)

    def excess(self, x: Any) -> Any:
        """Mean of what a service takes beyond `x`, counted as nothing for a shorter one [s]."""
        x = np.asarray(x, float)
        values, weights = self.law.all_values, self.law.all_weights
        longer = np.append(np.cumsum(weights[::-1])[::-1], 0.0)
        rest = np.append(np.cumsum((weights * values)[::-1])[::-1], 0.0)
        first = np.searchsorted(values, x, side="right")
        return np.maximum(rest[first] - x * longer[first], 0.0)

    def quantile(self, level: Any) -> Any:
        """Time that a share `level` of the services do not exceed [s]."""
        level = np.asarray(level, float)
        if not level.ndim:
            return np.asarray(self.law.quantile(float(level)))
        return self.law.quantile(np.clip(level, 1e-300, 1 - 1e-16))
