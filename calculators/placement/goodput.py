"""The largest rate of one instance in target: of prefill by M/D/1 in a pipeline, of decoding by the product form.

Prefill is exact for equal prompts: a prompt waits for the slowest stage alone, as in M/D/1, and then passes all stages and
hops. Decoding takes the whole pipeline as one pool whose step is a round (:mod:`formulas.decode_pool.pipeline`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from formulas import decode_pool as forms
from formulas.closed_form import DomainError
from formulas.queueing import md1

Array = NDArray[np.float64]

PRECISION = 5e-4
"""Of a decode goodput, relative to the capacity."""

SHOULDERS = (0.99, 0.9)
"""Shares of that rate at which the search looks next where memory cuts the batch."""

NEAREST = 0.9999
"""Share of the capacity beyond which no goodput is sought."""


@dataclass(frozen=True)
class PrefillPipeline:
    """One prefill instance: the time of its slowest stage, and of a prompt alone through all stages and hops [s]."""

    bottleneck_s: float
    latency_s: float

    def goodput(self, ttft_slo_s: float, level: float) -> float | None:
        """Return the largest rate [requests/s] at which a share ``level`` of first tokens is in time."""
        wait_limit = (ttft_slo_s - self.latency_s) / self.bottleneck_s
        if wait_limit < 0:
            return None
        return float(md1.max_utilization(wait_limit, level)) / self.bottleneck_s

    def share_within(self, ttft_slo_s: float, rate: float) -> float:
        """Return the share of first tokens that are in time at a rate [requests/s]; 0 where it does not keep up."""
        wait_limit = (ttft_slo_s - self.latency_s) / self.bottleneck_s
        utilization = rate * self.bottleneck_s
        if wait_limit < 0 or utilization >= 1:
            return 0.0
        return 1 - float(md1.wait_survival(np.array([wait_limit]), np.array([utilization]))[0])


@dataclass(frozen=True)
class DecodePipeline:
    """One decode instance.

    Attributes
    ----------
    round_s
        Time of a token [s] at each number of sequences in all stages together.
    steps
        Decode steps of a request.
    slots
        Most sequences in memory, all stages together; ``None`` where they keep no cache.
    lengths_cv2
        Squared coefficient of variation of the output lengths.
    """

    round_s: Callable[[Array], Array]
    steps: int
    slots: int | None
    lengths_cv2: float

    @property
    def alone_s(self) -> float:
        """Time [s] of a token of one sequence alone."""
        return float(self.round_s(np.ones(1))[0])

    def law(self, rate: float, first_block: int = 256) -> forms.PoolLaw:
        """Return the law of the sequences at a rate [requests/s]; the block is that of :func:`stationary_law`."""
        return forms.stationary_law(
            rate, self.steps, self.round_s, self.slots, tolerance=1e-12, first_block=first_block
        )

    def goodput(self, tpot_slo_s: float, level: float) -> float | None:
        """Return the largest rate [requests/s] at which a share ``level`` of the requests is in time."""
        if self.alone_s >= tpot_slo_s:
            return None
        capacity = forms.capacity(self.steps, self.round_s, self.slots)
        states = [256]

        def excess(rate: float) -> float:
            # Tokens per second of a sequence, not its time per token: nearly a straight line, so few steps find the root.
            if rate == 0:
                return 1 / tpot_slo_s - 1 / self.alone_s
            try:
                law = self.law(rate, states[0])
                states[0] = law.pi.size - 1
                return 1 / tpot_slo_s - 1 / float(law.tpot_from_arrival(level, self.lengths_cv2))
            except DomainError:  # so close to the capacity that nobody would run it there
                return 1 / tpot_slo_s

        high = NEAREST * capacity
        if excess(high) <= 0:
            return high
        low = 0.0
        if self.slots is not None and float(self.round_s(np.array([float(self.slots)]))[0]) < tpot_slo_s:
            # A full batch is in time, so what binds is the wait for a slot, which sets in close to the capacity.
            low = next((share * high for share in SHOULDERS if excess(share * high) <= 0), 0.0)
        return float(brentq(excess, low, high, xtol=PRECISION * capacity)) or None

    def share_within(self, tpot_slo_s: float, rate: float) -> float:
        """Return the share of the requests that are in time at a rate [requests/s]; 0 where it does not keep up."""
        try:
            return float(self.law(rate).share_within(tpot_slo_s, self.lengths_cv2))
        except DomainError:
            return 0.0
