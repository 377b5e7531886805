"""Streamlit's own command with a clock in it: ``python -m benchmarks.timed_streamlit run app.py``.

The app is not changed and not told. Streamlit calls one function to run the callbacks and the script,
``exec_func_with_error_handling`` (1.67); it is wrapped here. For each run the file that ``HEADROOM_TIMINGS`` names
gets a line ``script <wall ms> <processor ms of its thread>``, and for each full garbage collection
``collection <ms>``: Streamlit forces one after every run. A run that ended because a callback or the script asked for
another one has a line ``part`` instead of ``script``; it belongs to the one that follows.
"""

import gc
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TIMINGS = "HEADROOM_TIMINGS"


def clocked(function: Callable[..., Any], record: Callable[..., None]) -> Callable[..., Any]:
    """Return the function with a record of the wall time and the processor time of each call."""

    def timed(*arguments: Any, **options: Any) -> Any:
        wall, processor = time.perf_counter(), time.thread_time()
        result = function(*arguments, **options)
        _, _, asked_for, *_ = result
        kind = "script" if asked_for is None else "part"
        record(kind, time.perf_counter() - wall, time.thread_time() - processor)
        return result

    return timed


def watch_collections(record: Callable[..., None]) -> None:
    """Record the time of each full garbage collection."""
    started: list[float] = []

    def watch(phase: str, details: dict[str, int]) -> None:
        if details["generation"] == 2 and phase == "start":
            started.append(time.perf_counter())
        elif details["generation"] == 2 and started:
            record("collection", time.perf_counter() - started.pop())

    gc.callbacks.append(watch)


def read(path: Path) -> tuple[list[tuple[float, float]], list[float]]:
    """Return what a file of timings says [ms]: wall and processor time of each run with its parts, and each collection's."""
    scripts, collections = [], []
    wall = processor = 0.0
    for line in path.read_text(encoding="utf-8").splitlines():
        kind, *times = line.split()
        if kind == "collection":
            collections.append(float(times[0]))
            continue
        wall, processor = wall + float(times[0]), processor + float(times[1])
        if kind == "script":
            scripts.append((wall, processor))
            wall = processor = 0.0
    return scripts, collections


def main() -> None:
    """Run Streamlit's command line with the clock in place."""
    from streamlit.runtime.scriptrunner import script_runner
    from streamlit.web import cli

    with Path(os.environ[TIMINGS]).open("a", encoding="utf-8", buffering=1) as file:

        def record(kind: str, *seconds: float) -> None:
            file.write(" ".join([kind, *(f"{1e3 * each:.4f}" for each in seconds)]) + "\n")

        # Setting the name in the module that calls it; an AttributeError here means that Streamlit has changed.
        script_runner.exec_func_with_error_handling = clocked(  # type: ignore[attr-defined]
            script_runner.exec_func_with_error_handling,  # type: ignore[attr-defined]
            record,
        )
        watch_collections(record)
        cli.main(prog_name="streamlit")


if __name__ == "__main__":
    main()
