"""What makes the answer checkable: its formulas with the user's numbers, and the facts it rests on."""

from __future__ import annotations

import hardware_db
from calculators.facts import Fact, ShownFormula, fact_of, instance_facts
from calculators.parallelism.compute import ParallelismInputs, ParallelismResult, prefill_inputs
from formulas import parallelism as forms


def formulas(inputs: ParallelismInputs, result: ParallelismResult) -> list[ShownFormula]:
    """Return the mean TTFT of each way and the crossover, with the numbers put in."""
    values = {"rate": inputs.rate, "service_time": result.service_ms / 1e3}
    pipeline = next(way for way in result.ways if way.id == "pp")
    even = len(set(pipeline.stage_times_ms)) == 1 and pipeline.hop_ms == 0
    return [
        ShownFormula(forms.TENSOR_MEAN_TTFT, values | {"speedup": result.speedup}),
        _equal_pipeline(inputs, values) if even else _any_pipeline(inputs, result),
        ShownFormula(forms.REPLICAS_MEAN_TTFT, values | {"gpus": inputs.gpus}),
        _equal_crossover(inputs, result) if even else _any_crossover(result),
    ]


def _equal_pipeline(inputs: ParallelismInputs, values: dict[str, float]) -> ShownFormula:
    return ShownFormula(forms.PIPELINE_MEAN_TTFT, values | {"gpus": inputs.gpus})


def _any_pipeline(inputs: ParallelismInputs, result: ParallelismResult) -> ShownFormula:
    slowest, latency = _bottleneck_and_latency(result)
    return ShownFormula(forms.STAGES_MEAN_TTFT, {"rate": inputs.rate, "bottleneck_time": slowest, "latency": latency})


def _equal_crossover(inputs: ParallelismInputs, result: ParallelismResult) -> ShownFormula:
    values = {"service_time": result.service_ms / 1e3, "speedup": result.speedup, "gpus": inputs.gpus}
    return ShownFormula(forms.CROSSOVER_RATE, values)


def _any_crossover(result: ParallelismResult) -> ShownFormula:
    slowest, latency = _bottleneck_and_latency(result)
    values = {"tensor_time": result.tp_service_ms / 1e3, "bottleneck_time": slowest, "latency": latency}
    return ShownFormula(forms.STAGES_CROSSOVER_RATE, values)


def _bottleneck_and_latency(result: ParallelismResult) -> tuple[float, float]:
    pipeline = next(way for way in result.ways if way.id == "pp")
    return max(pipeline.stage_times_ms) / 1e3, pipeline.unloaded_ms / 1e3


def facts(inputs: ParallelismInputs) -> list[Fact]:
    """Return the records that the service times rest on, and the measured speedups."""
    measured = [fact_of(each, "Measured speedup") for each in list(hardware_db.speedups().values())]
    if inputs.service_ms is not None and inputs.speedup is not None:
        return [Fact("Service time and speedup", "typed in", ("the user's own figures",)), *measured]
    return [*instance_facts(prefill_inputs(inputs, 1)), *measured]
