r"""The wait at one of several instances with a queue each, for any service times: :math:`E_k/G/1` on a lattice.

A router that takes instances in turn gives each every k-th prompt of a Poisson stream: Erlang interarrival times of
shape k. One that draws them at random gives it a Poisson stream, k = 1. Both are single-server queues with independent
interarrival times A, whose wait is the highest point of a walk with steps S - A. On a lattice the Wiener-Hopf
factorisation of the step's transform is three Fourier transforms (Spitzer's identity): of
:math:`-\ln(1 - \hat S(z) \hat A(1/z)) = \sum_k b_k z^k` the upward part is kept, :math:`\exp \sum_{k>0} b_k (z^k - 1)`.

Every mass is split between two lattice points such that the mean stays in place, which leaves an error of the
square of the lattice step. Two steps, one twice the other, are extrapolated to none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulas.closed_form import DomainError
from formulas.queueing.many_servers.service_times import ServiceTimes
from formulas.queueing.pollaczek_khinchine import UNSTABLE

Array = NDArray[np.float64]

MOST_POINTS = 2**18  # of the finer lattice
_FINEST = 0.02  # lattice step, in mean services
_PER_SPREAD = 8  # lattice steps in a standard deviation, of the services or of the interarrival times
_COARSEST = 0.5  # beyond it the lattice itself would spread the services
_TAIL = 30  # the range, in means of an exponential tail: e^-30 of it is beyond
_BEYOND = 1e-12  # share of the services that may be longer than the range


@dataclass(frozen=True)
class LatticeLaw:
    """Probabilities of multiples of a step.

    Attributes
    ----------
    step
        Distance of the points [s].
    masses
        Probability of each point, from 0 up [].
    """

    step: float
    masses: Array

    @property
    def mean(self) -> float:
        """Mean [s]."""
        return float(self.step * (np.arange(len(self.masses)) @ self.masses))

    def plus(self, other: LatticeLaw) -> LatticeLaw:
        """Return the law of the sum with an independent time on the same lattice."""
        size = len(self.masses) + len(other.masses)
        total = np.fft.irfft(np.fft.rfft(self.masses, size) * np.fft.rfft(other.masses, size), size)
        return LatticeLaw(self.step, total)

    def on(self, step: float, points: int) -> LatticeLaw:
        """Return the same law on another lattice, its mean kept; what lies beyond its end is put there."""
        place = np.arange(len(self.masses)) * (self.step / step)
        place = np.minimum(place, points - 1)
        left = np.minimum(place.astype(int), points - 2)
        right_share = place - left
        stay = np.bincount(left, self.masses * (1 - right_share), points)
        move = np.bincount(left + 1, self.masses * right_share, points)
        return LatticeLaw(step, np.asarray(stay + move, dtype=float))

    def survival(self, t: Any) -> Array:
        """Probability of a longer time; see :meth:`quantile`."""
        points, log_survival = self._curve()
        return np.asarray(np.exp(np.interp(t, points, log_survival)))

    def quantile(self, level: Any) -> Any:
        """Time that a share `level` does not exceed [s].

        A mass stands for the time within half a step of its point, so the distribution is known in the middle between
        points. What is at 0 beyond half of the next mass is an atom. Between, the logarithm of the survival is straight.
        """
        points, log_survival = self._curve()
        late = np.log1p(-np.asarray(level, dtype=float))
        return np.interp(-late, -log_survival, points)

    def _curve(self) -> tuple[Array, Array]:
        atom = max(self.masses[0] - self.masses[1] / 2.0, 0.0)
        survival = np.concatenate([[1.0 - atom], 1.0 - np.cumsum(self.masses)])
        last = int(np.argmax(survival < 1e-13)) or len(survival)  # rounding begins there
        points = np.concatenate([[0.0], self.step * (np.arange(len(self.masses)) + 0.5)])
        with np.errstate(divide="ignore"):
            return points[:last], np.log(np.minimum(survival[:last], 1.0))


@dataclass(frozen=True)
class Law:
    """A law on two lattices, extrapolated: the error is that of the finer step squared, nearly all of it undone.

    Attributes
    ----------
    coarse, fine
        The law on a step, and on half of it.
    """

    coarse: LatticeLaw
    fine: LatticeLaw

    @property
    def mean(self) -> float:
        """Mean [s]."""
        return (4.0 * self.fine.mean - self.coarse.mean) / 3.0

    def quantile(self, level: Any) -> Any:
        """Time that a share `level` does not exceed [s]."""
        return np.maximum((4.0 * self.fine.quantile(level) - self.coarse.quantile(level)) / 3.0, 0.0)


@dataclass(frozen=True)
class QueueLaws:
    """Laws of the wait and of the time to first token, wait and service together [s]."""

    wait: Law
    ttft: Law


def lattice_step(service: ServiceTimes, utilization: float, gap_cv: float = 1.0) -> tuple[float, int]:
    """Return the coarser of the two lattice steps, in seconds, and the number of its points.

    Parameters
    ----------
    service
        Distribution of the service times.
    utilization
        In (0, 1) [].
    gap_cv
        Coefficient of variation of the interarrival times [].

    Examples
    --------
    >>> from formulas.queueing.many_servers.service_times import LognormalTimes
    >>> lattice_step(LognormalTimes(1.0, 0.5), 0.8)
    (0.04, 2400)
    """
    from scipy.fft import next_fast_len  # slow to import, and needed by few

    wait = _TAIL * service.mean * (1.0 + service.cv**2) / 2.0 / (1.0 - utilization)
    gap = service.mean / utilization * (1.0 + 8.0 * gap_cv + _TAIL * gap_cv**2)
    longest = max(wait, gap, float(service.quantile(1.0 - _BEYOND)) + 10.0 * service.mean)
    finest = service.mean * min(_FINEST, gap_cv / utilization / _PER_SPREAD, (service.cv or 1.0) / _PER_SPREAD)
    step = max(finest, longest / MOST_POINTS)
    if step > _COARSEST * service.mean:
        raise DomainError(
            f"At a utilization of {utilization:.7g} waits and services of this spread are too far apart in length to be "
            "computed together."
        )
    return 2.0 * step, int(next_fast_len(int(longest / step / 2.0) + 2, real=True))


def on_lattice(service: ServiceTimes, step: float, points: int) -> LatticeLaw:
    """Return service times on a lattice, their mean kept; what lies beyond its end is put there.

    Examples
    --------
    >>> from formulas.queueing.many_servers.service_times import Constant
    >>> on_lattice(Constant(1.0), 0.4, 5).masses
    array([0. , 0. , 0.5, 0.5, 0. ])
    """
    return LatticeLaw(step, _split(service.excess(step * np.arange(points + 1)), step))


def own_queue_laws(service: ServiceTimes, utilization: float, every: int = 1) -> QueueLaws:
    """Laws of the wait and of TTFT at an instance that gets every k-th prompt of a Poisson stream.

    Parameters
    ----------
    service
        Distribution of the service times.
    utilization
        Share of the time that the instance is busy, in (0, 1) [].
    every
        k: the number of instances for round robin; 1 for a choice at random [].

    Notes
    -----
    Relative errors for log-normal services with a cv of 0.2 to 2, utilizations of 0.5 to 0.95 and k from 1 to 64: below
    1e-5 for the mean wait and 1.1e-4 for P90, P99 and P99.9 of the wait, mostly 1e-7, against steps half as
    long; with k = 1, below 2e-6 against references of fourteen digits. Largest where services and interarrival times are
    nearly constant and the wait is short. Services of a few lengths only, or of one: up to 3e-3. Near saturation,
    at 0.999: 4e-5 of the mean. It takes 5 to 300 ms, most of it for long tails.

    Examples
    --------
    >>> from formulas.queueing.many_servers.service_times import LognormalTimes
    >>> laws = own_queue_laws(LognormalTimes(1.0, 1.0), 0.8)
    >>> round(laws.wait.mean, 3), laws.wait.quantile([0.9, 0.99]).round(2)
    (4.0, array([10.62, 23.37]))
    """
    if not 0 < utilization < 1:
        raise DomainError(UNSTABLE if utilization >= 1 else "A wait needs a utilization above zero.")
    step, points = lattice_step(service, utilization, every**-0.5)
    laws = [_own_queue(service, utilization, every, h, n) for h, n in ((step, points), (step / 2, 2 * points))]
    (coarse, coarse_ttft), (fine, fine_ttft) = laws
    return QueueLaws(Law(coarse, fine), Law(coarse_ttft, fine_ttft))


def _own_queue(
    service: ServiceTimes, utilization: float, every: int, step: float, points: int
) -> tuple[LatticeLaw, LatticeLaw]:
    times = on_lattice(service, step, points)
    gaps = _split(_erlang_excess(every, service.mean / utilization, step * np.arange(points + 1)), step)
    wait = LatticeLaw(step, _highest_point(times.masses, gaps))
    return wait, wait.plus(times)


def _highest_point(up: Array, down: Array) -> Array:
    """Law of the highest point of a walk, whose steps are the difference of two laws on the lattice."""
    points = len(up)
    place = np.arange(points)
    transform = np.fft.rfft(up, 2 * points) * np.fft.rfft(down, 2 * points).conj()
    turn = np.exp(-1j * np.pi * np.arange(points + 1) / points)
    smooth = np.empty_like(transform)
    smooth[1:] = (1.0 - transform[1:]) / (1.0 - turn[1:].conj())
    smooth[0] = (down - up) @ place  # the zero at z = 1 belongs to the downward part: divided out
    coefficients = -np.fft.irfft(np.log(smooth), 2 * points)
    coefficients[0] = coefficients[points:] = 0.0
    upward = np.exp(np.fft.rfft(coefficients) - coefficients.sum())
    return np.asarray(np.fft.irfft(upward, 2 * points)[:points])


def _split(excess: Array, step: float) -> Array:
    """Masses on a lattice, from the mean excess at its points and one beyond."""
    below = (excess[:-1] - excess[1:]) / step  # mean survival between two points
    masses = np.concatenate([[1.0], below[:-1]]) - below
    masses[-1] = below[-2]
    return np.maximum(masses, 0.0)


def _erlang_excess(shape: int, mean: float, x: Any) -> Array:
    from scipy.special import gammaincc  # slow to import, and needed by few

    scaled = x * (shape / mean)
    return np.asarray(mean * gammaincc(shape + 1, scaled) - x * gammaincc(shape, scaled))
