"""How long until the first token? Prefill instances as a queue: M/D/1, and traffic as it really is."""

from calculators.room import Calculator
from calculators.ttft.arrivals import Bursts
from calculators.ttft.check import check
from calculators.ttft.compute import compute
from calculators.ttft.inputs import TtftInputs
from calculators.ttft.trace import fill_from_trace
from calculators.ttft.traffic import RealTraffic
from calculators.ttft.wording import answer

ROOM = Calculator(
    name="ttft",
    title="Time to first token",
    question="How long until the first token, and how many instances keep it within the target?",
    icon=":material/timer:",
    section="First token",
    inputs=TtftInputs,
    groups=(("Traffic", RealTraffic), ("Bursts and convoys", Bursts)),
    compute=compute,
    answer=answer,
    check=check,
    prepare=fill_from_trace,
)
"""The catalog's entry."""
