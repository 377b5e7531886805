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
from calculators.scenario import ServiceLevels
from calculators.systems.base import Latency, ServingInputs, System
from formulas.closed_form import DomainError
from formulas.decode_pool import PoolLaw
from formulas.interference import Prompts
from formulas.interference import prompts as forms

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DisaggregatedLatency(Latency):
    """The prompts' queue for the first token, the decode pool for the next; the transfer comes before the second token.

    Attributes
    ----------
    prompts
        What one prefill instance serves.
    law
        Of one decode instance, at random arrivals.
    lengths_cv2
        Squared coefficient of variation of the output lengths.
    transfer_s
        Mean time that a cache takes from one to the other.
    arrival_scv
        Index of dispersion of what arrives at the decode instance: bursts make the batch, and with it a step, longer on
        average and more variable.
    """

    prompts: Prompts
    law: PoolLaw
    lengths_cv2: float
    transfer_s: float
    arrival_scv: float = 1.0

    @property
    def mean_ttft_s(self) -> float:
        """Mean time to first token."""
        return self.prompts.mean_wait + self.prompts.law.mean

    @property
    def mean_tpot_s(self) -> float:
        """Mean time per output token."""
        return self._at_random_s + self._bunched_s + self._late_s

    @property
    def mean_batch(self) -> float:
        """Mean sequences in the decode instance."""
        return self.law.mean_batch

    @cached_property
    def _at_random_s(self) -> float:
        return float(self.law.tpot_from_arrival(None, self.lengths_cv2))

    @cached_property
    def _bunched_s(self) -> float:
        """What a step is longer by, on average, for the others of a burst."""
        ratio = self.law.ratio
        slope_s = ratio / (self.law.rate * self.law.tokens)
        return slope_s * (self.arrival_scv - 1) / (1 - ratio)

    @property
    def _late_s(self) -> float:
        return self.transfer_s / self.law.tokens

    def ttft_quantile_s(self, level: Any) -> Array:
        """Time to first token that a share `level` of the requests do not exceed."""
        return self.prompts.finished_quantile(level)

    def tpot_quantile_s(self, level: Any) -> Array:
        """Time per output token that a share `level` of the requests do not exceed."""
        plain = np.asarray(self.law.tpot_from_arrival(np.asarray(level, dtype=float), self.lengths_cv2))
        return np.asarray(self.mean_tpot_s + self.arrival_scv**0.5 * (plain - self._at_random_s))

    def ttft_share_within(self, time_s: float) -> float:
        """Share of the requests whose first token comes within a time."""
        return float(self.prompts.finished_within(time_s))

    def tpot_share_within(self, time_s: float) -> float:
        """Share of the requests whose tokens come within a time each."""
        plain = self._at_random_s + (time_s - self.mean_tpot_s) / self.arrival_scv**0.5
        return float(self.law.share_within(plain, self.lengths_cv2))


@dataclass(frozen=True)
class Disaggregated(System):
    """Prefill instances and decode instances, with what joins them.

    Attributes
    ----------
    prefill_instances, decode_instances
        How many of each stand behind the rate; fractions stand for a part of a larger pool. Requests are spread at random.
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

    def hand_off(self, rate: float) -> Transfer:
        """Return what moving a request's cache costs at a rate [requests/s], over links that all share."""
        inputs = part_of(TransferInputs, self.inputs, rate=rate)
        return transfer(inputs, route_of(inputs), 1e3 * self.prefill_s)

    def latency(self, rate: float) -> DisaggregatedLatency:
        """Return the times at a rate [requests/s]."""
        law = self.pool.law(rate / self.decode_instances)
        if law is None or rate / self.prefill_instances * self.prefill_s >= 1:
            raise DomainError("One of the pools does not keep up.")
        moved = self.hand_off(rate)
        if moved.mean_ms is None:
            raise DomainError("The link does not keep up.")
        prompts = Prompts(rate / self.prefill_instances, self.prefill_law, self.arrival_scv(self.prefill_instances))
        bursts = self.arrival_scv(self.decode_instances)
        return DisaggregatedLatency(prompts, law, self.pool.lengths_cv2, 1e-3 * moved.mean_ms, bursts)

    def in_proportion(self, targets: ServiceLevels) -> Disaggregated | None:
        """Return one accelerator's worth of both, split so that either side reaches its own target at the same rate.

        ``None`` if one of the sides meets its target at no rate.
        """
        prefill = self.prefill_goodput(targets.ttft_slo_ms, targets.attainment)
        decode = self.pool.max_rate(targets.tpot_slo_ms, targets.attainment)
        if not prefill or not decode:
            return None
        share = (1 / prefill) / (1 / prefill + 1 / decode)
        one = 1 / self.inputs.tp
        return Disaggregated(self.inputs, one * share, one * (1 - share))

    def prefill_goodput(self, ttft_slo_ms: float, attainment: float) -> float | None:
        """Return the largest rate of one prefill instance at which enough first tokens are in time, or ``None``."""
        return forms.max_rate(
            1e-3 * ttft_slo_ms, attainment, self.prefill_law, self.arrival_scv(self.prefill_instances)
        )
