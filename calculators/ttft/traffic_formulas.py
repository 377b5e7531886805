"""What stands in closed form of each method, with the user's numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from calculators.facts import ShownFormula as Shown
from calculators.outputs import readable
from calculators.ttft.batched import Batched
from calculators.ttft.inputs import TtftInputs
from calculators.ttft.ordered import Ordered
from calculators.ttft.queues import (
    BatchD1,
    GammaD1,
    GammaG1,
    Mg1,
    Queue,
    RoundRobin,
    SharedBursty,
    SharedEqual,
    SharedSpread,
    SwitchingD1,
)
from formulas.queueing import bursts, md1, mg1
from formulas.queueing import pollaczek_khinchine as pk
from formulas.queueing.batching import BATCH_CAPACITY
from formulas.queueing.many_servers import (
    BURSTY_MEAN_WAIT,
    EVEN_MEAN_WAIT,
    KIMURA_MEAN_WAIT,
    MMC_MEAN_WAIT,
    ROUND_ROBIN_MEAN_WAIT,
    erlang_c,
    mdc,
    mgc_mean_wait,
)
from formulas.queueing.many_servers.bursty import equal_waits
from formulas.queueing.order import COBHAM_WAIT

Values = dict[str, Any]


def traffic_formulas(inputs: TtftInputs, queue: Queue) -> list[Shown]:
    """Return the formulas of a queue that is not M/D/1; those of the wait only where there is a steady state."""
    load = queue.utilization(inputs.rate)
    if isinstance(queue, Batched):
        last = {"most": inputs.batch_size, "service_time": queue.batch_times_ms[-1] / 1e3}
        return [Shown(BATCH_CAPACITY, last, f"A prompt alone takes {readable(queue.service_ms)} ms.")]
    each = {"rate": inputs.rate / inputs.servers, "service_time": queue.law.mean}
    shown = [Shown(md1.UTILIZATION, each, "" if inputs.servers == 1 else "At each instance.")]
    if load >= 1:
        return shown
    for kind, formulas in _BY_METHOD.items():
        if isinstance(queue, kind):
            return shown + formulas(inputs, queue, load)
    by_gaps = inputs.servers == 1 and inputs.arrivals == "gamma"
    return shown + (_two_moments(inputs, queue, load) if by_gaps else [])


def _mg1(inputs: TtftInputs, queue: Queue, load: float) -> list[Shown]:
    moments = {
        "rate": inputs.rate / inputs.servers,
        "mean_service": queue.law.mean,
        "service_second_moment": queue.law.second_moment,
    }
    spread = {"utilization": load, "service_scv": queue.law.scv, "mean_service": queue.law.mean}
    note = (
        "The moments are those of the step time over the distribution of lengths. Percentiles come from the transform of "
        "this queue, inverted numerically."
    )
    return [Shown(pk.MEAN_WAIT, moments), Shown(mg1.MEAN_WAIT_BY_SPREAD, spread, note), Shown(mg1.MEAN_TTFT, moments)]


def _gamma(inputs: TtftInputs, queue: Queue, load: float) -> list[Shown]:
    assert isinstance(queue, GammaD1)  # noqa: S101 - chosen by its class
    if not 0 < queue.shape < float("inf"):
        return []
    decay = {"utilization": load, "shape": queue.shape, "service_time": queue.service_ms / 1e3}
    return [Shown(bursts.GAMMA_DECAY_RATE, decay), *_two_moments(inputs, queue, load, 1 / queue.shape)]


def _gamma_spread(inputs: TtftInputs, queue: Queue, load: float) -> list[Shown]:
    assert isinstance(queue, GammaG1)  # noqa: S101 - chosen by its class
    return _two_moments(inputs, queue, load, 1 / queue.shape)


def _batches(inputs: TtftInputs, queue: Queue, load: float) -> list[Shown]:  # noqa: ARG001 - as the others
    assert isinstance(queue, BatchD1)  # noqa: S101 - chosen by its class
    note = "The first of a batch waits for those before the batch; the others also for those before them in it."
    return [Shown(bursts.BATCH_MEAN_WAIT, queue.formula_values(inputs.rate), note)]


def _spells(inputs: TtftInputs, queue: Queue, load: float) -> list[Shown]:  # noqa: ARG001 - as the others
    assert isinstance(queue, SwitchingD1)  # noqa: S101 - chosen by its class
    process = queue.process(inputs.rate)
    service = {"service_time": queue.service_ms / 1e3, "idle_first": queue.idle_calm(inputs.rate)}
    window = {"window": 10 * inputs.busy_spell_s}
    return [
        Shown(bursts.SWITCHING_RATE, vars(process), "The first state is the calm one."),
        Shown(bursts.SWITCHING_DISPERSION, vars(process) | window, "Over ten busy spells; Poisson arrivals have 1."),
        Shown(bursts.SWITCHING_MEAN_WAIT, vars(process) | service),
    ]


def _two_moments(inputs: TtftInputs, queue: Queue, load: float, arrival_scv: float | None = None) -> list[Shown]:
    scv = inputs.arrival_scv if arrival_scv is None else arrival_scv
    values = {"utilization": load, "arrival_scv": scv, "service_scv": queue.law.scv, "mean_service": queue.law.mean}
    note = ""
    if queue.kind != "simulation":
        note = f"By two moments only; the exact mean wait, which the answer uses, is {_wait(inputs, queue)}."
    return [Shown(bursts.ALLEN_CUNNEEN, values, note), Shown(bursts.KINGMAN_BOUND, values, "A bound, not an estimate.")]


def _erlang(inputs: TtftInputs, queue: Queue, load: float) -> Values:
    return {
        "wait_probability": erlang_c(inputs.servers, load),
        "servers": inputs.servers,
        "utilization": load,
        "mean_service": queue.law.mean,
    }


def _shared_equal(inputs: TtftInputs, queue: Queue, load: float) -> list[Shown]:
    note = (
        f"For exponential service times. Equal prompts have no such formula: their mean wait, {_wait(inputs, queue)}, and "
        "the percentiles come from the zeros of the queue's generating function, to rounding."
    )
    return [Shown(MMC_MEAN_WAIT, _erlang(inputs, queue, load), note)]


def _shared_spread(inputs: TtftInputs, queue: Queue, load: float) -> list[Shown]:
    erlang = _erlang(inputs, queue, load)
    kimura = {
        "cv": queue.law.scv**0.5,
        "exponential_wait": MMC_MEAN_WAIT(**erlang),
        "equal_wait": queue.law.mean * mdc.mean_wait(inputs.servers, load),
    }
    return [Shown(MMC_MEAN_WAIT, erlang), Shown(KIMURA_MEAN_WAIT, kimura, queue.error or "")]


def _shared_bursty(inputs: TtftInputs, queue: Queue, load: float) -> list[Shown]:
    assert isinstance(queue, SharedBursty)  # noqa: S101 - chosen by its class
    cv, mean, note = queue.times.cv, queue.law.mean, queue.error or ""
    poisson = mean * mgc_mean_wait(inputs.servers, load, cv)
    if queue.arrival_scv < 1:
        return [Shown(EVEN_MEAN_WAIT, {"poisson_wait": poisson, "arrival_scv": queue.arrival_scv, "cv": cv}, note)]
    waits = equal_waits(mean, inputs.servers, load, queue.arrival_scv)
    return [Shown(BURSTY_MEAN_WAIT, {"poisson_wait": poisson} | waits, note)]


def _round_robin(inputs: TtftInputs, queue: Queue, load: float) -> list[Shown]:
    values = {
        "utilization": load, "servers": inputs.servers, "cv": queue.law.scv**0.5, "mean_service": queue.law.mean,
    }  # fmt: skip
    note = f"An approximation; the answer's mean wait, from the lattice, is {_wait(inputs, queue)}."
    return [Shown(ROUND_ROBIN_MEAN_WAIT, values, note)]


def _ordered(inputs: TtftInputs, queue: Queue, load: float) -> list[Shown]:
    assert isinstance(queue, Ordered)  # noqa: S101 - chosen by its class
    if not queue.exact_mean:
        return []
    each, (share, part) = inputs.rate / inputs.servers, queue.classes
    residual = each * queue.law.second_moment / 2
    short = {"residual_work": residual, "load_before": 0.0, "load_with": each * part}
    long = {"residual_work": residual, "load_before": each * part, "load_with": load}
    fcfs = 1e3 * float(mg1.mean_wait(each, queue.law))
    note = (
        f"{share:.0%} of the prompts take up to the mean service time, and go first. First come first served all "
        f"would wait {readable(fcfs)} ms on average."
    )
    if inputs.order == "shortest":
        note = f"Prompts up to the mean service time, taken as one class; the shortest first: {_wait(inputs, queue)} on average."
    return [Shown(COBHAM_WAIT, short, note), Shown(COBHAM_WAIT, long, "The longer ones.")]


def _wait(inputs: TtftInputs, queue: Queue) -> str:
    return f"{readable(queue.mean_wait_ms(inputs.rate))} ms"


_BY_METHOD: dict[type[Queue], Callable[[TtftInputs, Queue, float], list[Shown]]] = {
    Mg1: _mg1,
    BatchD1: _batches,
    SwitchingD1: _spells,
    GammaD1: _gamma,
    GammaG1: _gamma_spread,
    SharedEqual: _shared_equal,
    SharedSpread: _shared_spread,
    SharedBursty: _shared_bursty,
    RoundRobin: _round_robin,
    Ordered: _ordered,
}
