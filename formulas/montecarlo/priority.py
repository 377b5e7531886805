"""One server that picks whom it serves next: classes of prompts, or the shortest first, from event to event."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def simulate_priority(gaps: Any, services: Any, ranks: Any) -> Array:
    """Return the waits of prompts of which the one with the lowest rank in the queue is served next.

    Parameters
    ----------
    gaps
        Time from each arrival to the next one; the last is not used [s].
    services
        Service time of each prompt [s].
    ranks
        Rank of each: its class, or its service time for the shortest first. Equal ones are served as they came.

    Returns
    -------
    ndarray
        Wait of each prompt, in the order of arrival [s].

    Examples
    --------
    >>> simulate_priority([0.1, 0.1, 5.0], [1.0, 2.0, 0.5], [1.0, 2.0, 0.5])
    array([0. , 1.4, 0.8])
    """
    arrivals = np.concatenate([[0.0], np.cumsum(np.asarray(gaps, float)[:-1])]).tolist()
    times, keys = np.asarray(services, float).tolist(), np.asarray(ranks, float).tolist()
    waits = np.empty(len(arrivals))
    queue: list[tuple[float, int]] = []
    coming, now = 0, 0.0
    for _ in range(len(arrivals)):
        if not queue:
            now = max(now, arrivals[coming])
        while coming < len(arrivals) and arrivals[coming] <= now:
            heappush(queue, (keys[coming], coming))
            coming += 1
        _, served = heappop(queue)
        waits[served] = now - arrivals[served]
        now += times[served]
    return waits
