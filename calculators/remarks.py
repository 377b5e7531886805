"""What a person should know about the hardware and the model before using a number that rests on them."""

from __future__ import annotations

import math

import hardware_db
from calculators.scenario import Hardware, Instance


def hardware_remarks(inputs: Instance, context_tokens: float) -> tuple[str, ...]:
    """Return the sentences that apply to an instance whose sequences reach a context of so many tokens."""
    found = (
        _tier_remark(inputs),
        _announced_remark(inputs),
        _context_remark(inputs, context_tokens),
        _heads_remark(inputs),
    )
    return tuple(filter(None, found))


def _tier_remark(inputs: Hardware) -> str:
    accelerator = hardware_db.accelerators()[inputs.accelerator]
    if not accelerator.memory_tiers:
        return ""
    return (
        f"{accelerator.name} has several memories; the time uses the one of {accelerator.memory_bytes / 1e9:g} GB at "
        f"{accelerator.memory_bandwidth_gb_s:,g} GB/s."
    )


def _announced_remark(inputs: Hardware) -> str:
    accelerator = hardware_db.accelerators()[inputs.accelerator]
    if not accelerator.announced:
        return ""
    return f"{accelerator.name} is announced; its figures rest on announcements, not on measurements."


def _context_remark(inputs: Hardware, context_tokens: float) -> str:
    model = hardware_db.models()[inputs.model]
    if context_tokens <= model.max_context:
        return ""
    return f"{model.id} takes at most {model.max_context:,} tokens of context; this is {math.ceil(context_tokens):,}."


def _heads_remark(inputs: Instance) -> str:
    heads = sorted({group.heads for group in hardware_db.models()[inputs.model].attention_groups})
    if not any(count % inputs.tp for count in heads):
        return ""
    return f"tp = {inputs.tp} does not divide the {' and '.join(map(str, heads))} attention heads of {inputs.model}."
