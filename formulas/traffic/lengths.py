r"""How long requests are: quantiles, a log-normal law that is fitted to them, and how far that is off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, log, sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from formulas.closed_form import DomainError

Array = NDArray[np.float64]
Fit = Literal["moments", "likelihood"]

LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)


@dataclass(frozen=True)
class LengthStatistics:
    """Lengths of a trace.

    Attributes
    ----------
    mean, cv
        Mean length, and standard deviation over it [].
    shortest, longest
        Smallest and largest [].
    quantiles
        Length that a share of the requests do not exceed, by the share [].
    """

    count: int
    mean: float
    cv: float
    shortest: float
    longest: float
    quantiles: Mapping[float, float]


@dataclass(frozen=True)
class LognormalFit:
    """A log-normal law of lengths, rounded to whole tokens, and its misfit.

    Attributes
    ----------
    mean, cv
        Of the law: mean and coefficient of variation before rounding [].
    ks_distance
        Largest difference between the two distribution functions (Kolmogorov-Smirnov) [].
    quantile_errors
        Quantile of the law over that of the data, less 1, by the level [].
    """

    fit: Fit
    mean: float
    cv: float
    ks_distance: float
    quantile_errors: Mapping[float, float]

    @property
    def sigma(self) -> float:
        """Standard deviation of the logarithm []."""
        return sqrt(log(1.0 + self.cv**2))


BUCKET_LEVELS = (
    0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 1.0,
)  # fmt: skip
"""Shares of the requests at which the buckets of a histogram end: finer where lengths are long."""


def histogram(lengths: Any) -> tuple[Array, Array]:
    """Return a histogram of lengths: buckets that end at their quantiles, the last so that its mean is kept.

    Parameters
    ----------
    lengths
        At least one, all above zero [].

    Returns
    -------
    tuple of ndarray
        Edges, ascending from zero, one more than there are buckets; requests in each, the upper edge among them [].

    Examples
    --------
    >>> histogram([10, 20, 20, 30])
    (array([ 0.,  9., 10., 20., 40.]), array([0, 1, 2, 1]))
    """
    values = np.sort(np.asarray(lengths, dtype=float))
    if not len(values) or values[0] <= 0:
        raise DomainError("A histogram needs a length above zero.")
    ends = np.unique(np.quantile(values, BUCKET_LEVELS, method="inverted_cdf"))
    below = max(values[0] - 1, 0.0)  # nothing is shorter than the shortest
    edges = np.unique(np.concatenate([[0.0, below], ends]))
    counts = np.diff(np.searchsorted(values, edges, side="right"))
    last = values[-counts[-1] :].mean()
    edges[-1] = max(2 * last - edges[-2], last)  # where the longest are few and far, their mean counts
    return edges, counts


def length_statistics(lengths: Any, levels: tuple[float, ...] = LEVELS) -> LengthStatistics:
    """Return mean, spread and quantiles of lengths.

    Parameters
    ----------
    lengths
        At least one, all above zero [].
    levels
        Of the quantiles, in (0, 1) [].

    Examples
    --------
    >>> found = length_statistics([100, 200, 300, 400])
    >>> found.mean, found.quantiles[0.5]
    (250.0, 200.0)
    """
    x = _positive(lengths)
    values = np.quantile(x, levels, method="inverted_cdf")
    quantiles = {level: float(value) for level, value in zip(levels, values, strict=True)}
    return LengthStatistics(
        len(x), float(x.mean()), float(x.std() / x.mean()), float(x.min()), float(x.max()), quantiles
    )


def fit_lognormal(lengths: Any, fit: Fit = "moments", levels: tuple[float, ...] = LEVELS) -> LognormalFit:
    """Return a log-normal law for lengths, with its misfit.

    Parameters
    ----------
    lengths
        At least one, all above zero [].
    fit
        "moments": mean and coefficient of variation of the data, which set the mean waits. "likelihood": mean and
        standard deviation of the logarithms, which follow the bulk of the data.
    levels
        At which quantiles are compared, in (0, 1) [].

    Notes
    -----
    Lengths are whole numbers, so the law is taken at the middle between two of them: as though it were rounded.

    Examples
    --------
    >>> lengths = np.rint(np.random.default_rng(1).lognormal(6.0, 0.8, 50_000))
    >>> found = fit_lognormal(lengths, "likelihood")
    >>> round(found.sigma, 2), found.ks_distance < 0.01
    (0.8, True)
    """
    x = _positive(lengths)
    if fit == "moments":
        mean, cv = float(x.mean()), float(x.std() / x.mean())
    else:
        logs = np.log(x)
        sigma2 = float(logs.var())
        mean, cv = exp(float(logs.mean()) + sigma2 / 2), sqrt(np.expm1(sigma2))
    if cv < 1e-9:  # all of one length
        return LognormalFit(fit, mean, 0.0, 0.0, dict.fromkeys(levels, 0.0))
    sigma = sqrt(log(1.0 + cv**2))
    middle = log(mean) - sigma**2 / 2
    seen = np.quantile(x, levels, method="inverted_cdf")
    whole = bool(np.all(x == np.rint(x)))
    law = np.exp(middle + sigma * _normal_quantile(levels))
    off = (np.maximum(np.rint(law), 1.0) if whole else law) / seen - 1.0
    errors = {level: float(value) for level, value in zip(levels, off, strict=True)}
    return LognormalFit(fit, mean, cv, _ks_distance(x, middle, sigma, 0.5 if whole else 0.0), errors)


def correlation(inputs: Any, outputs: Any) -> float:
    """Pearson's correlation of two sequences [].

    Parameters
    ----------
    inputs, outputs
        Such as the input and output lengths of the same requests, at least two and not all equal [].

    Examples
    --------
    >>> correlation([1, 2, 3, 4], [10, 20, 30, 50])
    0.9827
    """
    x, y = np.asarray(inputs, dtype=float), np.asarray(outputs, dtype=float)
    if x.shape != y.shape or x.ndim != 1 or len(x) < 2:
        raise DomainError("A correlation needs two sequences of the same length, of at least two values.")
    x, y = x - x.mean(), y - y.mean()
    scale = sqrt(float(x @ x) * float(y @ y))
    if scale == 0:
        raise DomainError("The values are all equal: they have no correlation.")
    return float(x @ y) / scale


def rank_correlation(inputs: Any, outputs: Any) -> float:
    """Spearman's correlation: Pearson's of the ranks, which a few very long requests do not decide [].

    Examples
    --------
    >>> rank_correlation([1, 2, 3, 4], [10, 20, 30, 5000])
    1.0
    """
    return correlation(_ranks(inputs), _ranks(outputs))


def _ranks(values: Any) -> Array:
    """Ranks from 1 on, the same for equal values: the mean of theirs. SciPy's needs seconds to be imported."""
    _, place, counts = np.unique(np.asarray(values, dtype=float), return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[place])


def _positive(lengths: Any) -> Array:
    x = np.asarray(lengths, dtype=float)
    if x.ndim != 1 or not len(x) or not np.all(x > 0):
        raise DomainError("Lengths are at least one, all above zero.")
    return x


def _ks_distance(x: Array, middle: float, sigma: float, half: float) -> float:
    from scipy.special import ndtr  # slow to import, and needed by few

    values, counts = np.unique(x, return_counts=True)
    below = np.concatenate([[0.0], np.cumsum(counts)]) / len(x)
    above = ndtr((np.log(values + half) - middle) / sigma)
    before = ndtr((np.log(values - half) - middle) / sigma) * (values > 1.0 if half else 1.0)
    return float(max(np.abs(below[1:] - above).max(), np.abs(below[:-1] - before).max()))


def _normal_quantile(levels: tuple[float, ...]) -> Array:
    from scipy.special import ndtri

    return np.asarray(ndtri(np.asarray(levels)))
