"""What makes the answer checkable: its formulas with the user's numbers, and the facts it rests on."""

from __future__ import annotations

import hardware_db
from calculators.facts import Fact, ShownFormula, fact_of, instance_facts
from calculators.inputs import part_of
from calculators.machine import MachineInputs
from calculators.pools.compute import PoolsResult, Sides
from calculators.pools.inputs import PoolsInputs
from formulas import pools as forms


def formulas(inputs: PoolsInputs, result: PoolsResult, sides: Sides | None) -> list[ShownFormula]:
    """Return the formulas of the group, as far as there is one."""
    if sides is None or result.prefill_instances is None or result.decode_instances is None or not result.served_rate:
        return []
    counts = {"prefill_instances": result.prefill_instances, "decode_instances": result.decode_instances}
    working = {name: number - inputs.spare for name, number in counts.items()}
    rate = result.served_rate
    planned = forms.PLANNED_RATE(rate=rate, headroom=inputs.headroom)
    carried = {"carried_rate": planned, **sides.sizes, **sides.goodputs}
    spare = f" With {inputs.spare} more as spares." if inputs.spare else ""
    shown = [ShownFormula(forms.PLANNED_RATE, {"rate": rate, "headroom": inputs.headroom})] if inputs.headroom else []
    if inputs.prefill_instances is None and inputs.decode_instances is None:
        shown += [
            ShownFormula(forms.INSTANCES, {"carried_rate": planned, "goodput": goodput}, f"{kind} instances.{spare}")
            for kind, goodput in (("Prefill", sides.prefill_goodput), ("Decode", sides.decode_goodput))
        ]
    shown += [
        ShownFormula(forms.GROUP_GOODPUT, counts | sides.goodputs),
        ShownFormula(forms.GOODPUT_PER_GPU, {"rate": rate, **counts, **sides.sizes}),
        ShownFormula(forms.IDEAL_RATIO, sides.goodputs),
        ShownFormula(forms.IDEAL_GOODPUT, {**sides.sizes, **sides.goodputs}),
        ShownFormula(forms.WASTED, carried | working, "Spares are left out of it." if inputs.spare else ""),
        ShownFormula(forms.WASTE_BOUND, carried),
        ShownFormula(forms.AFTER_LOSS, counts | sides.goodputs),
    ]
    if result.colocated_goodput is not None and result.goodput_per_gpu is not None:
        each = {"goodput_per_gpu": result.goodput_per_gpu, "colocated_per_gpu": result.colocated_goodput / inputs.tp}
        shown.append(ShownFormula(forms.GAIN_OVER_COLOCATED, each))
    return shown


def facts(inputs: PoolsInputs) -> list[Fact]:
    """Return the records that the answer rests on: none if every goodput is typed in."""
    if None not in (inputs.prefill_goodput, inputs.decode_goodput, inputs.colocated_goodput):
        return []
    found = instance_facts(inputs)
    if inputs.decode_accelerator not in (None, inputs.accelerator):
        other = part_of(MachineInputs, inputs, accelerator=inputs.decode_accelerator, tp=inputs.decode_tp or inputs.tp)
        found += [fact for fact in instance_facts(other) if fact.what.startswith("Accelerator")]
    if inputs.link_gb_s is None:
        link = hardware_db.links()[inputs.link]
        found.append(
            fact_of(link, "Link between the pools (in the simulation)", figures={"one way": f"{link.gb_s:g} GB/s"})
        )
    return found
