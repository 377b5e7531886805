"""The largest rate of one instance in target: of prefill by a queue in a pipeline, of decoding by the product form.

Prefill is exact for equal prompts: a prompt waits for the slowest stage alone, as in M/D/1 or behind gamma arrivals, and then
passes all stages and hops. Prompts that spread wait in one stage as in M/G/1, exactly too. In several they wait for one another
again and again, for which there is no closed form: there the pipeline is simulated, the same prompts at every rate. Decoding
takes the whole pipeline as one pool whose step is a round (:mod:`formulas.decode_pool.pipeline`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from formulas import decode_pool as forms
from formulas.closed_form import DomainError
from formulas.interference import PooledPrompts, Prompts
from formulas.montecarlo.arrivals import gamma_gaps
from formulas.montecarlo.tandem import simulate_tandem
from formulas.queueing import md1
from formulas.queueing.service import ServiceLaw, equal_service, scaled

Array = NDArray[np.float64]

PRECISION = 5e-4
"""Of a decode goodput, relative to the capacity."""

SHOULDERS = (0.99, 0.9)
"""Shares of that rate at which the search looks next where memory cuts the batch."""

SIMULATED, WARM_UP, SEED = 60_000, 4_000, 1
"""Prompts of a simulated pipeline, of which the first are left out, and the seed that draws them."""

LEAST_LOAD = 1e-4
"""Share of the capacity at which prompts that miss their target do so alone."""

NEAREST = 0.9999
"""Share of the capacity beyond which no goodput is sought."""


@dataclass(frozen=True)
class PrefillPipeline:
    """One prefill instance.

    Attributes
    ----------
    stages_s
        Time of each stage, of a prompt of mean length [s].
    hops_s
        Time of all hops from one to the next [s].
    relative
        Distribution of the time of a prompt over that of one of mean length; ``None`` where all are equal.
    arrival_scv
        Squared coefficient of variation of the gaps between arrivals: at this instance, or at all that share a queue.
    sharing
        Instances like it that share a queue; in several stages, of equal prompts alone.
    """

    stages_s: tuple[float, ...]
    hops_s: float = 0.0
    relative: ServiceLaw | None = None
    arrival_scv: float = 1.0
    sharing: int = 1

    @property
    def bottleneck_s(self) -> float:
        """Time of the slowest stage [s]."""
        return max(self.stages_s)

    @property
    def latency_s(self) -> float:
        """Time of a prompt alone through all stages and hops [s]."""
        return sum(self.stages_s) + self.hops_s

    @property
    def is_simulated(self) -> bool:
        """Whether there is no closed form for what prompts wait."""
        return self.relative is not None and len(self.stages_s) > 1

    def goodput(self, ttft_slo_s: float, level: float) -> float | None:
        """Return the largest rate [requests/s] at which a share ``level`` of first tokens is in time."""
        if not self._is_even:
            return self._uneven_goodput(ttft_slo_s, level)
        wait_limit = (ttft_slo_s - self.latency_s) / self.bottleneck_s
        if wait_limit < 0:
            return None
        return float(md1.max_utilization(wait_limit, level)) / self.bottleneck_s

    @property
    def _is_even(self) -> bool:
        return self.relative is None and self.arrival_scv == 1 and self.sharing == 1

    def _uneven_goodput(self, ttft_slo_s: float, level: float) -> float | None:
        from scipy.optimize import brentq

        capacity = 1 / (self.bottleneck_s * (1.0 if self.relative is None else self.relative.mean))
        low, high = LEAST_LOAD * capacity, NEAREST * capacity
        if self.share_within(ttft_slo_s, low) < level:
            return None
        if self.share_within(ttft_slo_s, high) >= level:
            return high
        return float(
            brentq(lambda rate: self.share_within(ttft_slo_s, rate) - level, low, high, xtol=PRECISION * capacity)
        )

    def _uneven_share(self, ttft_slo_s: float, rate: float) -> float:
        """Return the share in time: the wait at the slowest stage, and all stages after it."""
        relative = self.relative or equal_service(1.0)
        slowest = scaled(relative, self.bottleneck_s)
        if rate * slowest.mean >= 1:
            return 0.0
        if self.is_simulated:
            gaps, lengths = _drawn(relative, self.arrival_scv)
            times = simulate_tandem(gaps / rate, np.outer(self.stages_s, lengths)) + self.hops_s
            return float((times[WARM_UP:] <= ttft_slo_s).mean())
        after_s = self.latency_s - self.bottleneck_s
        if self.sharing > 1:
            return _share_together(self, slowest, rate, ttft_slo_s - after_s)
        return float(Prompts(rate, slowest, self.arrival_scv).finished_within(ttft_slo_s - after_s))

    def share_within(self, ttft_slo_s: float, rate: float) -> float:
        """Return the share of first tokens that are in time at a rate [requests/s]; 0 where it does not keep up."""
        if not self._is_even:
            return self._uneven_share(ttft_slo_s, rate)
        wait_limit = (ttft_slo_s - self.latency_s) / self.bottleneck_s
        utilization = rate * self.bottleneck_s
        if wait_limit < 0 or utilization >= 1:
            return 0.0
        return 1 - float(md1.wait_survival(np.array([wait_limit]), np.array([utilization]))[0])


def _share_together(one: PrefillPipeline, slowest: ServiceLaw, rate: float, limit_s: float) -> float:
    """Return the share in time where instances share a queue; 0 so near saturation that it is not computed."""
    try:
        prompts = PooledPrompts(rate * one.sharing, slowest, one.sharing, one.arrival_scv)
        return float(prompts.finished_within(limit_s))
    except DomainError:
        return 0.0


@lru_cache(maxsize=16)
def _drawn(relative: ServiceLaw, arrival_scv: float) -> tuple[Array, Array]:
    """Return gaps between prompts at one a second, and their times over that of one of mean length."""
    arrivals, lengths = (np.random.default_rng([SEED, stream]) for stream in range(2))
    shape = 1 / arrival_scv if arrival_scv else np.inf
    return gamma_gaps(1.0, shape, SIMULATED, arrivals), relative.draw(SIMULATED, lengths)


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
    arrival_scv
        Squared coefficient of variation of the gaps between arrivals.
    """

    round_s: Callable[[Array], Array]
    steps: int
    slots: int | None
    lengths_cv2: float
    arrival_scv: float = 1.0

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
        from scipy.optimize import brentq

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
                return 1 / tpot_slo_s - 1 / float(self._times(law).quantile(level))
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
            return float(self._times(self.law(rate)).share_within(tpot_slo_s))
        except DomainError:
            return 0.0

    def _times(self, law: forms.PoolLaw) -> forms.BunchedTimes:
        return forms.BunchedTimes(law, self.lengths_cv2, self.arrival_scv)
