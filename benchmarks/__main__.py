"""Measure and print the table: ``python -m benchmarks [--quick] [--only NAME] [--load] [--json]``."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence

from benchmarks import accuracy, browser, goodput, numerics, report, sessions
from run import find_browser

BENCHMARKS = (
    numerics.SWEEP,
    numerics.SIMULATION,
    accuracy.ACCURACY,
    goodput.GOODPUT,
    sessions.SCRIPT,
    browser.MOVE,
    browser.START,
    sessions.LOAD,
)
ON_DEMAND = (goodput.GOODPUT, sessions.LOAD)


def main(words: Sequence[str] | None = None) -> int:
    """Measure what the command line asks for, print it, and return the exit status."""
    names = [each.name for each in BENCHMARKS]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="How fast Headroom is, against its targets."
    )
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--only", action="append", choices=names, metavar="NAME", help=f"one of {', '.join(names)}")
    parser.add_argument("--load", action="store_true", help=f"also {sessions.PEOPLE} people at once, on this machine")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    asked = parser.parse_args(words)
    on_demand = [each.name for each in ON_DEMAND if not (each is sessions.LOAD and asked.load)]
    wanted = asked.only or [each.name for each in BENCHMARKS if each.name not in on_demand]
    rows: list[report.Row] = []
    with contextlib.redirect_stdout(sys.stderr):
        machine = report.machine(find_browser())
        for each in BENCHMARKS:
            if each.name in wanted:
                print(f"measuring {each.name} …", file=sys.stderr, flush=True)
                rows += report.run(each, asked.quick)
        machine["load after"] = report.load()
    if asked.json:
        print(report.as_json(rows, machine))
    else:
        print(", ".join(f"{name} {value}" for name, value in machine.items()), report.table(rows), sep="\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
