"""Fit the sets, print their records, and write the rows that were not fitted."""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.calibration.fit import Array, chosen, cross_validated, errors, fit, loop_of, rounded, transferred
from benchmarks.calibration.rows import Row, diagonals, read
from benchmarks.calibration.sets import SETS, Wanted

OFFERED_ERROR, OFFERED_ROWS = 0.15, 25
"""A set is offered up to this median error on rows not fitted, and from this many rows."""
LARGE, SEVERAL = 0.08, 4
"""Median errors that a record's note names, of so many rows at least."""

GROUPS: Mapping[str, Callable[[Row], str]] = {
    "model": lambda row: f"{row.inputs.model} in {row.inputs.weight_dtype} on {row.inputs.accelerator}",
    "degree": lambda row: f"TP {row.inputs.tp}",
    "lengths": lambda row: "{} in and {} out".format(*row.lengths),
    "in flight": lambda row: f"{row.inputs.in_flight} in flight",
    "degree and load": lambda row: (
        f"TP {row.inputs.tp} with {'64 or more' if row.inputs.in_flight >= 64 else 'up to 32'}"
    ),
}
HELD_OUT = (
    "model", "accelerator", "weight_dtype", "compute_dtype", "kv_dtype", "tp", "prompt_tokens", "output_tokens", "in_flight",
)  # fmt: skip
SOURCE = "# Rows that were not fitted, of silicon_sample.csv (ai-dynamo/aiconfigurator, Apache-2.0); by benchmarks.calibration"


def summary(off: Array) -> str:
    """Return the median, the ninth decile and the largest of the absolute errors, in words."""
    median, decile, worst = (100 * float(np.quantile(np.abs(off), level)) for level in (0.5, 0.9, 1.0))
    return f"the median error is {median:.1f} %, nine in ten are within {decile:.0f} %, and the worst is {worst:.0f} %"


def late(rows: Sequence[Row], values: Mapping[str, float]) -> float:
    """Return how many times as long as the loop's the measured times to the first token are, in the median."""
    return float(np.median([row.ttft_ms / (1e3 * loop_of(row, values).mean_ttft) for row in rows]))


def record(name: str, wanted: Wanted, values: Mapping[str, float], held: Sequence[Row], rows: Sequence[Row]) -> str:
    """Return a set's record."""
    accuracy = (
        f"Token time of {_span(held)}: on {len(held)} rows of configurations that were not fitted "
        f"{summary(errors(held, values))}. Not for the time to the first token, which is measured {late(held, values):.1f} "
        "times as long (median)."
    )
    numbers = "\n".join(f"{key} = {number}" for key, number in rounded(values).items())
    return (
        f'[{name}]\nname = "{wanted.name}"\n{numbers}\nlm_head_tokens = "last"\ncounts_kv_writes = true\n'
        f'accuracy = "{accuracy}"\nsources = ["aiconfigurator-silicon"]\nconfidence = "one-source"\n'
        f'unverified_fields = ["lm_head_tokens", "counts_kv_writes"]\nnotes = "{_note(values, held, rows)}"'
    )


def _span(rows: Sequence[Row]) -> str:
    models = ", ".join(sorted({f"{row.inputs.model} in {row.inputs.weight_dtype}" for row in rows}))
    degrees = ", ".join(map(str, sorted({row.inputs.tp for row in rows})))
    flights = [row.inputs.in_flight for row in rows]
    return f"{models} at TP {degrees} with {min(flights)} to {max(flights)} requests in flight"


def _note(values: Mapping[str, float], held: Sequence[Row], rows: Sequence[Row]) -> str:
    cross = summary(cross_validated(rows))
    parts = [
        f"Fitted to {len(rows) - len(held)} rows.",
        f"With each third of the configurations held out in turn {cross}.",
    ]
    if (others := transferred(rows)) is not None:
        parts.append(f"Of a model that was not fitted, {summary(others)}.")
    if large := [f"{name} {error:+.0%}" for name, error in _medians(rows, errors(rows, values)) if abs(error) >= LARGE]:
        parts.append(f"Median errors of all rows, above zero where too slow: {', '.join(large)}.")
    versions = sorted({row.version or "not given" for row in rows})
    parts.append(f"Versions: {', '.join(versions)}.")
    parts.append("What the rows do not tell apart is near usual values, so no single number is a property of the chip.")
    return " ".join(parts)


def _medians(rows: Sequence[Row], off: Array) -> list[tuple[str, float]]:
    """Return the signed median error of each group of several rows."""
    found = []
    for key in GROUPS.values():
        groups = defaultdict(list)
        for row, error in zip(rows, off, strict=True):
            groups[key(row)].append(error)
        found += [(name, float(np.median(each))) for name, each in sorted(groups.items()) if len(each) >= SEVERAL]
    return found


def held_out_lines(held: Mapping[str, Sequence[Row]]) -> list[str]:
    """Return the lines of the table of rows that were not fitted."""
    lines = [SOURCE, ",".join(("set", *HELD_OUT, "tpot_ms", "ttft_ms"))]
    for name, rows in held.items():
        for row in rows:
            given = (getattr(row.inputs, field) for field in HELD_OUT)
            texts = ("" if one is None else str(one) for one in given)
            lines.append(",".join([name, *texts, f"{row.tpot_ms:.5g}", f"{row.ttft_ms:.5g}"]))
    return lines


def main(words: Sequence[str] | None = None) -> int:
    """Fit what the command line asks for, print it, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calibration", description="Fit sets of assumptions.")
    parser.add_argument("file", type=Path, help="silicon_sample.csv, or a part of it; .gz is unpacked")
    parser.add_argument("--only", action="append", choices=list(SETS), metavar="SET", help=f"one of {', '.join(SETS)}")
    parser.add_argument("--held-out", type=Path, metavar="FILE", help="write the rows that were not fitted")
    asked = parser.parse_args(words)
    rows, left_out = read(asked.file)
    print(
        f"# {len(rows)} rows; left out: " + "; ".join(f"{count} {reason}" for reason, count in left_out.most_common())
    )
    offered: dict[str, list[Row]] = {}
    every: list[Array] = []
    for name in asked.only or SETS:
        own = [row for row in rows if SETS[name].has(row)]
        held = np.array(diagonals(own)) == 0
        if len(own) < OFFERED_ROWS or not held.any():
            print(f"\n# {name} is not offered: {len(own)} rows, {sum(held)} of them held out")
            continue
        values = fit(chosen(own, ~held))
        off = errors(chosen(own, held), values)
        if np.median(np.abs(off)) > OFFERED_ERROR:
            print(f"\n# {name} is not offered: on {sum(held)} of {len(own)} rows that were not fitted {summary(off)}")
            continue
        offered[name] = chosen(own, held)
        every.append(off)
        print("\n" + record(name, SETS[name], values, offered[name], own), flush=True)
    if every:
        print(f"\n# All sets, on {sum(map(len, every))} rows that were not fitted: {summary(np.concatenate(every))}")
    if asked.held_out:
        asked.held_out.write_text("\n".join(held_out_lines(offered)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
