"""What one instance of each kind carries within its targets: typed in, or from the closed forms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from calculators.inputs import InputError, InputsError, part_of
from calculators.pools.inputs import PoolsInputs
from calculators.systems import Disaggregated, PrefillFirst, ServingInputs


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


def prefill_side(inputs: PoolsInputs) -> Disaggregated:
    """Return the pair of pools on the prefill side's accelerators."""
    return Disaggregated(part_of(ServingInputs, inputs))


def decode_side(inputs: PoolsInputs) -> Disaggregated:
    """Return the pair of pools on the decode side's accelerators."""
    own = {"accelerator": inputs.decode_accelerator or inputs.accelerator, "tp": inputs.decode_tp or inputs.tp}
    return Disaggregated(part_of(ServingInputs, inputs, **own))


def goodputs_of(inputs: PoolsInputs) -> Goodputs:
    """Return what one instance of each kind carries: typed in, else computed, each from what it needs alone.

    Raises
    ------
    InputsError
        If something is computed, and the accelerator lacks the data type or the link that it needs.
    """
    prefill, decode, colocated = inputs.prefill_goodput, inputs.decode_goodput, inputs.colocated_goodput
    targets = (inputs.ttft_slo_ms, inputs.attainment)
    return Goodputs(
        prefill=prefill_side(inputs).prefill_goodput(*targets) if prefill is None else prefill,
        decode=_decode(inputs) if decode is None else decode,
        colocated=_colocated(inputs) if colocated is None else colocated,
    )


def _decode(inputs: PoolsInputs) -> float | None:
    try:
        return decode_side(inputs).decode_goodput(inputs.tpot_slo_ms, inputs.attainment)
    except InputsError as refused:
        if inputs.decode_tp is None:
            raise
        own = [
            InputError("decode_tp", each.value, each.sentence) if each.name == "tp" else each for each in refused.errors
        ]
        raise InputsError(own) from None


def _colocated(inputs: PoolsInputs) -> float | None:
    system = PrefillFirst(part_of(ServingInputs, inputs))
    return system.goodput(inputs) if system.pool.serves else None


def shifted(inputs: PoolsInputs, prompt: float, output: float) -> Goodputs:
    """Return the goodputs of both sides with lengths times so much; typed ones change as computed ones do.

    Colocated serving is left out, as nobody asks for it: ``None``.
    """
    lengths: dict[str, Any] = {
        "prompt_tokens": max(1, round(prompt * inputs.prompt_tokens)),
        "output_tokens": max(1, round(output * inputs.output_tokens)),
    }
    now = _computed(inputs)
    then = _computed(replace(inputs, **lengths))
    return Goodputs(
        prefill=_scaled(inputs.prefill_goodput, now.prefill, then.prefill),
        decode=_scaled(inputs.decode_goodput, now.decode, then.decode),
        colocated=None,
    )


def _computed(inputs: PoolsInputs) -> Goodputs:
    prefill = prefill_side(inputs).prefill_goodput(inputs.ttft_slo_ms, inputs.attainment)
    return Goodputs(prefill, _decode(inputs), None)


def _scaled(typed: float | None, now: float | None, then: float | None) -> float | None:
    if typed is None or then is None:
        return then
    return typed * then / now if now else None
