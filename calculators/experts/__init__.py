"""How many experts does a step touch, and what does that cost."""

from calculators.experts.check import check
from calculators.experts.compute import ExpertsInputs, compute
from calculators.experts.wording import answer
from calculators.room import Calculator

ROOM = Calculator(
    name="experts",
    title="Mixture of experts",
    question="How many experts does a step touch, what does reading them cost, and from which batch does arithmetic bind?",
    icon=":material/hub:",
    section="Next tokens",
    inputs=ExpertsInputs,
    compute=compute,
    answer=answer,
    check=check,
)
"""The catalog's entry."""
