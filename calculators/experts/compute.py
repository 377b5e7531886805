"""Inputs to result: the experts that a step touches, what it reads, how long it takes, and when arithmetic binds.

Lecture 8.3 and exercise 8; MoESD (arXiv 2505.19645); MegaScale-Infer (arXiv 2504.02263). No Streamlit, no Plotly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import hardware_db
from calculators.experts.ranks import PLACEMENTS, Ranks, ranks_of
from calculators.experts.routing import Routing, routing_of
from calculators.experts.steps import (
    as_dense,
    context_of,
    critical_tokens,
    expert_bytes,
    load_of,
    sequences_of,
    time_of,
    whole_step_critical_tokens,
)
from calculators.inputs import choice, integer, number, text
from calculators.machine import MachineInputs
from calculators.outputs import output
from calculators.remarks import hardware_remarks
from calculators.scenario import Batch, Output, Prompt, Simulation
from formulas import experts as forms

EXAMPLES = ("mixtral-8x7b", "qwen3-235b-a22b", "deepseek-v3", "kimi-k3")
"""Mixtures that people know, from few experts to many."""

SHARE = 0.95
"""Share of the experts at which nearly all count as touched."""


@dataclass(frozen=True, kw_only=True)
class ExpertsInputs(Simulation, MachineInputs, Batch, Output, Prompt):
    """Who routes how many tokens, over which experts, on what."""

    tokens: int | None = integer(
        "Tokens in the step",
        unit="tokens",
        low=1,
        high=1_000_000,
        default=None,
        step=1,
        symbol="t",
        empty="one for each sequence",
        help="Tokens that are routed together. Leave it empty for decoding: one for each sequence of the batch. More tokens "
        "than sequences verify a draft: each sequence has its share of them.",
    )
    experts: int | None = integer(
        "Experts in a layer",
        low=1,
        high=2048,
        default=None,
        step=8,
        symbol="N",
        empty="from the model",
        help="Routed experts of one layer. Typed in, the page counts experts alone; bytes and times need a model's record.",
    )
    experts_per_token: int | None = integer(
        "Experts for each token",
        low=1,
        high=64,
        default=None,
        step=1,
        symbol="k",
        empty="from the model",
        help="Routed experts that each token visits, shared ones not counted.",
    )
    zipf_exponent: float = number(
        "Popularity: Zipf exponent",
        low=0,
        high=4,
        default=0,
        step=0.1,
        symbol="s",
        help="0: all experts are equally popular. Else the i-th most popular one has the popularity 1/i^s.",
    )
    popularity: str = text(
        "Popularities, typed in",
        help="One number for each expert, with commas; 8x5 stands for eight experts of popularity 5. Empty: by the exponent.",
        longest=6000,
    )
    ep: int = integer(
        "Expert parallel",
        low=1,
        high=2048,
        default=1,
        step=1,
        symbol="r",
        help="Accelerators over which the experts of each layer are dealt out. Tokens are then those of all of them together; "
        "attention is tensor parallel over some and data parallel beyond.",
    )
    placement: str = choice(
        "Experts placed",
        options=PLACEMENTS,
        default="shuffled",
        help="Which experts share a rank: shuffled, as where nobody looked at popularity; balanced by popularity; or in "
        "order of popularity, the worst. Without a difference in popularity it makes none.",
    )


@dataclass(frozen=True, kw_only=True)
class ExpertsResult:
    """The answer. Figures that need an expert are ``None`` for a dense model, those that need a record without one."""

    tokens: int = output("Tokens in the step")
    experts: int | None = output("Experts in a layer", default=None)
    experts_per_token: int | None = output("Experts for each token", default=None)
    distinct_experts: float | None = output("Experts touched", "", "Expected number of different ones", default=None)
    distinct_experts_sd: float | None = output("Spread of that number", "", "Standard deviation", default=None)
    even_distinct_experts: float | None = output("if all were equally popular", default=None)
    ratio_to_one_token: float | None = output("Times one token's", default=None)
    coverage: float | None = output("Share of the experts", default=None)
    tokens_for_95_percent: int | None = output("Tokens that touch 95 %", "tokens", default=None)
    tokens_per_expert: float | None = output("Tokens for each touched expert", "tokens", default=None)
    expert_bytes_per_step: float | None = output(
        "Expert weights read", "B", "Routed experts of all layers", default=None
    )
    weight_bytes_per_step: float | None = output(
        "Weights read", "B", "All of a step, all accelerators together", default=None
    )
    step_ms: float | None = output("Step", "ms", "Of one instance; with expert parallelism, of the group", default=None)
    bound: str | None = output("Bound by", "", "compute or memory", default=None)
    critical_batch: float | None = output(
        "Experts bound by compute from",
        "tokens",
        "At the chip's peaks: the arithmetic of experts takes as long as reading those touched",
        default=None,
    )
    reached_critical_batch: float | None = output(
        "Experts bound by compute with the efficiencies assumed from", "tokens", default=None
    )
    critical_batch_whole_step: float | None = output(
        "Whole step bound by compute from",
        "tokens",
        "Attention, cache and dense weights too; None if never, and for a group",
        default=None,
    )
    total_params_b: float | None = output("Parameters", "1e9", default=None)
    active_params_b: float | None = output("that a token meets", "1e9", "Both vocabulary tables included", default=None)
    effective_params_b: float | None = output(
        "that this step reads", "1e9", "Without the input embedding", default=None
    )
    equivalent_params_b: float | None = output(
        "Dense model of about the same quality",
        "1e9",
        "Rule of thumb: geometric mean of active and total",
        default=None,
    )
    dense_active_step_ms: float | None = output(
        "Step, were it dense with the active size",
        "ms",
        "One FFN as wide as a token's experts; without expert parallelism",
        default=None,
    )
    dense_total_step_ms: float | None = output(
        "Step, were it dense with the total size",
        "ms",
        "One FFN as wide as all experts; without expert parallelism",
        default=None,
    )
    accelerators: int | None = output(
        "Accelerators", "", "Of the instance or the group; attention adds none", default=None
    )
    ranks: Ranks | None = output("Expert parallelism", "", "None for a single rank", default=None)
    warnings: tuple[str, ...] = ()


def compute(inputs: ExpertsInputs) -> ExpertsResult:
    """Return the experts that a step touches and what that costs.

    Raises
    ------
    InputsError
        If the counts do not go together, or the accelerator does not have the data type or the link.
    """
    routing = routing_of(inputs)
    ranks = ranks_of(inputs, routing, inputs.ep) if routing and inputs.ep > 1 else None
    found = (_counts(inputs, routing) if routing else {}) | _costs(inputs, routing, ranks)
    return ExpertsResult(tokens=sequences_of(inputs).tokens, ranks=ranks, warnings=_warnings(inputs, routing), **found)


def mixtures() -> list[str]:
    """Return the models of the database that are mixtures of experts."""
    return [name for name, model in hardware_db.models().items() if model.experts]


def _counts(inputs: ExpertsInputs, routing: Routing) -> dict[str, Any]:
    """Return what follows from the counts alone."""
    tokens = sequences_of(inputs).tokens
    touched = routing.touched(tokens)
    return {
        "experts": routing.experts,
        "experts_per_token": routing.chosen,
        "distinct_experts": touched,
        "distinct_experts_sd": routing.sd(tokens),
        "even_distinct_experts": routing.evenly_touched(tokens),
        "ratio_to_one_token": touched / routing.chosen,
        "coverage": touched / routing.experts,
        "tokens_for_95_percent": routing.tokens_for(SHARE),
        "tokens_per_expert": tokens * routing.chosen / touched,
    }


def _costs(inputs: ExpertsInputs, routing: Routing | None, ranks: Ranks | None) -> dict[str, Any]:
    """Return what needs the model's record; nothing if the counts are typed in."""
    if routing and not routing.recorded:
        return {}
    tokens, count = sequences_of(inputs).tokens, hardware_db.models()[inputs.model].parameters
    load = load_of(inputs, routing, tokens)
    time = time_of(inputs, load)
    found: dict[str, Any] = {
        "weight_bytes_per_step": load.weight_bytes,
        "step_ms": 1e3 * time.total_s,
        "bound": str(time.bound),
        "critical_batch_whole_step": whole_step_critical_tokens(inputs, routing),
        "total_params_b": count.total / 1e9,
        "active_params_b": count.active / 1e9,
        "accelerators": inputs.tp,
    }
    if ranks:
        found |= {"step_ms": ranks.step_ms, "bound": ranks.bound, "accelerators": ranks.ranks}
        found |= {"critical_batch_whole_step": None}
    return found | (_expert_costs(inputs, routing, tokens) if routing else {})


