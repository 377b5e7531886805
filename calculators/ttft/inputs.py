"""What the time to first token depends on."""

from __future__ import annotations

from dataclasses import dataclass

from calculators.scenario import FirstTokenTarget, Simulation, Traffic
from calculators.service_time import PrefillInputs
from calculators.ttft.arrivals import Bursts
from calculators.ttft.traffic import RealTraffic


@dataclass(frozen=True, kw_only=True)
class TtftInputs(Bursts, RealTraffic, Simulation, FirstTokenTarget, PrefillInputs, Traffic):
    """What the time to first token depends on, and how large the simulation beside it is."""


def level_of(inputs: FirstTokenTarget) -> float | None:
    """Return the level that the target is set on, or ``None`` for the mean."""
    return None if inputs.slo_statistic == "mean" else inputs.percentile / 100


def statistic(inputs: FirstTokenTarget) -> str:
    """Return what the target is set on, as it stands in a sentence: ``P90 TTFT`` or ``mean TTFT``."""
    return "mean TTFT" if inputs.slo_statistic == "mean" else f"P{inputs.percentile:g} TTFT"
