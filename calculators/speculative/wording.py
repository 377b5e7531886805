"""The answer in a sentence and four numbers, and what the tabs say."""

from __future__ import annotations

import hardware_db
from calculators import checks
from calculators.outputs import counted, readable, short
from calculators.speculative.check import ROWS, SpeculativeCheck
from calculators.speculative.compute import SpeculativeInputs, SpeculativeResult
from calculators.speculative.costs import Pair
from calculators.speculative.curves import ENDS, MOST_STEPS, Bar
from calculators.speculative.machines import Spill
from formulas.experts import DISTINCT_EXPERTS, TOKENS_FOR_COVERAGE
from formulas.speculative import IID_ERROR

ICONS = {
    "pays": ":green[:material/check_circle:]",
    "other_length": ":orange[:material/warning:]",
    "plain_is_faster": ":red[:material/block:]",
}


def answer(inputs: SpeculativeInputs, result: SpeculativeResult) -> str:
    """Return the answer to the page's question, in Markdown, with the icon of its verdict in front."""
    drafts = f"Drafts of {inputs.draft_tokens if inputs.draft_tokens > 1 else 'one token'}"
    cost = counted(result.round_cost, "plain step")
    gives = f"give **{counted(result.tokens_per_round, 'token')}** a round, which takes {cost}"
    best = result.optimal_draft_tokens
    if result.verdict == "pays":
        said = f"{drafts} {gives}: **{short(result.speedup)} times** as fast as plain decoding{_rates(result)}."
        measured = result.fit_rms_tokens is not None
        if best != inputs.draft_tokens:
            said += f" The best {'of the measured lengths' if measured else 'length'} is "
            said += f"**{best}**, {short(result.optimal_speedup)} times."
        else:
            said += f" No other {'measured ' * measured}length is better."
    elif result.verdict == "other_length":
        said = (
            f"{drafts} {gives}: slower than plain decoding, {short(result.speedup)} times. Drafts of **{best}** pay, "
            f"**{short(result.optimal_speedup)} times**."
        )
    else:
        where = "here" if result.next_paying_batch is None else "at this batch"
        said = f"**No draft pays {where}.** {drafts} {gives}: {short(result.speedup)} times plain decoding."
        if result.next_paying_batch is not None:
            said += f" {_window(result)[0].upper()}{_window(result)[1:]} some do."
    return f"{ICONS[result.verdict]} {said}"


def _window(result: SpeculativeResult) -> str:
    """Return at which larger batches a draft pays, where none does at the batch given."""
    ends = "on" if result.break_even_batch is None else f"to {readable(result.break_even_batch - 1)}"
    return f"from a batch of **{readable(result.next_paying_batch)}** {ends}"


def _rates(result: SpeculativeResult) -> str:
    if result.tokens_per_second_per_user is None or result.plain_tokens_per_second_per_user is None:
        return ""
    return (
        f", {short(result.tokens_per_second_per_user)} tokens/s for each user instead of "
        f"{short(result.plain_tokens_per_second_per_user)}"
    )


def metrics(inputs: SpeculativeInputs, result: SpeculativeResult) -> list[tuple[str, str, str]]:
    """Return label, value and explanation of the four numbers under the sentence."""
    best = result.optimal_draft_tokens
    return [
        (
            "Speedup",
            f"{short(result.speedup)}×",
            f"Tokens per second with drafts of {inputs.draft_tokens}, over plain decoding.",
        ),
        (
            "Tokens per round",
            short(result.tokens_per_round),
            f"{short(result.accepted_tokens)} accepted drafts and the token that the target always adds (bonus token).",
        ),
        (
            "Best draft",
            f"{best} → {short(result.optimal_speedup)}×" if best else "none",
            f"Draft length with the largest speedup{_among(result)}, and that speedup.",
        ),
        _last_metric(result),
    ]


def _among(result: SpeculativeResult) -> str:
    return "" if result.fit_rms_tokens is None else " among the measured ones"


