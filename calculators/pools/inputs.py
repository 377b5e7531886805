"""What the page of pools is asked."""

from __future__ import annotations

from dataclasses import dataclass

import hardware_db
from calculators.fleet import TargetRate
from calculators.inputs import choice, integer, number
from calculators.scenario import Routing, ServiceLevels, Simulation
from calculators.systems import ServingInputs

COMPUTED = "computed"


@dataclass(frozen=True, kw_only=True)
class PoolsInputs(Simulation, ServiceLevels, Routing, ServingInputs, TargetRate):
    """Both sides, the rate or the numbers of instances, and what is kept free."""

    prefill_goodput: float | None = number(
        "Goodput of a prefill instance",
        unit="requests/s",
        low=1e-6,
        high=1e6,
        default=None,
        step=1,
        symbol="g_{p}",
        empty=COMPUTED,
        help="Highest rate at which one prefill instance keeps the TTFT target. Leave it empty to have it computed.",
    )
    decode_goodput: float | None = number(
        "Goodput of a decode instance",
        unit="requests/s",
        low=1e-6,
        high=1e6,
        default=None,
        step=1,
        symbol="g_{d}",
        empty=COMPUTED,
        help="Highest rate at which one decode instance keeps the TPOT target. Leave it empty to have it computed.",
    )
    colocated_goodput: float | None = number(
        "Goodput of a colocated instance",
        unit="requests/s",
        low=1e-6,
        high=1e6,
        default=None,
        step=1,
        empty=COMPUTED,
        help="Highest rate at which an instance that does both, of the prefill side's size, keeps both targets. Leave it "
        "empty to have it computed, prompts first.",
    )
    prefill_instances: int | None = integer(
        "Prefill instances",
        low=1,
        high=10_000,
        default=None,
        step=1,
        symbol="n_{p}",
        empty="from the rate",
        help="How many there are. With a number here the group is judged as it is, and the target rate is not used.",
    )
    decode_instances: int | None = integer(
        "Decode instances",
        low=1,
        high=10_000,
        default=None,
        step=1,
        symbol="n_{d}",
        empty="from the rate",
        help="How many there are. If only one of the two numbers is given, the other is chosen to match.",
    )
    decode_accelerator: str | None = choice(
        "Accelerator of the decode side",
        options=hardware_db.accelerators(),
        default=None,
        empty="as the prefill side",
        listed_by="python -m calculators hardware",
        help="The chip of the decode instances, if it is another one.",
    )
    decode_tp: int | None = integer(
        "Tensor parallel of the decode side",
        low=1,
        high=128,
        default=None,
        step=1,
        empty="as the prefill side",
        help="How many accelerators share each layer of a decode instance.",
    )
    spare: int = integer(
        "Spare instances of each kind",
        low=0,
        high=100,
        default=0,
        step=1,
        help="Instances beyond those that the rate needs: with 1, either side may lose one and the targets are still kept.",
    )
    headroom: float = number(
        "Headroom for bursts",
        low=0,
        high=10,
        default=0,
        step=0.1,
        symbol="h",
        help="Share of the rate that is to be carried on top of it: 0.3 plans for 1.3 times the mean rate.",
    )
