"""What makes the answer checkable: the formulas of the recommended deployment, and the facts it rests on."""

from __future__ import annotations

import hardware_db
from calculators.facts import Fact, ShownFormula, fact_of, instance_facts
from calculators.inputs import part_of
from calculators.interference.compute import InterferenceInputs
from calculators.interference.compute import compute as compute_interference
from calculators.interference.explanation import formulas as serving_formulas
from calculators.machine import MachineInputs
from calculators.plan.compute import PlanInputs
from calculators.plan.deployments import Deployment


def formulas(inputs: PlanInputs, best: Deployment | None) -> list[ShownFormula]:
    """Return the formulas of the ways to serve at what falls to one instance of the recommended deployment."""
    if best is None:
        return []
    shared = {"tp": best.prefill.tp, "rate": inputs.rate / best.prefill.instances}
    budget = {"chunk_tokens": best.chunk_tokens} if best.chunk_tokens else {}
    one = part_of(InterferenceInputs, _Defaults(inputs), **shared, **budget)
    return serving_formulas(one, compute_interference(one))


class _Defaults:
    """The plan's inputs, with the defaults of what the page of interference asks besides."""

    def __init__(self, inputs: PlanInputs) -> None:
        self._inputs, self._rest = inputs, InterferenceInputs()

    def __getattr__(self, name: str) -> object:
        return getattr(self._inputs if hasattr(self._inputs, name) else self._rest, name)


def facts(inputs: PlanInputs) -> list[Fact]:
    """Return the records that the answer rests on, and the prices that were seen."""
    found = instance_facts(part_of(MachineInputs, inputs, tp=1))
    chip = hardware_db.accelerators()[inputs.accelerator]
    if inputs.price_per_hour is None and chip.price_usd_per_hour is not None:
        seen = chip.price_usd_per_hour
        span = {"an hour": f"${seen.low:g} to ${seen.high:g}; the plan takes ${(seen.low * seen.high) ** 0.5:.2f}"}
        found.append(Fact(f"Price: {chip.id}", "as seen", seen.source, figures=span))
    if inputs.link_gb_s is None:
        link = hardware_db.links()[inputs.link]
        found.append(fact_of(link, "Link between the pools", figures={"one way": f"{link.gb_s:g} GB/s"}))
    return found
