"""The largest rate at which a decode pool keeps its target."""

from __future__ import annotations

import numpy as np

from formulas.bracketing import find_root
from formulas.closed_form import DomainError
from formulas.decode_pool.affine import UNLOADED
from formulas.decode_pool.averaging import Lengths
from formulas.decode_pool.law import StepTime, as_function, capacity, stationary_law

_NEAREST = 1e-3  # of the capacity: nearer than that no rate is sought without a cap


def max_rate(
    tpot_limit: float,
    tokens: float,
    step_time: StepTime,
    *,
    level: float | None = None,
    cap: int | None = None,
    lengths: Lengths = "fixed",
    lengths_cv2: float | None = None,
) -> float:
    """Largest rate at which the time per output token stays within a limit [1/s].

    Parameters
    ----------
    tpot_limit
        Limit of the mean, or of the percentile at `level` [s].
    tokens, step_time, cap
        As in :func:`~formulas.decode_pool.law.stationary_law`.
    level
        Share of the requests within the limit, 0.9 for P90; None for the mean [].
    lengths
        As in :meth:`~formulas.decode_pool.law.PoolLaw.tpot_quantile`.
    lengths_cv2
        If given, the time counts from the arrival, with its waits, as in
        :meth:`~formulas.decode_pool.law.PoolLaw.tpot_from_arrival`, and `lengths` plays no part [].

    Returns
    -------
    float
        The capacity, less 1e-9 of it with a cap and 1e-3 without, where the limit never binds below that [1/s].

    Raises
    ------
    DomainError
        If even a sequence alone takes that long.

    Examples
    --------
    >>> max_rate(0.015, 64, lambda n: 6.6e-3 + 2.66e-5 * n)
    327.906
    >>> max_rate(0.015, 64, lambda n: 6.6e-3 + 2.66e-5 * n, level=0.9)
    313.80
    """
    step_time, cap = as_function(step_time, cap)
    highest = capacity(tokens, step_time, cap)
    alone = float(np.asarray(step_time(np.ones(1)))[0])
    if alone >= tpot_limit:
        raise DomainError(UNLOADED)

    def excess(rate: float) -> float:
        law = stationary_law(rate, tokens, step_time, cap)
        if lengths_cv2 is not None:
            return float(law.tpot_from_arrival(level, lengths_cv2)) - tpot_limit
        return (law.mean_tpot if level is None else law.tpot_quantile(level, lengths)) - tpot_limit

    low = high = min(1e-6 / (tokens * alone), highest / 2)
    nearest = highest * (1 - (_NEAREST if cap is None else 1e-9))
    while excess(high) < 0:
        if high == nearest:
            return high
        low, high = high, min(2 * high, (high + highest) / 2, nearest)
    if low == high:
        return low
    return float(find_root(np.vectorize(excess, otypes=[float]), np.array([low]), np.array([high]), tolerance=1e-13)[0])
