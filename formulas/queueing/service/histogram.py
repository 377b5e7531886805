"""A histogram as a distribution of prompt lengths: shares of the prompts between edges, even within each bucket."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulas.closed_form import DomainError
from formulas.queueing.service.lengths import Coordinate

Array = NDArray[np.float64]

_PIECES = 4  # into which a bucket is cut before it is integrated


@dataclass(frozen=True)
class HistogramLengths:
    """Lengths that fall between edges with given shares, anywhere in a bucket equally likely.

    Parameters
    ----------
    edges
        Ends of the buckets, ascending: one more than there are shares [tokens, or any unit].
    shares
        Share of the prompts in each bucket, or a number in proportion to it [].

    Examples
    --------
    >>> lengths = HistogramLengths((0.0, 100.0, 300.0), (3, 1))
    >>> lengths.mean, float(lengths.quantile(0.5)), float(lengths.cdf(200.0))
    (87.5, 66.666667, 0.875)
    """

    edges: tuple[float, ...]
    shares: tuple[float, ...]

    def __post_init__(self) -> None:
        edges, shares = np.asarray(self.edges, float), np.asarray(self.shares, float)
        if len(edges) != len(shares) + 1 or not len(shares):
            raise DomainError("A histogram needs one share for each bucket between two edges.")
        if not (edges[0] >= 0 and np.all(np.diff(edges) > 0) and edges[-1] < np.inf):
            raise DomainError("The edges of a histogram rise from one to the next, and none is negative or endless.")
        if not (np.all((shares >= 0) & (shares < np.inf)) and shares.sum() > 0):
            raise DomainError("The shares of a histogram are not negative, and one is above zero.")

    @property
    def _cumulative(self) -> Array:
        rising = np.cumsum((0.0, *self.shares))
        return np.asarray(rising / rising[-1])

    @property
    def mean(self) -> float:
        """Mean length."""
        edges = np.asarray(self.edges)
        return float((edges[1:] + edges[:-1]) / 2 @ np.diff(self._cumulative))

    @property
    def cv(self) -> float:
        """Standard deviation over mean []."""
        low, high = np.asarray(self.edges)[:-1], np.asarray(self.edges)[1:]
        second = (low**2 + low * high + high**2) / 3 @ np.diff(self._cumulative)
        return float(max(second / self.mean**2 - 1, 0.0) ** 0.5)

    def cdf(self, length: Any) -> Any:
        """Share of prompts up to that length."""
        return np.interp(length, self.edges, self._cumulative)

    def quantile(self, level: Any) -> Any:
        """Length that a share `level` does not exceed."""
        return np.interp(level, self._cumulative, self.edges)

    def draw(self, size: int, generator: np.random.Generator) -> Array:
        """Random lengths."""
        return np.asarray(self.quantile(generator.random(size)))

    def scaled_to(self, mean: float) -> HistogramLengths:
        """Return the same shape with another mean length."""
        factor = mean / self.mean
        return HistogramLengths(tuple(factor * edge for edge in self.edges), self.shares)

    def coordinate(self) -> Coordinate:
        """Integrate over the lengths themselves, bucket by bucket; empty ones are left out."""
        edges = np.asarray(self.edges)
        heights = np.diff(self._cumulative) / np.diff(edges)
        cuts = np.linspace(edges[:-1], edges[1:], _PIECES, endpoint=False, axis=1).ravel()
        return Coordinate(
            np.append(cuts, edges[-1]),
            lambda x: heights[np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(heights) - 1)],
            lambda x: x,
            sharp=True,
        )
