"""The companion article's travel agents: a query of 2,000 tokens meets seven requests that decode."""

from __future__ import annotations

from dataclasses import dataclass

import hardware_db
from calculators.decode_step import step_of
from calculators.machine import MachineInputs
from calculators.memory import moved_bytes
from calculators.outputs import output
from calculators.step_load import StepContents

MODEL, QUERY, AGENTS, CONTEXT = "llama-2-70b", 2000, 7, 1000
"""The article's model of 70 billion parameters, its long query, the others who decode, and their usual query."""

STATED = "25 ms before, over 90 ms while the query is prefilled, which takes about 80 ms; 1.25 GB of cache in 5 ms"
"""What the article says (without naming the chips)."""


@dataclass(frozen=True)
class Agents:
    """What happens to the seven on some H100s in tensor."""

    accelerators: int = output("H100 in tensor")
    decode_step_ms: float = output("Token of the seven", "ms")
    mixed_step_ms: float = output("with the query in it", "ms")
    query_first_ms: float = output("if the query goes first", "ms", "Its prefill, and then their step")
    prefill_ms: float = output("Query alone", "ms")
    cache_gb: float = output("Cache of the query", "GB")
    nvlink_ms: float = output("over an NVLink port", "ms")


def agents(inputs: MachineInputs) -> list[Agents]:
    """Return the example on two, four and eight H100s, with the step-time assumptions of ``inputs``."""
    rows = []
    for tp in (2, 4, 8):
        machine = MachineInputs(
            model=MODEL,
            tp=tp,
            assumptions=inputs.assumptions,
            compute_efficiency=inputs.compute_efficiency,
            memory_efficiency=inputs.memory_efficiency,
            step_overhead_ms=inputs.step_overhead_ms,
            allreduce_latency_us=inputs.allreduce_latency_us,
        )
        seven = {"sequences": AGENTS, "context_tokens": CONTEXT}
        plain = step_of(machine, StepContents(**seven)).step_ms
        alone = step_of(machine, StepContents(prompt_tokens=QUERY)).step_ms
        cache = float(moved_bytes(hardware_db.models()[MODEL], QUERY, "bf16"))
        port = hardware_db.links()["nvlink4"].bytes_s
        rows.append(
            Agents(
                tp,
                plain,
                step_of(machine, StepContents(prompt_tokens=QUERY, **seven)).step_ms,
                alone + plain,
                alone,
                cache / 1e9,
                1e3 * cache / port,
            )
        )
    return rows
