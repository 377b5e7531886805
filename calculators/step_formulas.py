"""The formulas of one step with the numbers put in, for every page that shows one."""

from __future__ import annotations

import hardware_db
from calculators.facts import ShownFormula
from calculators.machine import MachineInputs, assumptions_of, machine_of
from calculators.step_load import StepContents, attended_entries, step_load
from formulas import step_time as step


def step_formulas(inputs: MachineInputs, contents: StepContents) -> list[ShownFormula]:
    """Return the formulas of a step: its work, arithmetic, memory traffic, all-reduces, and their sum."""
    machine, load = machine_of(inputs), step_load(inputs, contents)
    time = step.step_time(load, machine)
    shown = [
        *_work(inputs, contents),
        ShownFormula(
            step.COMPUTE_TIME,
            {
                "flops": load.flops,
                "compute_efficiency": machine.compute_efficiency,
                "peak_flops": machine.peak_flops,
                "tp": machine.tp,
            },
        ),
        ShownFormula(
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
        shown.append(ShownFormula(step.ALLREDUCE_TIME, collectives))
    total = {
        "compute_s": time.compute_s,
        "memory_s": time.memory_s,
        "collectives_s": time.collectives_s,
        "overhead_s": time.overhead_s,
    }
    return [*shown, ShownFormula(step.STEP_TIME, total)]


def _work(inputs: MachineInputs, contents: StepContents) -> list[ShownFormula]:
    """Return the arithmetic of the step: of the matrix products, and of attention for each kind of layer."""
    model = hardware_db.models()[inputs.model]
    last = contents.prompt_tokens and assumptions_of(inputs).lm_head_tokens == "last"
    remark = "lm_head is computed for the prompt's last token alone." if last else ""
    products = {"active_params": model.parameters.matmul_active, "tokens": contents.tokens}
    shown = [ShownFormula(step.MATMUL_FLOPS, products, remark)]
    for group in model.attention_groups:
        if contents.prompt_tokens:
            pairs = attended_entries(group, contents.prompt_tokens, contents.cached_tokens)
            shown.append(_attention(group, (group.qk_head_dim, group.v_head_dim), pairs))
        if contents.sequences:
            each = attended_entries(group, contents.new_tokens, contents.context_tokens - 0.5)
            shown.append(_attention(group, group.decode_head_dims, contents.sequences * each))
    return shown


def _attention(group: hardware_db.AttentionGroup, widths: tuple[int, int], pairs: float) -> ShownFormula:
    shape = {"layers": group.layers, "heads": group.heads, "qk_head_dim": widths[0], "v_head_dim": widths[1]}
    return ShownFormula(step.ATTENTION_FLOPS, shape | {"pairs": pairs})
