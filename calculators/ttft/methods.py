"""Which method answers for a combination of spread, bursts, router, order and batches; or why none does."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from calculators.inputs import InputError, InputsError, part_of
from calculators.service_time import prefill_time
from calculators.ttft.batched import Batched
from calculators.ttft.lengths import SpreadInputs, law_of
from calculators.ttft.ordered import Ordered
from calculators.ttft.queues import GammaD1, GammaG1, Md1, Mg1, Queue, RoundRobin, SharedEqual, SharedSpread
from calculators.ttft.simulated import Simulated, SimulationInputs
from calculators.ttft.traffic import ONE_QUEUE
from formulas.queueing.bursts.gamma_contour import MOST_EVEN
from formulas.queueing.bursts.gamma_prompts import LEAST_SHAPE, MOST_SHAPE


def queue_of(inputs: Any) -> Queue:
    """Return the queue of inputs that have those of :class:`~calculators.ttft.simulated.SimulationInputs`.

    Raises
    ------
    InputsError
        If no method is known, naming what to change; and as for :func:`~calculators.ttft.lengths.law_of`.
    """
    if inputs.arrival_scv and inputs.arrival_scv < 1 / MOST_EVEN:
        _refuse(inputs, "arrival_scv", f"gaps this even are as good as equal: take 0, or {1 / MOST_EVEN:g} and more")
    return _queue(part_of(SimulationInputs, inputs, trace=None))


@lru_cache(maxsize=64)  # it depends on neither the rate nor the target
def _queue(inputs: SimulationInputs) -> Queue:
    law, poisson, servers = law_of(inputs), inputs.arrival_scv == 1, inputs.servers
    equal, alone = not inputs.prompt_cv, servers == 1
    exact = prefill_time(inputs).service_ms if equal else 0.0
    if inputs.batch_size > 1:
        return _batched(inputs)
    if inputs.order != "fcfs" and not equal:  # equal prompts keep the order of their arrival
        if not (alone or (inputs.routing == "random" and poisson)):
            _refuse(
                inputs, "order", "an order other than fcfs is computed for one instance, or for Poisson arrivals at random: "
                "set servers to 1, or routing to random and arrival_scv to 1, or order to fcfs",
            )  # fmt: skip
        return Ordered(law, servers, inputs=inputs)
    if poisson and (alone or inputs.routing == "random"):
        return Md1(law, servers, exact) if equal else Mg1(law, servers)
    if inputs.routing == "shortest_queue" and not alone:
        return Simulated(law, servers, exact, inputs=inputs)
    if poisson and inputs.routing in ONE_QUEUE:
        return SharedEqual(law, servers, exact) if equal else SharedSpread(law, servers)
    if poisson:
        return SharedEqual(law, servers, exact) if equal else RoundRobin(law, servers)
    shape = servers / inputs.arrival_scv if inputs.arrival_scv else math.inf
    if equal and (alone or inputs.routing != "random") and (shape <= MOST_EVEN or shape == math.inf):
        return GammaD1(law, servers, exact, shape=shape)
    smooth = inputs.prompt_distribution in ("lognormal", "gamma")  # kinks of the others would be off by up to 1e-3
    in_turn = alone or inputs.routing == "round_robin"
    if not equal and smooth and in_turn and LEAST_SHAPE <= shape <= MOST_SHAPE:
        return GammaG1(law, servers, shape=shape)
    return Simulated(law, servers, exact, inputs=inputs)


def _batched(inputs: SimulationInputs) -> Queue:
    if inputs.prompt_cv:
        _refuse(inputs, "batch_size", "batches are computed for equal prompts: set prompt_cv to 0, or batch_size to 1")
    if inputs.service_ms is not None:
        sentence = (
            "a typed service time does not say what a batch takes: leave service_ms empty, or set batch_size to 1"
        )
        _refuse(inputs, "batch_size", sentence)
    if inputs.servers > 1 and not (inputs.routing == "random" and inputs.arrival_scv == 1):
        _refuse(
            inputs, "batch_size", "batches are computed for one instance, or for Poisson arrivals at random: set servers to 1, "
            "or routing to random and arrival_scv to 1, or batch_size to 1",
        )  # fmt: skip
    return Batched(law_of(inputs), inputs.servers, prefill_time(inputs).service_ms, inputs=inputs)


def _refuse(inputs: SpreadInputs, name: str, sentence: str) -> None:
    raise InputsError([InputError(name, getattr(inputs, name), sentence)])
