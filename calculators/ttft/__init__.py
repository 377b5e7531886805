"""How long until the first token? One prefill instance as an M/D/1 queue."""

from calculators.room import Calculator
from calculators.ttft.check import check
from calculators.ttft.compute import TtftInputs, compute
from calculators.ttft.wording import answer

ROOM = Calculator(
    name="ttft",
    title="Time to first token",
    question="How long until the first token, and how many instances keep it within the target?",
    icon=":material/timer:",
    inputs=TtftInputs,
    compute=compute,
    answer=answer,
    check=check,
)
"""The catalog's entry."""
