"""The arrays behind the figures: the stack of a step against the batch, and the law of the batch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calculators.decode.compute import DecodeInputs, DecodeResult, context_of
from calculators.decode_pool import Pool
from calculators.decode_step import PARTS, step_of
from calculators.outputs import output
from calculators.step_load import StepContents

Array = NDArray[np.float64]

BARS = 120
"""Most bars of a distribution."""


@dataclass(frozen=True)
class StepStack:
    """What a step's time is made of, part by part, for several batches: the parts add up to the step."""

    batch: Array
    step_ms: Array
    counted_ms: dict[str, Array]


def step_stack(inputs: DecodeInputs, result: DecodeResult, pool: Pool, points: int = 80) -> StepStack:
    """Return the parts of a step against the batch, to beyond the largest that matters."""
    landmarks = [inputs.batch, result.max_batch or 1, min(result.reached_critical_batch or 1, 1e5)]
    most = int(2 ** np.ceil(np.log2(1.3 * max(*landmarks, 64))))
    batch = np.unique(np.round(np.geomspace(1, most, points)))
    one = step_of(inputs, StepContents(sequences=batch, context_tokens=context_of(inputs, pool)))
    parts = {name: np.asarray(getattr(one, f"{name}_ms")) for name in PARTS}
    beyond = np.maximum(parts["compute"] - parts["weights"] - parts["kv"], 0.0)
    return StepStack(batch, np.asarray(one.step_ms), parts | {"compute": beyond})


@dataclass(frozen=True)
class BatchLaw:
    """How often each batch is found; several batches in one bar where there are many."""

    batch: Array = output("Batch", "sequences")
    share: Array = output("Share of the time")
    width: int = 1


def batch_law(inputs: DecodeInputs, pool: Pool) -> BatchLaw | None:
    """Return the stationary law of the batch where it matters, or ``None`` where there is none."""
    law = pool.law(inputs.rate)
    if law is None:
        return None
    low, high = law.batch_quantile(1e-5), law.batch_quantile(1 - 1e-5)
    width = max(1, -(-(high - low + 1) // BARS))
    edges = np.arange(low, high + 1 + width, width)
    below = np.concatenate([[0.0], np.cumsum(law.pi)])
    at = np.minimum(edges, law.pi.size)
    return BatchLaw(np.asarray(edges[:-1] + (width - 1) / 2, dtype=float), np.diff(below[at]), width)
