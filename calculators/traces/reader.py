"""Traces of requests, when they came and how long they were, read in blocks with bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from calculators.traces.blocks import BLOCK_BYTES, Progress, line_blocks
from calculators.traces.formats import Columns, TimeUnit, TraceError, choose_columns
from calculators.traces.rows import BrokenRow, CsvRows, JsonRows, Rows, first_object
from calculators.traces.values import convert, in_seconds, looks_like_date
from formulas.montecarlo.serving import Workload

Array = NDArray[np.float64]
Whole = NDArray[np.int64]

_NO_ROW = "a line that is no row"


@dataclass(frozen=True, eq=False)
class Trace:
    """Requests in order of arrival, and what the reader has to say about the file.

    Attributes
    ----------
    arrivals
        Times of arrival, from the first one on [s].
    input_tokens, output_tokens
        Lengths, at least one token each [].
    columns
        The columns that were read, with the name of the format.
    start
        When the first request came, where the file has dates (ISO 8601, UTC where it has zones); else None.
    rows
        Rows in the file, broken ones included [].
    broken
        How many rows could not be used, by what was wrong.
    first_broken
        The first few of them.
    notes
        Sentences about what else was done to the file.
    """

    arrivals: Array
    input_tokens: Whole
    output_tokens: Whole
    columns: Columns
    start: str | None
    rows: int
    broken: dict[str, int]
    first_broken: tuple[BrokenRow, ...]
    notes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.arrivals)

    @property
    def broken_rows(self) -> int:
        """Number of rows that could not be used []."""
        return sum(self.broken.values())

    @property
    def workload(self) -> Workload:
        """The same as the simulations take it."""
        return Workload(self.arrivals, self.input_tokens, self.output_tokens)


def read_trace(
    source: Path | str | BinaryIO,
    columns: Columns | None = None,
    progress: Progress | None = None,
    shown: int = 10,
    block_bytes: int = BLOCK_BYTES,
) -> Trace:
    r"""Read a trace: CSV with a header, or one JSON object a line; plain, or compressed with gzip.

    Parameters
    ----------
    source
        Path, or a binary file that can be rewound, such as an upload.
    columns
        Which columns hold what; None recognises the formats of :data:`calculators.traces.FORMATS`.
    progress
        Called with the share of the file that is read, from 0 to 1. What it raises stops the reading.
    shown
        How many broken rows to show with line and reason [].
    block_bytes
        Bytes read at once; besides those, memory holds 24 bytes of each request, and for a moment twice that [B].

    Raises
    ------
    TraceError
        Where the file is no trace, lacks a column, or has not one usable row; a sentence for people.

    Examples
    --------
    >>> import io
    >>> trace = read_trace(io.BytesIO(b"timestamp,input_length,output_length\n0,512,64\n250,x,8\n500,30,9\n"))
    >>> trace.arrivals, trace.first_broken[0].line, trace.first_broken[0].reason
    (array([0. , 0.5]), 3, 'input_length is x: not a number')
    """
    blocks = line_blocks(source, progress, block_bytes)
    found = _Found(shown)
    for rows, chosen in _rows(blocks, columns):
        found.add(rows, chosen)
    return found.trace()


def _rows(blocks: Iterator[bytes], wanted: Columns | None) -> Iterator[tuple[Rows, Columns]]:
    """Yield the raw rows of each block, with the columns that the first one shows."""
    first = next((block for block in blocks if block.strip()), None)
    if first is None:
        raise TraceError("The file is empty.")
    body = first.lstrip()
    line = 1 + first.count(b"\n") - body.count(b"\n")
    if body.startswith(b"["):
        raise TraceError("This is one JSON list. A trace in JSON has one object a line, without brackets or commas.")
    reader: CsvRows | JsonRows
    if body.startswith(b"{"):
        reader = JsonRows(first_object(body))
    else:
        header, _, body = body.partition(b"\n")
        reader = CsvRows(header.decode(errors="replace").rstrip("\r"))
        line += 1
    columns = choose_columns(reader.names, wanted)
    for block in chain((body,), blocks):
        if block:
            yield reader.read(block, columns, line), columns
            line += block.count(b"\n")


class _Found:
    """What the blocks so far have brought."""

    def __init__(self, shown: int) -> None:
        self.shown = shown
        self.columns: Columns | None = None
        self.unit: TimeUnit = "s"
        self.start: Any = None
        self.parts: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
        self.kinds: Counter[str] = Counter()
        self.first: list[BrokenRow] = []
        self.quoted_ends = 0

    def add(self, rows: Rows, columns: Columns) -> None:
        """Take in the rows of a block."""
        if self.columns is None and len(rows.lines):
            self.columns = columns
            self.unit = columns.time_unit or ("date" if looks_like_date(rows.columns[0][0]) else "s")
        values = convert(rows, columns, self.unit, self.shown - len(self.first))
        self.kinds.update(values.kinds)
        if rows.broken:
            self.kinds[_NO_ROW] += len(rows.broken)
        shown = sorted((*rows.broken, *values.broken), key=lambda row: row.line)
        self.first += shown[: self.shown - len(self.first)]
        self.quoted_ends += rows.quoted_ends
        if len(values.times):
            self.start = values.times[0] if self.start is None else self.start
            times = in_seconds(values.times, self.start, self.unit)
            for part, column in zip(self.parts, (times, values.input_tokens, values.output_tokens), strict=True):
                part.append(column)

    def trace(self) -> Trace:
        """Put everything together, in order of time."""
        broken = sum(self.kinds.values())
        if self.start is None or self.columns is None:
            if not broken:
                raise TraceError("The file has the names of its columns, and no rows.")
            first = "; ".join(f"line {row.line}: {row.reason}" for row in self.first[:3])
            raise TraceError(f"Not one of the {broken:,} rows could be used. {first}.")
        arrivals, inputs, outputs = (_joined(part) for part in self.parts)
        early = int(np.count_nonzero(arrivals[1:] < arrivals[:-1]))
        if early:
            order = np.argsort(arrivals, kind="stable")
            arrivals, inputs, outputs = arrivals[order], inputs[order], outputs[order]
        start = self._start(float(arrivals[0])) if self.unit == "date" else None
        arrivals -= arrivals[0]
        rows = len(arrivals) + broken
        return Trace(
            arrivals, inputs, outputs, self.columns, start, rows, dict(self.kinds), tuple(self.first),
            self._notes(early),
        )  # fmt: skip

    def _start(self, offset: float) -> str:
        import pandas as pd

        return str(pd.Timestamp(int(self.start) + round(offset * 1e9)).isoformat())

    def _notes(self, early: int) -> tuple[str, ...]:
        notes = []
        if early:
            notes.append(f"Rows that came earlier than the row above them: {early:,}. All are sorted by time.")
        if self.quoted_ends:
            notes.append(f"Line ends inside quotes, taken for part of their field: {self.quoted_ends:,}.")
        return tuple(notes)


def _joined(parts: list[Any]) -> Any:
    """Put the blocks of a column together, and let go of them."""
    whole = np.concatenate(parts)
    parts.clear()
    return whole
