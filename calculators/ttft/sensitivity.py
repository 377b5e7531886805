"""How the answer responds to each input: elasticities, through the whole calculation."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from calculators.inputs import Number, as_dict, declared
from calculators.machine import assumptions_of
from calculators.outputs import output
from calculators.ttft.inputs import TtftInputs, level_of
from calculators.ttft.methods import queue_of


@dataclass(frozen=True)
class Sensitivity:
    """How the TTFT that is held against the target answers to one input."""

    name: str = output("Input")
    label: str = output("Quantity")
    value: float = output("Value")
    elasticity: float = output("Elasticity", "", "Percent of TTFT for one percent of the input")


def sensitivities(inputs: TtftInputs) -> tuple[Sensitivity, ...]:
    """Return the elasticity of the TTFT held against the target in every input it depends on, largest first.

    By central differences through the whole calculation: one part in a thousand on either side, less near saturation.
    Empty where there is no steady state, and for a simulation. A quantity of whole numbers (prompt length) is treated as continuous.
    """
    queue = queue_of(inputs)
    utilization = queue.utilization(inputs.rate)
    if utilization >= 1 or queue.kind == "simulation":
        return ()
    width = min(1e-3 if queue.kind == "exact" else 1e-2, 0.05 * (1 - utilization))
    found = [
        Sensitivity(name, declaration.label, value, slope)
        for name, declaration, value in _continuous_inputs(inputs)
        if (slope := _elasticity(inputs, name, value, width)) != 0
    ]
    return tuple(sorted(found, key=lambda one: -abs(one.elasticity)))


def _continuous_inputs(inputs: TtftInputs) -> list[tuple[str, Number, float]]:
    values = as_dict(inputs)
    names = ["rate", "service_ms"]
    if inputs.service_ms is None:
        assumed = assumptions_of(inputs)
        names = ["rate", "prompt_tokens", "compute_efficiency", "memory_efficiency", "step_overhead_ms"]
        names += ["allreduce_latency_us"] if inputs.tp > 1 else []
        values |= {name: getattr(assumed, name) for name in names[2:]}
    names += ["prompt_cv"] if inputs.prompt_cv and not inputs.prompt_histogram else []
    names += ["arrival_scv"] if inputs.arrivals == "gamma" and inputs.arrival_scv != 1 else []
    known = declared(TtftInputs)
    return [(name, known[name], float(values[name])) for name in names if values[name]]  # type: ignore[arg-type,misc]


def _elasticity(inputs: TtftInputs, name: str, value: float, width: float) -> float:
    below, above = (_target_ttft_at(inputs, name, value * (1 + step)) for step in (-width, width))
    return math.log(above / below) / math.log((1 + width) / (1 - width))


def _target_ttft_at(inputs: TtftInputs, name: str, value: float) -> float:
    changed: dict[str, Any] = {name: value}
    there = replace(inputs, **changed)
    return queue_of(there).value_ms(level_of(there), there.rate)
