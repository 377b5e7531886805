"""The traffic as it really is, declared: how many instances, the router, the spread, the bursts, the order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from calculators.inputs import choice, file_path, integer
from calculators.lengths import spread_of
from calculators.scenario import Burstiness, PromptLaw
from calculators.ttft.arrivals import is_poisson

OWN_STREAM = ("random", "round_robin")
"""Routers that do not look at the instances: each of those then has a queue of its own."""

ONE_QUEUE = ("shared", "least_work")
"""Routers behind which every prompt starts as soon as any instance is free."""


@dataclass(frozen=True, kw_only=True)
class RealTraffic(PromptLaw, Burstiness):
    """What makes traffic harder than equal prompts at Poisson times on one instance."""

    servers: int = integer(
        "Instances in the pool",
        low=1,
        high=256,
        default=1,
        step=1,
        symbol="c",
        help="Instances that share the arrival rate: with more than one, the rate is that of all of them together.",
    )
    routing: str = choice(
        "Router",
        options=("random", "round_robin", "shortest_queue", "least_work", "shared"),
        default="random",
        help="How a prompt gets its instance: at random, in turn, the fewest prompts there, the least work left there, "
        "or one queue that all instances share. With one instance it makes no difference.",
    )
    batch_size: int = integer(
        "Prompts prefilled together",
        low=1,
        high=128,
        default=1,
        step=1,
        symbol="b",
        help="Most prompts that one prefill step takes together. It helps where a prompt alone does not fill the "
        "accelerator, and makes all of a batch wait for its end.",
    )
    order: str = choice(
        "Order of service",
        options=("fcfs", "short_first", "shortest"),
        default="fcfs",
        help="First come first served; prompts up to the mean length before longer ones; or always the shortest. "
        "A prompt in service is not interrupted.",
    )
    trace: str | None = file_path(
        "Trace",
        empty="none",
        help="On the command line, a file of requests (CSV or JSON lines, gzip or not): rate, mean lengths, spread "
        "and burstiness are taken from it unless they are given. On the page, upload it; a link cannot carry a file.",
    )


def is_plain(inputs: Any) -> bool:
    """Return whether it is the start of all: one queue, equal prompts, Poisson arrivals, first come first served."""
    alone = inputs.servers == 1 or inputs.routing == "random"
    return alone and not spread_of(inputs) and is_poisson(inputs) and inputs.batch_size == 1
