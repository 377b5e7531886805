"""The arrays behind the figures: accelerators against the rate for each kind of deployment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calculators.fleet import instances_for
from calculators.plan.deployments import Deployment

Array = NDArray[np.float64]

BESIDE = 1e-8
"""By how much the points of a step are apart, as a share of the rate."""


@dataclass(frozen=True)
class FleetCurve:
    """Accelerators of one kind of deployment against the rate, with the degrees of the best one at the rate asked for."""

    kind: str
    rate: Array
    gpus: Array
    here: int


def fleet_curves(best: dict[str, Deployment], rate: float, points: int = 160) -> list[FleetCurve]:
    """Return how the best deployment of each kind grows with the rate, up to twice the rate asked for.

    Each side grows by whole instances at its own goodput. Apart, both targets are to hold together, which can take an
    instance more than the curve has; the point of the rate asked for has it.
    """
    rates = _rates(best.values(), rate, points)
    return [
        FleetCurve(kind, rates, np.array([_gpus(each, float(at)) for at in rates]), each.gpus)
        for kind, each in sorted(best.items())
    ]


def _rates(deployments: Iterable[Deployment], rate: float, points: int) -> Array:
    """Return the rates of the curves: even ones, and both ends of every step as long as these are few enough to be seen."""
    low, high = rate / 50, 2 * rate
    sides = [side for each in deployments for side in each.sides]
    edges = np.concatenate(
        [np.empty(0), *(np.arange(1.0, min(high / side.goodput, points) + 1) * side.goodput for side in sides)]
    )
    rates = np.unique(np.concatenate([np.linspace(low, high, points), edges, edges * (1 + BESIDE)]))
    return rates[(rates >= low) & (rates <= high)]


def _gpus(deployment: Deployment, rate: float) -> float:
    sides = [deployment.prefill] if deployment.kind != "disaggregated" else [deployment.prefill, deployment.decode]
    return float(sum(side.tp * instances_for(rate, side.goodput) for side in sides))
