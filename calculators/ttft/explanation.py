"""What makes the answer checkable: its formulas with the user's numbers, and the facts it rests on."""

from __future__ import annotations

import hardware_db
from calculators.facts import Fact, accelerator_figures, fact_of, model_figures
from calculators.facts import ShownFormula as Shown
from calculators.machine import assumptions_of, compute_dtype_of, machine_of
from calculators.outputs import readable
from calculators.service_time import prefill_load
from calculators.step_load import attended_entries
from calculators.ttft.compute import TtftInputs, TtftResult
from formulas import step_time as step
from formulas.queueing import md1


def service_formulas(inputs: TtftInputs) -> list[Shown]:
    """Return the formulas of the service time; none if it was typed in."""
    if inputs.service_ms is not None:
        return []
    machine, load = machine_of(inputs), prefill_load(inputs, inputs.prompt_tokens)
    time = step.step_time(load, machine)
    shown = [
        *_work(inputs),
        Shown(
            step.COMPUTE_TIME,
            {
                "flops": load.flops,
                "compute_efficiency": machine.compute_efficiency,
                "peak_flops": machine.peak_flops,
                "tp": machine.tp,
            },
        ),
        Shown(
            step.MEMORY_TIME,
            {
                "weight_bytes": load.weight_bytes,
                "kv_bytes": load.kv_bytes,
                "memory_efficiency": machine.memory_efficiency,
                "memory_bandwidth": machine.memory_bandwidth,
                "tp": machine.tp,
                "kv_shards": load.kv_shards,
            },
        ),
    ]
    if machine.link_bytes_s is not None:
        collectives = {
            "layers": load.layers,
            "tp": machine.tp,
            "tokens": load.tokens,
            "hidden": load.hidden,
            "link_efficiency": machine.link_efficiency,
            "link_bytes_s": machine.link_bytes_s,
            "allreduce_latency_s": machine.allreduce_latency_s,
        }
        shown.append(Shown(step.ALLREDUCE_TIME, collectives))
    total = {
        "compute_s": time.compute_s,
        "memory_s": time.memory_s,
        "collectives_s": time.collectives_s,
        "overhead_s": time.overhead_s,
    }
    return [*shown, Shown(step.STEP_TIME, total)]


def _work(inputs: TtftInputs) -> list[Shown]:
    """Return the arithmetic of the prefill: of the matrix products, and of attention for each kind of layer."""
    model = hardware_db.models()[inputs.model]
    remark = "" if assumptions_of(inputs).lm_head_tokens == "every" else "lm_head is computed for the last token alone."
    products = {"active_params": model.parameters.matmul_active, "tokens": inputs.prompt_tokens}
    attention = [
        Shown(
            step.ATTENTION_FLOPS,
            {
                "layers": group.layers,
                "heads": group.heads,
                "qk_head_dim": group.qk_head_dim,
                "v_head_dim": group.v_head_dim,
                "pairs": attended_entries(group, inputs.prompt_tokens, inputs.cached_tokens),
            },
        )
        for group in model.attention_groups
    ]
    return [Shown(step.MATMUL_FLOPS, products, remark), *attention]


def queue_formulas(inputs: TtftInputs, result: TtftResult) -> list[Shown]:
    """Return the formulas of utilization, mean wait and mean TTFT."""
    values = {"rate": inputs.rate, "service_time": result.service_ms / 1e3}
    return [Shown(md1.UTILIZATION, values), Shown(md1.MEAN_WAIT, values), Shown(md1.MEAN_TTFT, values)]


def percentile_formulas(inputs: TtftInputs, result: TtftResult) -> list[Shown]:
    """Return what stands in closed form of the percentile that the target is set on.

    The percentiles of the answer are exact and computed numerically; where the closed form is exact too, it stands
    here, and elsewhere its leading term with its error at the user's own utilization.
    """
    if not result.stable:
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
    assumed = assumptions_of(inputs)
    found = [
        fact_of(hardware_db.models()[inputs.model], "Model", figures=model_figures(inputs)),
        fact_of(
            hardware_db.accelerators()[inputs.accelerator],
            "Accelerator",
            figures=accelerator_figures(inputs, compute_dtype_of(inputs)),
        ),
    ]
    if inputs.tp_link is not None:
        found.append(fact_of(hardware_db.links()[inputs.tp_link], "Link"))
    return [*found, fact_of(assumed, "Step-time assumptions", assumed.accuracy)]
