"""How far the closed forms are from the event simulation, over a grid: ``python -m benchmarks.accuracy``.

The simulation goes from step to step with the same step times; what it shows is the error of the queueing forms, not
of the step-time model. Each scenario is loaded to shares of what it takes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from benchmarks.report import Benchmark, Figure, Goal
from calculators.checks import ComparedFigure
from calculators.decode.check import check as check_decode
from calculators.decode.compute import DecodeInputs, compute
from calculators.interference.check import WAYS
from calculators.interference.check import check as check_interference
from calculators.interference.compute import InterferenceInputs, systems_of

REQUESTS = 60_000
LOADS = (0.3, 0.6, 0.9)
SERVING_LOADS = (0.3, 0.5, 0.7)
QUICK_LOADS = (0.6,)

DECODE = {
    "8B on H100, 512 in, 64 out": DecodeInputs(),
    "the same, outputs spread by 1": DecodeInputs(output_cv=1),
    "8B on H100, 4,000 in, 400 out": DecodeInputs(prompt_tokens=4000, output_tokens=400),
    "70B on 4 H100, 512 in, 256 out": DecodeInputs(model="llama-3.1-70b", tp=4, output_tokens=256),
    "gpt-oss-120b on H200, 1,000 in, 200 out": DecodeInputs(
        model="gpt-oss-120b", accelerator="h200-sxm", weight_dtype="mxfp4", compute_dtype="bf16", prompt_tokens=1000,
        output_tokens=200,
    ),
    "8B on H100, 512 in, 8 out": DecodeInputs(output_tokens=8),
}  # fmt: skip
"""Decode pools. The last has outputs so short that the wait for the step in progress counts."""

SERVING = {
    "8B on H100, 512 in, 64 out, budget 512": InterferenceInputs(),
    "the same, budget 2,048": InterferenceInputs(chunk_tokens=2048),
    "8B, 512 in, 64 out, budget 512, lengths spread by 1": InterferenceInputs(prompt_cv=1, output_cv=1),
    "the same, gaps spread by 2": InterferenceInputs(prompt_cv=1, output_cv=1, arrival_scv=4),
    "8B on H100, 2,000 in, 200 out, budget 512": InterferenceInputs(prompt_tokens=2000, output_tokens=200),
    "70B on 4 H100, 512 in, 256 out, budget 1,024": InterferenceInputs(
        model="llama-3.1-70b", tp=4, output_tokens=256, chunk_tokens=1024
    ),
}
"""Instances that prefill and decode, and pairs of them."""


@dataclass(frozen=True)
class Row:
    """The forms of one scenario at one load beside the simulation: errors in percent."""

    scenario: str
    load: float
    rate: float
    off: dict[str, float]


def decode_rows(loads: tuple[float, ...], requests: int) -> Iterator[Row]:
    """Yield the decode pools at shares of their capacity."""
    for name, inputs in DECODE.items():
        for load in loads:
            rate = load * (compute(inputs).capacity or 0.0)
            checked = check_decode(replace(inputs, rate=rate, customers=requests))
            yield Row(name, load, rate, _by_label(checked.rows))


def serving_rows(loads: tuple[float, ...], requests: int) -> Iterator[Row]:
    """Yield the three ways to serve at shares of the rate that prompts alone would take."""
    for name, inputs in SERVING.items():
        for load in loads:
            rate = load / systems_of(inputs)[0].prefill_s
            checked = check_interference(replace(inputs, rate=rate, customers=requests))
            off = _by_label(checked.rows)
            for way in WAYS.values():
                mine = {label.split(",")[0]: value for label, value in off.items() if label.endswith(f", {way}")}
                yield Row(f"{name}; {way}", load, rate, mine)


def _by_label(rows: tuple[ComparedFigure, ...]) -> dict[str, float]:
    return {row.label: row.off_percent for row in rows}


def table(rows: list[Row]) -> str:
    """Return rows as a Markdown table, a column for each figure."""
    labels = sorted(
        {label for row in rows for label in row.off}, key=lambda label: (label.split()[1], label[0] == "P", label)
    )
    lines = ["| scenario | load | requests/s | " + " | ".join(labels) + " |", "|---|" + "---:|" * (2 + len(labels))]
    for row in rows:
        cells = [f"{row.off[label]:+.1f}" if label in row.off else "unstable" for label in labels]
        lines.append(f"| {row.scenario} | {row.load:g} | {row.rate:.4g} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def measure(quick: bool) -> list[Figure]:
    """Return the worst errors of the decode pool over the grid, outputs of eight tokens left out, and the speed."""
    loads, requests = (QUICK_LOADS, REQUESTS // 3) if quick else (LOADS, REQUESTS)
    rows = [row for row in decode_rows(loads, requests) if "8 out" not in row.scenario]
    worst = {label: max((abs(row.off[label]), row.scenario, row.load) for row in rows) for label in rows[0].off}
    figures = [
        Figure(
            worst[label][0],
            f"worst of {len(rows)} scenarios: {worst[label][1]}, at {worst[label][2]:g} of the capacity",
        )
        for label in ("mean TPOT", "P90 TPOT", "P99 TPOT")
    ]
    start = time.perf_counter()
    check_decode(DecodeInputs(rate=200, customers=REQUESTS))
    speed = REQUESTS / (time.perf_counter() - start)
    return [*figures, Figure(speed, "decode, 8B on H100, 64 output tokens, 200 requests/s, statistics included")]


ACCURACY = Benchmark(
    "accuracy",
    (
        Goal("decode pool against the event simulation: mean TPOT, worst", "%", 2),
        Goal("the same: P90 TPOT, worst", "%", 3),
        Goal("the same: P99 TPOT, worst", "%"),
        Goal("requests of 64 tokens simulated in a second", "/s", 20_000, at_least=True),
    ),
    measure,
)

if __name__ == "__main__":
    print("Errors of the closed forms in percent, above the simulated value if positive.\n")
    print(table(list(decode_rows(LOADS, REQUESTS))), end="\n\n")
    print(table(list(serving_rows(SERVING_LOADS, REQUESTS))))
