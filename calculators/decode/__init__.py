"""How fast do the next tokens come, and how many requests can one instance decode."""

from calculators.decode.check import check
from calculators.decode.compute import DecodeInputs, compute
from calculators.decode.wording import answer
from calculators.room import Calculator

ROOM = Calculator(
    name="decode",
    title="Next tokens",
    question="How fast do the next tokens come under load, what bounds a step, and how many requests does one instance decode?",
    icon=":material/more_horiz:",
    section="Next tokens",
    inputs=DecodeInputs,
    compute=compute,
    answer=answer,
    check=check,
)
"""The catalog's entry."""
