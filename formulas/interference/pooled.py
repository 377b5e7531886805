"""Prompts before several instances that share one queue: each starts as soon as any instance is free.

The same for a router that knows the least work left. Equal prompts are exact, in turn too: M/D/c, or behind gamma gaps every
c-th prompt at each instance. Prompts that differ are approximated (:mod:`formulas.queueing.many_servers.mgc` and
:mod:`formulas.queueing.many_servers.bursty`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from formulas.closed_form import DomainError
from formulas.queueing import pollaczek_khinchine as pk
from formulas.queueing.bursts.gamma_arrivals import gamma_mean_wait, gamma_wait_quantile, gamma_wait_survival
from formulas.queueing.bursts.gamma_contour import MOST_EVEN
from formulas.queueing.many_servers import LawTimes, SharedQueueLaws, bursty_queue_laws, mdc
from formulas.queueing.service import ServiceLaw

Array = NDArray[np.float64]

MOST_SHARING = 256
"""Instances of one queue; larger pools are taken as several of so many, which wait a little longer."""

_EQUAL = 1e-12
_LEAST_LOAD, _MOST_LOAD, _PRECISION = 0.01, 0.995, 1e-4  # between which the approximations are computed


@dataclass(frozen=True, eq=False)
class PooledPrompts:
    """A stream of prompts that several instances serve from one queue, one prompt at a time each.

    Attributes
    ----------
    rate
        Prompts per second, of all instances together [1/s].
    law
        Distribution of the service time.
    servers
        Instances, at least two [].
    arrival_scv
        Squared coefficient of variation of the gaps between arrivals, which are gamma distributed: 1 for Poisson arrivals [].

    Examples
    --------
    >>> from formulas.queueing.service import equal_service
    >>> prompts = PooledPrompts(640.0, equal_service(0.01), 8)
    >>> prompts.load, prompts.finished_quantile(0.99)
    (0.8, array(0.02169595))
    """

    rate: float
    law: ServiceLaw
    servers: int
    arrival_scv: float = 1.0

    def __post_init__(self) -> None:
        if self.load >= 1:
            raise DomainError(pk.UNSTABLE)

    @property
    def load(self) -> float:
        """Utilization of each instance []."""
        return self.rate * self.law.mean / self.servers

    @cached_property
    def mean_wait(self) -> float:
        """Mean wait [s]."""
        if not self._equal:
            return self._laws.wait.mean
        if self.arrival_scv != 1:
            return float(self.law.mean * gamma_mean_wait(self.load, self._shape))
        return float(self.law.mean * mdc.mean_wait(self._sharing, self.load))

    def finished_within(self, time: ArrayLike) -> Array:
        """Share of the prompts whose wait and service take at most `time` [s]."""
        times = np.asarray(time, dtype=float)
        if not self._equal:
            return np.where(times > 0, 1 - self._laws.ttft.survival(times), 0.0)
        waits = times / self.law.mean - 1
        after = self._wait_survival(np.maximum(waits, 0.0))
        return np.where(waits >= -_EQUAL, 1 - after, 0.0)

    def finished_quantile(self, level: ArrayLike) -> Array:
        """Wait and service that a share `level`, in (0, 1), of the prompts do not exceed [s]."""
        levels = np.asarray(level, dtype=float)
        if not self._equal:
            return np.asarray(self._laws.ttft.quantile(levels))
        if self.arrival_scv != 1:
            return np.asarray(self.law.mean * (1 + gamma_wait_quantile(levels, self.load, self._shape)))
        return np.asarray(self.law.mean * (1 + mdc.wait_quantile(levels, self._sharing, self.load)))

    def _wait_survival(self, waits: Array) -> Array:
        if self.arrival_scv != 1:
            return np.asarray(gamma_wait_survival(waits, self.load, self._shape))
        return np.asarray(mdc.wait_survival(waits, self._sharing, self.load))

    @property
    def _sharing(self) -> int:
        return min(self.servers, MOST_SHARING)

    @property
    def _shape(self) -> float:
        """Shape of the gaps between every c-th prompt; more even ones than are computed make nobody wait longer."""
        return min(self.servers / self.arrival_scv, MOST_EVEN)

    @cached_property
    def _laws(self) -> SharedQueueLaws:
        load = max(self.load, _LEAST_LOAD)  # below it nobody waits either
        return bursty_queue_laws(LawTimes(self.law), self._sharing, load, self.arrival_scv)

    @property
    def _equal(self) -> bool:
        return self.law.scv < _EQUAL


def pooled_max_rate(
    limit: float, level: float, law: ServiceLaw, servers: int, arrival_scv: float = 1.0
) -> float | None:
    """Largest rate of all instances at which a share of the prompts wait and are served within a limit [1/s].

    Parameters
    ----------
    limit
        Of the wait and the service [s].
    level
        Share of the prompts, in (0, 1) [].
    law, servers, arrival_scv
        As for :class:`PooledPrompts`.

    Returns
    -------
    float or None
        None where not even prompts that meet no others are in time.

    Examples
    --------
    >>> from formulas.queueing.service import equal_service
    >>> pooled_max_rate(0.02, 0.9, equal_service(0.01), 8)
    705.4275
    """
    most = servers / law.mean

    def excess(load: float) -> float:
        return float(PooledPrompts(load * most, law, servers, arrival_scv).finished_within(limit)) - level

    if excess(_LEAST_LOAD) < 0:
        return None
    if excess(_MOST_LOAD) >= 0:
        return _MOST_LOAD * most
    return float(brentq(excess, _LEAST_LOAD, _MOST_LOAD, xtol=_PRECISION)) * most