def _expert_costs(inputs: ExpertsInputs, routing: Routing, tokens: int) -> dict[str, Any]:
    count = hardware_db.models()[inputs.model].parameters
    touched = routing.touched(tokens)
    active, total = (time_of(inputs, as_dense(inputs, tokens, n)) for n in (routing.chosen, routing.experts))
    effective = forms.EFFECTIVE_PARAMETERS(**parameter_values(inputs), coverage=min(1.0, touched / routing.experts))
    return {
        "expert_bytes_per_step": expert_bytes(inputs, touched),
        "critical_batch": critical_tokens(inputs, routing, at_peaks=True),
        "reached_critical_batch": critical_tokens(inputs, routing),
        "effective_params_b": effective / 1e9,
        "equivalent_params_b": forms.EQUIVALENT_PARAMETERS(active_params=count.active, total_params=count.total) / 1e9,
        "dense_active_step_ms": 1e3 * active.total_s,
        "dense_total_step_ms": 1e3 * total.total_s,
    }


def parameter_values(inputs: ExpertsInputs) -> dict[str, float]:
    """Return the parameters that every step reads, and those of all routed experts."""
    count = hardware_db.models()[inputs.model].parameters
    dense = count.matmul_active - count.active_experts
    return {"dense_params": float(dense), "expert_params": float(count.routed_experts)}


