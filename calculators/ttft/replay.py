"""A trace as it came, in the event simulation, beside what the formula says of its rate, spread and burstiness."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calculators.clock import clock_of
from calculators.inputs import InputsError, Number, declared
from calculators.outputs import output
from calculators.service_time import prefill_times_ms
from calculators.traces import Trace
from calculators.ttft.inputs import TtftInputs
from calculators.ttft.methods import queue_of
from calculators.ttft.trace import summarise, values_from
from formulas.montecarlo.routers import simulate_routed
from formulas.montecarlo.serving import AffineStep, InstanceSettings, Workload, simulate

Array = NDArray[np.float64]

MOST_REQUESTS = 200_000
"""Requests of a replay: of a longer trace, the first."""

LEVELS = {"P50": 0.5, "P90": 0.9, "P95": 0.95, "P99": 0.99}


@dataclass(frozen=True)
class ReplayedFigure:
    """One statistic of TTFT."""

    label: str = output("Figure")
    replayed_ms: float = output("Replayed", "ms")
    formula_ms: float | None = output("Formula", "ms")


@dataclass(frozen=True)
class Replay:
    """A trace replayed."""

    requests: int = output("Requests replayed")
    utilization: float = output("Utilization", "", "Prefill work over the time of the trace, for each instance")
    rows: tuple[ReplayedFigure, ...] = output("TTFT")
    method: str = output("Formula")
    simulation: str = output("Replay")


def replay(inputs: TtftInputs, trace: Trace, progress: Callable[[float], None] | None = None) -> Replay:
    """Send the requests of a trace through the pool, each at its time and with its own length.

    Parameters
    ----------
    inputs
        The pool, its router, and the time of a prefill. Rate and lengths are the trace's own.
    trace
        The requests.
    progress
        Told the share that is done.
    """
    count = min(len(trace), MOST_REQUESTS)
    workload = trace.workload.only(slice(count))
    services = prefill_times_ms(inputs, workload.prompt_tokens) / 1e3
    if inputs.service_ms is not None:  # a typed time is that of a prompt of mean length
        services = services * workload.prompt_tokens / workload.prompt_tokens.mean()
    by_events = inputs.servers == 1 or inputs.routing == "shortest_queue"
    if by_events:
        settings = InstanceSettings("prefill", _clock(inputs, workload))
        ttft = simulate(workload, settings, inputs.servers, progress=progress).ttft
        how = "event simulation of the prefill instance"
        if inputs.servers > 1:
            how = "event simulation of prefill instances, each request to the one with the fewest present"
    else:
        waits = simulate_routed(inputs.routing, workload.arrivals, services, inputs.servers, inputs.seed)  # type: ignore[arg-type]
        ttft, how = waits + services, f"instances behind the router {inputs.routing}"
    formula, method = _formula(inputs, trace)
    span = float(workload.arrivals[-1] - workload.arrivals[0])
    replayed = {"mean": float(ttft.mean())} | {name: float(np.quantile(ttft, p)) for name, p in LEVELS.items()}
    rows = tuple(ReplayedFigure(name, 1e3 * value, formula.get(name)) for name, value in replayed.items())
    return Replay(count, float(services.sum()) / span / inputs.servers, rows, method, how)


def _clock(inputs: TtftInputs, workload: Workload) -> Any:
    if inputs.service_ms is not None:
        return AffineStep(0.0, 0.0, prompt_token_s=inputs.service_ms / 1e3 / float(workload.prompt_tokens.mean()))
    longest = int(workload.prompt_tokens.max())
    return clock_of(inputs, longest, (1, longest), inputs.cached_tokens)


def _formula(inputs: TtftInputs, trace: Trace) -> tuple[dict[str, float], str]:
    """Return the answer for the trace's rate, mean length, spread and burstiness, by name, and its method."""
    known, values = declared(TtftInputs), values_from(summarise(trace))
    within: dict[str, Any] = {
        name: min(max(value, limits.low), limits.high) if isinstance(limits := known[name], Number) else value
        for name, value in values.items()
    }
    scenario = replace(inputs, arrivals="gamma", **within)
    try:
        queue = queue_of(scenario)
    except InputsError as refused:
        return {}, "; ".join(error.sentence for error in refused.errors)
    if queue.utilization(scenario.rate) >= 1:
        return {}, "Unstable at the trace's mean rate: no steady state."
    found = {name: queue.value_ms(level, scenario.rate) for name, level in LEVELS.items()}
    return {"mean": queue.mean_ttft_ms(scenario.rate)} | found, queue.name
