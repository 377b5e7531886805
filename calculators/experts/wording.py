"""The answer in a sentence and four numbers, and what the figures and tables say."""

from __future__ import annotations

import hardware_db
from calculators.checks import TOGETHER
from calculators.experts.check import ExpertsCheck
from calculators.experts.compute import ExpertsInputs, ExpertsResult
from calculators.experts.routing import Routing
from calculators.experts.steps import sequences_of
from calculators.kv_cache.wording import bytes_of
from calculators.outputs import counted, readable, short

MEMORY_BOUND = ":orange[:material/memory:]"
COMPUTE_BOUND = ":green[:material/bolt:]"
COUNTED = ":blue[:material/hub:]"


def answer(inputs: ExpertsInputs, result: ExpertsResult) -> str:
    """Return the answer to the page's question, in Markdown, with an icon in front."""
    tokens = f"{result.tokens:,} token{'s' * (result.tokens > 1)}"
    if result.distinct_experts is None:
        return (
            f"{COUNTED} {inputs.model} is dense: a step of {tokens} reads all **{bytes_of(result.weight_bytes_per_step or 0)}** "
            f"of its weights, as any other step does. A mixture of experts reads the share of its experts that its tokens touch."
        )
    touched = (
        f"A step of {tokens} touches **{short(result.distinct_experts)} of {counted(result.experts, 'expert')}** in a layer, "
        f"{short(result.ratio_to_one_token)} times what one token does"
    )
    if result.step_ms is None:
        return f"{COUNTED} {touched}."
    icon = COMPUTE_BOUND if result.bound == "compute" else MEMORY_BOUND
    return (
        f"{icon} {touched}: {inputs.model} reads **{bytes_of(result.expert_bytes_per_step or 0)}** of expert weights, and "
        f"the step takes **{short(result.step_ms, 'ms')}**{_on(result)}, bound by {result.bound}."
    )


def _on(result: ExpertsResult) -> str:
    return f" on {counted(result.accelerators, 'accelerator')}" if (result.accelerators or 1) > 1 else ""


def metrics(result: ExpertsResult) -> list[tuple[str, str, str]]:
    """Return label, value and explanation of the numbers under the sentence."""
    if result.distinct_experts is None:
        return _dense_metrics(result)
    found = [
        (
            "Experts touched",
            f"{short(result.distinct_experts)} ± {short(result.distinct_experts_sd)}",
            f"Mean and standard deviation of the different experts in a layer, {short(100 * (result.coverage or 0))} % of them.",
        ),
        (
            "95 % of the experts",
            "–" if result.tokens_for_95_percent is None else counted(result.tokens_for_95_percent, "token"),
            "Tokens in a step that touch 95 % of the experts on average.",
        ),
        (
            "Tokens per expert",
            short(result.tokens_per_expert),
            "Tokens for each expert that is touched: the arithmetic that one read of its weights serves.",
        ),
    ]
    if result.reached_critical_batch is not None:
        found.append(
            (
                "Experts compute-bound from",
                counted(round(result.reached_critical_batch), "token"),
                "Tokens in a step from which the experts alone take longer to compute than to read, with the efficiencies assumed.",
            )
        )
    return found


def _dense_metrics(result: ExpertsResult) -> list[tuple[str, str, str]]:
    whole = result.critical_batch_whole_step
    return [
        ("Step", short(result.step_ms, "ms"), "Time of the step on one instance."),
        ("Weights read", bytes_of(result.weight_bytes_per_step or 0), "In this step and in any other."),
        (
            "Step compute-bound from",
            "never" if whole is None else counted(round(whole), "token"),
            "Tokens in a step from which its arithmetic takes longer than its reads, at this context.",
        ),
    ]


def basis(inputs: ExpertsInputs, routing: Routing | None) -> str:
    """Return what the counts rest on, in Markdown."""
    if routing is None:
        return ""
    shape = f"{routing.chosen} of {counted(routing.experts, 'expert')} for each token"
    model = hardware_db.models()[inputs.model]
    if routing.recorded and (moe := model.moe):
        shared = f", {moe.shared_experts} shared beside them" if moe.shared_experts else ""
        dense = model.layers - model.moe_layers if model.block_layout == "paired" else 0
        others = f", {dense} with a dense FFN" if dense else ""
        shape = f"{inputs.model}: {shape}{shared}, in {counted(model.moe_layers, 'layer')}{others}"
    skew = "even routing" if routing.even else "routing by the popularities given, each token without replacement"
    return (
        f"{shape}; {skew}. Tokens choose independently. In text they choose alike, which touches fewer experts; a router "
        "that balances them touches more."
    )


def caption(inputs: ExpertsInputs, routing: Routing | None) -> str:
    """Return for which scenario a figure is, in plain text."""
    if routing is not None and not routing.recorded:
        return f"{routing.chosen} of {counted(routing.experts, 'expert')} for each token"
    chips = f"{inputs.tp} × {inputs.accelerator}" if inputs.tp > 1 else inputs.accelerator
    return f"{inputs.model} on {chips}, weights in {inputs.weight_dtype}; assumptions: {inputs.assumptions}"


