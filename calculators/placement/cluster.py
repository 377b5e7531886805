"""What there is to place on, and what is asked of it: the inputs of the search."""

from __future__ import annotations

from dataclasses import dataclass

import hardware_db
from calculators.fleet import TargetRate
from calculators.inputs import choice, integer, part_of
from calculators.kv_transfer import Route, TransferInputs, route_of
from calculators.scenario import (
    Assumptions,
    Burstiness,
    Hardware,
    Interconnect,
    KvLink,
    Memory,
    Output,
    OutputSpread,
    Prompt,
    PromptLaw,
    Routing,
    ServiceLevels,
    Simulation,
)

ACTIVATION_BYTES = 2
"""Bytes of one element of the activations that go from one stage to the next."""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """The nodes, and what joins them."""

    node_gpus: int = integer(
        "Accelerators in a node",
        low=1,
        high=128,
        default=8,
        step=1,
        symbol="M",
        help="What one node holds. The accelerators that share a layer are all in one node.",
    )
    nodes: int = integer(
        "Nodes",
        low=1,
        high=256,
        default=4,
        step=1,
        symbol="N",
        help="Nodes of the cluster: an instance spans at most all of them.",
    )
    network: str = choice(
        "Network between nodes",
        options=("fast", "slow"),
        default="fast",
        help="Fast: caches cross nodes over the link between the pools, and each side is placed by itself (DistServe's "
        "algorithm 1). Slow: stages of the same layers share a node, and both sides are chosen together (algorithm 2).",
    )
    attained_by: str = choice(
        "Attainment is for",
        options=("each", "both"),
        default="each",
        help="Each: that share of the requests meets the TTFT target, and that share the TPOT target, as DistServe searches. "
        "Both: that share meets both, so each side keeps the square root of it.",
    )


@dataclass(frozen=True, kw_only=True)
class SearchInputs(
    Cluster,
    ServiceLevels,
    Assumptions,
    KvLink,
    Memory,
    Interconnect,
    Hardware,
    Burstiness,
    OutputSpread,
    Output,
    PromptLaw,
    Prompt,
):
    """What the goodput of every configuration depends on."""

    @property
    def level(self) -> float:
        """Share of the requests for which each side keeps its own target."""
        return float(self.attainment if self.attained_by == "each" else self.attainment**0.5)

    @property
    def gpus(self) -> int:
        """Accelerators of the cluster."""
        return self.node_gpus * self.nodes

    @property
    def steps(self) -> int:
        """Decode steps of a request: its output tokens after the first, which the prefill brings."""
        return self.output_tokens - 1

    @property
    def prompt_context(self) -> int:
        """Tokens whose cache a request has after its prefill."""
        return self.prompt_tokens + self.cached_tokens

    @property
    def mean_context(self) -> float:
        """Mean context of a sequence while it is decoded; over all tokens, long outputs count more."""
        return self.prompt_context + (self.steps * (1 + self.output_cv**2) + 1) / 2


@dataclass(frozen=True, kw_only=True)
class PlacementInputs(Simulation, Routing, SearchInputs, TargetRate):
    """The search, the rate that is to be served, and how requests are spread over instances."""


def kv_route(inputs: SearchInputs) -> Route:
    """Return what a cache travels over: the link between the pools, or inside a node where the network is slow."""
    between = route_of(part_of(TransferInputs, inputs, rate=1.0))
    return (inside_route(inputs) or between) if inputs.network == "slow" else between


def inside_route(inputs: SearchInputs) -> Route | None:
    """Return what joins two accelerators of a node: the scale-up link, or the host's; ``None`` if neither is known."""
    chip = hardware_db.accelerators()[inputs.accelerator]
    peer_gb_s = chip.scale_up_peer_gb_s or chip.scale_up_gb_s or chip.peer_over_host_gb_s or chip.host_gb_s
    if peer_gb_s is None:
        return None
    up = chip.scale_up_gb_s is not None
    record = hardware_db.links().get((chip.scale_up_link_id if up else chip.host_link_id) or "")
    latency_s = record.latency_s if record else None
    name = chip.scale_up_link if up else chip.host_link or "the host's link"
    return Route(record.id if record else "", name, 1e9 * peer_gb_s, latency_s or 0.0, latency_s is not None)


def hops_s(inputs: SearchInputs, boundaries: tuple[int, int], tokens: float) -> float:
    """Return the time [s] of handing the activations of so many tokens over the boundaries between stages.

    Parameters
    ----------
    inputs
        Model and links.
    boundaries
        How many lie inside nodes, and how many between them.
    tokens
        Tokens of a step.
    """
    inside, between = inside_route(inputs), route_of(part_of(TransferInputs, inputs, rate=1.0))
    size = ACTIVATION_BYTES * hardware_db.models()[inputs.model].hidden * tokens
    routes = (inside or between, between)
    return sum(
        count * (size / route.bytes_s + route.latency_s) for count, route in zip(boundaries, routes, strict=True)
    )
