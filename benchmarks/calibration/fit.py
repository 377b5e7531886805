"""Assumptions that fit rows best, and how far they are off on rows that they were not fitted to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.calibration.rows import Row, diagonals
from calculators.closed_loop import closed_loop_of
from formulas.interference.closed_loop import ClosedLoop
from formulas.step_time import Machine

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Value:
    """One assumption: where it may lie, what is usual, and how far from that is no surprise."""

    low: float
    high: float
    usual: float
    spread: float
    digits: int
    logarithmic: bool = False


VALUES = {
    "compute_efficiency": Value(0.05, 0.90, 0.55, 0.35, 3, True),
    "memory_efficiency": Value(0.05, 0.95, 0.80, 0.15, 3, True),
    "link_efficiency": Value(0.02, 1.0, 0.50, 0.60, 3, True),
    "step_overhead_ms": Value(0.0, 50.0, 2.0, 2.0, 2),
    "allreduce_latency_us": Value(0.0, 500.0, 8.0, 8.0, 1),
}
PULL = 0.01
"""Weight of the pull to what is usual, beside each row's weight of 1."""


def machine_with(machine: Machine, values: Mapping[str, float]) -> Machine:
    """Return the machine with assumptions in the units of a record."""
    return replace(
        machine,
        compute_efficiency=values["compute_efficiency"],
        memory_efficiency=values["memory_efficiency"],
        link_efficiency=values["link_efficiency"],
        overhead_s=1e-3 * values["step_overhead_ms"],
        allreduce_latency_s=1e-6 * values["allreduce_latency_us"],
    )


def loop_of(row: Row, values: Mapping[str, float]) -> ClosedLoop:
    """Return what the closed loop of a row does with these assumptions."""
    return closed_loop_of(row.inputs, machine_with(row.machine, values), row.steps)


def errors(rows: Iterable[Row], values: Mapping[str, float]) -> Array:
    """Return the relative errors of the token time with these assumptions."""
    return np.array([1e3 * loop_of(row, values).mean_tpot / row.tpot_ms - 1 for row in rows])


def fit(rows: Sequence[Row]) -> dict[str, float]:
    """Return the assumptions that fit the rows best, rounded as a record gives them."""
    from scipy.optimize import least_squares

    def values(point: Array) -> dict[str, float]:
        return {
            name: value.usual * np.exp(value.spread * at) if value.logarithmic else value.usual + value.spread * at
            for (name, value), at in zip(VALUES.items(), point, strict=True)
        }

    def position(value: Value, of: float) -> float:
        return float(np.log(of / value.usual) if value.logarithmic else of - value.usual) / value.spread

    def residuals(point: Array) -> Array:
        return np.concatenate([np.log1p(errors(rows, values(point))), PULL * np.sqrt(len(rows)) * point])

    bounds = [
        [position(value, value.low) for value in VALUES.values()],
        [position(value, value.high) for value in VALUES.values()],
    ]
    found = least_squares(residuals, np.zeros(len(VALUES)), bounds=bounds, loss="soft_l1", f_scale=0.05, xtol=1e-4)
    return {name: float(text) for name, text in rounded(values(found.x)).items()}


def rounded(values: Mapping[str, float]) -> dict[str, str]:
    """Return assumptions with the digits that a record gives."""
    return {name: f"{value:.{VALUES[name].digits}f}" for name, value in values.items()}


def cross_validated(rows: Sequence[Row]) -> Array:
    """Return the errors on each diagonal of a fit to the other two."""
    on, out = np.array(diagonals(rows)), np.empty(len(rows))
    for diagonal in sorted(set(on)):
        held = on == diagonal
        out[held] = errors(chosen(rows, held), fit(chosen(rows, ~held)))
    return out


def transferred(rows: Sequence[Row]) -> Array | None:
    """Return the errors on each model of a fit to the others, or None where there is one."""
    models = np.array([row.inputs.model for row in rows])
    if len(set(models)) == 1:
        return None
    return np.concatenate(
        [errors(chosen(rows, models == m), fit(chosen(rows, models != m))) for m in sorted(set(models))]
    )


def chosen(rows: Sequence[Row], some: NDArray[np.bool_]) -> list[Row]:
    """Return the rows that a mask takes."""
    return [row for row, taken in zip(rows, some, strict=True) if taken]
