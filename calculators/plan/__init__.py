"""From a workload and its targets to a number of accelerators, and whether to disaggregate at all."""

from calculators.plan.check import check
from calculators.plan.compute import PlanInputs, compute
from calculators.plan.wording import answer
from calculators.room import Calculator

ROOM = Calculator(
    name="plan",
    title="Plan",
    question="How many accelerators does this traffic need, arranged how, at what cost, and should the phases be taken apart?",
    icon=":material/checklist:",
    inputs=PlanInputs,
    compute=compute,
    answer=answer,
    check=check,
    is_front=True,
    is_stoppable=True,
)
"""The catalog's entry."""
