"""A trace of requests: what it says in the words of the inputs, and on the command line, the inputs that it fills."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeVar

from calculators.fleet import ROUNDING
from calculators.inputs import InputError, InputsError, declared
from calculators.lengths import text_of
from calculators.outputs import output
from calculators.traces import Columns, Trace, TraceError, read_trace
from calculators.traces.formats import SECONDS
from formulas import traffic
from formulas.closed_form import DomainError
from formulas.queueing.bursts.gamma_contour import MOST_EVEN

R = TypeVar("R")


@dataclass(frozen=True)
class TraceSummary:
    """What a trace says."""

    format: str = output("Format")
    requests: int = output("Requests read")
    broken_rows: int = output("Rows that could not be used")
    broken: tuple[str, ...] = output("The first of them")
    duration_s: float = output("Duration", "s")
    rate: float = output("Mean rate", "requests/s")
    prompt_tokens: float = output("Mean prompt", "tokens")
    prompt_cv: float = output("Spread of prompts", "", "Coefficient of variation")
    output_tokens: float = output("Mean output", "tokens")
    output_cv: float = output("Spread of outputs", "", "Coefficient of variation")
    prompt_histogram: str = output(
        "Histogram of prompts", "", "Upper edge of each bucket in tokens, and requests in it"
    )
    arrival_scv: float = output("Burstiness of arrivals", "", "Squared coefficient of variation of the gaps")


@lru_cache(maxsize=4)
def summarise(trace: Trace) -> TraceSummary:
    """Return what a trace says.

    Raises
    ------
    DomainError
        If it has fewer than two requests, or all came at once.
    """
    prompts, outputs = traffic.length_statistics(trace.input_tokens), traffic.length_statistics(trace.output_tokens)
    return TraceSummary(
        format=trace.columns.name,
        requests=len(trace),
        broken_rows=trace.broken_rows,
        broken=tuple(f"line {row.line}: {row.reason}" for row in trace.first_broken),
        duration_s=float(trace.arrivals[-1]),
        rate=traffic.mean_rate(trace.arrivals),
        prompt_tokens=prompts.mean,
        prompt_cv=prompts.cv,
        output_tokens=outputs.mean,
        output_cv=outputs.cv,
        prompt_histogram=text_of(*traffic.histogram(trace.input_tokens)),
        arrival_scv=traffic.gap_cv2(trace.arrivals),
    )


def trace_of(inputs: Any) -> Trace:
    """Return the trace in the file that inputs name, read once as long as the file stays as it is.

    Raises
    ------
    InputsError
        If it cannot be read, or is no trace, or its columns are not named as they should be.
    """
    path, columns = inputs.trace, columns_of(inputs.trace_columns)
    return _guarded(path, lambda: _read(path, columns, *_stamp(path)))


def summary_of(inputs: Any) -> TraceSummary:
    """Return what the trace in the file that inputs name says; raises as :func:`trace_of`."""
    path, columns = inputs.trace, columns_of(inputs.trace_columns)
    return _guarded(path, lambda: _summary(path, columns, *_stamp(path)))


def columns_of(text: str | None) -> Columns | None:
    """Return the columns that a text names, ``None`` for those of the format.

    Raises
    ------
    InputsError
        If it names none, or not all of them.

    Examples
    --------
    >>> columns_of("time=t, input=in, output=out, unit=ms")
    Columns(time='t', input_tokens='in', output_tokens='out', time_unit='ms', name='your columns')
    """
    if not text:
        return None
    named = {name.strip(): column.strip() for name, _, column in (part.partition("=") for part in text.split(","))}
    unit = named.pop("unit", None)
    if set(named) != {"time", "input", "output"} or not all(named.values()) or unit not in (None, *SECONDS):
        missing = [name for name in ("time", "input", "output") if not named.get(name)]
        sentence = (
            f"{'missing: ' + ', '.join(missing) + '; ' if missing else ''}three columns and a unit are to be named, as in "
            f"time=arrived,input=prompt,output=answer,unit=ms; units: {', '.join(SECONDS)}, or none for that of the first time"
        )
        raise InputsError([InputError("trace_columns", text, sentence)])
    return Columns(named["time"], named["input"], named["output"], unit)


def _guarded(path: str, function: Callable[[], R]) -> R:
    try:
        return function()
    except (TraceError, DomainError, OSError) as error:
        reason = (
            f"The file cannot be read: {error.strerror}."
            if isinstance(error, OSError)
            else " ".join(str(error).split())
        )
        raise InputsError([InputError("trace", path, reason)]) from None


def _stamp(path: str) -> tuple[int, int]:
    found = os.stat(path)  # noqa: PTH116 - of a path as it was given
    return found.st_mtime_ns, found.st_size


@lru_cache(maxsize=2)
def _read(path: str, columns: Columns | None, changed: int, size: int) -> Trace:  # noqa: ARG001 - what a changed file is told apart by
    return read_trace(path, columns)


@lru_cache(maxsize=8)
def _summary(path: str, columns: Columns | None, changed: int, size: int) -> TraceSummary:
    return summarise(_read(path, columns, changed, size))


def values_from(summary: TraceSummary) -> dict[str, float | str]:
    """Return the inputs that a trace fills, by name, as the inputs take them: lengths in whole tokens."""
    spread = summary.prompt_cv >= ROUNDING
    return {
        "rate": summary.rate,
        "prompt_tokens": max(round(summary.prompt_tokens), 1),
        "prompt_cv": summary.prompt_cv if spread else 0.0,
        "prompt_histogram": summary.prompt_histogram if spread else "",
        "arrival_scv": 0.0 if summary.arrival_scv < 1 / MOST_EVEN else summary.arrival_scv,  # as good as a steady beat
    }


def of_outputs(summary: TraceSummary) -> dict[str, float]:
    """Return what a trace says of the outputs, for the pages that decode them."""
    return {"output_tokens": max(round(summary.output_tokens), 1), "output_cv": summary.output_cv}


def fill_from_trace(inputs: Any, given: frozenset[str]) -> Any:
    """Return the inputs with what their trace says, but for those that were given.

    Raises
    ------
    InputsError
        If the file is no trace, or says what an input does not allow.
    """
    if inputs.trace is None:
        return inputs
    known, filled, errors = declared(type(inputs)), {}, []
    if given & {"prompt_cv", "prompt_distribution"}:  # who says how they are spread does not want the trace's own
        given |= {"prompt_histogram"}
    for name, value in values_from(summary_of(inputs)).items():
        if name not in given:
            try:
                filled[name] = known[name].check(value)
            except InputError as error:
                errors.append(known[name].error(value, f"the trace says so, and it is {error.sentence}; give another"))
    if errors:
        raise InputsError(errors)
    return replace(inputs, **filled)
