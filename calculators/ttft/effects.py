"""What spread, bursts and the router each do to TTFT at one rate, and how many instances each router needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calculators import lengths
from calculators.fleet import fewest_servers
from calculators.inputs import InputsError, declared
from calculators.lengths import WIDEST_UNIFORM
from calculators.outputs import output
from calculators.routers import ROUTERS
from calculators.ttft.arrivals import TYPICAL_SCV, in_words
from calculators.ttft.compute import SEARCHED_REQUESTS, error_of, keeps_target
from calculators.ttft.inputs import TtftInputs, level_of
from calculators.ttft.methods import queue_of
from calculators.ttft.simulated import Simulated
from calculators.ttft.traffic import RealTraffic

SPREAD, ROUTER = 1.0, "shared"
"""What is shown of a spread and of a router that are not switched on."""

SKETCHED_REQUESTS = 30_000
"""Requests of a simulation that nobody asked for: some hundredths of a second."""

NOT_ASKED = "Not simulated yet: the button above asks for it."
"""What stands for the method of a row that waits for the reader."""


@dataclass(frozen=True)
class Effect:
    """One kind of traffic at the rate at hand."""

    traffic: str = output("Traffic")
    mean_ttft_ms: float | None = output("Mean TTFT", "ms")
    p90_ttft_ms: float | None = output("P90 TTFT", "ms")
    p99_ttft_ms: float | None = output("P99 TTFT", "ms")
    times_plain: float | None = output("P99 over plain", "", "P99 over that of plain traffic")
    method: str = output("Method")
    error: str = output("Error")
    simulated: bool = False


def effects(inputs: TtftInputs, *, slow: bool) -> list[Effect]:
    """Return the plain traffic, each effect alone, and all together.

    Parameters
    ----------
    inputs
        The scenario. What is not switched on in it is shown at a typical value.
    slow
        Whether simulations may take as long as they need; without, they are short, and those behind the shortest
        queue, or in another order, have no numbers.
    """
    cases = list(_cases(inputs))
    plain = _row(*cases[0], None, slow=slow)
    return [plain, *(_row(*case, plain.p99_ttft_ms, slow=slow) for case in cases[1:])]


def has_slow_rows(inputs: TtftInputs) -> bool:
    """Return whether some of the rows are simulated."""
    return any(_is_simulated(case) for _, case in _cases(inputs))


def _is_simulated(inputs: TtftInputs) -> bool:
    try:
        return queue_of(inputs).kind == "simulation"
    except InputsError:
        return False


def _cases(inputs: TtftInputs) -> Iterator[tuple[str, TtftInputs]]:
    plain: dict[str, Any] = {
        "prompt_cv": 0.0,
        "prompt_histogram": "",
        "arrivals": "gamma",
        "arrival_scv": 1.0,
        "routing": "random",
        "order": "fcfs",
        "batch_size": 1,
    }
    spread = _spread(inputs)
    what, bursty = _bursty(inputs)
    router = inputs.routing if inputs.routing != "random" else ROUTER
    yield "plain: equal prompts, Poisson arrivals", replace(inputs, **plain)
    switched: dict[str, Any] = bursty | spread
    yield (
        f"spread alone: {lengths.in_words(replace(inputs, **spread))}",
        replace(inputs, **plain | spread),
    )
    bursts = replace(inputs, **plain | bursty)
    yield f"{what} alone: {in_words(bursts)}", bursts
    if inputs.servers > 1:
        switched["routing"] = router
        yield f"router alone: {ROUTERS[router]}", replace(inputs, **plain | {"routing": router})
        yield f"spread behind {ROUTERS[router]}", replace(inputs, **plain | spread | {"routing": router})
        yield f"{what} behind {ROUTERS[router]}", replace(bursts, routing=router)
    if inputs.order != "fcfs":
        yield f"spread, order {inputs.order}", replace(inputs, **plain | spread | {"order": inputs.order})
    if inputs.batch_size > 1:
        yield f"batches of {inputs.batch_size} alone", replace(inputs, **plain | {"batch_size": inputs.batch_size})
    router_too = f", {ROUTERS[router]}" if inputs.servers > 1 else ""
    yield f"spread and {what} together{router_too}", replace(inputs, **plain | switched)
    own = {name: getattr(inputs, name) for name in plain}
    own |= {} if inputs.arrivals == "gamma" else {"arrival_scv": 1.0}
    if own not in (plain, plain | switched):
        yield "as set in the sidebar", inputs


def _spread(inputs: TtftInputs) -> dict[str, Any]:
    """Return what switches the spread on: as it is, or at a typical value."""
    if inputs.prompt_histogram:
        return {"prompt_histogram": inputs.prompt_histogram}
    typical = min(SPREAD, WIDEST_UNIFORM) if inputs.prompt_distribution == "uniform" else SPREAD
    return {"prompt_cv": inputs.prompt_cv or typical}


def _bursty(inputs: TtftInputs) -> tuple[str, dict[str, Any]]:
    """Return what the arrivals are called, and what switches them on."""
    if inputs.arrivals != "gamma":
        return "bursts", {"arrivals": inputs.arrivals}
    scv = inputs.arrival_scv if inputs.arrival_scv != 1 else TYPICAL_SCV
    return "bursts" if scv > 1 else "steadier arrivals", {"arrival_scv": scv}


def _row(traffic: str, inputs: TtftInputs, plain_p99: float | None, *, slow: bool) -> Effect:
    try:
        queue = queue_of(inputs)
    except InputsError as refused:
        return _without(traffic, "; ".join(error.sentence for error in refused.errors))
    if queue.utilization(inputs.rate) >= 1:
        return _without(traffic, "Unstable at this rate.")
    simulated = queue.kind == "simulation"
    if simulated and not slow:
        if type(queue) is not Simulated or inputs.routing == "shortest_queue":  # from prompt to prompt, in Python
            return _without(traffic, NOT_ASKED)
        queue = queue_of(replace(inputs, customers=min(inputs.customers, SKETCHED_REQUESTS)))
    p90, p99 = (float(value) for value in queue.ttft_ms(np.array([0.9, 0.99]), inputs.rate))
    times = 1.0 if plain_p99 is None else p99 / plain_p99
    return Effect(
        traffic,
        queue.mean_ttft_ms(inputs.rate),
        p90,
        p99,
        times,
        queue.name,
        error_of(queue, inputs.rate) or "",
        simulated,
    )


def _without(traffic: str, why: str) -> Effect:
    return Effect(traffic, None, None, None, None, why, "")


@dataclass(frozen=True)
class Need:
    """What one router needs for the target at the rate at hand."""

    router: str = output("Router")
    instances: int | None = output("Instances")
    accelerators: int | None = output("Accelerators")
    reached_ms: float | None = output("TTFT reached", "ms")
    method: str = output("Method")


def needs(inputs: TtftInputs, progress: Callable[[float], object] | None = None) -> list[Need]:
    """Return how many instances each router needs, simulated where there is no formula.

    A simulated percentile near the target may be on its wrong side: an instance more or less.
    """
    routers = declared(RealTraffic)["routing"].options  # type: ignore[attr-defined]
    found = []
    for place, router in enumerate(routers):
        if progress:
            progress(place / len(routers))
        found.append(_need(replace(inputs, routing=router, customers=min(inputs.customers, SEARCHED_REQUESTS))))
    return found


def _need(inputs: TtftInputs) -> Need:
    name = ROUTERS[inputs.routing]
    try:
        alone = queue_of(replace(inputs, servers=1))
        if alone.unloaded_ms(level_of(inputs)) > inputs.ttft_slo_ms:
            return Need(name, None, None, None, "Too slow even unloaded: no number of instances helps.")
        count = fewest_servers(lambda servers: keeps_target(inputs, servers), int(inputs.rate / alone.capacity) + 1)
        if count is None:
            return Need(name, None, None, None, "More than 256 instances.")
        queue = queue_of(replace(inputs, servers=count))
    except InputsError as refused:
        return Need(name, None, None, None, "; ".join(error.sentence for error in refused.errors))
    return Need(name, count, count * inputs.tp, queue.value_ms(level_of(inputs), inputs.rate), queue.name)
