"""What makes the answer checkable: its formulas with the user's numbers, and the facts it rests on."""

from __future__ import annotations

from typing import Any

import hardware_db
from calculators.compare.compute import CompareResult
from calculators.compare.inputs import CompareInputs
from calculators.facts import Fact, ShownFormula, fact_of
from calculators.inputs import declared
from calculators.interference import explanation
from calculators.interference.compute import InterferenceInputs, compute
from formulas import pools

DEFAULT_BUDGET = 512


def formulas(inputs: CompareInputs, result: CompareResult) -> list[ShownFormula]:
    """Return the formulas of the three ways at the arrival rate on one instance, and of the comparison.

    ``inputs`` have a workload put in.
    """
    whole = _as_interference(inputs, result.chunk_budget or DEFAULT_BUDGET)
    shown = explanation.formulas(whole, compute(whole))
    first, apart = result.prefill_first.goodput_per_gpu, result.disaggregated.goodput_per_gpu
    if first and apart:
        values = {"goodput_per_gpu": apart, "colocated_per_gpu": first}
        shown.insert(0, ShownFormula(pools.GAIN_OVER_COLOCATED, values, "Disaggregated over prefill first."))
    return shown


def facts(inputs: CompareInputs) -> list[Fact]:
    """Return the records that the answer rests on."""
    whole = _as_interference(inputs)
    found = explanation.facts(whole)
    if inputs.workload is not None:
        record = hardware_db.workloads()[inputs.workload]
        found.insert(0, fact_of(record, "Workload", figures=_lengths(record)))
    return found


def _as_interference(inputs: CompareInputs, budget: int = DEFAULT_BUDGET) -> InterferenceInputs:
    names = declared(InterferenceInputs).keys() & declared(CompareInputs).keys()
    shared: dict[str, Any] = {name: getattr(inputs, name) for name in names}
    return InterferenceInputs(**shared, chunk_tokens=budget)


def _lengths(record: hardware_db.Workload) -> dict[str, str]:
    found = {}
    for what in ("prompt", "output"):
        mean, cv = getattr(record, f"{what}_tokens"), getattr(record, f"{what}_cv")
        found[f"{what}s"] = f"mean {mean:,g} tokens" + ("" if cv is None else f", coefficient of variation {cv:g}")
    for slo in record.slos:
        found[f"targets for {slo.model}"] = f"{slo.ttft_ms:g} ms and {slo.tpot_ms:g} ms"
    return found
