"""What a simulated deployment did for each request, and the statistics of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from formulas.montecarlo.agreement import BATCHES, PERCENTILES, estimates
from formulas.montecarlo.confidence import Interval, mean_interval
from formulas.montecarlo.serving.instance import InstanceTotals
from formulas.montecarlo.serving.workload import Array, Whole


@dataclass(frozen=True, eq=False)
class Served:
    """Requests in order of arrival, all of them finished.

    Parameters
    ----------
    arrivals, first_tokens, completions
        When each came, had its first token, and its last [s].
    prompt_tokens, output_tokens
        Their lengths [].
    instances
        What each instance did; those of prefill before those of decode.
    stopped
        Whether the run was stopped before all requests of the workload were let in.

    Examples
    --------
    >>> served = Served(np.zeros(2), np.array([0.1, 0.2]), np.array([0.4, 0.2]), np.array([9, 9]), np.array([4, 1]), ())
    >>> served.ttft, served.tpot
    (array([0.1, 0.2]), array([0.1, 0. ]))
    """

    arrivals: Array
    first_tokens: Array
    completions: Array
    prompt_tokens: Whole
    output_tokens: Whole
    instances: tuple[InstanceTotals, ...]
    stopped: bool = False

    def __len__(self) -> int:
        return len(self.arrivals)

    @property
    def ttft(self) -> Array:
        """Time from arrival to first token [s]."""
        return self.first_tokens - self.arrivals

    @property
    def tpot(self) -> Array:
        """Time from first to last token for each token after the first; zero where there is none [s]."""
        return (self.completions - self.first_tokens) / np.maximum(self.output_tokens - 1, 1)

    def part(self, start: int, end: int | None = None) -> Served:
        """Return some of the requests, to leave out how a run begins and ends; the instances' totals stay whole."""
        kept = slice(start, end)
        return replace(
            self,
            arrivals=self.arrivals[kept],
            first_tokens=self.first_tokens[kept],
            completions=self.completions[kept],
            prompt_tokens=self.prompt_tokens[kept],
            output_tokens=self.output_tokens[kept],
        )

    def meets(self, ttft_slo: float, tpot_slo: float) -> NDArray[np.bool_]:
        """Whether each request meets both targets, given in seconds."""
        return (self.ttft <= ttft_slo) & (self.tpot <= tpot_slo)

    def attainment(self, ttft_slo: float, tpot_slo: float, level: float = 0.95) -> Interval:
        """Share of the requests that meet both targets, with its interval.

        Parameters
        ----------
        ttft_slo, tpot_slo
            Largest times allowed; infinite for none [s].
        level
            Confidence, in (0, 1) [].
        """
        return mean_interval(self.meets(ttft_slo, tpot_slo), level, BATCHES)

    def ttft_estimates(self, percentiles: tuple[float, ...] = PERCENTILES, level: float = 0.95) -> dict[str, Interval]:
        """Intervals of the mean and percentiles of the time to first token, by name [s]."""
        return estimates(self.ttft, percentiles, level)

    def tpot_estimates(self, percentiles: tuple[float, ...] = PERCENTILES, level: float = 0.95) -> dict[str, Interval]:
        """Intervals of the mean and percentiles of the time per output token, by name [s]."""
        return estimates(self.tpot[self.output_tokens > 1], percentiles, level)
