r"""When requests come: rate over time, spread of the gaps, and bursts at several time scales.

Poisson arrivals have a squared coefficient of variation of the gaps of 1, counts whose variance is their mean in
windows of any length, and gaps that do not depend on one another. What differs, and at which time scale, says which
queue to compare with: regular or bursty gaps, a rate that swings within seconds, or a day that has hours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulas.closed_form import DomainError

Array = NDArray[np.float64]
Whole = NDArray[np.int64]

_FEWEST_WINDOWS = 10
_MOST_BINS = 10_000_000


@dataclass(frozen=True)
class RateOverTime:
    """Requests in bins of one width, from the first request on.

    Attributes
    ----------
    width_s
        Width of a bin [s].
    starts_s
        Begin of each bin, from the first request [s].
    counts
        Requests in each; the last, incomplete bin is left out [].
    """

    width_s: float
    starts_s: Array
    counts: Whole

    @property
    def rates(self) -> Array:
        """Rate in each bin [1/s]."""
        return self.counts / self.width_s

    @property
    def peak_over_mean(self) -> float:
        """Highest rate of a bin over the mean rate []."""
        return float(self.counts.max() / self.counts.mean())


@dataclass(frozen=True)
class Dispersion:
    """Variance of the counts in windows over their mean, at several lengths of the window.

    Attributes
    ----------
    windows_s
        Lengths [s].
    index
        Index of dispersion at each; 1 for Poisson arrivals at any length, 0 for regular ones [].
    counted
        Windows of each length [].
    """

    windows_s: Array
    index: Array
    counted: Whole

    @property
    def poisson_error(self) -> Array:
        r"""Standard error that the index of Poisson arrivals would have here, :math:`\sqrt{2/(n-1)}` []."""
        return np.sqrt(2.0 / (self.counted - 1))


def mean_rate(arrivals: Any) -> float:
    """Mean rate: gaps over the time that they take together [1/s].

    Parameters
    ----------
    arrivals
        Times of arrival, ascending, at least two and not all at once [s].

    Examples
    --------
    >>> mean_rate([0.0, 0.5, 2.0])
    1.0
    """
    times = _ascending(arrivals)
    return (len(times) - 1) / float(times[-1] - times[0])


def rate_over_time(arrivals: Any, width_s: float) -> RateOverTime:
    """Count the requests in bins of one width.

    Parameters
    ----------
    arrivals
        Times of arrival, ascending [s].
    width_s
        Width of a bin, above zero [s].

    Examples
    --------
    >>> rate_over_time([0.0, 0.5, 2.0, 2.1, 2.2, 4.5], 1.0).counts
    array([2, 0, 3, 0])
    """
    times = _ascending(arrivals)
    bins = _whole_windows(times, width_s)
    if bins < 1:
        raise DomainError("A bin cannot be longer than the trace.")
    return RateOverTime(width_s, width_s * np.arange(bins, dtype=float), _counts(times, width_s, bins))


def gap_cv2(arrivals: Any) -> float:
    """Squared coefficient of variation of the gaps between arrivals: 1 for Poisson arrivals [].

    Examples
    --------
    >>> gap_cv2([0.0, 1.0, 2.0, 3.0])
    0.0
    >>> gap_cv2([0.0, 0.0, 0.0, 3.0])
    2.0
    """
    gaps = np.diff(_ascending(arrivals))
    return float(gaps.var() / gaps.mean() ** 2)


def index_of_dispersion(arrivals: Any, windows_s: Any = None) -> Dispersion:
    r"""Burstiness at several time scales.

    Parameters
    ----------
    arrivals
        Times of arrival, ascending [s].
    windows_s
        Lengths of the windows; None takes ten in each tenfold, from the mean gap to a tenth of the trace [s]. Those of
        which fewer than ten fit into the trace are left out.

    Notes
    -----
    For independent gaps it falls or rises from 1, at windows far below a gap, to the gaps' squared coefficient of
    variation (Cox and Lewis, The Statistical Analysis of Series of Events, 1966, section 4.6). What goes on rising with
    the window is a rate that changes.

    Examples
    --------
    >>> arrivals = np.cumsum(np.random.default_rng(1).exponential(1.0, 100_000))
    >>> index_of_dispersion(arrivals, [1.0, 10.0, 100.0]).index.round(1)
    array([1., 1., 1.])
    """
    times = _ascending(arrivals)
    longest = float(times[-1] - times[0]) / _FEWEST_WINDOWS
    if windows_s is None:
        shortest = 1.0 / mean_rate(times)
        steps = max(int(10 * np.log10(longest / shortest)), 0) + 1 if longest >= shortest else 0
        windows_s = shortest * 10 ** (np.arange(steps) / 10)
    windows = np.asarray(windows_s, dtype=float).ravel()
    if np.any(~(windows > 0)):
        raise DomainError("A window is longer than nothing.")
    windows = windows[windows <= longest * (1 + 1e-12)]
    if not windows.size:
        raise DomainError("The trace is too short: fewer than ten windows of any of these lengths fit into it.")
    counted = np.array([_whole_windows(times, width) for width in windows], dtype=np.int64)
    counts = [_counts(times, width, bins) for width, bins in zip(windows, counted.tolist(), strict=True)]
    return Dispersion(windows, np.array([x.var(ddof=1) / x.mean() for x in counts]), counted)


def autocorrelation(values: Any, lags: int) -> Array:
    r"""Correlation of a sequence with itself, at 1 to `lags` places apart [].

    Parameters
    ----------
    values
        Such as the gaps between arrivals, the counts in bins, or the lengths, in order of time.
    lags
        Largest distance, below the length of the sequence [].

    Notes
    -----
    :math:`r_k = \sum_i (x_i - \bar x)(x_{i+k} - \bar x) / \sum_i (x_i - \bar x)^2`, by Fourier transform. For independent
    values it is 0 to within :math:`2/\sqrt n`, in 95 of 100 lags.

    Examples
    --------
    >>> autocorrelation([1.0, -1.0] * 500, 2)
    array([-0.999,  0.998])
    """
    x = np.asarray(values, dtype=float)
    if not 1 <= lags < len(x):
        raise DomainError("The lags of an autocorrelation are at least 1 and fewer than there are values.")
    x = x - x.mean()
    if not np.any(np.abs(x) > 1e-12 * np.abs(values).max()):
        raise DomainError("The values are all equal: they have no correlation.")
    size = 1 << (len(x) + lags).bit_length()
    power = np.abs(np.fft.rfft(x, size)) ** 2
    products = np.fft.irfft(power, size)[: lags + 1]
    return np.asarray(products[1:] / products[0])


def _ascending(arrivals: Any) -> Array:
    times = np.asarray(arrivals, dtype=float)
    if times.ndim != 1 or len(times) < 2 or not times[-1] > times[0]:
        raise DomainError("A trace has at least two requests, and not all at the same time.")
    if np.any(times[1:] < times[:-1]):
        raise DomainError("Times of arrival are in ascending order.")
    return times


def _whole_windows(times: Array, width: float) -> int:
    if not width > 0:
        raise DomainError("A bin is longer than nothing.")
    windows = float(times[-1] - times[0]) / width
    if windows > _MOST_BINS:
        raise DomainError(f"More than {_MOST_BINS:,} bins: choose a longer one.")
    return int(windows * (1 + 1e-12))


def _counts(times: Array, width: float, bins: int) -> Whole:
    edges = times[0] + width * np.arange(bins + 1)
    counts: Whole = np.diff(np.searchsorted(times, edges))
    return counts
