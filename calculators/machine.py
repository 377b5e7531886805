"""What an instance runs on: the accelerators' rates, the link between them, and the assumptions on what is reached."""

from __future__ import annotations

from dataclasses import dataclass

import hardware_db
from calculators.inputs import InputError, InputsError
from calculators.scenario import Assumptions, Hardware, Instance
from formulas import step_time as step


@dataclass(frozen=True, kw_only=True)
class MachineInputs(Assumptions, Instance):
    """What the time of any step depends on, beside what the step holds."""


def assumptions_of(inputs: Assumptions) -> hardware_db.StepAssumptions:
    """Return the named set of assumptions with the values that the inputs override."""
    chosen = hardware_db.assumptions()[inputs.assumptions]
    overrides = {
        name: value
        for name in ("compute_efficiency", "memory_efficiency", "step_overhead_ms", "allreduce_latency_us")
        if (value := getattr(inputs, name)) is not None
    }
    return chosen.model_copy(update=overrides)


def compute_dtype_of(inputs: Hardware) -> str:
    """Return the data type of the matrix products: the one typed in, or the one that goes with the weights.

    Weights are not taken to be unpacked to a wider type where a chip lacks theirs: that is for the user to say.
    """
    if inputs.compute_dtype:
        return inputs.compute_dtype
    native = hardware_db.FORMATS[inputs.weight_dtype].native_compute
    available = hardware_db.accelerators()[inputs.accelerator].data_types
    return next((dtype for dtype in native if dtype in available), native[0])


def machine_of(inputs: MachineInputs) -> step.Machine:
    """Return the accelerators that share one instance, with the assumptions on what they reach.

    Raises
    ------
    InputsError
        If the accelerator does not have the data type, or not the link that the tensor parallel degree needs.
    """
    accelerator = hardware_db.accelerators()[inputs.accelerator]
    assumed = assumptions_of(inputs)
    try:
        peak_flops = accelerator.peak_flops(compute_dtype_of(inputs))
    except hardware_db.UnsupportedDataType as error:
        name = "compute_dtype" if inputs.compute_dtype else "weight_dtype"
        advice = "" if inputs.compute_dtype else " Weights stored in it can be computed in another: set compute_dtype."
        raise InputsError([InputError(name, getattr(inputs, name), f"{error}{advice}")]) from None
    return step.Machine(
        peak_flops=peak_flops,
        memory_bandwidth=accelerator.memory_bandwidth_bytes_s,
        tp=inputs.tp,
        link_bytes_s=_link_bytes_s(inputs, accelerator),
        compute_efficiency=assumed.compute_efficiency,
        memory_efficiency=assumed.memory_efficiency,
        allreduce_latency_s=1e-6 * assumed.allreduce_latency_us,
        overhead_s=1e-3 * assumed.step_overhead_ms,
        link_efficiency=assumed.link_efficiency,
    )


def _link_bytes_s(inputs: MachineInputs, accelerator: hardware_db.Accelerator) -> float | None:
    if inputs.tp == 1:
        return None
    if inputs.tp_link is not None:
        return hardware_db.links()[inputs.tp_link].bytes_s
    own = accelerator.group_bandwidth_bytes_s(inputs.tp)
    if own is not None:
        return own
    if accelerator.scale_up_gb_s is None:
        host = f", say {accelerator.host_link_id}" if accelerator.host_link_id else ""
        sentence = f"{accelerator.name} has no scale-up link; name what joins them with tp_link{host}, or use tp = 1"
    else:
        sentence = (
            f"the scale-up link of {accelerator.name} joins {accelerator.scale_up_domain} accelerators; use at most so "
            "many, or name the link that joins more with tp_link"
        )
    raise InputsError([InputError("tp", inputs.tp, sentence)])
