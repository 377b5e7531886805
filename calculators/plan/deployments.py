"""What is to be served, and one way to do it: the records that the search for a plan fills."""

from __future__ import annotations

import math
from dataclasses import dataclass

from calculators.outputs import output
from calculators.scenario import ServiceLevels
from calculators.systems import Latency, ServingInputs, System


@dataclass(frozen=True)
class Demand:
    """What is to be served, and on what.

    Attributes
    ----------
    prefill, decode
        The workload on the accelerators of either side; the same where one kind does both. Their tensor degree is found.
    targets, rate
        What is promised, and the requests per second.
    prices
        US dollars an hour of an accelerator of either side; ``None`` where it is not known.
    most_gpus
        Accelerators at hand.
    routing
        How requests are spread over instances.
    """

    prefill: ServingInputs
    decode: ServingInputs
    targets: ServiceLevels
    rate: float
    prices: tuple[float | None, float | None] = (None, None)
    most_gpus: float = math.inf
    routing: str = "random"

    @property
    def kinds(self) -> tuple[ServingInputs, ...]:
        """The workload on each kind of accelerator."""
        return (self.prefill,) if self.decode == self.prefill else (self.prefill, self.decode)

    def price_of(self, accelerator: str) -> float | None:
        """Return the price of an hour of an accelerator [US$], or ``None``."""
        return self.prices[0 if accelerator == self.prefill.accelerator else 1]


@dataclass(frozen=True)
class Side:
    """Instances of one kind."""

    accelerator: str = output("Accelerator")
    tp: int = output("Tensor parallel")
    instances: int = output("Instances")
    gpus: int = output("Accelerators")
    goodput: float = output(
        "Goodput of one",
        "requests/s",
        "Largest rate of one instance within its target, among so many behind the router",
    )


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """One way to serve the whole rate: colocated, the same instances are both sides."""

    kind: str = output("Kind", "", "prefill_first, chunked or disaggregated")
    prefill: Side = output("Prefill")
    decode: Side = output("Decode")
    gpus: int = output("Accelerators")
    chunk_tokens: int | None = output("Token budget of a step", "tokens")
    system: System
    rate: float

    @property
    def sides(self) -> tuple[Side, ...]:
        """The kinds of instances that there are."""
        return (self.prefill, self.decode) if self.kind == "disaggregated" else (self.prefill,)

    @property
    def latency(self) -> Latency | None:
        """The times at the rate that falls to one set of instances, spread at random."""
        return self.system.at(self.rate)

    def can_take(self, targets: ServiceLevels) -> float:
        """Return the largest rate [requests/s] of the whole deployment within the targets."""
        sets = self.decode.instances if self.kind != "disaggregated" else 1
        return sets * (self.system.goodput(targets) or 0.0)

    def with_as_many(self, gpus: int) -> float:
        """Return about what the best numbers of its instances carry on so many accelerators [requests/s]."""
        one, other = self.prefill, self.decode
        if self.kind != "disaggregated":
            return gpus // one.tp * one.goodput
        rates = [
            min(count * one.goodput, (gpus - count * one.tp) // other.tp * other.goodput)
            for count in range(1, gpus // one.tp + 1)
        ]
        return max([0.0, *rates])

    def cost_per_hour(self, demand: Demand) -> float | None:
        """Return what an hour of it costs [US$], or ``None`` where a price is not known."""
        prices = [demand.price_of(side.accelerator) for side in self.sides]
        if any(price is None for price in prices):
            return None
        return sum(side.gpus * price for side, price in zip(self.sides, prices, strict=True) if price is not None)


@dataclass(frozen=True)
class Refused:
    """One tensor degree that cannot serve, and why."""

    accelerator: str = output("Accelerator")
    tp: int = output("Tensor parallel")
    reason: str = output("Why not")
