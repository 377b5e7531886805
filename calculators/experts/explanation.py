"""What makes the answer checkable: its formulas with the user's numbers, and the facts it rests on."""

from __future__ import annotations

import hardware_db
from calculators.experts.compute import SHARE, ExpertsInputs, ExpertsResult, parameter_values
from calculators.experts.ranks import Ranks, exchange_values
from calculators.experts.routing import Routing
from calculators.experts.steps import ridge_values
from calculators.facts import Fact, ShownFormula, accelerator_figures, fact_of
from calculators.machine import assumptions_of, compute_dtype_of
from calculators.outputs import readable
from formulas import experts as forms


def formulas(inputs: ExpertsInputs, result: ExpertsResult, routing: Routing | None) -> list[ShownFormula]:
    """Return the formulas of the counts, the threshold, the parameters and the ranks."""
    if routing is None:
        return []
    counts = {"experts": routing.experts, "experts_per_token": routing.chosen}
    step = counts | {"tokens": result.tokens}
    uneven = "" if routing.even else _uneven(result)
    shown = [ShownFormula(forms.DISTINCT_EXPERTS, step, uneven)]
    if routing.even:
        shown += [
            ShownFormula(forms.DISTINCT_VARIANCE, step, _spread(result)),
            ShownFormula(forms.RATIO_TO_ONE_TOKEN, step),
            ShownFormula(forms.TOKENS_FOR_COVERAGE, counts | {"coverage": SHARE}, _whole(result)),
            ShownFormula(forms.TOKENS_PER_EXPERT, step),
        ]
    if routing.recorded:
        shown += _costs(inputs, result, routing)
    if result.ranks:
        shown += _ranks(inputs, result.tokens, result.ranks, routing)
    return shown


def _costs(inputs: ExpertsInputs, result: ExpertsResult, routing: Routing) -> list[ShownFormula]:
    ridge = forms.RIDGE_TOKENS(**ridge_values(inputs))
    counts = {"experts": routing.experts, "experts_per_token": routing.chosen}
    count = hardware_db.models()[inputs.model].parameters
    return [
        ShownFormula(forms.RIDGE_TOKENS, ridge_values(inputs)),
        ShownFormula(
            forms.CRITICAL_BATCH,
            {"ridge_tokens": ridge} | counts,
            f"With the experts that are touched, by root finding: {readable(result.reached_critical_batch)} tokens; at the chip's "
            f"peaks, with both efficiencies at 1, {readable(result.critical_batch)}.",
        ),
        ShownFormula(
            forms.EFFECTIVE_PARAMETERS,
            parameter_values(inputs) | {"coverage": result.coverage or 0.0},
            _bytes(inputs, result),
        ),
        ShownFormula(
            forms.EQUIVALENT_PARAMETERS, {"active_params": float(count.active), "total_params": float(count.total)}
        ),
    ]


def _ranks(inputs: ExpertsInputs, tokens: int, ranks: Ranks, routing: Routing) -> list[ShownFormula]:
    values: dict[str, float] = {"ranks": ranks.ranks, "experts_per_token": routing.chosen, "tokens": tokens}
    shown = [ShownFormula(forms.RANK_LOAD, values)]
    if routing.even:
        counted = values | {"experts": routing.experts}
        shown = [ShownFormula(forms.DISTINCT_ON_RANK, counted), *shown, ShownFormula(forms.RANK_LOAD_VARIANCE, counted)]
    if routing.recorded:
        exchange = exchange_values(inputs, tokens, ranks.ranks, ranks.ranks_visited)
        shown.append(ShownFormula(forms.EXCHANGE_BYTES, exchange))
    return shown


def _uneven(result: ExpertsResult) -> str:
    return (
        f"With the popularities given it is $\\sum_i 1 - (1 - p_i)^t$ = **{readable(result.distinct_experts)}**, where $p_i$ is "
        "the probability that a token chooses expert i, by quadrature (*Check by simulation* shows them)."
    )


def _spread(result: ExpertsResult) -> str:
    if not result.distinct_experts_sd:
        return "Here there is nothing to spread: what remains above is rounding."
    return f"Its root, the standard deviation, is {readable(result.distinct_experts_sd)}."


def _whole(result: ExpertsResult) -> str:
    return f"In whole tokens: {readable(result.tokens_for_95_percent)}."


def _bytes(inputs: ExpertsInputs, result: ExpertsResult) -> str:
    """Return the bytes of the experts as a product that a person can follow, in Markdown."""
    model = hardware_db.models()[inputs.model]
    one, stored = model.parameters.one_expert, hardware_db.FORMATS[inputs.weight_dtype].expert_bytes
    return (
        f"Bytes of the experts: {model.moe_layers} layers × {readable(result.distinct_experts)} experts × {one:,} parameters × "
        f"{stored:g} B = {readable(result.expert_bytes_per_step)} B."
    )


def facts(inputs: ExpertsInputs, routing: Routing | None) -> list[Fact]:
    """Return the records that the answer rests on."""
    if routing is not None and not routing.recorded:
        return []
    model, assumed = hardware_db.models()[inputs.model], assumptions_of(inputs)
    chip = hardware_db.accelerators()[inputs.accelerator]
    return [
        fact_of(model, "Model", figures=_model_figures(model)),
        fact_of(chip, "Accelerator", figures=accelerator_figures(inputs, compute_dtype_of(inputs))),
        fact_of(assumed, "Step-time assumptions", assumed.accuracy),
    ]


def _model_figures(model: hardware_db.Model) -> dict[str, str]:
    moe = model.moe
    if moe is None:
        return {"parameters": f"{model.parameters.total / 1e9:.4g} billion, all of them for each token"}
    dense = f"; the dense FFN's is {model.ffn_width:,}" if model.ffn_width else ""
    first = f", the first {moe.first_dense_layers} dense" if moe.first_dense_layers else ""
    return {
        "routed experts": f"{moe.experts} in a layer, {moe.experts_per_token} for each token",
        "shared experts": f"{moe.shared_experts}",
        "width of an expert": f"{moe.expert_width:,}{dense}",
        "layers": f"{moe.moe_layers} of {model.layers} with experts{first}",
        "one expert": f"{model.parameters.one_expert:,} parameters in a layer",
        "parameters": f"{model.parameters.total / 1e9:.4g} billion, {model.parameters.active / 1e9:.4g} billion active",
    }