def _warnings(inputs: ExpertsInputs, routing: Routing | None) -> tuple[str, ...]:
    model = hardware_db.models()[inputs.model]
    if routing is None:
        unused = " Expert parallelism and popularities are left aside." * bool(
            inputs.ep > 1 or inputs.zipf_exponent or inputs.popularity
        )
        return (
            (
                f"{model.id} is dense: it has no experts to count. Choose a mixture of experts as the model, or type experts and "
                f"experts_per_token in.{unused} {len(mixtures())} mixtures are in the database, among them {', '.join(EXAMPLES)}."
            ),
            *_record_warnings(inputs),
        )
    if not routing.recorded:
        said = (
            "The counts are typed in, so experts are counted and nothing is said of bytes and times: those need a model's "
            "record. Leave experts and experts_per_token empty for that."
        )
        return (said,)
    return _record_warnings(inputs)


def _record_warnings(inputs: ExpertsInputs) -> tuple[str, ...]:
    return (*_memory_warning(inputs), *hardware_remarks(inputs, context_of(inputs)))


def _memory_warning(inputs: ExpertsInputs) -> tuple[str, ...]:
    """Return a sentence where the weights of one accelerator are more than its memory."""
    model, present = hardware_db.models()[inputs.model], hardware_db.accelerators()[inputs.accelerator].memory_bytes
    experts = expert_bytes(inputs, model.experts)
    dense = model.weight_bytes(inputs.weight_dtype) - experts
    dealt = inputs.ep if model.experts and inputs.ep > 1 else inputs.tp
    needed = dense / inputs.tp + experts / dealt
    if needed <= present:
        return ()
    said = (
        f"Does not fit: each {inputs.accelerator} would hold {needed / 1e9:.1f} GB of the weights in {inputs.weight_dtype}, "
        f"and has {present / 1e9:.1f} GB. The times are what the arithmetic gives if it did. Use a larger tp or ep, or a "
        "smaller weight format."
    )
    return (said,)
