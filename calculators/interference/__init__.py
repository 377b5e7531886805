"""What do prompts and tokens cost one another, and which way to serve costs least."""

from calculators.interference.check import check
from calculators.interference.compute import InterferenceInputs, compute
from calculators.interference.wording import answer
from calculators.room import Calculator

ROOM = Calculator(
    name="interference",
    title="Interference",
    question="What do prompts cost the tokens of others, and what do chunks, or pools of their own, save?",
    icon=":material/call_split:",
    section="Next tokens",
    inputs=InterferenceInputs,
    compute=compute,
    answer=answer,
    check=check,
)
"""The catalog's entry."""
