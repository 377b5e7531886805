"""Inputs to result: what a round of speculative decoding gives and costs, and the best draft.

Lecture 8.2 and 8.3; Leviathan et al. (arXiv 2211.17192). No Streamlit, no Plotly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import hardware_db
from calculators.inputs import InputsError
from calculators.outputs import counted, output, readable, short
from calculators.remarks import chip_and_model_remarks
from calculators.speculative.accepted import Acceptance, acceptance_of
from calculators.speculative.costs import (
    Array,
    Costs,
    Pair,
    break_even_batch,
    costs_of,
    next_paying_batch,
    pair_of,
    speedups,
)
from calculators.speculative.given import LONGEST, SpeculativeInputs
from calculators.speculative.machines import Side, memory_left, placement
from formulas import speculative as forms
from formulas.closed_form import DomainError

__all__ = ["DraftChip", "SpeculativeInputs", "SpeculativeResult", "compare_chips", "compute"]


@dataclass(frozen=True, kw_only=True)
class SpeculativeResult:
    """The answer. What needs hardware is ``None`` where both costs are typed in."""

    accepted_tokens: float = output("Accepted drafts", "tokens", "In a round, without the token that the target adds")
    tokens_per_round: float = output("Tokens per round", "tokens", "With the token that the target adds (bonus token)")
    speedup: float = output("Speedup", "", "Tokens per second over plain decoding")
    optimal_draft_tokens: int = output("Best draft", "tokens", "0 where plain decoding is at least as fast")
    optimal_speedup: float = output("Speedup of the best draft")
    operations_ratio: float = output("Arithmetic per token", "", "Relative to plain decoding")
    draft_cost: float = output("Draft cost", "plain steps", "To draft one token")
    verify_cost: float = output("Verify cost", "plain steps", "With the round trip to the draft's chips")
    round_cost: float = output("Round", "plain steps")
    speedup_low: float | None = output("Speedup, low", "", f"If independent acceptance errs by {forms.IID_ERROR:.0%}")
    speedup_high: float | None = output("Speedup, high", "", f"If independent acceptance errs by {forms.IID_ERROR:.0%}")
    break_even_acceptance: float | None = output("Pays from an acceptance of", "", "None if no acceptance is enough")
    independent_acceptance: float = output(
        "Independent acceptance", "", "As typed, or the best fit to what was measured"
    )
    fit_rms_tokens: float | None = output("Misfit of the best fit", "tokens", "Root mean square over the lengths")
    fit_worst: float | None = output("Largest misfit", "", "Predicted over measured tokens, less 1")
    fit_worst_at: int | None = output("at a draft of", "tokens")
    independent_tokens_per_round: float = output("Tokens per round if independent", "tokens", "With the bonus token")
    independent_speedup: float = output("Speedup if independent")
    target_step_ms: float | None = output("Plain decode step", "ms")
    draft_step_ms: float | None = output("Draft step", "ms")
    verify_step_ms: float | None = output(
        "Verification", "ms", "One step of the target over the draft and one more token"
    )
    link_ms: float | None = output("Round trip to the draft", "ms")
    round_ms: float | None = output("Round", "ms")
    tokens_per_second_per_user: float | None = output("For each user", "tokens/s")
    plain_tokens_per_second_per_user: float | None = output("For each user, plain", "tokens/s")
    tokens_per_second_per_chip: float | None = output("For each chip", "tokens/s", "The draft's own chips counted too")
    plain_tokens_per_second_per_chip: float | None = output("For each chip, plain", "tokens/s")
    tokens_per_second_per_kw: float | None = output(
        "For each kilowatt", "tokens/s", "At the rated power; None if unknown"
    )
    plain_tokens_per_second_per_kw: float | None = output("For each kilowatt, plain", "tokens/s")
    break_even_batch: int | None = output("Stops paying at a batch of", "sequences", "None if it pays at every batch")
    next_paying_batch: int | None = output(
        "Pays again at a batch of",
        "sequences",
        "Where no draft pays at the batch given: the next larger one at which some does",
    )
    largest_batch: int | None = output("Sequences that fit", "sequences", "On the target's chips, at this context")
    target_chips: int | None = output("Chips of the target")
    draft_chips: int | None = output("Chips of the draft", "", "0 where it runs on the target's")
    verdict: str = output("Verdict", "", "pays, other_length or plain_is_faster")
    warnings: tuple[str, ...] = ()


def compute(inputs: SpeculativeInputs) -> SpeculativeResult:
    """Return what a round gives and costs, the best draft, and what a user and a chip get.

    Raises
    ------
    InputsError
        If measured acceptance cannot be read, a chip cannot compute with a format, or nothing joins so many chips.
    """
    acceptance, pair = acceptance_of(inputs), pair_of(inputs)
    costs = costs_of(inputs, pair)
    gain = speedups(acceptance, costs)
    length = inputs.draft_tokens
    best, best_speedup, endless = _best(inputs, acceptance, costs, gain)
    speedup, round_cost = float(gain[length]), float(costs.round(length))
    alone = forms.tokens_per_round(acceptance.independent, length)
    fit, hardware = acceptance.fit, _on_hardware(inputs, acceptance, pair, costs)
    if pair is not None and not best and speedup <= 1:
        hardware["next_paying_batch"] = next_paying_batch(pair, acceptance, inputs.batch)
    return SpeculativeResult(
        accepted_tokens=float(acceptance.tokens[length]) - 1.0,
        tokens_per_round=float(acceptance.tokens[length]),
        speedup=speedup,
        optimal_draft_tokens=best,
        optimal_speedup=best_speedup,
        operations_ratio=_operations(inputs, acceptance, pair),
        draft_cost=costs.draft,
        verify_cost=float(costs.verify[length]),
        round_cost=round_cost,
        speedup_low=None if fit else speedup * (1 - forms.IID_ERROR),
        speedup_high=None if fit else speedup * (1 + forms.IID_ERROR),
        break_even_acceptance=forms.break_even_acceptance(length, costs.draft, float(costs.verify[length])),
        independent_acceptance=acceptance.independent,
        fit_rms_tokens=fit.rms if fit else None,
        fit_worst=fit.worst if fit else None,
        fit_worst_at=fit.worst_at if fit else None,
        independent_tokens_per_round=alone,
        independent_speedup=alone / round_cost,
        **hardware,
        verdict="pays" if speedup > 1 else "other_length" if best else "plain_is_faster",
        warnings=(
            *_said_of_acceptance(inputs, acceptance, endless),
            *_said_of_hardware(inputs, pair, hardware["largest_batch"]),
        ),
    )


def _best(inputs: SpeculativeInputs, acceptance: Acceptance, costs: Costs, gain: Array) -> tuple[int, float, bool]:
    """Return the best length, its speedup, and whether a still longer draft would be better."""
    if inputs.typed and acceptance.kind == "one":
        alpha, cost, verify = inputs.acceptance, costs.draft, float(costs.verify[0])
        try:
            best = forms.optimal_draft_tokens(alpha, cost, verify)
            return best, forms.optimal_speedup(alpha, cost, verify), False
        except DomainError:
            best = forms.optimal_draft_tokens(alpha, cost, verify, LONGEST)
            return best, forms.optimal_speedup(alpha, cost, verify, LONGEST), True
    measured = gain[: acceptance.measured + 1]
    best = forms.best_length(measured)
    return best, float(measured[best]), best == acceptance.measured


def _operations(inputs: SpeculativeInputs, acceptance: Acceptance, pair: Pair | None) -> float:
    """Return the arithmetic of a token; the draft's share by parameters, or by its cost where nothing else is known."""
    share = draft_operations(inputs, pair)
    length = inputs.draft_tokens
    return float((length * share + length + 1) / acceptance.tokens[length])


