"""Which method answers for a combination of spread, bursts, router, order and batches; or why none does."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

from calculators.inputs import InputError, InputsError, defaults, part_of
from calculators.lengths import spread_of
from calculators.routers import ONE_QUEUE
from calculators.service_time import prefill_time
from calculators.ttft.arrivals import MOST_CHANGES, OF_KIND, BurstyArrivals, as_poisson, changes_in, is_poisson
from calculators.ttft.batched import Batched
from calculators.ttft.lengths import SpreadInputs, law_of
from calculators.ttft.ordered import Ordered
from calculators.ttft.queues import (
    BatchD1,
    GammaD1,
    GammaG1,
    Md1,
    Mg1,
    Queue,
    RoundRobin,
    SharedBursty,
    SharedEqual,
    SharedSpread,
    SwitchingD1,
)
from calculators.ttft.simulated import Simulated, SimulationInputs
from formulas.queueing.bursts.gamma_contour import MOST_EVEN
from formulas.queueing.bursts.gamma_prompts import LEAST_SHAPE, MOST_SHAPE

_DEFAULTS = defaults(SimulationInputs)


def queue_of(inputs: Any) -> Queue:
    """Return the queue of inputs that have those of :class:`~calculators.ttft.simulated.SimulationInputs`.

    Raises
    ------
    InputsError
        If no method is known, naming what to change; and as for :func:`~calculators.ttft.lengths.law_of`.
    """
    if inputs.arrivals == "gamma" and inputs.arrival_scv and inputs.arrival_scv < 1 / MOST_EVEN:
        _refuse(inputs, "arrival_scv", f"gaps this even are as good as equal: take 0, or {1 / MOST_EVEN:g} and more")
    if as_poisson(inputs, law_of(inputs).mean):
        inputs = replace(inputs, arrivals="gamma", arrival_scv=1.0)
    elif inputs.arrivals == "spells" and changes_in(inputs, law_of(inputs).mean) > MOST_CHANGES:
        _refuse(
            inputs, "busy_spell_s", f"the rate would change more than {MOST_CHANGES} times while one prompt is served, which is "
            "not computed: lengthen the spells, or set arrivals to gamma",
        )  # fmt: skip
    unused = {name: _DEFAULTS[name] for kind, names in OF_KIND.items() if kind != inputs.arrivals for name in names}
    return _queue(part_of(SimulationInputs, inputs, trace=None, trace_columns=None, **unused))


@lru_cache(maxsize=64)  # it depends on neither the rate nor the target
def _queue(inputs: SimulationInputs) -> Queue:
    if inputs.batch_size > 1:
        return _batched(inputs)
    if inputs.order != "fcfs" and spread_of(inputs):  # equal prompts keep the order of their arrival
        return _ordered(inputs)
    by_arrivals = _poisson if is_poisson(inputs) else _gamma if inputs.arrivals == "gamma" else _bursty
    return by_arrivals(inputs) or Simulated(law_of(inputs), inputs.servers, _equal_ms(inputs), inputs=inputs)


def _equal_ms(inputs: SimulationInputs) -> float:
    return 0.0 if spread_of(inputs) else prefill_time(inputs).service_ms


def _at_random(inputs: SimulationInputs) -> bool:
    return inputs.servers == 1 or inputs.routing == "random"


def _poisson(inputs: SimulationInputs) -> Queue | None:
    law, servers, equal_ms = law_of(inputs), inputs.servers, _equal_ms(inputs)
    if _at_random(inputs):
        return Md1(law, servers, equal_ms) if equal_ms else Mg1(law, servers)
    if inputs.routing == "shortest_queue":
        return None
    if equal_ms:
        return SharedEqual(law, servers, equal_ms)
    return SharedSpread(law, servers) if inputs.routing in ONE_QUEUE else RoundRobin(law, servers)


def _bursty(inputs: SimulationInputs) -> Queue | None:
    if spread_of(inputs) or not _at_random(inputs):
        return None
    method = BatchD1 if inputs.arrivals == "batches" else SwitchingD1
    return method(law_of(inputs), inputs.servers, _equal_ms(inputs), arrivals=part_of(BurstyArrivals, inputs))


def _gamma(inputs: SimulationInputs) -> Queue | None:
    alone, equal_ms = inputs.servers == 1, _equal_ms(inputs)
    shape = inputs.servers / inputs.arrival_scv if inputs.arrival_scv else math.inf
    if not alone and inputs.routing in ("random", "shortest_queue"):
        return None
    if equal_ms:
        computed = shape <= MOST_EVEN or shape == math.inf
        return GammaD1(law_of(inputs), inputs.servers, equal_ms, shape=shape) if computed else None
    if inputs.routing in ONE_QUEUE and not alone and inputs.arrival_scv:
        return SharedBursty(law_of(inputs), inputs.servers, arrival_scv=inputs.arrival_scv)
    kinks = not inputs.prompt_histogram and inputs.prompt_distribution == "two_point"  # they would be off by up to 1e-3
    in_turn = alone or inputs.routing == "round_robin"
    if not kinks and in_turn and LEAST_SHAPE <= shape <= MOST_SHAPE:
        return GammaG1(law_of(inputs), inputs.servers, shape=shape)
    return None


def _ordered(inputs: SimulationInputs) -> Queue:
    if not (inputs.servers == 1 or (inputs.routing == "random" and is_poisson(inputs))):
        _refuse(
            inputs, "order", "an order other than fcfs is computed for one instance, or for Poisson arrivals at random: "
            "set servers to 1, or routing to random and arrivals to gamma with arrival_scv 1, or order to fcfs",
        )  # fmt: skip
    return Ordered(law_of(inputs), inputs.servers, inputs=inputs)


def _batched(inputs: SimulationInputs) -> Queue:
    if spread_of(inputs):
        sentence = (
            "batches are computed for equal prompts: set prompt_cv to 0 and no prompt_histogram, or batch_size to 1"
        )
        _refuse(inputs, "batch_size", sentence)
    if inputs.service_ms is not None:
        sentence = (
            "a typed service time does not say what a batch takes: leave service_ms empty, or set batch_size to 1"
        )
        _refuse(inputs, "batch_size", sentence)
    if inputs.servers > 1 and not (inputs.routing == "random" and is_poisson(inputs)):
        _refuse(
            inputs, "batch_size", "batches are computed for one instance, or for Poisson arrivals at random: set servers to 1, "
            "or routing to random and arrivals to gamma with arrival_scv 1, or batch_size to 1",
        )  # fmt: skip
    return Batched(law_of(inputs), inputs.servers, prefill_time(inputs).service_ms, inputs=inputs)


def _refuse(inputs: SpreadInputs, name: str, sentence: str) -> None:
    raise InputsError([InputError(name, getattr(inputs, name), sentence)])