def _last_metric(result: SpeculativeResult) -> tuple[str, str, str]:
    if result.largest_batch is None and result.break_even_batch is None:
        value = "never" if result.break_even_acceptance is None else short(result.break_even_acceptance)
        return "Pays from acceptance", value, "Smallest acceptance at which a draft of this length is no slower."
    if result.next_paying_batch is not None:
        until = "" if result.break_even_batch is None else f", below {readable(result.break_even_batch)}"
        said = "Sequences in a step at which some draft pays; at the batch given none does, whatever its length."
        return "Pays from", f"batch {readable(result.next_paying_batch)}{until}", said
    value = "never" if result.break_even_batch is None else f"batch {readable(result.break_even_batch)}"
    fits = (
        ""
        if result.largest_batch is None
        else f" At this context memory holds {counted(result.largest_batch, 'sequence')}."
    )
    return "Stops paying at", value, f"Sequences in a step from which on no draft pays, whatever its length.{fits}"


def basis(inputs: SpeculativeInputs, result: SpeculativeResult) -> str:
    """Return how far the speedup can be trusted, in Markdown."""
    if result.speedup_low is None or result.speedup_high is None:
        return (
            f"By measured acceptance. One independent acceptance that fits it best, α = {short(result.independent_acceptance)}, "
            f"would say {short(result.independent_speedup)} times. The acceptance of {inputs.acceptance:g} above is not used."
        )
    return (
        f"Acceptance is taken as independent along the draft. Against its authors' own measurements that was between 23 % too "
        f"low and 47 % too high, two of the twelve by more than {IID_ERROR:.0%}: reckon with ±{IID_ERROR:.0%}, here {short(result.speedup_low)} to "
        f"{short(result.speedup_high)} times, or type measured acceptance in the sidebar."
    )


def caption(inputs: SpeculativeInputs, pair: Pair | None) -> str:
    """Return for which scenario a figure is, in plain text."""
    if pair is None:
        return f"acceptance {inputs.acceptance:g}; costs in plain decode steps: c = {inputs.draft_cost:g}, v = {inputs.verify_cost:g}"
    chips = f"{pair.target.machine.tp} × {inputs.target_accelerator}"
    draft = inputs.draft if pair.draft.size is None else f"a draft of {inputs.draft_size_b:g} billion"
    where = "the same" if inputs.draft_accelerator is None else f"{pair.draft.machine.tp} × {inputs.draft_accelerator}"
    return (
        f"{inputs.target} in {pair.target.machine.weight_dtype} on {chips}, {draft} in {pair.draft.machine.weight_dtype} on "
        f"{where}; batch {inputs.batch}, context {inputs.context:,}, cache in {inputs.kv_dtype}; assumptions: {inputs.assumptions}"
    )


def on_round(result: SpeculativeResult, pair: Pair | None) -> str:
    """Return what a round consists of, in Markdown."""
    crossing = " with the round trip to the draft" if pair and pair.link_s and result.link_ms else ""
    said = (
        f"In a round the draft model proposes its tokens one after another, and the target verifies all in one step. It gives "
        f"**{counted(result.tokens_per_round, 'token')}** on average; plain decoding gives {short(result.round_cost)} in the same "
        f"time. A drafted token costs {counted(result.draft_cost, 'plain step')}, the verification{crossing} "
        f"{short(result.verify_cost)}."
    )
    if result.tokens_per_second_per_chip is None or result.plain_tokens_per_second_per_chip is None:
        return said
    said += (
        f" All sequences together make {short(result.tokens_per_second_per_chip)} tokens/s for each chip, "
        f"{short(result.plain_tokens_per_second_per_chip)} without drafts"
    )
    if result.tokens_per_second_per_kw and result.plain_tokens_per_second_per_kw:
        said += (
            f", and {short(result.tokens_per_second_per_kw)} for each kilowatt of rated power, "
            f"{short(result.plain_tokens_per_second_per_kw)} without"
        )
    return said + "."


def on_bars(bars: list[Bar]) -> str:
    """Return what the timeline leaves out, in Markdown; nothing where every step has its own bar."""
    if all(bar.steps == 1 for bar in bars):
        return ""
    return (
        f"A run of more than {MOST_STEPS} steps is drawn as its first {ENDS} and its last {ENDS}, with one bar for all between, "
        "which says for how many it stands."
    )


