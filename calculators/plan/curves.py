"""The arrays behind the figures: accelerators against the rate for each kind of deployment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calculators.fleet import instances_for
from calculators.plan.deployments import Deployment

Array = NDArray[np.float64]


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
    rates = np.linspace(rate / 50, 2 * rate, points)
    return [
        FleetCurve(kind, rates, np.array([_gpus(each, at) for at in rates]), each.gpus) for kind, each in best.items()
    ]


def _gpus(deployment: Deployment, rate: float) -> float:
    sides = [deployment.prefill] if deployment.kind != "disaggregated" else [deployment.prefill, deployment.decode]
    return float(sum(side.tp * instances_for(rate, side.goodput) for side in sides))
