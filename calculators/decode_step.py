"""One step of decoding sequences on real figures: its time, what bounds it, and where that turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calculators.machine import MachineInputs, machine_of
from calculators.outputs import output
from calculators.step_load import StepContents, attention_flops, matmul_flops, step_load
from formulas import step_time as step
from formulas.bracketing import find_root

Array = NDArray[np.float64]

PARTS = ("weights", "kv", "compute", "collectives", "overhead")
"""What a step's time is made of. Reading the weights and the cache runs beside the arithmetic: the longer counts."""

LARGEST_BATCH = 2.0**24


@dataclass(frozen=True)
class DecodeStep:
    """The time of a step and what it is made of; arrays for several batches at once."""

    step_ms: Any = output("Step", "ms")
    bound: Any = output("Bound by", "", "What takes longest: weights, kv, compute, collectives or overhead")
    weights_ms: Any = output("Reading the weights", "ms")
    kv_ms: Any = output("Reading the KV cache", "ms")
    compute_ms: Any = output("Arithmetic", "ms", "Runs beside the reading; the longer of the two counts")
    collectives_ms: Any = output("Collectives", "ms", "All-reduces of tensor parallelism")
    overhead_ms: Any = output("Overhead", "ms")


def step_of(inputs: MachineInputs, contents: StepContents) -> DecodeStep:
    """Return the time of a step, or of several where the contents are arrays.

    Raises
    ------
    InputsError
        As for :func:`~calculators.machine.machine_of`.
    """
    time = step.step_time(step_load(inputs, contents), machine_of(inputs))
    shape = np.shape(time.total_s)
    parts = {name: 1e3 * np.broadcast_to(np.asarray(getattr(time, f"{name}_s"), dtype=float), shape) for name in PARTS}
    by_compute = np.asarray(time.compute_s) >= time.memory_s
    counted = np.stack(
        [
            np.where(by_compute, 0.0, parts["weights"]),
            np.where(by_compute, 0.0, parts["kv"]),
            np.where(by_compute, parts["compute"], 0.0),
            parts["collectives"],
            parts["overhead"],
        ]
    )
    bound = np.asarray(PARTS)[np.argmax(counted, axis=0)]
    if not shape:
        return DecodeStep(
            1e3 * float(time.total_s), str(bound), **{f"{name}_ms": float(each) for name, each in parts.items()}
        )
    return DecodeStep(1e3 * time.total_s, bound, **{f"{name}_ms": each for name, each in parts.items()})


def step_times_s(inputs: MachineInputs, sequences: Array, context_tokens: float) -> Array:
    """Return the times [s] of steps of so many sequences, each with that context."""
    load = step_load(inputs, StepContents(sequences=sequences, context_tokens=context_tokens))
    return np.asarray(step.step_time(load, machine_of(inputs)).total_s, dtype=float)


@dataclass(frozen=True)
class Turning:
    """Where a step's two halves stand on the roofline, at the chip's own peaks.

    Attributes
    ----------
    attention_intensity, projection_intensity : float
        Arithmetic for each byte that is read [FLOP/B]: of attention and its cache, of everything else and the weights.
    ridge : float
        Arithmetic for each byte at which the chip is bound by both [FLOP/B].
    critical_batch, reached_critical_batch : float or None
        Batch from which the projections and the FFN are bound by compute: at the chip's peaks, and with the
        efficiencies assumed. ``None`` where no batch is.
    """

    attention_intensity: float
    projection_intensity: float
    ridge: float
    critical_batch: float | None
    reached_critical_batch: float | None


def turning_of(inputs: MachineInputs, batch: int, context_tokens: float) -> Turning:
    """Return the intensities of a step of ``batch`` sequences, and the batch at which the projections turn."""
    machine = machine_of(inputs)
    contents = StepContents(sequences=batch, context_tokens=context_tokens)
    load = step_load(inputs, contents)
    ridge = machine.peak_flops / machine.memory_bandwidth
    reached = ridge * machine.compute_efficiency / machine.memory_efficiency
    return Turning(
        attention_intensity=float(attention_flops(inputs, contents) / load.kv_bytes) if load.kv_bytes else 0.0,
        projection_intensity=projection_intensity(inputs, batch),
        ridge=ridge,
        critical_batch=critical_batch(inputs, ridge),
        reached_critical_batch=critical_batch(inputs, reached),
    )


def projection_intensity(inputs: MachineInputs, batch: Any) -> Any:
    """Return the arithmetic of projections and FFN for each byte of weights that a step reads [FLOP/B]."""
    contents = StepContents(sequences=batch)
    return matmul_flops(inputs, contents) / step_load(inputs, contents).weight_bytes


def critical_batch(inputs: MachineInputs, ridge: float) -> float | None:
    """Return the batch at which the projections' intensity reaches ``ridge`` [FLOP/B], or ``None`` if none does.

    It grows with the batch also where experts are touched one after another: more tokens share each of them.
    """
    if projection_intensity(inputs, 1) >= ridge:
        return 1.0
    if projection_intensity(inputs, LARGEST_BATCH) <= ridge:
        return None
    low, high = np.array([1.0]), np.array([LARGEST_BATCH])
    return float(find_root(lambda batch: projection_intensity(inputs, batch) - ridge, low, high, tolerance=1e-12)[0])
