"""What the simulations of serving are fed with: the requests of a scenario, and the link between its pools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from calculators.clock import ServingClock, clock_of
from calculators.inputs import part_of
from calculators.kv_transfer import TransferInputs, context_of, link_values, route_of
from calculators.lengths import lengths_of
from calculators.routers import OWN_STREAM
from formulas.kv_cache import LINK_TIME
from formulas.montecarlo.routers import Router, simulate_routed
from formulas.montecarlo.serving import (
    DrawnLengths,
    InstanceSettings,
    KvLink,
    Lengths,
    Served,
    Workload,
    gamma_workload,
    simulate,
)

Progress = Callable[[float], None]
Array = NDArray[np.float64]
Places = NDArray[np.int64]

LONGEST = 32
"""Output lengths of a simulation are cut at so many times the mean."""


def output_lengths(inputs: Any) -> Lengths:
    """Return the lengths of the outputs, from ``output_tokens`` and ``output_cv``."""
    return Lengths(inputs.output_tokens, inputs.output_cv, LONGEST * inputs.output_tokens)


def prompt_lengths(inputs: Any) -> DrawnLengths:
    """Return the lengths of the prompts: equal, by a law with a spread, or by a histogram."""
    return DrawnLengths(lengths_of(inputs), LONGEST * inputs.prompt_tokens)


def workload_of(inputs: Any, rate: float, requests: int) -> Workload:
    """Return so many requests of a scenario at a rate [requests/s], in bursts if it says so."""
    lengths = prompt_lengths(inputs), output_lengths(inputs)
    return gamma_workload(rate, requests, *lengths, inputs.seed, inputs.arrival_scv)


def clock_for(inputs: Any, workload: Workload, budget: int = 0) -> ServingClock:
    """Return the clock of an instance for any step of a workload, with so many tokens of prompts in it at most."""
    prompt, output = int(workload.prompt_tokens.max()), int(workload.output_tokens.max())
    most = max(prompt, budget) + len(workload)
    return clock_of(inputs, most, (inputs.prompt_tokens, prompt + output), inputs.cached_tokens)


def link_of(inputs: Any, pairs: int = 1) -> KvLink:
    """Return the link between the pools, on which a request takes as long as in the formulas, messages included.

    The cached prefix moves with the prompt: its bytes are counted to the prompt's tokens. Where each of several pairs of
    instances has a link of its own, they are one that is as fast as all, and later by what it is faster than each.
    """
    given = part_of(TransferInputs, inputs, rate=1.0)  # what a transfer takes alone does not depend on it
    route = route_of(given)
    values = link_values(given, route, context_of(given))
    moved = float(values["kv_bytes"])
    alone_s = float(LINK_TIME(**values))
    late_s = route.latency_s + alone_s * (1 - 1 / pairs)
    return KvLink(moved / inputs.prompt_tokens, pairs * moved / alone_s, late_s)


def apart_behind(
    routing: str,
    workload: Workload,
    sides: tuple[InstanceSettings, InstanceSettings],
    instances: tuple[int, int],
    link: KvLink | None,
    seed: int,
    progress: Progress | None = None,
) -> Served:
    """Simulate prefill and decode instances behind a router."""
    first = first_tokens_behind(routing, workload, sides[0], instances[0], seed)
    completions = first.copy()
    handed = np.flatnonzero(workload.output_tokens > 1)
    handed = handed[np.argsort(first[handed], kind="stable")]
    prompts, outputs = workload.prompt_tokens[handed], workload.output_tokens[handed]
    ready = first[handed] if link is None else link.delivered(first[handed], prompts)
    there = Workload(ready, prompts, outputs)
    completions[handed] = completions_behind(routing, there, sides[1], instances[1], seed, progress)
    return Served(workload.arrivals, first, completions, workload.prompt_tokens, workload.output_tokens, ())


def first_tokens_behind(
    routing: str, workload: Workload, settings: InstanceSettings, instances: int, seed: int
) -> Array:
    """Return when the first token of each request is out [s], of prefill instances behind a router."""
    times = np.array([settings.step_time(tokens, 0, 0, 0) for tokens in workload.prompt_tokens.tolist()])
    waits = simulate_routed(cast("Router", routing), workload.arrivals, times, instances, seed)
    return np.asarray(workload.arrivals + waits + times)


def completions_behind(
    routing: str,
    workload: Workload,
    settings: InstanceSettings,
    instances: int,
    seed: int,
    progress: Progress | None = None,
) -> Array:
    """Return when the last token of each request is out [s], of decode instances that each comes to with its first.

    They have no queue to share: behind a router that looks at the instances, a request goes to the one with the fewest.
    """
    if routing not in OWN_STREAM:
        return simulate(workload, settings, instances, progress=progress).completions
    completions = np.empty(len(workload))
    for part in _parts(routing, len(workload), instances, seed):
        completions[part] = simulate(workload.only(part), settings).completions
    return completions


def _parts(routing: str, requests: int, instances: int, seed: int) -> list[Places]:
    """Return the places of the requests that each instance serves: any of them, or in turn."""
    chosen = np.arange(requests) % instances
    if routing == "random":
        chosen = np.random.default_rng([seed, instances]).integers(instances, size=requests)
    return [part for each in range(instances) if (part := np.flatnonzero(chosen == each)).size]
