"""Service times of prompts that differ: the step-time model, applied to each length of the distribution."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from calculators.inputs import part_of
from calculators.lengths import lengths_of, spread_of
from calculators.service_time import PrefillInputs, prefill_time, prefill_times_ms
from calculators.ttft.traffic import RealTraffic
from formulas.queueing.service import ServiceLaw, equal_service, service_law


@dataclass(frozen=True, kw_only=True)
class SpreadInputs(RealTraffic, PrefillInputs):
    """What the service times of all prompts depend on."""


def law_of(inputs: Any) -> ServiceLaw:
    """Return the law of the service times [s] of inputs that have those of :class:`SpreadInputs`.

    Raises
    ------
    InputsError
        As for :func:`~calculators.service_time.prefill_time`, and where the spread is too large for the distribution.
    """
    kept: dict[str, Any] = {
        "servers": 1,
        "routing": "random",
        "arrival_scv": 1.0,
        "batch_size": 1,
        "order": "fcfs",
        "trace": None,
        "trace_columns": None,
    }
    if inputs.prompt_histogram:
        kept["prompt_cv"] = 0.0
    if not inputs.prompt_cv or inputs.prompt_histogram:
        kept["prompt_distribution"] = "lognormal"
    return _law(part_of(SpreadInputs, inputs, **kept))


@lru_cache(maxsize=64)  # it depends on neither the rate nor the router
def _law(inputs: SpreadInputs) -> ServiceLaw:
    if not spread_of(inputs):
        return equal_service(prefill_time(inputs).service_ms / 1e3)
    lengths = lengths_of(inputs)
    if inputs.service_ms is not None:
        each = inputs.service_ms / 1e3 / inputs.prompt_tokens
        return service_law(lengths, lambda length: each * np.asarray(length, float))
    return service_law(lengths, lambda length: prefill_times_ms(inputs, length) / 1e3)
