"""Which tensor and pipeline degrees a model can run at on a chip, and why not at the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import hardware_db
from calculators.outputs import counted, output
from calculators.scenario import Hardware

TENSOR_DEGREES = (1, 2, 3, 4, 6, 8, 12, 16, 32, 64)
PIPELINE_DEGREES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16)
"""Degrees that are looked at one by one."""

VOCABULARY_MULTIPLE = 64
"""Engines pad the vocabulary to a multiple of this for each rank (Megatron-LM's ``make-vocab-size-divisible-by``)."""


@dataclass(frozen=True)
class Degree:
    """One degree: allowed, or refused for the reasons given; notes say what it costs."""

    way: str = output("Way", "", "tensor or pipeline")
    degree: int = output("Degree")
    allowed: bool = output("Allowed")
    reasons: tuple[str, ...] = output("Why not")
    notes: tuple[str, ...] = output("Notes")
    fits: bool = output("Weights fit")


def tensor_degrees(inputs: Hardware, degrees: Iterable[int] = TENSOR_DEGREES) -> list[Degree]:
    """Return each tensor parallel degree with the reasons for which it is refused."""
    return [_degree("tensor", n, inputs, _TENSOR_RULES, _TENSOR_NOTES) for n in degrees]


def pipeline_degrees(inputs: Hardware, degrees: Iterable[int] = PIPELINE_DEGREES) -> list[Degree]:
    """Return each pipeline degree with the reasons for which it is refused."""
    return [_degree("pipeline", n, inputs, _PIPELINE_RULES, _PIPELINE_NOTES) for n in degrees]


def tensor_obstacles(inputs: Hardware, n: int) -> tuple[str, ...]:
    """Return what the model or the link says against a tensor parallel degree; memory, which stages share, aside."""
    model = hardware_db.models()[inputs.model]
    return tuple(sentence for rule in _TENSOR_RULES if rule is not _memory and (sentence := rule(model, inputs, n)))


Rule = Callable[[hardware_db.Model, Hardware, int], str]


def _degree(way: str, n: int, inputs: Hardware, rules: tuple[Rule, ...], notes: tuple[Rule, ...]) -> Degree:
    model = hardware_db.models()[inputs.model]
    reasons = tuple(sentence for rule in rules if (sentence := rule(model, inputs, n)))
    said = () if reasons else tuple(sentence for note in notes if (sentence := note(model, inputs, n)))
    return Degree(way, n, not reasons, reasons, said, fits=not _memory(model, inputs, n))


def _query_heads(model: hardware_db.Model, _: Hardware, n: int) -> str:
    return f"{n} does not divide the {model.heads} query heads" if model.heads % n else ""


def _kv_heads(model: hardware_db.Model, _: Hardware, n: int) -> str:
    counts = sorted({group.kv_heads for group in model.attention_groups if not _is_latent(model)})
    bad = [count for count in counts if count % n and n % count]
    return f"{n} neither divides the {bad[0]} KV heads nor is divided by them" if bad else ""


def _ffn_width(model: hardware_db.Model, _: Hardware, n: int) -> str:
    widths = {"dense FFN": model.ffn_width, "expert": model.moe.expert_width if model.moe else None}
    if model.moe and model.experts % n == 0:
        widths.pop("expert")  # whole experts are dealt out instead of split
    bad = [
        f"{n} does not divide the {name}'s width of {width}" for name, width in widths.items() if width and width % n
    ]
    return bad[0] if bad else ""


def _scale_up(_: hardware_db.Model, inputs: Hardware, n: int) -> str:
    chip = hardware_db.accelerators()[inputs.accelerator]
    if n == 1 or getattr(inputs, "tp_link", None) is not None:
        return ""
    if chip.scale_up_gb_s is None:
        return f"{chip.name} has no scale-up link to carry the all-reduces"
    if chip.scale_up_domain is not None and n > chip.scale_up_domain:
        return f"the scale-up link of {chip.name} joins {chip.scale_up_domain}"
    return ""


def _memory(model: hardware_db.Model, inputs: Hardware, n: int) -> str:
    present = hardware_db.accelerators()[inputs.accelerator].memory_bytes
    needed = model.weight_bytes(inputs.weight_dtype) / n
    if needed <= present:
        return ""
    return f"{needed / 1e9:.1f} GB of weights on each, and {inputs.accelerator} has {present / 1e9:.1f} GB"


def _stages(model: hardware_db.Model, _: Hardware, n: int) -> str:
    return f"{counted(n, 'stage')}, and the model has {counted(model.layers, 'layer')}" if n > model.layers else ""


def _replicated_kv(model: hardware_db.Model, _: Hardware, n: int) -> str:
    if n == 1:
        return ""
    if _is_latent(model):
        return "every rank holds the whole latent cache"
    shards = model.kv_shards(n)
    return f"{counted(shards, 'KV head')}: each is held by {counted(n // shards, 'rank')}" if shards < n else ""


def _padded_vocabulary(model: hardware_db.Model, _: Hardware, n: int) -> str:
    rest = model.vocab % (VOCABULARY_MULTIPLE * n)
    return f"the vocabulary is padded by {counted(VOCABULARY_MULTIPLE * n - rest, 'row')}" if n > 1 and rest else ""


def _uneven_layers(model: hardware_db.Model, _: Hardware, n: int) -> str:
    short, rest = divmod(model.layers, n)
    return (
        f"uneven: {counted(rest, 'stage')} of {counted(short + 1, 'layer')} and {n - rest} of {short}" if rest else ""
    )


def _is_latent(model: hardware_db.Model) -> bool:
    return model.mla is not None or model.shared_latent is not None


_TENSOR_RULES: tuple[Rule, ...] = (_query_heads, _kv_heads, _ffn_width, _scale_up, _memory)
_TENSOR_NOTES: tuple[Rule, ...] = (_replicated_kv, _padded_vocabulary)
_PIPELINE_RULES: tuple[Rule, ...] = (_stages, _memory)
_PIPELINE_NOTES: tuple[Rule, ...] = (_uneven_layers,)
