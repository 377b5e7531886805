"""Blocks of CSV or JSON lines to the three columns of a trace, every row with its line.

The fast readers of PyArrow do the work. Where one refuses a block of JSON lines because of a single bad line, that
block is read line by line.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
from numpy.typing import NDArray

from calculators.outputs import counted
from calculators.traces.formats import Columns, TraceError

Lines = NDArray[np.int64]
_SHOWN = 80  # characters of a bad line


@dataclass(frozen=True)
class BrokenRow:
    """A row that could not be used.

    Attributes
    ----------
    line
        Its line in the file, counted from 1; where quoted fields contain line ends, its row.
    reason
        What is wrong, in a few words.
    """

    line: int
    reason: str


@dataclass(frozen=True)
class Rows:
    """A block's raw values by column, with their lines.

    Attributes
    ----------
    lines, columns
        Line of each row, and its values: time, input and output tokens.
    broken
        Lines that are no rows.
    quoted_ends
        Line ends inside quotes, which belong to their field.
    """

    lines: Lines
    columns: tuple[Sequence[Any], Sequence[Any], Sequence[Any]]
    broken: tuple[BrokenRow, ...] = ()
    quoted_ends: int = 0


class CsvRows:
    """Reads blocks of CSV.

    Parameters
    ----------
    header
        The first line.
    """

    def __init__(self, header: str) -> None:
        import pandas as pd

        counts = {mark: header.count(mark) for mark in (",", ";", "\t")}
        self.delimiter = max(counts, key=lambda mark: counts[mark])
        try:
            self.names = [name.strip() for name in next(csv.reader([header], delimiter=self.delimiter))]
        except csv.Error as error:
            raise TraceError(f"The first line cannot be read as the heads of a CSV file: {error}.") from None
        if self.names and np.all(np.isfinite(pd.to_numeric(pd.Series(self.names), errors="coerce"))):
            raise TraceError("The first line holds numbers: a line with the columns' names is needed above them.")
        if len(set(self.names)) < len(self.names):
            raise TraceError(f"Two columns have the same name. The file has: {', '.join(self.names)}.")

    def read(self, block: bytes, columns: Columns, first_line: int) -> Rows:
        """Return the rows of a block that starts at a line."""
        refused: list[Any] = []

        def refuse(row: Any) -> str:
            refused.append(row)
            return "skip"

        block = _readable(block)
        try:
            table = pyarrow.csv.read_csv(
                io.BytesIO(block),
                pyarrow.csv.ReadOptions(column_names=self.names, use_threads=False, block_size=len(block) + 1),
                self._parse(refuse, newlines=b'"' in block),
                pyarrow.csv.ConvertOptions(
                    include_columns=list(columns.names),
                    column_types=dict.fromkeys(columns.names, pa.string()),
                    strings_can_be_null=False,
                ),
            )
        except pa.ArrowInvalid as error:
            raise TraceError(f"From line {first_line:,} on, this cannot be read as CSV: {error}.") from error
        broken = [
            BrokenRow(
                first_line + row.number - 1, f"{counted(row.actual_columns, 'field')} instead of {row.expected_columns}"
            )
            for row in refused
        ]
        total = table.num_rows + len(broken)
        lines = first_line + np.delete(np.arange(total), [row.number - 1 for row in refused])
        return _without_empty_lines(
            Rows(lines, _arrays(table, columns), tuple(broken), _line_count(block) - total), block, first_line
        )

    def _parse(self, refuse: Any = None, *, newlines: bool = False) -> Any:
        return pyarrow.csv.ParseOptions(
            delimiter=self.delimiter,
            invalid_row_handler=refuse,
            newlines_in_values=newlines,
            ignore_empty_lines=False,
        )


class JsonRows:
    """Reads blocks of JSON lines.

    Parameters
    ----------
    first
        The first object.
    """

    def __init__(self, first: dict[str, Any]) -> None:
        self.names = list(first)
        self._types = {name: pa.string() if isinstance(value, str) else pa.float64() for name, value in first.items()}

    def read(self, block: bytes, columns: Columns, first_line: int) -> Rows:
        """Return the rows of a block that starts at a line; empty lines are passed over."""
        schema = pa.schema([(name, self._types[name]) for name in columns.names])
        options = pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
        expected = _line_count(block)
        try:
            table = pyarrow.json.read_json(
                io.BytesIO(block), pyarrow.json.ReadOptions(use_threads=False, block_size=len(block) + 1), options
            )
        except pa.ArrowInvalid:
            return _line_by_line(block, columns, first_line)
        if table.num_rows != expected:  # empty lines, or two objects on one
            return _line_by_line(block, columns, first_line)
        lines = first_line + np.arange(expected)
        return Rows(lines, _arrays(table, columns))


def _readable(block: bytes) -> bytes:
    """Return the block with marks in place of bytes that are no text."""
    if block.isascii():
        return block
    return block.decode(errors="replace").encode()


def _arrays(table: Any, columns: Columns) -> tuple[Any, Any, Any]:
    time, inputs, outputs = (table[name].combine_chunks() for name in columns.names)
    return time, inputs, outputs


def _line_count(block: bytes) -> int:
    return block.count(b"\n") + (not block.endswith(b"\n"))


def _without_empty_lines(rows: Rows, block: bytes, first_line: int) -> Rows:
    """Pass over lines with nothing on them, which PyArrow takes for rows of empty values."""
    if rows.quoted_ends or (b"\n\n" not in block and b"\n\r\n" not in block and block[:1] not in (b"\r", b"\n")):
        return rows
    texts = block.splitlines()
    full = np.array([bool(texts[line - first_line].strip()) for line in rows.lines])
    time, inputs, outputs = (values.filter(pa.array(full)) for values in rows.columns)  # type: ignore[attr-defined]
    return Rows(rows.lines[full], (time, inputs, outputs), rows.broken, rows.quoted_ends)


def _line_by_line(block: bytes, columns: Columns, first_line: int) -> Rows:
    lines, values, broken = [], [], []
    for number, text in enumerate(block.splitlines(), start=first_line):
        if not text.strip():
            continue
        try:
            found = json.loads(text)
        except ValueError:
            shown = text[:_SHOWN].decode(errors="replace").strip()
            broken.append(BrokenRow(number, f"not JSON: {shown}"))
            continue
        if not isinstance(found, dict):
            broken.append(BrokenRow(number, "no object with names and values"))
            continue
        lines.append(number)
        values.append([found.get(name) for name in columns.names])
    times, inputs, outputs = zip(*values, strict=True) if values else ((), (), ())
    return Rows(np.array(lines, dtype=np.int64), (times, inputs, outputs), tuple(broken))


def first_object(block: bytes) -> dict[str, Any]:
    r"""Return the first object of a block of JSON lines.

    Raises
    ------
    TraceError
        If there is none.

    Examples
    --------
    >>> first_object(b'{"a": 1}\n{"a": 2}\n')
    {'a': 1}
    """
    for text in block.splitlines():
        try:
            found = json.loads(text)
        except ValueError:
            continue
        if isinstance(found, dict):
            return found
    raise TraceError("Not one line of the file is a JSON object. A trace in JSON has one object a line.")
