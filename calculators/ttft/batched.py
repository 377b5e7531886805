"""Equal prompts that are prefilled together, as many as wait, up to a largest batch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from calculators.machine import machine_of
from calculators.service_time import prefill_load
from calculators.ttft.arrivals import gaps_of, is_poisson
from calculators.ttft.simulated import Run, Simulated, after_warm_up
from formulas import step_time as step
from formulas.montecarlo.batch_service import simulate_batch_service
from formulas.queueing.batching import BatchServer

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Batched(Simulated):
    """A server of batches: exact means for Poisson arrivals, and exact percentiles where all batches take one time."""

    @cached_property
    def batch_times_ms(self) -> tuple[float, ...]:
        """Time of a prefill of one prompt, of two together, and so on: weights are read once, and overheads paid once."""
        machine = machine_of(self.inputs)
        alone, times = prefill_load(self.inputs, self.inputs.prompt_tokens), []
        for count in range(1, self.inputs.batch_size + 1):
            weights = prefill_load(self.inputs, count * self.inputs.prompt_tokens).weight_bytes
            load = replace(
                alone, flops=count * alone.flops, kv_bytes=count * alone.kv_bytes, tokens=count * alone.tokens, weight_bytes=weights
            )  # fmt: skip
            times.append(1e3 * float(step.step_time(load, machine).total_s))
        return tuple(times)

    @property
    def name(self) -> str:
        """The method in a sentence."""
        mean = "a server of batches, mean exact" if self.exact_mean else "a server of batches"
        return f"{self._where}{mean}; percentiles are simulated: {self.customers:,} requests, seed {self.inputs.seed}."

    @property
    def exact_mean(self) -> bool:
        """Whether the mean is exact: for Poisson arrivals."""
        return is_poisson(self.inputs)

    @property
    def capacity(self) -> float:
        """Rate of full batches [requests/s]."""
        return 1e3 * self.servers * self.inputs.batch_size / self.batch_times_ms[-1]

    def utilization(self, rate: float) -> float:
        """Rate over the rate of full batches."""
        return rate / self.capacity

    def mean_wait_ms(self, rate: float) -> float:
        """Mean of TTFT less a prompt's own time alone: the wait, and what others in the batch cost."""
        if not self.exact_mean:
            return float(self.run(rate).waits_ms.mean())
        return 1e3 * self.server(rate).mean_ttft - self.service_ms

    def server(self, rate: float) -> BatchServer:
        """Return the exact server of batches at a rate, for Poisson arrivals."""
        return _kept_server(rate / self.servers, self.batch_times_ms)

    def simulated(self, rate: float, customers: int) -> Run:
        """Simulate one instance with its share of the requests."""
        inputs, generator = self.inputs, np.random.default_rng(self.inputs.seed)
        gaps = gaps_of(inputs, rate / self.servers, customers, generator)
        times = [each / 1e3 for each in self.batch_times_ms]
        _, ttft = simulate_batch_service(gaps, times, inputs.batch_size)
        return after_warm_up(inputs, self, rate, ttft - self.service_ms / 1e3, ttft)


@lru_cache(maxsize=128)
def _kept_server(rate: float, batch_times_ms: tuple[float, ...]) -> BatchServer:
    return BatchServer(rate, np.maximum.accumulate(batch_times_ms) / 1e3)