def draft_operations(inputs: SpeculativeInputs, pair: Pair | None) -> float:
    """Return the arithmetic of a drafted token relative to one of the target's."""
    if pair is None:
        return inputs.draft_cost or 0.0
    drafts = pair.draft.size or pair.draft.model.parameters.matmul_active
    return drafts / pair.target.model.parameters.matmul_active


_NEEDS_HARDWARE = (
    "target_step_ms", "draft_step_ms", "verify_step_ms", "link_ms", "round_ms", "tokens_per_second_per_user",
    "plain_tokens_per_second_per_user", "tokens_per_second_per_chip", "plain_tokens_per_second_per_chip",
    "tokens_per_second_per_kw", "plain_tokens_per_second_per_kw", "break_even_batch", "next_paying_batch", "largest_batch", "target_chips",
    "draft_chips",
)  # fmt: skip


def _on_hardware(inputs: SpeculativeInputs, acceptance: Acceptance, pair: Pair | None, costs: Costs) -> dict[str, Any]:
    if pair is None or costs.plain_s is None:
        return dict.fromkeys(_NEEDS_HARDWARE)
    plain_s, length = costs.plain_s, inputs.draft_tokens
    round_s = plain_s * float(costs.round(length))
    user, plain_user = float(acceptance.tokens[length]) / round_s, 1.0 / plain_s
    apart = inputs.draft_accelerator is not None
    chips, drafts = pair.target.machine.tp, pair.draft.machine.tp if apart else 0
    power, plain_power = _kilowatts(pair, apart), _kilowatts(pair, False)
    return {
        "target_step_ms": 1e3 * plain_s,
        "draft_step_ms": 1e3 * plain_s * costs.draft,
        "verify_step_ms": 1e3 * (plain_s * float(costs.verify[length]) - costs.link_in_verify_s),
        "link_ms": 1e3 * costs.link_in_verify_s,
        "round_ms": 1e3 * round_s,
        "tokens_per_second_per_user": user,
        "plain_tokens_per_second_per_user": plain_user,
        "tokens_per_second_per_chip": inputs.batch * user / (chips + drafts),
        "plain_tokens_per_second_per_chip": inputs.batch * plain_user / chips,
        "tokens_per_second_per_kw": inputs.batch * user / power if power else None,
        "plain_tokens_per_second_per_kw": inputs.batch * plain_user / plain_power if plain_power else None,
        "break_even_batch": break_even_batch(pair, acceptance),
        "next_paying_batch": None,
        "largest_batch": _largest_batch(inputs, pair, apart),
        "target_chips": chips,
        "draft_chips": drafts,
    }


