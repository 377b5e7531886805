"""What makes the answer checkable: its formulas with the user's numbers, and the facts it rests on."""

from __future__ import annotations

import hardware_db
from calculators.facts import Fact, ShownFormula, accelerator_figures, fact_of, model_figures
from calculators.kv_cache.compute import KvCacheInputs, KvCacheResult
from calculators.kv_transfer import context_of, link_values, route_of, transfer
from calculators.machine import assumptions_of, compute_dtype_of
from calculators.memory import moved_bytes
from formulas import kv_cache as forms


def formulas(inputs: KvCacheInputs, result: KvCacheResult) -> list[ShownFormula]:
    """Return the formulas of the transfer, the link as a queue, the overlap, the memory and the reuse."""
    route = route_of(inputs)
    values = {name: float(value) for name, value in link_values(inputs, route, context_of(inputs)).items()}
    link_s = transfer(inputs, route, result.prefill_ms).link_ms / 1e3
    queue = {"rate": inputs.rate, "link_time_s": link_s}
    model = hardware_db.models()[inputs.model]
    prefix = moved_bytes(model, inputs.prompt_tokens, inputs.kv_dtype)
    return [
        ShownFormula(forms.TRANSFER_TIME, values | {"latency_s": route.latency_s}, size_remark(inputs, result)),
        ShownFormula(forms.REQUIRED_BANDWIDTH, {"rate": inputs.rate, "kv_bytes": values["kv_bytes"]}),
        ShownFormula(forms.LINK_UTILIZATION, queue),
        ShownFormula(forms.LINK_MEAN_TRANSFER, queue | {"latency_s": route.latency_s}),
        ShownFormula(
            forms.EXPOSED_TIME,
            {
                "link_time_s": link_s,
                "prefill_s": result.prefill_ms / 1e3,
                "layers": model.layers,
                "latency_s": route.latency_s,
            },
        ),
        ShownFormula(forms.FETCH_BREAK_EVEN, {"kv_bytes": float(prefix), "compute_s": result.prefill_ms / 1e3}),
    ]


def size_remark(inputs: KvCacheInputs, result: KvCacheResult) -> str:
    """Return the bytes of the cache as a product that a person can follow, in Markdown."""
    model = hardware_db.models()[inputs.model]
    element = hardware_db.KV_BYTES[inputs.kv_dtype]
    parts = []
    for group in model.attention_groups:
        each = group.cached_elements_per_layer
        kind = "window" if group.window_tokens else "growing"
        tokens = min(context_of(inputs), group.window_tokens or context_of(inputs))
        parts.append(
            f"{group.layers} {kind} layers × {each:,} elements × {element:g} B × {tokens:,} tokens = "
            f"{group.layers * each * element * tokens:,.0f} B"
        )
    if result.state_bytes_per_request:
        parts.append(f"the fixed state of linear layers {result.state_bytes_per_request:,.0f} B")
    return "Size: " + "; ".join(parts) + "."


def facts(inputs: KvCacheInputs) -> list[Fact]:
    """Return the records that the answer rests on."""
    assumed = assumptions_of(inputs)
    found = [fact_of(hardware_db.models()[inputs.model], "Model", figures=model_figures(inputs))]
    if inputs.link_gb_s is None:
        link = hardware_db.links()[inputs.link]
        found.append(fact_of(link, "Link", figures={"one way": f"{link.gb_s:g} GB/s"}))
    if inputs.service_ms is not None:
        return found
    chip = hardware_db.accelerators()[inputs.accelerator]
    figures = accelerator_figures(inputs, compute_dtype_of(inputs))
    return [
        *found,
        fact_of(chip, "Accelerator", figures=figures),
        fact_of(assumed, "Step-time assumptions", assumed.accuracy),
    ]
