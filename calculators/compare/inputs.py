"""What the comparison is asked, and what of it a chosen workload replaces."""

from __future__ import annotations

from dataclasses import dataclass, replace

import hardware_db
from calculators.inputs import choice, integer, number
from calculators.scenario import ServiceLevels, Simulation, Traffic
from calculators.systems import ServingInputs


@dataclass(frozen=True, kw_only=True)
class CompareInputs(Simulation, ServiceLevels, ServingInputs, Traffic):
    """The accelerators that all ways share, the workload, and what mixed steps lose."""

    fleet_gpus: int = integer(
        "Accelerators in all",
        low=2,
        high=512,
        default=4,
        step=1,
        symbol="N",
        help="How many accelerators each way has. Those that make up no whole instance stand idle.",
    )
    workload: str | None = choice(
        "Workload",
        options=hardware_db.workloads(),
        default=None,
        empty="the scenario's own",
        help="A recorded workload: its lengths and their spread, and its targets where its source sets them for the model. "
        "They take the place of the scenario's own.",
    )
    mixed_efficiency: float = number(
        "Efficiency of mixed steps",
        low=0.05,
        high=1,
        default=1,
        step=0.05,
        help="Share of the arithmetic rate that a step reaches which holds both prompts and decoding sequences. The step-time "
        "model loses nothing there; real kernels do.",
    )


def effective(inputs: CompareInputs) -> CompareInputs:
    """Return the inputs with the lengths and targets of the workload that is chosen put in."""
    if inputs.workload is None:
        return inputs
    record = hardware_db.workloads()[inputs.workload]
    slo = record.slo_for(inputs.model)
    return replace(
        inputs,
        prompt_tokens=round(record.prompt_tokens),
        output_tokens=max(1, round(record.output_tokens)),
        prompt_cv=inputs.prompt_cv if record.prompt_cv is None else record.prompt_cv,
        prompt_histogram=inputs.prompt_histogram if record.prompt_cv is None else "",
        output_cv=inputs.output_cv if record.output_cv is None else record.output_cv,
        ttft_slo_ms=inputs.ttft_slo_ms if slo is None else slo.ttft_ms,
        tpot_slo_ms=inputs.tpot_slo_ms if slo is None else slo.tpot_ms,
    )
