"""What makes the answer checkable: its formulas with the user's numbers, and the facts it rests on."""

from __future__ import annotations

from calculators.facts import Fact, instance_facts
from calculators.facts import ShownFormula as Shown
from calculators.outputs import readable
from calculators.step_formulas import step_formulas
from calculators.step_load import StepContents
from calculators.ttft.compute import TtftResult
from calculators.ttft.inputs import TtftInputs
from calculators.ttft.methods import queue_of
from calculators.ttft.queues import Md1
from calculators.ttft.traffic_formulas import traffic_formulas
from formulas.queueing import md1


def service_formulas(inputs: TtftInputs) -> list[Shown]:
    """Return the formulas of the service time; none if it was typed in."""
    if inputs.service_ms is not None:
        return []
    return step_formulas(inputs, StepContents(inputs.prompt_tokens, inputs.cached_tokens))


def queue_formulas(inputs: TtftInputs, result: TtftResult) -> list[Shown]:
    """Return the formulas of utilization, mean wait and mean TTFT, by the method of the traffic."""
    queue = queue_of(inputs)
    if not isinstance(queue, Md1):
        return traffic_formulas(inputs, queue)
    values = {"rate": inputs.rate / inputs.servers, "service_time": result.service_ms / 1e3}
    return [Shown(md1.UTILIZATION, values), Shown(md1.MEAN_WAIT, values), Shown(md1.MEAN_TTFT, values)]


def percentile_formulas(inputs: TtftInputs, result: TtftResult) -> list[Shown]:
    """Return what stands in closed form of the percentile that the target is set on.

    The percentiles of the answer are exact and computed numerically; where the closed form is exact too, it stands
    here, and elsewhere its leading term with its error at the user's own utilization.
    """
    if not result.stable or not isinstance(queue_of(inputs), Md1):
        return []
    level = inputs.percentile / 100
    values = {"level": level, "utilization": result.utilization, "service_time": result.service_ms / 1e3}
    exact_s = values["service_time"] * md1.wait_quantile(level, result.utilization)
    if not md1.LOW_LOAD_QUANTILE.violations(**values):
        return [Shown(md1.LOW_LOAD_QUANTILE, values, "Exact at this load, and the number that the answer uses.")]
    if exact_s == 0:
        remark = f"{1 - result.utilization:.1%} of the requests do not wait: this percentile of the wait is 0."
        return [Shown(md1.LOW_LOAD_QUANTILE, values, remark)]
    off = md1.TAIL_QUANTILE(**values) / exact_s - 1
    note = (
        f"The exact P{inputs.percentile:g} of the wait is {1e3 * exact_s:.8g} ms, and the answer uses that: it sums "
        "all terms (Erlang's sum up to five service times, the poles of the transform beyond). The leading term alone "
        f"is {off:+.1e} off here. With the service time it is {readable(1e3 * exact_s)} + {readable(result.service_ms)} = "
        f"**{readable(1e3 * exact_s + result.service_ms)} ms**. $u(\\rho)$ is the other solution of "
        "$u\\,e^{-u} = \\rho\\,e^{-\\rho}$."
    )
    tail = {"utilization": result.utilization}
    decay = tail | {"service_time": values["service_time"]}
    return [
        Shown(md1.TAIL_QUANTILE, values, note),
        Shown(md1.DECAY_RATE, decay),
        Shown(md1.TAIL_CONSTANT, tail),
    ]


def facts(inputs: TtftInputs) -> list[Fact]:
    """Return the records that the service time rests on; none if it was typed in."""
    if inputs.service_ms is not None:
        return [Fact("Service time", "typed in", ("the user's own figure",))]
    return instance_facts(inputs)
