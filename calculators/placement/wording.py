"""The answer in a sentence and four numbers, and what the figures and tables say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from calculators.lengths import spread_of
from calculators.outputs import counted, readable, rows_of, short, titles
from calculators.placement.candidates import Candidate
from calculators.placement.check import FINALISTS, PlacementCheck
from calculators.placement.cluster import PlacementInputs
from calculators.placement.compute import Chosen, PlacementResult
from calculators.placement.drawing import MOST_SEATS
from calculators.placement.published import Compared
from calculators.routers import AS_TAKEN

ICONS = {
    "fits": ":green[:material/check_circle:]",
    "cluster_too_small": ":orange[:material/warning:]",
    "nothing_to_decode": ":orange[:material/warning:]",
    "does_not_fit": ":red[:material/memory_alt:]",
    "too_slow_unloaded": ":red[:material/hourglass_disabled:]",
    "refused": ":red[:material/block:]",
}


def answer(inputs: PlacementInputs, result: PlacementResult) -> str:
    """Return the answer with its verdict's icon, in Markdown."""
    return f"{ICONS[result.verdict]} {sentence(inputs, result)}"


def sentence(inputs: PlacementInputs, result: PlacementResult) -> str:
    """Return the answer to the page's question, in Markdown."""
    match result.verdict:
        case "does_not_fit":
            return (
                f"**Nothing fits**: on {counted(inputs.nodes, 'node')} of {inputs.node_gpus} no tensor and pipeline degrees that the model allows "
                "leave room for the weights, the reserve and the caches."
            )
        case "too_slow_unloaded":
            return "**Too slow even unloaded**: no configuration that fits meets the target, whatever the number of instances."
        case "refused":
            return "**No pair of configurations shares a node**: use larger nodes, or a network that caches may cross."
    both = _side("prefill", result.prefill)
    if result.decode:
        both += f" and {_side('decode', result.decode)}"
    rate = f"{readable(inputs.target_rate)} requests/s"
    said = f"For {rate}: {both}, **{_accelerators(result.gpus)}** in all"
    if result.verdict == "cluster_too_small":
        most = (
            f"it carries {short(result.cluster_goodput)} requests/s"
            if result.cluster_goodput
            else "it does not hold one pair"
        )
        return f"{said}. That takes {_nodes(result.nodes_needed)}, and the cluster has **{inputs.nodes}**: with these configurations {most}."
    return f"{said}, on {_nodes(result.nodes_needed)} of {inputs.nodes}."


def _side(name: str, chosen: Chosen | None) -> str:
    if chosen is None:
        return name
    return f"**{chosen.instances:,} × TP {chosen.tp} PP {chosen.pp}** for {name}"


def _accelerators(count: int | None) -> str:
    return counted(count, "accelerator")


def _nodes(count: int | None) -> str:
    return counted(count, "node")


def metrics(inputs: PlacementInputs, result: PlacementResult) -> list[tuple[str, str, str]]:
    """Return label, value and help of the four numbers under the answer."""
    traffic = (
        f"Caches handed over at the target rate. Each prefill instance uses {100 * (result.link_utilization or 0):.3g} % of its "
        f"{short(result.link_gbit_s, 'Gbit/s')}."
    )
    return [
        (
            "Accelerators",
            readable(result.gpus),
            f"Of both sides, for {readable(inputs.target_rate)} requests/s. The cluster has {inputs.gpus}.",
        ),
        _per_gpu("Prefill", result.prefill),
        _per_gpu("Decode", result.decode),
        ("KV traffic", short(result.kv_gbit_s, "Gbit/s"), traffic),
    ]


def _per_gpu(side: str, chosen: Chosen | None) -> tuple[str, str, str]:
    value = f"{short(chosen.goodput_per_gpu)} /s" if chosen else "–"
    return (
        f"{side}, each",
        value,
        "Goodput of an accelerator: the largest rate in target of an instance over its accelerators.",
    )


def _queue(inputs: PlacementInputs) -> str:
    if spread_of(inputs):
        return "exact in one stage; of several, simulated, as prompts that spread have no closed form there"
    if inputs.arrival_scv != 1:
        return "exact, gamma arrivals at the slowest stage"
    return "exact for equal prompts, M/D/1 behind the slowest stage"


def basis(inputs: PlacementInputs) -> str:
    """Return in a sentence what the answer rests on, and how far it can be trusted."""
    algorithm = "1, each side by itself" if inputs.network == "fast" else "2, both sides together"
    return (
        f"DistServe's algorithm {algorithm}, over every tensor and pipeline degree. Prefill: {_queue(inputs)}. "
        "Decode: the pipeline as one pool whose step is a round through its stages; in simulations its "
        "goodput was within 2.5 %, and where memory holds few requests up to 10 % too low. "
        f"Configurations are rated by one instance each; of those for the rate, {AS_TAKEN[inputs.routing]}. Step times by the set "
        f"*{inputs.assumptions}*."
    )


def caption(inputs: PlacementInputs) -> str:
    """Return for which scenario a figure is, in plain text."""
    return (
        f"{inputs.model} on {counted(inputs.nodes, 'node')} of {inputs.node_gpus} × {inputs.accelerator}, {inputs.network} network, "
        f"{counted(inputs.prompt_tokens, 'token')} in and {inputs.output_tokens:,} out; assumptions: {inputs.assumptions}"
    )


