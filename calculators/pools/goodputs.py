"""What one instance of each kind carries within its targets: typed in, or from the closed forms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeVar

from calculators.fleet import instances_for
from calculators.inputs import InputError, InputsError, part_of
from calculators.pools.inputs import PoolsInputs
from calculators.systems import Disaggregated, PrefillFirst, ServingInputs, fewest_decode, fewest_prefill, fewest_sets

R = TypeVar("R")

PREFILL, DECODE, COLOCATED = "prefill", "decode", "colocated"
"""The kinds of instances, as the keys of their goodputs begin."""


@dataclass(frozen=True)
class Goodputs:
    """Highest rates [requests/s] of one instance within its targets; ``None`` where no rate is.

    Attributes
    ----------
    prefill, decode, colocated
        Of a prefill instance (TTFT), of a decode instance (TPOT), of one that does both, prompts first (both).
    """

    prefill: float | None
    decode: float | None
    colocated: float | None


def prefill_side(inputs: PoolsInputs, instances: int = 1) -> Disaggregated:
    """Return the pair of pools on the prefill side's accelerators, with so many prefill instances."""
    return Disaggregated(part_of(ServingInputs, inputs), prefill_instances=instances, routing=inputs.routing)


def decode_side(inputs: PoolsInputs, instances: int = 1) -> Disaggregated:
    """Return the pair of pools on the decode side's accelerators, with so many decode instances."""
    own = {"accelerator": inputs.decode_accelerator or inputs.accelerator, "tp": inputs.decode_tp or inputs.tp}
    return Disaggregated(part_of(ServingInputs, inputs, **own), decode_instances=instances, routing=inputs.routing)


def colocated_side(inputs: PoolsInputs, instances: int = 1) -> PrefillFirst:
    """Return one of so many instances of the prefill side's size that do both, prompts first."""
    return PrefillFirst(part_of(ServingInputs, inputs), split=instances, routing=inputs.routing)


def goodput_of(inputs: PoolsInputs, kind: str, instances: int = 1) -> float | None:
    """Return what one of so many instances of a kind carries [requests/s]: typed in, else computed, from what it needs alone.

    Raises
    ------
    InputsError
        If it is computed, and the accelerator lacks the data type or the link that it needs.
    """
    typed: float | None = getattr(inputs, f"{kind}_goodput")
    if typed is not None:
        return typed
    if kind == PREFILL:
        return prefill_side(inputs, instances).prefill_goodput(inputs.ttft_slo_ms, inputs.attainment)
    if kind == DECODE:
        return _named(
            inputs, lambda: decode_side(inputs, instances).decode_goodput(inputs.tpot_slo_ms, inputs.attainment)
        )
    system = colocated_side(inputs, instances)
    return system.goodput(inputs) if system.pool.serves else None


def fewest_of(inputs: PoolsInputs, kind: str, rate: float) -> int | None:
    """Return the fewest instances of a kind that carry a rate [requests/s], ``None`` where no number does.

    Raises
    ------
    InputsError
        As for :func:`goodput_of`.
    """
    typed: float | None = getattr(inputs, f"{kind}_goodput")
    if typed is not None:
        return instances_for(rate, typed)
    if kind == PREFILL:
        return fewest_prefill(prefill_side(inputs), rate, inputs)
    if kind == DECODE:
        return _named(inputs, lambda: fewest_decode(decode_side(inputs), rate, inputs))
    return fewest_sets(lambda sets: colocated_side(inputs, sets), rate, inputs)


def _named(inputs: PoolsInputs, function: Callable[[], R]) -> R:
    """Call a function of the decode side; what it refuses of the tensor degree is said of its own, where it has one."""
    try:
        return function()
    except InputsError as refused:
        if inputs.decode_tp is None:
            raise
        own = [
            InputError("decode_tp", each.value, each.sentence) if each.name == "tp" else each for each in refused.errors
        ]
        raise InputsError(own) from None


def shifted(inputs: PoolsInputs, instances: tuple[int, int], prompt: float, output: float) -> Goodputs:
    """Return the goodputs of so many instances of both sides with lengths times so much; typed ones change as computed ones do.

    Colocated serving is left out, as nobody asks for it: ``None``.
    """
    prompts = replace(inputs, prompt_tokens=max(1, round(prompt * inputs.prompt_tokens)))
    both = replace(prompts, output_tokens=max(1, round(output * inputs.output_tokens)))
    return Goodputs(
        prefill=_shifted(inputs, prompts, PREFILL, instances[0]),
        decode=_shifted(inputs, both, DECODE, instances[1]),
        colocated=None,
    )


def _shifted(inputs: PoolsInputs, then: PoolsInputs, kind: str, instances: int) -> float | None:
    computed = _computed(then, kind, instances)
    typed: float | None = getattr(inputs, f"{kind}_goodput")
    if typed is None or computed is None:
        return computed
    now = _computed(inputs, kind, instances)
    return typed * computed / now if now else None


@lru_cache(maxsize=256)  # prompts of one length are asked for with outputs of many
def _computed(inputs: PoolsInputs, kind: str, instances: int) -> float | None:
    return goodput_of(replace(inputs, prefill_goodput=None, decode_goodput=None), kind, instances)