def _kilowatts(pair: Pair, with_draft: bool) -> float | None:
    """Return the rated power of the chips [kW], or None where it is not known."""
    sides = [pair.target, pair.draft] if with_draft else [pair.target]
    watts = [side.chip.tdp_w and side.chip.tdp_w * side.machine.tp for side in sides]
    return sum(filter(None, watts)) / 1e3 if all(watts) else None


def _largest_batch(inputs: SpeculativeInputs, pair: Pair, apart: bool) -> int | None:
    left, each = memory_left(pair.target, inputs), pair.target.cache_per_chip
    if not apart:
        left, each = left - pair.draft.weights_per_chip, each + pair.draft.cache_per_chip
    return math.floor(left / each) if left >= each else None


def _said_of_acceptance(inputs: SpeculativeInputs, acceptance: Acceptance, endless: bool) -> list[str]:
    said = []
    if inputs.draft_tokens > acceptance.measured:
        said.append(
            f"Acceptance is known for {counted(acceptance.measured, 'position')}; beyond, the last rate is used for a draft of "
            f"{inputs.draft_tokens}. The best length is looked for among those known."
        )
    if endless and acceptance.kind == "one":
        said.append(f"Longer is never worse here; {LONGEST} tokens is the longest draft that is looked at.")
    if acceptance.adjusted:
        said.append(
            f"No round gives these lengths exactly ({_listed(acceptance.adjusted)}): each further position adds less than the "
            "one before it. The nearest possible curve is used."
        )
    return said


def _said_of_hardware(inputs: SpeculativeInputs, pair: Pair | None, fit: int | None) -> list[str]:
    if pair is None:
        return []
    said = [sentence for side in (pair.target, pair.draft) for sentence in _said_of_side(inputs, side)]
    if fit is not None and inputs.batch > fit:
        said.append(
            f"Does not fit: {counted(inputs.batch, 'sequence')} of {counted(inputs.context, 'token')}, and {fit:,} fit on the target's chips. The "
            "times are what the arithmetic gives if they did; use more chips (target_tp) or a smaller batch."
        )
    target, draft = pair.target.model, pair.draft.model
    if target.vocab != draft.vocab and inputs.draft_size_b is None:
        said.append(
            f"{draft.id} has a vocabulary of {draft.vocab:,} and {target.id} one of {target.vocab:,}: the target cannot check "
            "its tokens one by one. Choose a draft of the same family, or type the parameters of one trained for it."
        )
    if inputs.draft_accelerator and inputs.draft_round_trip_us is None:
        link = hardware_db.links()[inputs.draft_link]
        if link.latency_s is None:
            said.append(f"The latency of {link.name} is not known; the round trip is taken to cost nothing.")
    return said