def on_map(inputs: PlacementInputs, result: PlacementResult) -> str:
    """Return how the drawing is to be read, in Markdown."""
    said = "Each box is an accelerator: **P** prefill, **D** decode, the instance, and after the point the stage. "
    if inputs.network == "fast":
        said += "Stages are never cut by the border of a node; caches cross nodes."
    else:
        said += "Stages that hold the same layers share a node, so that caches never leave it."
    if (result.gpus or 0) > MOST_SEATS:
        said += f" The first {MOST_SEATS} are drawn."
    return said


def on_ranked(inputs: PlacementInputs, result: PlacementResult) -> str:
    """Return what the two tables of configurations hold, in Markdown."""
    allowed = sum(each.allowed for each in result.table)
    level = f"{100 * inputs.level:.4g} %"
    return (
        f"**{allowed} of {len(result.table)} configurations are allowed**, here by goodput for each accelerator: the largest rate at "
        f"which {level} of the requests meet the side's own target. Below, why each of the others is refused."
    )


def ranked(allowed: Sequence[Candidate], side: str) -> dict[str, list[Any]]:
    """Return one side's configurations as columns, without those that are empty: nobody refused these."""
    columns = rows_of([each for each in allowed if each.side == side])
    return {
        title: values
        for title, values in columns.items()
        if title != titles(Candidate)["side"] and any(each not in (None, "", ()) for each in values)
    }


def refusals(refused: Sequence[Candidate]) -> dict[str, list[str | int]]:
    """Return the configurations that were refused as columns, with the reasons in words."""
    return {
        "Side": [each.side for each in refused],
        "Tensor degree": [each.tp for each in refused],
        "Stages": [each.pp for each in refused],
        "Nodes": [each.nodes for each in refused],
        "Refused by": [each.refused_by for each in refused],
        "Why not": ["; ".join(each.reasons) for each in refused],
    }


def on_traffic(inputs: PlacementInputs, result: PlacementResult) -> str:
    """Return what the caches ask of the link, in Markdown."""
    if result.kv_gbit_s is None or result.prefill is None:
        return "Nothing is handed over."
    way = "the link between the pools" if inputs.network == "fast" else "the link inside a node"
    wait = (
        f"A hand-off takes **{short(result.transfer_ms, 'ms')}** on average, the wait for the link included"
        if result.transfer_ms is not None
        else "**The link does not keep up**"
    )
    return (
        f"**{short(result.kv_gbit_s, 'Gbit/s')}** of caches at the target rate, {short(result.kv_gbit_s_per_instance, 'Gbit/s')} from "
        f"each of {counted(result.prefill.instances, 'prefill instance')}, over {way} of {short(result.link_gbit_s, 'Gbit/s')} each: "
        f"**{100 * (result.link_utilization or 0):.3g} %** of it. {wait}; it is taken off the TPOT target, spread over the tokens. "
        "An instance is never given more prefill than keeps its link at 80 %."
    )


def on_pairs() -> str:
    """Return how the joint choices are to be read."""
    return (
        "A unit is what is placed together and repeated: so many nodes, in each of them the same layers of every instance of both "
        "sides. Its goodput is that of the weaker side."
    )


def on_published() -> str:
    """Return what the comparison with DistServe's choices shows, and why the two differ, in Markdown."""
    return (
        "DistServe's table 3, and what this search chooses under its rule of one instance of each side in a unit, on its testbed of four "
        "nodes of eight A100-80GB with 25 Gbit/s between. Step times are the fits released with its simulator; for OPT-175B there are "
        "none, and the step-time model takes their place. Both choices are valued by our closed forms, so theirs can only come out "
        "lower. **Ours has more stages**, for three reasons: equal prompts pass a pipeline undisturbed, and those of a data set, "
        "up to 2048 tokens, do not; we set memory aside for the whole output, so that memory freed by more stages counts for more; their "
        "simulator puts all waiting prompts into one batch. The first can be taken away: where prompts and outputs spread by 1, our "
        "prefills have fewer stages and more tensor parallelism, as theirs have, and theirs reach 73 to 79 % of ours."
    )


def choices(rows: Sequence[Compared]) -> dict[str, list[Any]]:
    """Return DistServe's choices beside ours as columns; what is told in sentences is left out."""
    told = {titles(Compared)[name] for name in ("step_times", "why")}
    return {title: values for title, values in rows_of(rows).items() if title not in told}


def why_they_differ(rows: Sequence[Compared]) -> str:
    """Return, case by case, what the difference comes from, as a list in Markdown."""
    return "\n".join(
        f"- **{row.model}, {row.workload}** ({row.step_times}). {row.why[0].upper()}{row.why[1:]}" for row in rows
    )


def agreement(check: PlacementCheck) -> str:
    """Return in plain words how the finalists were simulated and what it says of the ranking, in Markdown."""
    parts = []
    for side, correlation, lost in (
        ("prefill", check.prefill_rank_correlation, check.prefill_regret),
        ("decode", check.decode_rank_correlation, check.decode_regret),
        ("joint choice", check.joint_rank_correlation, check.joint_regret),
    ):
        if lost is not None:
            rank = f"rank correlation {correlation:.2g}" if correlation is not None else "too few to rank"
            parts.append(f"{side}: {rank}, the one chosen loses {100 * lost:.2g} % against the best")
    return (
        f"**{'; '.join(parts)}.** Goodputs differ by {check.largest_off_percent:.2g} % at most. The best {FINALISTS} of each side were "
        f"simulated at about ten rates each, {counted(check.requests, 'request')} or more in a run, seed {check.seed}: prompts stage by stage, "
        "decoding micro-batch by micro-batch, with each sequence's own context and the slots that memory leaves."
    )
