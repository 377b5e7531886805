"""One way to use several accelerators for prefill, with its exact mean and percentiles of TTFT."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calculators.outputs import output
from formulas.parallelism import percentiles


@dataclass(frozen=True, kw_only=True)
class Way:
    """A pipeline of stages, each of them some accelerators in tensor, once or in several replicas.

    Tensor parallelism is one stage, a pipeline is several of one accelerator, replicas are several of one stage.
    """

    id: str = output("Way", "", "tp, pp, replicas, or the degrees as tpXppY")
    tp: int = output("Tensor degree")
    pp: int = output("Stages")
    replicas: int = output("Replicas")
    stage_times_ms: tuple[float, ...] = output("Stage times", "ms")
    hop_ms: float = output("Hop", "ms")
    fits: bool | None = output("Weights fit", "", "None where the service time was typed in")
    obstacles: tuple[str, ...] = output("Why not", "", "What the model or the link says against these degrees")

    @property
    def capacity(self) -> float:
        """Rate [requests/s] that it never reaches."""
        return 1e3 * float(percentiles.pipeline_capacity(self.stage_times_ms, self.replicas))

    @property
    def unloaded_ms(self) -> float:
        """TTFT [ms] of a prompt that finds nobody waiting."""
        return float(percentiles.bottleneck_and_latency(self.stage_times_ms, self.hop_ms)[1])

    def ttft_ms(self, rate: float, level: float | None) -> float | None:
        """Return the TTFT [ms] at a rate [requests/s]: the percentile ``level``, or the mean if that is ``None``.

        ``None`` where it is unstable.
        """
        return float(self.curve_ms(rate, level)) if self.is_stable(rate) else None

    def is_stable(self, rate: float) -> bool:
        """Say whether it keeps up with a rate [requests/s]; at the capacity itself, to rounding, it does not."""
        return rate < self.capacity * (1 - 1e-12)

    def curve_ms(self, rate: Any, level: float | None) -> Any:
        """Return the TTFT [ms] at many rates [requests/s] (array); NaN where it is unstable."""
        per_ms, times = np.asarray(rate) / 1e3, np.asarray(self.stage_times_ms)
        if level is None:
            return percentiles.pipeline_mean(per_ms, times, self.hop_ms, self.replicas)
        return percentiles.pipeline_quantile(level, per_ms, times, self.hop_ms, self.replicas)
