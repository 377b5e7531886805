"""The smallest pipeline that holds a model which fits at no tensor degree: the plan has none, the page of placement does."""

from __future__ import annotations

from dataclasses import dataclass, replace

import hardware_db
from calculators.degrees import PIPELINE_DEGREES, tensor_obstacles
from calculators.inputs import part_of
from calculators.memory import MemoryInputs, sequences_that_fit
from calculators.outputs import output
from calculators.plan.candidates import DEGREES
from calculators.systems import ServingInputs


@dataclass(frozen=True)
class Stages:
    """A pipeline that holds the model and one request."""

    accelerator: str = output("Accelerator")
    tp: int = output("Tensor parallel")
    pp: int = output("Pipeline parallel")
    gpus: int = output("Accelerators")


def stages_that_fit(inputs: ServingInputs) -> Stages | None:
    """Return the pipeline of the fewest accelerators that holds the model, of those with fewest stages; ``None`` if none does."""
    context = inputs.prompt_tokens + inputs.cached_tokens + inputs.output_tokens - 1
    layers = hardware_db.models()[inputs.model].layers
    fits = [
        Stages(inputs.accelerator, tp, pp, tp * pp)
        for tp in DEGREES
        if not tensor_obstacles(replace(inputs, tp=tp), tp)
        for pp in PIPELINE_DEGREES
        if pp <= layers and sequences_that_fit(part_of(MemoryInputs, inputs, tp=tp), context, pp)
    ]
    return min(fits, key=lambda each: (each.gpus, each.pp), default=None)
