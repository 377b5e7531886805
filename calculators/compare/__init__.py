"""Prompts first, in chunks, or on instances of their own: which way serves most on the same accelerators."""

from calculators.compare.check import check
from calculators.compare.compute import compute
from calculators.compare.inputs import CompareInputs
from calculators.compare.wording import answer
from calculators.room import Calculator

ROOM = Calculator(
    name="compare",
    title="Compare",
    question="Prompts first, in chunks, or on instances of their own: which serves most on the same accelerators?",
    icon=":material/compare_arrows:",
    section="Sizing",
    inputs=CompareInputs,
    row=("fleet_gpus", "workload", "mixed_efficiency"),
    compute=compute,
    answer=answer,
    check=check,
)
"""The catalog's entry."""
