"""Prompts and tokens on instances of their own, with the cache moved from one to the other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calculators.decode_pool import Pool, pool_of
from calculators.inputs import part_of
from calculators.kv_transfer import Transfer, TransferInputs, route_of, transfer
from calculators.lengths import spread_of
from calculators.routers import sharing
from calculators.scenario import ServiceLevels
from calculators.systems.base import LOWEST, PRECISION, Latency, ServingInputs, System
from formulas.closed_form import DomainError
from formulas.decode_pool import BunchedTimes, PoolLaw
from formulas.interference import PooledPrompts, Prompts, pooled_max_rate
from formulas.interference import prompts as forms

Array = NDArray[np.float64]

EQUAL = 1e-12
"""Squared coefficient of variation of the times of prompts below which they are equal."""


@dataclass(frozen=True, eq=False)
class DisaggregatedLatency(Latency):
    """The prompts' queue for the first token, the decode pool for the next; the transfer comes before the second token.

    Attributes
    ----------
    prompts
        What one prefill instance serves, or all of them from one queue.
    tokens
        Times per output token in one decode instance.
    transfer_s
        Mean time that a cache takes from one to the other.
    """

    prompts: Prompts | PooledPrompts
    tokens: BunchedTimes
    transfer_s: float

    @property
    def mean_ttft_s(self) -> float:
        """Mean time to first token."""
        return self.prompts.mean_wait + self.prompts.law.mean

    @property
    def mean_tpot_s(self) -> float:
        """Mean time per output token."""
        return self.tokens.mean + self._late_s

    @property
    def mean_batch(self) -> float:
        """Mean sequences in the decode instance."""
        return self.tokens.law.mean_batch

    @property
    def _late_s(self) -> float:
        return self.transfer_s / self.tokens.law.tokens

    def ttft_quantile_s(self, level: Any) -> Array:
        """Time to first token that a share `level` of the requests do not exceed."""
        return self.prompts.finished_quantile(level)

    def tpot_quantile_s(self, level: Any) -> Array:
        """Time per output token that a share `level` of the requests do not exceed."""
        return self.tokens.quantile(level) + self._late_s

    def ttft_share_within(self, time_s: float) -> float:
        """Share of the requests whose first token comes within a time."""
        return float(self.prompts.finished_within(time_s))

    def tpot_share_within(self, time_s: float) -> float:
        """Share of the requests whose tokens come within a time each."""
        return float(self.tokens.share_within(time_s - self._late_s))


@dataclass(frozen=True)
class Disaggregated(System):
    """Prefill instances and decode instances, with what joins them.

    Attributes
    ----------
    prefill_instances, decode_instances
        How many of each stand behind the rate; fractions stand for a part of a larger pool, its requests spread at random.
    decode_inputs
        The decode instances, where they differ from those of prefill in chip or tensor degree.
    """

    prefill_instances: float = 1.0
    decode_instances: float = 1.0
    decode_inputs: ServingInputs | None = None

    name = "Disaggregated"
    key = "disaggregated"

    @property
    def accelerators(self) -> float:
        """Accelerators of both sides."""
        decode_tp = self.inputs.tp if self.decode_inputs is None else self.decode_inputs.tp
        return self.inputs.tp * self.prefill_instances + decode_tp * self.decode_instances

    @cached_property
    def pool(self) -> Pool:
        """The decode pool of one decode instance."""
        return pool_of(self.inputs if self.decode_inputs is None else self.decode_inputs)

    @property
    def bound(self) -> float:
        """A rate [requests/s] above every one that has a steady state."""
        return min(self.prefill_instances / self.prefill_s, self.decode_instances * self.pool.capacity)

    @property
    def pairs(self) -> float:
        """Links between the pools: each instance of the kind that has fewer brings its own."""
        return max(min(self.prefill_instances, self.decode_instances), 1.0)

    def hand_off(self, rate: float) -> Transfer:
        """Return what moving a request's cache costs on each link at a rate [requests/s] of the whole."""
        inputs = part_of(TransferInputs, self.inputs, rate=rate / self.pairs)
        return transfer(inputs, route_of(inputs), 1e3 * self.prefill_s)

    def latency(self, rate: float) -> DisaggregatedLatency:
        """Return the times at a rate [requests/s]."""
        law = self.pool.law(rate / self.decode_instances)
        if law is None or rate / self.prefill_instances * self.prefill_s >= 1:
            raise DomainError("One of the pools does not keep up.")
        moved = self.hand_off(rate)
        if moved.mean_ms is None:
            raise DomainError("The link does not keep up.")
        return DisaggregatedLatency(self.prompts(rate), self.tokens(law), 1e-3 * moved.mean_ms)

    def prompts(self, rate: float) -> Prompts | PooledPrompts:
        """Return what prompts wait for in the prefill pool at a rate [requests/s]; DomainError where it does not keep up."""
        if self._shares_a_queue:
            sharing = self._sharing
            each = rate / self.prefill_instances
            return PooledPrompts(each * sharing, self.prefill_law, sharing, self.arrival_scv())
        return Prompts(rate / self.prefill_instances, self.prefill_law, self.arrival_scv(self.prefill_instances))

    @property
    def _shares_a_queue(self) -> bool:
        """Whether prompts start as soon as any prefill instance is free, or nearly: equal ones in turn do, too."""
        turns = self.routing == "round_robin" and self.prefill_law.scv >= EQUAL
        return self.prefill_instances > 1 and self.routing != "random" and not turns

    @property
    def _sharing(self) -> int:
        """Prefill instances that share a queue as the router has them do."""
        return sharing(int(self.prefill_instances), self.routing)

    def tokens(self, law: PoolLaw) -> BunchedTimes:
        """Return the times per output token of a decode instance."""
        return BunchedTimes(law, self.pool.lengths_cv2, self._decode_scv, self._context_scv(law))

    def _context_scv(self, law: PoolLaw) -> float:
        """Squared coefficient of variation of what a sequence adds to a step: prompts that differ have contexts that do."""
        spread = spread_of(self.inputs)
        if not spread:
            return 0.0
        of_prompt = self.inputs.prompt_tokens / self.pool.context_tokens
        return (spread * of_prompt * self.pool.context_share(law.mean_batch)) ** 2

    @property
    def _decode_scv(self) -> float:
        """Squared coefficient of variation of the gaps at a decode instance: what a router evens, the prefills undo."""
        scv = self.arrival_scv(self.decode_instances)
        return scv if self.routing == "random" else max(scv, 1.0)

    def in_proportion(self, targets: ServiceLevels) -> Disaggregated | None:
        """Return one accelerator's worth of both, split so that either side reaches its own target at the same rate.

        ``None`` if one of the sides meets its target at no rate.
        """
        prefill = self.prefill_goodput(targets.ttft_slo_ms, targets.attainment)
        decode = self.decode_goodput(targets.tpot_slo_ms, targets.attainment)
        if not prefill or not decode:
            return None
        share = (1 / prefill) / (1 / prefill + 1 / decode)
        one = 1 / self.inputs.tp
        return Disaggregated(self.inputs, one * share, one * (1 - share))

    def prefill_goodput(self, ttft_slo_ms: float, attainment: float) -> float | None:
        """Return the largest rate of one prefill instance at which enough first tokens are in time, or ``None``."""
        limit, law, instances = 1e-3 * ttft_slo_ms, self.prefill_law, self.prefill_instances
        if self._shares_a_queue:
            together = pooled_max_rate(limit, attainment, law, self._sharing, self.arrival_scv())
            return None if together is None else together / self._sharing
        return forms.max_rate(limit, attainment, law, self.arrival_scv(instances))

    def first_in_time(self, rate: float, ttft_slo_ms: float) -> float:
        """Return the share of the first tokens that are in time at a rate [requests/s]; 0 where the pool does not keep up."""
        try:
            return float(self.prompts(rate).finished_within(1e-3 * ttft_slo_ms))
        except DomainError:
            return 0.0

    def next_in_time(self, rate: float, tpot_slo_ms: float) -> float:
        """Return the share of the requests whose tokens are in time at a rate [requests/s]; 0 where the pool does not keep up."""
        law = self.pool.law(rate / self.decode_instances)
        return 0.0 if law is None else float(self.tokens(law).share_within(1e-3 * tpot_slo_ms))

    def decode_goodput(self, tpot_slo_ms: float, attainment: float) -> float | None:
        """Return the largest rate of one decode instance at which enough requests are in time, or ``None``."""
        from scipy.optimize import brentq

        at_random = self.pool.max_rate(tpot_slo_ms, attainment)
        if not at_random or (self._decode_scv == 1 and not spread_of(self.inputs)):
            return at_random

        def excess(rate: float) -> float:
            return self.next_in_time(rate * self.decode_instances, tpot_slo_ms) - attainment

        low = LOWEST * at_random
        high = at_random if self._decode_scv >= 1 else (1 - PRECISION) * self.pool.capacity
        if excess(low) < 0:
            return None
        return high if excess(high) >= 0 else float(brentq(excess, low, high, xtol=PRECISION * at_random))
