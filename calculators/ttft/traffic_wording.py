"""Real traffic in words."""

from __future__ import annotations

from calculators import checks
from calculators.outputs import apart, readable, short
from calculators.ttft.effects import Effect
from calculators.ttft.gains import REQUESTS, Gain
from calculators.ttft.inputs import TtftInputs
from calculators.ttft.queues import Queue
from calculators.ttft.replay import Replay
from calculators.ttft.trace import TraceSummary
from calculators.ttft.traffic_check import TrafficCheck

NO_FILE_IN_LINK = (
    "A CSV file or JSON lines, plain or with gzip; the Azure LLM inference and Mooncake formats are recognised. It is read in "
    "this session only: **a link cannot carry an uploaded file**, but it carries the values that are taken from it."
)

ON_REPLAY = (
    "The requests themselves, each at its time and with its own length, through the pool in the sidebar: what the formulas "
    "make of rate, spread and burstiness stands beside it."
)


ON_SHORT_SIMULATIONS = (
    "What is marked ≈ has no formula and comes from a short simulation; the column *Error* says how far off it may be. The shortest queue and "
    "other orders are simulated when you ask: a second for each row."
)


def on_file(name: str, summary: TraceSummary, notes: tuple[str, ...]) -> str:
    """Return what was read, in Markdown; the name of the file is shown as it is."""
    rows = "row" if summary.broken_rows == 1 else "rows"
    broken = f"**{summary.broken_rows:,} {rows} could not be used**" if summary.broken_rows else "every row was used"
    plain = name.replace("`", "'")
    more = f" {' '.join(notes)}" if notes else ""
    return (
        f"`{plain}`: **{summary.format}**, {summary.requests:,} requests in {readable(summary.duration_s, 4)} s; {broken}. "
        f"Mean rate {readable(summary.rate, 4)} requests/s, prompts of {readable(summary.prompt_tokens, 4)} tokens (spread "
        f"{readable(summary.prompt_cv, 3)}), outputs of {readable(summary.output_tokens, 4)}.{more}"
    )


def on_effects(inputs: TtftInputs, rows: list[Effect]) -> str:
    """Return what does most to P99, in Markdown."""
    pool = "one instance" if inputs.servers == 1 else f"{inputs.servers} instances"
    start = f"P99 of TTFT at {readable(inputs.rate)} requests/s on {pool}"
    if rows[0].p99_ttft_ms is None:
        return f"{start}: **there is no steady state**, whatever the traffic. Lower the rate, or add instances."
    alone = [row for row in rows if "alone" in row.traffic and row.times_plain is not None]
    told = ", ".join(f"{row.traffic.split(':')[0]} makes it **{_times(row.times_plain)}**" for row in alone)
    return (
        f"{start}, each effect switched on alone and then together. What is off in the sidebar is shown at a typical value. "
        f"Plain traffic has {short(rows[0].p99_ttft_ms, 'ms')}" + (f"; {told}." if told else ".")
    )


def _times(factor: float | None) -> str:
    return "as long" if factor is None else f"{readable(factor, 3)} times as long"


def waiting(inputs: TtftInputs, queue: Queue) -> str:
    """Return that the answer takes a while, in Markdown."""
    why = "no formula: simulate them" if queue.kind == "simulation" else "a slow formula: ask for them"
    return (
        f":blue[:material/experiment:] At {readable(inputs.rate)} requests/s the utilization is "
        f"{apart(queue.utilization(inputs.rate), 1)}; the percentiles have {why}"
    )


def agreement(check: TrafficCheck) -> str:
    """Return in plain words what the simulation says of the answer, in Markdown."""
    parts = []
    if check.rows:
        parts.append(checks.verdict(check.rows))
    if check.compared and check.approximate:
        parts.append(checks.largest_difference(check.compared))
    elif check.compared:
        worst = max(check.compared, key=lambda row: abs(row.off_percent))
        parts.append(
            f"**The answer's own simulation and this one, with another seed, are at most {abs(worst.off_percent):.2g} % "
            f"apart** ({worst.label})."
        )
    parts.append(checks.method(check.customers, check.warm_up, check.seed, len(check.rows) + len(check.compared)))
    return f"{' '.join(parts)} Answered by: {check.method}"


def on_replay(found: Replay) -> str:
    """Return what the replay is and how it compares, in Markdown."""
    replayed = {row.label: row for row in found.rows}["P99"]
    text = (
        f"{found.requests:,} requests, each at its time and with its own length: {found.simulation}. Prefill keeps an "
        f"instance busy {found.utilization:.0%} of the time. The replay has a P99 of **{short(replayed.replayed_ms, 'ms')}**"
    )
    if replayed.formula_ms is None:
        return f"{text}. There is no formula beside it. {found.method}"
    return (
        f"{text}; the formula, with the trace's rate, mean length, spread and burstiness, says "
        f"**{short(replayed.formula_ms, 'ms')}** ({found.method})"
    )


def on_gains(rows: tuple[Gain, ...]) -> str:
    """Return who gains and who pays by the order of service, in Markdown."""
    if not rows:
        return "Prompts are all equal: no order of service makes a difference to any of them. Give them a spread."
    shortest, longest = rows[0], rows[2]
    return (
        f"Served shortest first, the shortest half have their first token after **{short(shortest.shortest_ms, 'ms')}** on average "
        f"instead of {short(shortest.fcfs_ms, 'ms')}, and the longest tenth after **{short(longest.shortest_ms, 'ms')}** instead of "
        f"{short(longest.fcfs_ms, 'ms')}. Mean TTFT of {REQUESTS:,} simulated prompts, the same in each order."
    )
