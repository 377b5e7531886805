"""What makes the answer checkable: its formulas with the user's numbers, and the facts it rests on."""

from __future__ import annotations

import hardware_db
from calculators.facts import Fact, ShownFormula, fact_of
from calculators.machine import assumptions_of
from calculators.speculative.accepted import acceptance_of
from calculators.speculative.compute import SpeculativeInputs, SpeculativeResult, draft_operations
from calculators.speculative.costs import Pair
from calculators.speculative.machines import Side, step_parts
from formulas import speculative as forms
from formulas import step_time as step
from formulas.experts import DISTINCT_EXPERTS


def formulas(inputs: SpeculativeInputs, result: SpeculativeResult, pair: Pair | None) -> list[ShownFormula]:
    """Return the formulas of a round, its speedup, the best length, and the steps behind the costs."""
    acceptance = acceptance_of(inputs)
    alpha, remark = acceptance.independent, ""
    if acceptance.kind != "one":
        remark = (
            f"With the one acceptance that fits best. By the measured rates it is {result.tokens_per_round:.6g} tokens, the "
            "sum of the shares of rounds that accept each position, and one."
        )
    return [*_rounds(inputs, result, alpha, remark), *_optimum(result, alpha, pair), *_steps(inputs, pair)]


def _rounds(inputs: SpeculativeInputs, result: SpeculativeResult, alpha: float, remark: str) -> list[ShownFormula]:
    length = {"draft_tokens": inputs.draft_tokens}
    costs = {"draft_cost": result.draft_cost, "verify_cost": result.verify_cost}
    if alpha == 1:
        return [
            ShownFormula(forms.CERTAIN_TOKENS_PER_ROUND, length, remark),
            ShownFormula(forms.CERTAIN_SPEEDUP, length | costs),
        ]
    known = {"acceptance": alpha} | length
    return [
        ShownFormula(forms.ACCEPTED_TOKENS, known),
        ShownFormula(forms.TOKENS_PER_ROUND, known, remark),
        ShownFormula(forms.SPEEDUP, known | costs),
        ShownFormula(forms.BREAK_EVEN_VERIFY_COST, known | {"draft_cost": result.draft_cost}),
        ShownFormula(forms.OPERATIONS_RATIO, known | {"draft_operations": draft_operations(inputs, None)})
        if inputs.typed
        else ShownFormula(forms.OPERATIONS_RATIO, known | {"draft_operations": _share(inputs, result, alpha)}),
    ]


def _share(inputs: SpeculativeInputs, result: SpeculativeResult, alpha: float) -> float:
    """Return the draft's share of the arithmetic, back from the ratio of the answer."""
    del alpha
    gamma = inputs.draft_tokens
    return (result.operations_ratio * result.tokens_per_round - gamma - 1) / gamma


def _optimum(result: SpeculativeResult, alpha: float, pair: Pair | None) -> list[ShownFormula]:
    values = {"acceptance": alpha, "draft_cost": result.draft_cost, "verify_cost": result.verify_cost}
    said = "" if pair is None else (
        "Where every length is verified at the cost of this one. Verification grows with the draft, so the best length "
        f"of the answer, {result.optimal_draft_tokens}, is looked for among all of them."
    )  # fmt: skip
    broken = " ".join(forms.OPTIMAL_DRAFT_TOKENS.violations(**values))
    return [ShownFormula(forms.OPTIMAL_DRAFT_TOKENS, values, f"{broken} {said}".strip())]


def _steps(inputs: SpeculativeInputs, pair: Pair | None) -> list[ShownFormula]:
    if pair is None:
        return []
    shown = [
        _step(pair.target, inputs.batch, 1, "A plain decode step of the target."),
        _step(
            pair.target,
            inputs.batch,
            inputs.draft_tokens + 1,
            "Verification: a step over the draft and one more token.",
        ),
        _step(pair.draft, inputs.batch, 1, "A step of the draft model."),
    ]
    model = pair.target.model
    if model.experts:
        values = {"experts": model.experts, "experts_per_token": model.experts_per_token}
        tokens = inputs.batch * (inputs.draft_tokens + 1)
        remark = "In each layer, by the tokens of a verification; routing is taken as even and independent."
        shown.append(ShownFormula(DISTINCT_EXPERTS, values | {"tokens": tokens}, remark))
    return shown


def _step(side: Side, batch: int, new_tokens: int, remark: str) -> ShownFormula:
    parts = step_parts(side, float(batch), float(new_tokens))
    values = {
        "compute_s": float(parts.compute_s),
        "memory_s": float(parts.weights_s + parts.cache_s),
        "collectives_s": float(parts.collectives_s),
        "overhead_s": float(parts.overhead_s),
    }
    said = (
        f"{remark} Weights {1e3 * float(parts.weights_s):.4g} ms and cache {1e3 * float(parts.cache_s):.4g} ms make up the "
        "memory's time."
    )
    return ShownFormula(step.STEP_TIME, values, said)


def facts(inputs: SpeculativeInputs, pair: Pair | None) -> list[Fact]:
    """Return the records that the answer rests on; none where both costs are typed in."""
    if pair is None:
        return []
    found = []
    for kind, side in (("Target", pair.target), ("Draft", pair.draft)):
        size = side.size or side.model.parameters.total
        figures = {
            "parameters": f"{size / 1e9:.4g} billion",
            "weights": f"{side.weights_per_chip * side.machine.tp / 1e9:.4g} GB in {side.machine.weight_dtype}",
            "cache of a sequence": f"{side.cache_per_chip * side.machine.tp / 1e6:.4g} MB at {side.context:,} tokens, all chips",
        }
        found.append(fact_of(side.model, f"{kind} model", figures=figures))
    for kind, side in (("Target's", pair.target), ("Draft's", pair.draft)):
        if side is pair.target or inputs.draft_accelerator is not None:
            found.append(fact_of(side.chip, f"{kind} accelerator", figures=_chip_figures(side)))
    if inputs.draft_accelerator is not None and inputs.draft_round_trip_us is None:
        link = hardware_db.links()[inputs.draft_link]
        latency = "not known" if link.latency_us is None else f"{link.latency_us:g} µs"
        found.append(fact_of(link, "Link to the draft", figures={"latency": latency}))
    assumed = assumptions_of(inputs)
    return [*found, fact_of(assumed, "Step-time assumptions", assumed.accuracy)]


def _chip_figures(side: Side) -> dict[str, str]:
    chip, dtype = side.chip, side.machine.compute_dtype or ""
    figures = {f"dense {dtype} rate": f"{chip.peak_flops(dtype) / 1e12:.5g} TFLOP/s"}
    memories = [(tier.name, tier.bytes, tier.bandwidth_gb_s) for tier in chip.memory_tiers]
    for name, size, gb_s in memories or [(chip.memory_type, chip.memory_bytes, chip.memory_bandwidth_gb_s)]:
        figures[name] = f"{size / 1e9:.4g} GB" + (f" at {gb_s:,g} GB/s" if gb_s else ", bandwidth not published")
    if chip.tdp_w:
        figures["rated power"] = f"{chip.tdp_w:,g} W"
    return figures