def on_batch(result: SpeculativeResult, spill: Spill | None) -> str:
    """Return where speculation stops paying, in Markdown."""
    if spill is not None:
        left = (
            f" Up to a batch of {readable(spill.batch)} the draft's cache is in {spill.tier}; beyond that it is read from "
            f"{spill.beyond}, and drafting costs more at once."
        )
        return on_batch(result, None) + left
    if result.break_even_batch is None:
        stops = "Some draft pays at every batch that was looked at."
    elif result.break_even_batch == 1:
        stops = "No draft pays at any batch."
    else:
        stops = f"From a batch of **{readable(result.break_even_batch)}** on, no draft pays, whatever its length."
    window = "" if result.next_paying_batch is None else f" At the batch given none does; {_window(result)} some do."
    fits = result.largest_batch
    if fits is None:
        return stops + window
    beyond = result.break_even_batch is None or fits < result.break_even_batch
    holds = f" At this context memory holds **{counted(fits, 'sequence')}**" + (", fewer than that." if beyond else ".")
    return stops + holds + window


NO_BATCH = "The cost of verification is typed in, so that nothing here depends on the batch. Clear it to see that."
NO_CHIPS = "Both costs are typed in: there is no hardware to compare. Clear the draft cost to see it."

ON_MAP = (
    "The speedup at the best draft length, over independent acceptance and the cost of a draft; verification costs what it "
    "costs here. Where a plain step verifies a draft of any length, drafting pays exactly where the acceptance exceeds the cost."
)

ON_CHIPS = (
    "The same draft model on every kind of chip that holds it, as few of each as do, over the link chosen. Weights are in the "
    "fastest memory that holds all of them, the cache in the fastest with room left."
)


def on_acceptance(result: SpeculativeResult, kind: str) -> str:
    """Return how one acceptance fits what was measured, in Markdown."""
    if result.fit_rms_tokens is None or result.fit_worst is None:
        return (
            "One acceptance for all positions, independent of each other. Measured acceptance may fall along a draft, where a "
            "small head drifts off, or rise, where an easy passage stays easy. Type what your engine prints in the sidebar "
            "(*Measured acceptance*), by position or as lengths, and it is used instead."
        )
    source = "rates by position" if kind == "rates" else "acceptance lengths"
    way = "more" if result.fit_worst > 0 else "less"
    return (
        f"The one acceptance that fits the measured {source} best is **α = {short(result.independent_acceptance)}**. It misses "
        f"them by {counted(result.fit_rms_tokens, 'token')} (root mean square), at worst by {short(100 * abs(result.fit_worst))} % "
        f"{way} for a draft of {result.fit_worst_at}. The answer uses the measured ones."
    )


def on_experts(inputs: SpeculativeInputs, pair: Pair | None) -> str:
    """Return how many experts plain decoding and verification touch, in Markdown; nothing for a dense target."""
    model = hardware_db.models()[inputs.target]
    if pair is None or not model.experts:
        return ""
    values = {"experts": model.experts, "experts_per_token": model.experts_per_token}
    plain = DISTINCT_EXPERTS(**values, tokens=inputs.batch)
    verified = DISTINCT_EXPERTS(**values, tokens=inputs.batch * (inputs.draft_tokens + 1))
    tokens = TOKENS_FOR_COVERAGE(**values, coverage=0.95)
    return (
        f"A step of {counted(inputs.batch, 'token')} touches {short(plain)} of the {counted(model.experts, 'expert')} in a layer, verification of "
        f"{inputs.batch * (inputs.draft_tokens + 1)} tokens {short(verified)}: each is read once. From about "
        f"{counted(round(tokens), 'token')} on 95 % are touched anyway, and a longer draft costs little more."
    )


def agreement(check: SpeculativeCheck) -> str:
    """Return in plain words whether the simulation of rounds supports the formula, in Markdown."""
    return (
        f"{checks.verdict(check.rows)} {counted(check.rounds, 'independent round')}, seed {check.seed}. Intervals of "
        f"{checks.each_level(ROWS):.3g} each, so that all hold in at least {checks.TOGETHER:.0%} of runs."
    )


def on_sampling(check: SpeculativeCheck) -> str:
    """Return whether sampling by speculation left the target's distribution as it is, in Markdown."""
    outcome = (
        "**The target's distribution is unchanged**"
        if check.target_unchanged
        else "**The sampled tokens depart from the target's distribution**, which by chance happens in one run of a hundred"
    )
    return (
        f"Tokens sampled from two real distributions, a target and a draft that agree as often as the acceptance says: drafts "
        f"are refused and replaced as in Leviathan et al., algorithm 1. {outcome}: chi-square {short(check.chi_square)} at "
        f"{check.degrees} degrees of freedom over {counted(check.tokens, 'token')}, exceeded by chance with probability "
        f"{short(check.p_value)}."
    )