def on_costs(inputs: ExpertsInputs, result: ExpertsResult) -> str:
    """Return what the step costs beside dense models, in Markdown."""
    each = sequences_of(inputs).tokens_each
    verified = f" Each sequence has {counted(each, 'token')} in the step." if each > 1 else ""
    ratios = " The curves are those of one instance, without expert parallelism." if result.ranks else ""
    if result.step_ms and result.dense_active_step_ms and result.dense_total_step_ms and not result.ranks:
        ratios = (
            f" At {counted(result.tokens, 'token')} the step takes **{short(result.step_ms / result.dense_active_step_ms)} times** as "
            f"long as with a dense FFN of the size that a token meets, and **{short(result.step_ms / result.dense_total_step_ms)} "
            "times** as long as with one of the size of all experts."
        )
    return (
        f"Of {short(result.total_params_b)} billion parameters a token meets {short(result.active_params_b)} billion, and "
        f"this step reads **{short(result.effective_params_b)} billion**.{ratios}{verified} By a rule of thumb, not derived, a "
        f"dense model of about the same quality has {short(result.equivalent_params_b)} billion: the geometric mean of active "
        "and total."
    )


def on_threshold(result: ExpertsResult) -> str:
    """Return from which batch arithmetic binds, in Markdown."""
    if result.critical_batch is None or result.reached_critical_batch is None:
        return "At no batch in sight is the arithmetic of the experts longer than reading them."
    said = (
        f"The experts are bound by compute from **{counted(round(result.reached_critical_batch), 'token')}** in a step with the "
        f"efficiencies assumed, {readable(round(result.critical_batch))} at the chip's peaks: the ridge times experts over "
        "experts per token, where all are touched. That is the threshold of the experts' weights alone; the whole step also has "
        "attention, which reads the cache, and the dense weights, so that it turns at another batch or never."
    )
    if result.ranks:
        return said
    whole = result.critical_batch_whole_step
    if whole is None:
        return (
            f"{said} Here it never does: at this context each sequence adds more to read than to compute. Shorten the "
            "context, or store the cache in fewer bytes."
        )
    return f"{said} It is bound by compute from **{counted(round(whole), 'token')}**."


def on_mixtures(inputs: ExpertsInputs) -> str:
    """Return how the table of every mixture is meant, in Markdown."""
    return (
        f"Every mixture of experts of the database at this page's step, on {inputs.tp} × {inputs.accelerator} in "
        f"{inputs.weight_dtype}, as if it fitted. *Dense of the active size* is the same model with one FFN as wide as a "
        "token's experts in each such layer; *of the total size*, as wide as all of them."
    )


def on_ranks(inputs: ExpertsInputs, result: ExpertsResult, routing: Routing) -> str:
    """Return what expert parallelism does to the load, in Markdown."""
    rule = (
        "A token chooses among **all** experts, wherever they are: a rank's share is that of its experts, never k of the "
        "local ones. Each layer waits for its busiest rank. Means and ranks visited are exact; the expected maximum is "
        "approximate: within 1.4 % of simulations where there are at least two choices for each rank, within 6 % elsewhere."
    )
    ranks = result.ranks
    if ranks is None:
        return f"{rule} Set *Expert parallel* in the sidebar to mark your group."
    placing = "" if routing.even else f" with experts placed *{inputs.placement.replace('_', ' ')}*"
    time = ""
    if ranks.step_ms is not None:
        time = (
            f" The group's step takes **{short(ranks.step_ms, 'ms')}**, {short(ranks.exchange_ms, 'ms')} of it exchange and "
            "all-reduces that nothing hides; activations travel in two bytes each way."
        )
    return (
        f"{rule} On {counted(ranks.ranks, 'rank')}{placing} the busiest has **{counted(ranks.busiest_load, 'choice')}** in a layer, "
        f"{short(ranks.imbalance)} times the mean of {short(ranks.mean_load)}, and touches {short(ranks.busiest_distinct)} of "
        f"its {counted(ranks.experts_on_rank, 'expert')}. A token visits {counted(ranks.ranks_visited, 'rank')}.{time}"
    )


def agreement(check: ExpertsCheck) -> str:
    """Return in plain words whether the simulation supports the formulas, in Markdown."""
    outside = [row.label for row in check.rows if row.kind == "exact" and row.verdict == "outside"]
    if check.agrees is None:
        said = (
            "**Every simulated step gave the same number, so the run says nothing about its spread.** Ask for more requests "
            "(sidebar, *Simulation*), or fewer tokens."
        )
    elif check.agrees:
        said = "**Every exact figure lies inside its interval.**"
    else:
        said = f"**Outside the interval: {', '.join(outside)}.** By chance that happens in one run of twenty at most."
    rough = [row for row in check.rows if row.kind == "approximate"]
    if rough:
        worst = max(abs(row.formula / row.simulated - 1) for row in rough if row.simulated)
        said += f" Approximate figures are within {100 * worst:.2g} % of the simulation."
    return (
        f"{said} {counted(check.steps, 'step')} of {counted(check.tokens, 'token')}, each token routed without replacement by exponential "
        f"clocks; seed {check.seed}. All intervals hold together in at least {TOGETHER:.0%} of runs."
    )


def on_choices() -> str:
    """Return which formula of uneven routing is exact, in Markdown."""
    return (
        "How often a token chooses each expert when the k are drawn by popularity without replacement: exact, by quadrature "
        "over exponential clocks. With these shares $p_i$ the sum of $1 - (1 - p_i)^t$ is exact, too. The rule of thumb, k "
        "times the popularity, overstates popular experts and understates the others. The spread is approximate: joint "
        "choices of two experts are taken from their shares."
    )
