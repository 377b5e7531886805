"""Goals, figures, and the table that holds one against the other."""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import json
import math
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

PACKAGES = ("streamlit", "plotly", "sympy", "numpy", "scipy")


class NotMeasured(Exception):  # noqa: N818 - an outcome, and its message is what the row says
    """A figure could not be measured; the message says why."""


@dataclass(frozen=True)
class Goal:
    """One row of the table before it is measured.

    Attributes
    ----------
    what
        What is measured.
    unit
        Unit of the figure and of the target.
    target
        What the figure must not exceed; None for a figure that only informs.
    at_least
        Whether the figure must reach the target instead.
    """

    what: str
    unit: str
    target: float | None = None
    at_least: bool = False


@dataclass(frozen=True)
class Figure:
    """What was measured, usually a median; None if it could not be, and then the remark says why."""

    value: float | None
    remark: str = ""


@dataclass(frozen=True)
class Benchmark:
    """A subject: its rows, and the function that measures them, told whether to be quick."""

    name: str
    goals: tuple[Goal, ...]
    measure: Callable[[bool], Sequence[Figure]]


@dataclass(frozen=True)
class Row:
    """A goal with its figure."""

    benchmark: str
    goal: Goal
    figure: Figure

    @property
    def ratio(self) -> float | None:
        """Measured over target; None where one of the two is missing."""
        if self.figure.value is None or self.goal.target is None:
            return None
        return self.figure.value / self.goal.target

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None where there is nothing to compare."""
        if self.ratio is None:
            return None
        return self.ratio >= 1 if self.goal.at_least else self.ratio <= 1

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """What stands in the table."""
        goal, value = self.goal, self.figure.value
        sign = "≥" if goal.at_least else "≤"
        return (
            goal.what,
            "not measured" if value is None else f"{value:.3g} {goal.unit}",
            "" if goal.target is None else f"{sign} {goal.target:g} {goal.unit}",
            "" if self.ratio is None else f"{self.ratio:.2f}" + ("" if self.met else " (missed)"),
        )


def run(benchmark: Benchmark, quick: bool) -> list[Row]:
    """Measure a benchmark; if it cannot be measured, every row says why."""
    try:
        figures = benchmark.measure(quick)
    except NotMeasured as reason:
        figures = [Figure(None, f"not measured: {reason}")] * len(benchmark.goals)
    return [Row(benchmark.name, goal, figure) for goal, figure in zip(benchmark.goals, figures, strict=True)]


def quantile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that a share of the values do not exceed: a value that was measured.

    Examples
    --------
    >>> quantile([3.0, 1.0, 2.0, 4.0], 0.5)
    2.0
    """
    return sorted(values)[max(math.ceil(share * len(values)) - 1, 0)]


def table(rows: Sequence[Row]) -> str:
    """Return the rows as a table that is also Markdown, and their remarks below it."""
    lines = [("what", "measured", "target", "measured/target"), *(row.cells for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(4)]
    drawn = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |"
             for line in lines]  # fmt: skip
    drawn.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    remarks = [f"- {row.goal.what}: {row.figure.remark.rstrip(chr(46))}." for row in rows if row.figure.remark]
    return "\n".join([*drawn, "", *remarks])


def as_json(rows: Sequence[Row], machine: dict[str, str]) -> str:
    """Return the rows and the machine as JSON."""
    listed = [asdict(row) | {"ratio": row.ratio, "met": row.met} for row in rows]
    return json.dumps({"machine": machine, "rows": listed}, indent=2, ensure_ascii=False)


def machine(chromium: str | None) -> dict[str, str]:
    """Return what the figures depend on: date, processor, versions, and how busy the machine was before."""
    found = {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "cores": str(os.process_cpu_count() if hasattr(os, "process_cpu_count") else os.cpu_count()),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }
    found |= {name: importlib.metadata.version(name) for name in PACKAGES}
    found["chromium"] = _chromium_version(chromium) if chromium else "none found"
    return found | {"pace": f"{pace_ms():.0f} ms", "load before": load()}


def pace_ms() -> float:
    """Return the time of a fixed piece of plain Python [ms], to tell a slow or busy machine from a slow program."""
    taken = []
    for _ in range(5):
        start = time.perf_counter()
        sum(number * number for number in range(1_000_000))
        taken.append(1e3 * (time.perf_counter() - start))
    return statistics.median(taken)


def load() -> str:
    """Return how many processes wanted a core in the last minute, on average."""
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


def _chromium_version(path: str) -> str:
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)  # noqa: S603 - found on PATH
    numbers = [word for word in said.stdout.split() if word[:1].isdigit()]
    return numbers[0] if numbers else "unknown"
