"""How prompts come, declared: gamma gaps, batches at once, or calm and busy spells; and one prompt that is very long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calculators.inputs import choice, integer, number
from formulas.montecarlo.arrivals import batch_gaps, gamma_gaps, switching_gaps
from formulas.queueing.bursts import Switching, burst_process
from formulas.queueing.service import ListedLengths

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class BurstyArrivals:
    """What makes arrivals more than a spread of single gaps."""

    arrivals: str = choice(
        "Kind of arrivals",
        options=("gamma", "batches", "spells"),
        default="gamma",
        help="gamma: gaps that do not depend on each other, spread as the burstiness says (1 is Poisson). batches: so many "
        "prompts at once, at Poisson times. spells: Poisson, at a rate that switches between calm and busy.",
    )
    burst: int = integer(
        "Prompts that come at once",
        low=1,
        high=1000,
        default=16,
        step=4,
        symbol="b",
        help="Size of a batch of arrivals, and of the single burst on an idle pool: an agent that fans out, a document cut "
        "in pieces.",
    )
    busy_ratio: float = number(
        "Busy rate over calm rate",
        low=1,
        high=1000,
        default=4,
        step=1,
        help="How many times as many prompts come in a busy spell as in a calm one.",
    )
    busy_share: float = number(
        "Share of the time that is busy",
        low=0.001,
        high=0.999,
        default=0.2,
        step=0.05,
        help="How much of the time is busy spells.",
    )
    busy_spell_s: float = number(
        "Length of a busy spell",
        unit="s",
        low=0.001,
        high=100_000,
        default=1,
        step=0.5,
        help="Mean length; spells are exponential.",
    )


@dataclass(frozen=True, kw_only=True)
class Bursts(BurstyArrivals):
    """What the tab of bursts and convoys looks at."""

    long_tokens: int = integer(
        "One very long prompt",
        unit="tokens",
        low=1,
        high=2_000_000,
        default=16_384,
        step=4096,
        help="A prompt that comes among the others once: how long those behind it wait for it.",
    )


TYPICAL_SCV = 4.0
"""Burstiness that is shown where arrivals are Poisson."""

OF_KIND = {"gamma": ("arrival_scv",), "batches": ("burst",), "spells": ("busy_ratio", "busy_share", "busy_spell_s")}
"""The inputs that each kind of arrivals has; of the other kinds they say nothing."""


def is_poisson(inputs: Any) -> bool:
    """Return whether arrivals are Poisson."""
    return bool(inputs.arrivals == "gamma" and inputs.arrival_scv == 1)


def spells(inputs: BurstyArrivals, rate: float) -> Switching:
    """Return the arrivals with calm and busy spells, at a mean rate [requests/s]."""
    return burst_process(rate, inputs.busy_ratio, inputs.busy_share, inputs.busy_spell_s)


MOST_CHANGES = 300
"""Changes of the rate in a service time up to which the waits are exact: beyond, the inversion loses its digits."""

AS_POISSON = 1.05
"""Variance of counts over their mean up to which arrivals are taken for Poisson: spells far shorter than gaps."""


def changes_in(inputs: BurstyArrivals, time: float) -> float:
    """Return how often the state that is left faster would be left in a time [s]."""
    return time / inputs.busy_spell_s * max(1.0, inputs.busy_share / (1 - inputs.busy_share))


def as_poisson(inputs: Any, service_s: float) -> bool:
    """Return whether spells are so short that no stable pool tells the arrivals from Poisson's.

    Parameters
    ----------
    inputs
        Arrivals and instances.
    service_s
        Mean service time [s]: at more than one request in it for each instance there is no steady state.
    """
    if inputs.arrivals != "spells" or changes_in(inputs, service_s) <= MOST_CHANGES:
        return False
    return spells(inputs, inputs.servers / service_s).dispersion() <= AS_POISSON


def gaps_of(inputs: Any, rate: float, count: int, generator: np.random.Generator) -> Array:
    """Return random gaps [s] between so many arrivals at a mean rate [requests/s]."""
    match inputs.arrivals:
        case "batches":
            return batch_gaps(rate / inputs.burst, ListedLengths(inputs.burst), count, generator)[:count]
        case "spells":
            process = spells(inputs, rate)
            if process.dispersion() > AS_POISSON:
                return switching_gaps(process, count, generator)
            return gamma_gaps(rate, 1.0, count, generator)
    shape = 1 / inputs.arrival_scv if inputs.arrival_scv else np.inf
    return gamma_gaps(rate, shape, count, generator)


def clumping(inputs: Any, rate: float) -> float:
    """Return how many times as long as with Poisson arrivals a simulation takes to forget: variance of counts over their mean."""
    match inputs.arrivals:
        case "batches":
            return float(inputs.burst)
        case "spells":
            return spells(inputs, rate).dispersion()
    return max(float(inputs.arrival_scv), 1.0)


def in_words(inputs: Any) -> str:
    """Return the arrivals in a few words."""
    match inputs.arrivals:
        case "batches":
            return f"batches of {inputs.burst} at Poisson times"
        case "spells":
            return (
                f"busy spells of {inputs.busy_spell_s:g} s at {inputs.busy_ratio:g} times the rate, "
                f"{100 * inputs.busy_share:g} % of the time"
            )
    return "Poisson arrivals" if inputs.arrival_scv == 1 else f"gamma arrivals, scv {inputs.arrival_scv:g}"
