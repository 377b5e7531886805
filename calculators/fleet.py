"""How many instances a rate needs, and whether one is enough: to rounding, in one place."""

from __future__ import annotations

import math
from collections.abc import Callable
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
        default=100,
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


MOST_SERVERS = 256
"""Instances of a pool up to which it is looked for how many are needed."""


MOST_INSTANCES = 2**24
"""The same where a single formula answers for any number."""


def fewest_servers(keeps: Callable[[int], bool], stable: int, most: int = MOST_SERVERS) -> int | None:
    """Return the fewest instances, of those from `stable` on, that keep a target; ``None`` if more than `most` are needed.

    >>> fewest_servers(lambda count: count >= 23, 3), fewest_servers(lambda count: False, 3)
    (23, None)
    """
    too_few, stride, enough = stable - 1, 1, stable
    while enough <= most and not keeps(enough):
        too_few, enough, stride = enough, min(enough + stride, most + (enough == most)), 2 * stride
    if enough > most:
        return None
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        too_few, enough = (too_few, middle) if keeps(middle) else (middle, enough)
    return enough
