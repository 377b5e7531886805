"""The traffic as it really is, declared: how many instances, the router, the spread, the bursts, the order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from calculators.inputs import choice, integer, of_file
from calculators.lengths import spread_of
from calculators.scenario import Burstiness, PromptLaw, Routing
from calculators.ttft.arrivals import is_poisson


@dataclass(frozen=True, kw_only=True)
class RealTraffic(PromptLaw, Routing, Burstiness):
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
    trace: str | None = of_file(
        "Trace",
        empty="none",
        help="On the command line, a file of requests (CSV or JSON lines, gzip or not): rate, mean lengths, spread "
        "and burstiness are taken from it unless they are given. On the page, upload it; a link cannot carry a file.",
    )
    trace_columns: str | None = of_file(
        "Columns of the trace",
        what="columns as in time=arrived,input=prompt,output=answer,unit=ms",
        empty="by the format",
        help="On the command line, for a trace of no known format: which columns hold the time of arrival, the tokens in and the "
        "tokens out, and the unit of the times (date, s, ms, us, ns; left out, it is told by the first one).",
    )


def is_plain(inputs: Any) -> bool:
    """Return whether it is the start of all: one queue, equal prompts, Poisson arrivals, first come first served."""
    alone = inputs.servers == 1 or inputs.routing == "random"
    return alone and not spread_of(inputs) and is_poisson(inputs) and inputs.batch_size == 1
