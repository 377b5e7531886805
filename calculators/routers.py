"""How a request gets its instance: the routers in words, and what they make of the arrivals at one instance."""

from __future__ import annotations

from typing import Any

OWN_STREAM = ("random", "round_robin")
"""Routers that do not look at the instances: each of those then has a queue of its own."""

ONE_QUEUE = ("shared", "least_work")
"""Routers behind which every prompt starts as soon as any instance is free."""

ROUTERS = {
    "random": "at random",
    "round_robin": "round robin",
    "shortest_queue": "shortest queue",
    "least_work": "least work",
    "shared": "one shared queue",
}


def scv_at_one(arrival_scv: float, instances: float, *, in_turn: bool) -> float:
    """Return the squared coefficient of variation of the gaps at one of several instances.

    Spread at random, the arrivals at each are the more like Poisson's the more instances there are. In turn, each gets every
    c-th request, which come the more evenly.

    >>> scv_at_one(4.0, 3, in_turn=False), scv_at_one(4.0, 8, in_turn=True)
    (2.0, 0.5)
    """
    sharing = max(instances, 1.0)
    return arrival_scv / sharing if in_turn else 1 + (arrival_scv - 1) / sharing


AS_TAKEN = {
    "random": "requests spread at random over the instances",
    "round_robin": "requests in turn over the instances",
    "shortest_queue": (
        "the shortest queue as one queue of two thirds of the prefill instances, which is about what it is worth; elsewhere "
        "requests in turn"
    ),
    "least_work": "prefill instances start prompts as if from one queue; elsewhere requests in turn",
    "shared": "prefill instances take prompts from one queue; elsewhere requests in turn",
}
"""What the forms of serving make of each router, as it stands in a sentence."""


def sharing(instances: int, routing: str) -> int:
    """Return how many instances with one queue, at the same load, stand for so many behind a router that looks at them.

    >>> sharing(12, "shared"), sharing(12, "shortest_queue"), sharing(2, "shortest_queue")
    (12, 8, 2)
    """
    return max(min(instances, 2), round(2 * instances / 3)) if routing == "shortest_queue" else instances


def among_as_many(inputs: Any) -> str:
    """Return what curves against the rate leave out, to be put behind a caption: that more instances carry more each."""
    if inputs.arrival_scv == 1 and inputs.routing == "random":
        return ""
    return "; at other rates, an instance is taken to carry what it does here"
