"""What makes an answer checkable, as data: a formula with the numbers to put in, a fact with its sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import hardware_db
from calculators.machine import MachineInputs, assumptions_of, compute_dtype_of
from calculators.scenario import Hardware
from formulas.closed_form import ClosedForm


@dataclass(frozen=True)
class ShownFormula:
    """A formula, the numbers to put in (SI units, by name), and a remark in Markdown."""

    form: ClosedForm
    values: Mapping[str, float] = field(default_factory=dict)
    remark: str = ""


@dataclass(frozen=True)
class Fact:
    """A record that an answer rests on.

    Attributes
    ----------
    what : str
        What it is.
    confidence : str
        How sure it is.
    sources : tuple of str
        Where it was read.
    remarks : tuple of str
        What a person should know about it.
    figures : mapping of str to str
        The figures that the answer takes from it, with their units.
    """

    what: str
    confidence: str
    sources: tuple[str, ...]
    remarks: tuple[str, ...] = ()
    figures: Mapping[str, str] = field(default_factory=dict)


def fact_of(record: hardware_db.Record, kind: str, *remarks: str, figures: Mapping[str, str] | None = None) -> Fact:
    """Return a record of the database as a fact: its citations, what was not verified, where sources disagree."""
    unverified = f"Not verified: {', '.join(record.unverified_fields)}." if record.unverified_fields else ""
    said = (*remarks, unverified, *record.open_conflicts, record.notes or "")
    citations = tuple(map(str, record.citations()))
    return Fact(f"{kind}: {record.id}", record.confidence, citations, tuple(filter(None, said)), figures or {})


def model_figures(inputs: Hardware) -> dict[str, str]:
    """Return what a prefill takes from the model's record."""
    model = hardware_db.models()[inputs.model]
    return {
        "parameters in matrix products": f"{model.parameters.matmul_active / 1e9:.4g} billion for each token",
        "shape": f"{model.layers} layers, hidden {model.hidden:,}, {model.heads} heads",
        "weights": f"{model.weight_bytes(inputs.weight_dtype) / 1e9:.4g} GB in {inputs.weight_dtype}",
    }


def accelerator_figures(inputs: Hardware, dtype: str) -> dict[str, str]:
    """Return what a prefill takes from the accelerator's record."""
    chip = hardware_db.accelerators()[inputs.accelerator]
    return {
        f"dense {dtype} rate": f"{chip.peak_flops(dtype) / 1e12:.5g} TFLOP/s",
        "memory bandwidth": f"{chip.memory_bandwidth_gb_s:,g} GB/s",
        "memory": f"{chip.memory_bytes / 1e9:.4g} GB ({chip.memory_basis})",
        "scale-up link": f"{chip.scale_up_link}, {chip.scale_up_gb_s or 0:g} GB/s one way",
    }


def instance_facts(inputs: MachineInputs) -> list[Fact]:
    """Return the records that the time of a step rests on: model, accelerator, link, assumptions."""
    assumed = assumptions_of(inputs)
    found = [
        fact_of(hardware_db.models()[inputs.model], "Model", figures=model_figures(inputs)),
        fact_of(
            hardware_db.accelerators()[inputs.accelerator],
            "Accelerator",
            figures=accelerator_figures(inputs, compute_dtype_of(inputs)),
        ),
    ]
    if inputs.tp_link is not None:
        found.append(fact_of(hardware_db.links()[inputs.tp_link], "Link"))
    return [*found, fact_of(assumed, "Step-time assumptions", assumed.accuracy)]
