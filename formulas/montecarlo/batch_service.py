"""One server that takes up to so many waiting prompts at a time: from batch to batch."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def simulate_batch_service(gaps: Any, batch_times: Any, most: int | None = None) -> tuple[Array, Array]:
    """Return the waits and the times to first token of prompts that find the server idle at first.

    Parameters
    ----------
    gaps
        Time from each arrival to the next one; the last is not used [s].
    batch_times
        Time of a batch of one prompt, two, and so on: a list, or a function of the number [s].
    most
        Largest batch; all who wait if None.

    Examples
    --------
    >>> simulate_batch_service([0.1, 0.1, 5.0], [1.0, 1.5], most=2)[1]
    array([1. , 2.4, 2.3])
    """
    arrivals = np.concatenate([[0.0], np.cumsum(np.asarray(gaps, float)[:-1])])
    coming = arrivals.tolist()
    time_of = batch_times if callable(batch_times) else lambda size: batch_times[size - 1]
    starts, ends = np.empty(len(coming)), np.empty(len(coming))
    first, now = 0, 0.0
    while first < len(coming):
        now = max(now, coming[first])
        last = bisect_right(coming, now, first)
        last = last if most is None else min(last, first + most)
        starts[first:last] = now
        now += float(time_of(last - first))
        ends[first:last] = now
        first = last
    return starts - arrivals, ends - arrivals
