"""Named sets of step-time assumptions: what is reached of the peaks, and what a step costs besides."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from hardware_db.records import Fraction, Record, Text

Cost = Annotated[float, Field(ge=0)]


class StepAssumptions(Record):
    """What the step-time model assumes beside the data sheets.

    Attributes
    ----------
    name : str
        What a page calls the set.
    compute_efficiency, memory_efficiency, link_efficiency : float
        Shares reached of the dense peak rate, the memory bandwidth and the link's one-way rate, in (0, 1].
    step_overhead_ms : float
        What every step costs before it computes anything [ms].
    allreduce_latency_us : float
        What one all-reduce costs beside moving its bytes [us].
    lm_head_tokens : str
        Whether the output projection is computed for ``every`` token of a prompt or for the ``last`` alone.
    counts_kv_writes : bool
        Whether the KV cache that a step writes counts among its bytes.
    accuracy : str
        How well the set is known to predict, in a sentence.
    """

    name: Text
    compute_efficiency: Fraction
    memory_efficiency: Fraction
    link_efficiency: Fraction
    step_overhead_ms: Cost
    allreduce_latency_us: Cost
    lm_head_tokens: Literal["every", "last"]
    counts_kv_writes: bool
    accuracy: Text
