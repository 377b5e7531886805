"""How many instances a rate needs, and whether one is enough: to rounding, in one place."""

from __future__ import annotations

import math
from dataclasses import dataclass

from calculators.inputs import number

ROUNDING = 1e-9
"""Share by which a rate may exceed the highest one before it counts as more."""


@dataclass(frozen=True, kw_only=True)
class TargetRate:
    """What a whole deployment is to carry."""

    target_rate: float = number(
        "Target rate",
        unit="requests/s",
        low=0.001,
        high=1e7,
        default=500,
        step=10,
        symbol="R",
        help="Mean rate of requests that the whole deployment is to carry within its targets.",
    )


def within(rate: float, max_rate: float) -> bool:
    """Return whether one instance takes the rate.

    >>> within(0.1 + 0.2, 0.3), within(0.31, 0.3)
    (True, False)
    """
    return rate <= max_rate * (1 + ROUNDING)


def instances_for(rate: float, max_rate: float) -> int:
    """Return how many instances a rate needs when each request goes to one of them at random.

    >>> instances_for(0.1 + 0.2, 0.3), instances_for(60, 6)
    (1, 10)
    """
    return max(1, math.ceil(rate / max_rate * (1 - ROUNDING)))
