r"""A server that takes up to b waiting prompts at a time, exactly.

Poisson arrivals; a batch of k prompts takes a time :math:`T_k`, and the next starts at once with those who wait, or with the
first who comes. The number left at the end of a service is a chain that falls by at most b, and all means follow
from its law. For batches of one duration T it is that of a queue with b servers and equal services: with
:math:`a = R T` and the zeros :math:`z_j = e^{2\pi i j/b}\, e^{a(z_j - 1)/b}` its generating function is

.. math:: \pi(z) = \frac{(b-a)(z-1)}{z^b e^{a(1-z)} - 1} \prod_{j=1}^{b-1} \frac{z-z_j}{1-z_j}

(Bailey 1954; Crommelin 1932), and the distribution of the wait is a finite sum of incomplete gamma functions. For durations that
grow with the batch the chain is solved as a set of linear equations, cut off where nothing is left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import floor, log
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from formulas.closed_form import DomainError
from formulas.queueing import pollaczek_khinchine as pk
from formulas.queueing.mg1_distribution import LEVEL
from formulas.queueing.root_of_tail import quantile_of
from formulas.queueing.roots import conjugate_excess

Array = NDArray[np.float64]

_LARGEST = 128
_MOST_STATES = 2000
_ATOM = 1e-13
_TIMES = "A batch takes a time above zero, and a larger one no less."


@dataclass(frozen=True, eq=False)
class BatchServer:
    """A server of batches in its steady state.

    Parameters
    ----------
    rate
        Prompts per second, above zero [1/s].
    times
        Time of a batch of one prompt, two, and so on up to the largest that is served [s].

    Examples
    --------
    >>> server = BatchServer(30.0, [0.05, 0.05, 0.05, 0.05])
    >>> server.mean_ttft, server.mean_batch
    (0.07261426, 1.71853719)
    """

    rate: float
    times: ArrayLike

    def __post_init__(self) -> None:
        times = np.atleast_1d(np.asarray(self.times, float))
        if times.ndim != 1 or not 1 <= len(times) <= _LARGEST:
            raise DomainError(f"A batch holds between one and {_LARGEST} prompts.")
        if not (np.all(times > 0) and np.all(np.diff(times) >= 0) and times[-1] < np.inf):
            raise DomainError(_TIMES)
        if not self.rate > 0:
            raise DomainError("A server of batches needs a rate above zero.")
        object.__setattr__(self, "times", times)
        if self.utilization >= 1:
            raise DomainError(pk.UNSTABLE)

    @property
    def most(self) -> int:
        """Largest batch []."""
        return len(self._times)

    @property
    def utilization(self) -> float:
        """Rate over the rate of full batches []."""
        return self.rate * float(self._times[-1]) / self.most

    @property
    def mean_batch(self) -> float:
        """Mean number of prompts in a batch []."""
        return self.rate * self._cycle

    @property
    def busy(self) -> float:
        """Share of the time in which the server works []."""
        return 1.0 - float(self._left[0]) / self.rate / self._cycle

    @property
    def mean_ttft(self) -> float:
        """Mean time from arrival to the end of a prompt's batch [s]: by Little's law, over a cycle."""
        sizes = np.maximum(np.arange(len(self._left)), 1)
        times = self._durations
        return float(self._left @ (sizes * times + self.rate * times**2 / 2.0)) / self._cycle / self.rate

    def wait_survival(self, t: Any) -> Any:
        """Probability that a prompt waits longer than `t` before its batch starts, for batches of one duration [].

        Examples
        --------
        >>> BatchServer(0.8, [1.0]).wait_survival([0.0, 4.0])
        array([0.8       , 0.15462489])
        """
        self._one_duration()
        times = np.asarray(t, float)
        value = np.array([self._point(float(x))[0] if x >= 0 else 1.0 for x in times.ravel()]).reshape(times.shape)
        return value if value.ndim else float(value)

    def ttft_quantile(self, level: Any) -> Any:
        """Time to first token that a share `level` of the prompts do not exceed, for batches of one duration [s].

        Examples
        --------
        >>> BatchServer(16.0, [0.05]).ttft_quantile(0.99)
        0.56779434
        """
        self._one_duration()
        levels = np.asarray(level, float)
        if not np.all((levels > 0) & (levels < 1)):
            raise DomainError(LEVEL)
        value = np.array([self._wait(float(p)) for p in levels.ravel()]).reshape(levels.shape) + self._times[-1]
        return value if value.ndim else float(value)

    @property
    def _times(self) -> Array:
        return np.asarray(self.times)

    @property
    def _durations(self) -> Array:
        """Time of the service that follows when 0, 1, 2, ... are left."""
        return self._times[np.clip(np.arange(len(self._left)), 1, self.most) - 1]

    @cached_property
    def _cycle(self) -> float:
        """Mean time from the end of a service to the end of the next."""
        return float(self._left @ self._durations) + float(self._left[0]) / self.rate

    @property
    def _equal(self) -> bool:
        return bool(np.ptp(self._times) <= 1e-12 * self._times[-1])

    @cached_property
    def _left(self) -> Array:
        """Probability that 0, 1, 2, ... prompts are left when a service ends."""
        decay = float(conjugate_excess(self.utilization)) + 1.0 - self.utilization  # per prompt
        count = int(self.most + 40.0 + 36.0 / decay)
        if self._equal:
            return _left_by_zeros(self.most, self.utilization, 1 << count.bit_length())
        if count > _MOST_STATES:
            raise DomainError("So near to saturation, batches of different durations are not computed.")
        return _left_by_equations(self.rate * self._times, count)

    def _one_duration(self) -> None:
        if not self._equal:
            raise DomainError("The distribution of the wait is known for batches that all take the same time.")

    @cached_property
    def _ahead(self) -> Array:
        """Probability of each number left behind by a batch that starts."""
        b = self.most
        return np.concatenate([[self._left[: b + 1].sum()], self._left[b + 1 :]])

    def _wait(self, level: float) -> float:
        """Wait that a share `level` do not exceed."""
        if level <= 1.0 - self.busy + _ATOM:
            return 0.0
        late, wait = 1.0 - level, self.mean_ttft - float(self._times[-1])
        return quantile_of(self._point, late, wait / self.busy * max(log(self.busy / late), 1e-3))

    def _point(self, t: float) -> tuple[float, float]:
        """Survival and density of the wait for batches of one duration."""
        duration = float(self._times[-1])
        full = floor(t / duration + 1e-15)
        rest = max(t - full * duration, 0.0)  # the service in progress has to last longer than this, or a batch more
        early = self._at_least((full + 1) * self.most, duration - rest, duration)
        late = self._at_least(full * self.most, 0.0, duration - rest)
        density = self._at_least(full * self.most, duration - rest) - self._at_least(
            (full + 1) * self.most, duration - rest
        )
        share = self.busy / duration
        return share * (early + late), share * density

    def _at_least(self, queued: int, since: float, until: float | None = None) -> float:
        """Probability that so many are ahead of who comes at a time since the batch began, or its integral."""
        from scipy.special import gammainc

        ahead = self._ahead
        short, missing = ahead[:queued], queued - np.arange(min(queued, len(ahead)))
        already = float(ahead[queued:].sum())
        if until is None:
            return already + float(short @ gammainc(missing, self.rate * since))

        def integral(time: float) -> Array:
            reached = self.rate * time
            return np.asarray(time * gammainc(missing, reached) - missing / self.rate * gammainc(missing + 1, reached))

        return already * (until - since) + float(short @ (integral(until) - integral(since)))


def _left_by_zeros(most: int, rho: float, points: int) -> Array:
    """Law of those left for batches of one duration, by a Fourier transform of the generating function."""
    unit = np.exp(2j * np.pi * np.arange(1, most) / most)
    zeros = unit * 0.5
    for _ in range(60):
        zeros = unit * np.exp(rho * (zeros - 1.0))
    for _ in range(6):
        zeros = zeros - (zeros - unit * np.exp(rho * (zeros - 1.0))) / (1.0 - rho * zeros)
    angle = 2.0 * np.pi * np.arange(1, points // 2 + 1) / points
    turn = 1j * np.sin(angle) - 2.0 * np.sin(angle / 2.0) ** 2  # z - 1, without cancellation
    exponent = 1j * angle * (1.0 - rho) + rho * (1j * angle - turn)
    values = most * (1.0 - rho) * turn / np.expm1(most * exponent)
    for zero in zeros:
        values *= (turn + 1.0 - zero) / (1.0 - zero)
    law: Array = np.fft.irfft(np.conj(np.concatenate([[1.0], values])), points)
    return np.maximum(law, 0.0)


def _left_by_equations(loads: Array, count: int) -> Array:
    """Law of those left, given the mean arrivals during batches of each size, cut off at a number of them."""
    from scipy.special import gammaln

    most, states = len(loads), np.arange(count)
    means = loads[np.clip(states, 1, most) - 1][:, np.newaxis]
    come = states - np.maximum(states - most, 0)[:, np.newaxis]  # of those left after, those who came
    chance = np.where(come >= 0, np.exp(come * np.log(means) - means - gammaln(np.maximum(come, 0) + 1)), 0.0)
    return _stationary(chance)


def _stationary(chain: Array) -> Array:
    """Stationary law of a chain whose rows lose what goes beyond its end."""
    chain[:, -1] += 1.0 - chain.sum(axis=1)
    equations = chain.T - np.eye(len(chain))
    equations[0] = 1.0
    right = np.zeros(len(chain))
    right[0] = 1.0
    return np.asarray(np.maximum(np.linalg.solve(equations, right), 0.0))


def take_all_mean_ttft(rate: float, batch_time: Callable[[Any], Any]) -> float:
    """Mean time to first token if every batch takes all who wait.

    Parameters
    ----------
    rate
        Prompts per second, above zero [1/s].
    batch_time
        Time of a batch of so many prompts, for an array of numbers [s].

    Examples
    --------
    >>> take_all_mean_ttft(1.0, lambda prompts: 0.1 + 0.5 * prompts)
    1.07763445
    """
    if not rate > 0:
        raise DomainError("A server of batches needs a rate above zero.")
    size = 64
    while size <= 4096:
        sizes = np.arange(1, size + 1)
        times = np.asarray(batch_time(sizes), float) * np.ones(size)
        if not (np.all(times > 0) and np.all(np.diff(times) >= 0)):
            raise DomainError(_TIMES)
        if rate * (times[-1] - times[-2]) >= 1:
            raise DomainError(pk.UNSTABLE)
        law = _batch_sizes(rate * times)
        if law[-size // 8 :].sum() < 1e-13:
            idle = law @ np.exp(-rate * times) / rate
            area = law @ (sizes * times + rate * times**2 / 2.0)
            return float(area / (law @ times + idle) / rate)
        size *= 2
    raise DomainError("So near to saturation the batches grow beyond four thousand prompts.")


def _batch_sizes(loads: Array) -> Array:
    """Stationary law of the sizes 1, 2, ... of successive batches, given the mean arrivals during each."""
    from scipy.special import gammaln

    counts = np.arange(len(loads) + 1)
    moves = np.exp(counts * np.log(loads)[:, np.newaxis] - loads[:, np.newaxis] - gammaln(counts + 1))
    chain = moves[:, 1:].copy()
    chain[:, 0] += moves[:, 0]  # nobody came: the next batch is the first who does
    return _stationary(chain)
