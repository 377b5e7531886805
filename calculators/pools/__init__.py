"""How many prefill and decode instances does a rate need, and what does each accelerator then carry."""

from calculators.pools.check import check
from calculators.pools.compute import compute
from calculators.pools.inputs import PoolsInputs
from calculators.pools.wording import answer
from calculators.room import Calculator

ROOM = Calculator(
    name="pools",
    title="Pools",
    question="How many prefill and decode instances does a rate need, and what does rounding to whole ones cost?",
    icon=":material/group_work:",
    section="Sizing",
    inputs=PoolsInputs,
    row=("target_rate", "prefill_goodput", "decode_goodput", "colocated_goodput"),
    compute=compute,
    answer=answer,
    check=check,
)
"""The catalog's entry."""