def _said_of_side(inputs: SpeculativeInputs, side: Side) -> list[str]:
    said, chips = [], f"{side.machine.tp} × {side.chip.id}"
    batch = np.array([float(inputs.batch)])
    place = placement(side, batch)
    weights_gb, cache_gb = side.weights_per_chip / 1e9, inputs.batch * side.cache_per_chip / 1e9
    if not place.fits[0]:
        said.append(
            f"Does not fit: on each of {chips} the {side.name}'s weights take {short(weights_gb, 'GB')} and the cache of "
            f"{counted(inputs.batch, 'sequence')} {short(cache_gb, 'GB')}. The times are what the arithmetic gives if it did; use more "
            f"of them ({side.name}_tp), a smaller format, or a smaller batch."
        )
    elif side.chip.memory_tiers:
        slow = [
            f"weights ({short(weights_gb, 'GB')}) from {place.weights}",
            f"cache ({short(cache_gb, 'GB')}) from {place.cache}",
        ]
        said.append(f"On each of {chips} the {side.name} reads its {' and its '.join(slow)}.")
    said += chip_and_model_remarks(side.machine, side.context)
    native = hardware_db.FORMATS[side.machine.weight_dtype].native_compute
    if side.machine.compute_dtype not in native:
        said.append(
            f"{side.chip.name} unpacks {side.machine.weight_dtype} and computes in {side.machine.compute_dtype}."
        )
    return said


def _listed(lengths: tuple[int, ...]) -> str:
    return "draft of " + ", ".join(map(readable, lengths))


@dataclass(frozen=True)
class DraftChip:
    """The draft on one kind of chip."""

    chip: str = output("Draft on")
    chips: int = output("Chips", "", "0 where it takes turns with the target")
    draft_ms: float = output("Draft step", "ms")
    draft_cost: float = output("Draft cost", "plain steps")
    length: int = output("Best draft", "tokens")
    speedup: float = output("Speedup")
    per_user: float = output("For each user", "tokens/s")
    per_kw: float | None = output("For each kilowatt", "tokens/s")
    weights_in: str = output("Weights in")
    cache_in: str = output("Cache in")


def compare_chips(inputs: SpeculativeInputs) -> list[DraftChip]:
    """Return the draft at its best length on the target's own chips, then on every kind that holds it, the fastest first."""
    found = []
    for name in (None, *hardware_db.accelerators()):
        try:
            row = _on_chip(replace(inputs, draft_accelerator=name, draft_cost=None, draft_dtype=None, draft_tp=None))
        except InputsError:  # it lacks the data type, or nothing joins so many of it
            continue
        found += [row] if row else []
    return sorted(found, key=lambda row: (row.chips > 0, -row.speedup))


def _on_chip(inputs: SpeculativeInputs) -> DraftChip | None:
    pair = pair_of(inputs)
    assert pair is not None  # noqa: S101 - the draft's cost is not typed in
    place = placement(pair.draft, np.array([float(inputs.batch)]))
    if not place.fits[0]:
        return None
    acceptance, costs = acceptance_of(inputs), costs_of(inputs, pair)
    best, speedup, _ = _best(inputs, acceptance, costs, speedups(acceptance, costs))
    plain_s = costs.plain_s or 0.0
    power = _kilowatts(pair, inputs.draft_accelerator is not None)
    return DraftChip(
        chip=inputs.draft_accelerator or "the target's own",
        chips=pair.draft.machine.tp if inputs.draft_accelerator else 0,
        draft_ms=1e3 * plain_s * costs.draft,
        draft_cost=costs.draft,
        length=best,
        speedup=speedup,
        per_user=speedup / plain_s,
        per_kw=inputs.batch * speedup / plain_s / power if power else None,
        weights_in=place.weights,
        cache_in=place.cache,
    )
