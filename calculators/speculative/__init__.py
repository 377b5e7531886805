"""What speculative decoding gives: how long a draft should be, where it should run, and when it pays."""

from calculators.room import Calculator
from calculators.speculative import given
from calculators.speculative.check import check
from calculators.speculative.compute import SpeculativeInputs, compute
from calculators.speculative.wording import answer

ROOM = Calculator(
    name="speculative",
    title="Speculative decoding",
    question="Does a draft model pay, how long should its drafts be, and on which chip should it run?",
    icon=":material/bolt:",
    section="Next tokens",
    inputs=SpeculativeInputs,
    row=("acceptance", "draft_tokens", "draft_cost", "verify_cost"),
    groups=(("Target", given.Target), ("Draft", given.Draft), ("Measured acceptance", given.Measured)),
    compute=compute,
    answer=answer,
    check=check,
)
"""The catalog's entry."""
