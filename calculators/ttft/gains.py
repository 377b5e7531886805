"""Who gains and who pays where short prompts go first: TTFT by length, simulated, the same prompts in each order."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calculators.lengths import spread_of
from calculators.outputs import output
from calculators.ttft.arrivals import gaps_of
from calculators.ttft.inputs import TtftInputs
from calculators.ttft.lengths import law_of
from formulas.montecarlo.priority import simulate_priority

Array = NDArray[np.float64]

REQUESTS = 60_000
"""Prompts of the simulation, of which a tenth is left out at its start."""

KINDS = {
    "the shortest half": (0.0, 0.5),
    "the next four tenths": (0.5, 0.9),
    "the longest tenth": (0.9, 1.0),
    "all": (0.0, 1.0),
}
"""Prompts by their place in order of length."""


@dataclass(frozen=True)
class Gain:
    """One kind of prompts in each order of service."""

    prompts: str = output("Prompts")
    fcfs_ms: float = output("First come first served", "ms", "Mean TTFT")
    short_first_ms: float = output("Short ones first", "ms", "Mean TTFT")
    shortest_ms: float = output("The shortest first", "ms", "Mean TTFT")


def gains(inputs: TtftInputs) -> tuple[Gain, ...]:
    """Return mean TTFT [ms] by length in each order, at one instance with its share of the requests; nothing for equal prompts."""
    if not spread_of(inputs):
        return ()
    law, one = law_of(inputs), replace(inputs, order="fcfs")
    generator = np.random.default_rng(inputs.seed)
    gaps = gaps_of(one, inputs.rate / inputs.servers, REQUESTS, generator)
    times = law.draw(REQUESTS, generator)
    ranks = {"fcfs": np.zeros(REQUESTS), "short_first": (times > law.mean).astype(float), "shortest": times}
    counted = slice(REQUESTS // 10, None)
    ttft = {order: 1e3 * (simulate_priority(gaps, times, rank) + times)[counted] for order, rank in ranks.items()}
    places = np.argsort(np.argsort(times[counted])) / (REQUESTS - REQUESTS // 10)
    return tuple(
        Gain(kind, *(float(each[(places >= low) & (places < high)].mean()) for each in ttft.values()))
        for kind, (low, high) in KINDS.items()
    )
