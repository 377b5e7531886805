"""Exact work found by a Poisson arrival when services are whole numbers, by sums of positive terms.

With services of whole units the server works through a queue of units that come in batches. If N is the number of
units left at the start of one (p_n, by the level-crossing recursion, all of whose terms are positive), then for
t = k - x, 0 < x <= 1, P(V <= t) is the chance that max(N, 1) and the units of a time x make at most k (Franx 2001,
for batches).
"""

import numpy as np


def batch_work_cdf(rate, sizes, shares, longest):
    """P(V <= t) for t up to `longest`, as a function."""
    n = int(longest) + 2
    size = np.zeros(max(sizes) + 1)
    np.add.at(size, sizes, shares)
    p = np.zeros(n + 1)
    p[0] = 1 - rate * float(np.dot(sizes, shares))
    arrivals = compound_poisson(rate, size, n + max(sizes))
    beyond = 1 - np.cumsum(arrivals)
    for k in range(1, n + 1):
        p[k] = (p[0] * beyond[k - 1] + p[1:k] @ beyond[k - 1 : 0 : -1]) / arrivals[0]
    within = np.cumsum(p)

    def cdf(t):
        k = int(np.floor(t)) + 1
        units = compound_poisson(rate * (k - t), size, k)
        return float(units[:k] @ within[k:0:-1])

    return cdf


def compound_poisson(mean, size, longest):
    """Panjer's recursion for the number of units in a Poisson number of batches."""
    law = np.zeros(longest + 1)
    law[0] = np.exp(-mean)
    weighted = np.arange(len(size)) * size
    for k in range(1, longest + 1):
        most = min(k, len(size) - 1)
        law[k] = mean / k * (weighted[1 : most + 1] @ law[k - most : k][::-1])
    return law
