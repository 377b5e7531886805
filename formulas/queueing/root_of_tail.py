"""Percentiles from a survival function that costs something to evaluate: Newton's method that minds jumps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Point = Callable[[float], tuple[float, float]]

_ROOT = 1e-12  # relative width of the bounds at which a percentile is found
_LOOK = {0, *range(4, 200)}  # steps at which a jump is looked for
_NO_JUMPS = (np.empty(0), np.empty(0))


def quantile_of(
    point: Point, late: float, start: float, least: float = 0.0, jumps: tuple[Array, Array] = _NO_JUMPS
) -> float:
    """Time after which a share `late` is left: by Newton's method on the logarithm of the survival.

    Parameters
    ----------
    point
        Survival and density at a time; the density need not be exact.
    late
        Share, in (0, 1) [].
    start
        Where to begin.
    least
        Lower bound.
    jumps
        Times at which the survival falls at once, ascending, and by how much.

    Examples
    --------
    >>> quantile_of(lambda t: (float(np.exp(-t)), float(np.exp(-t))), 0.01, 1.0)
    4.6051702
    """
    t, low, high = start, least, np.inf
    for count in range(200):
        survival, density = point(t)
        low, high = (max(low, t), high) if survival > late else (low, min(high, t))
        excess = np.log(survival / late) if survival > 0 else -np.inf
        step = excess * survival / density if survival > 0 and density > 0 else np.inf
        if (abs(step) <= 3e-8 * t and abs(excess) < 1e-6) or high <= low * (1.0 + _ROOT):
            return float(np.clip(t + step, low, high))
        if count in _LOOK:
            low, high = _past_jump(point, late, low, high, jumps)
        t = t + step
        if not low < t < high:
            t = (low + high) / 2 if high < np.inf else 2.0 * low + 1e-3
    return t


def _past_jump(point: Point, late: float, low: float, high: float, jumps: tuple[Array, Array]) -> tuple[float, float]:
    """Bounds on one side of the middle jump between them, or both at the jump if the quantile is there."""
    inside = np.flatnonzero((jumps[0] > low) & (jumps[0] <= high))
    if not len(inside):
        return low, high
    middle = inside[len(inside) // 2]
    jump = float(jumps[0][middle])
    after = point(jump)[0] * (1.0 - 1e-9)
    if after <= late <= after + jumps[1][middle]:
        return jump, jump
    return (jump, high) if after > late else (low, jump * (1.0 - 1e-15))
