"""Raw values of a trace to numbers, and for those that are none, what is wrong with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calculators.traces.formats import SECONDS, Columns, TimeUnit
from calculators.traces.rows import BrokenRow, Rows

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
Mask = NDArray[np.bool_]

_MOST_TOKENS = 1e9
_SHOWN = 40  # characters of a bad value


@dataclass(frozen=True)
class Values:
    """What a block holds: times in nanoseconds of dates or in the file's own unit, lengths in tokens."""

    times: Array | Whole
    input_tokens: Whole
    output_tokens: Whole
    broken: tuple[BrokenRow, ...]
    kinds: Counter[str]


def convert(rows: Rows, columns: Columns, unit: TimeUnit, shown: int) -> Values:
    """Return the numbers of the good rows, and the first few broken ones with their reasons.

    Parameters
    ----------
    rows
        Raw values.
    columns
        Names, for the reasons.
    unit
        Of the times.
    shown
        How many broken rows to show; the rest are counted.

    Examples
    --------
    >>> rows = Rows(np.array([2, 3]), (("0.5", "1"), ("7", "0"), ("3", "4")))
    >>> convert(rows, Columns("t", "in", "out"), "s", 5).broken[0].reason
    'in is 0: less than one token'
    """
    import pandas as pd

    times = dates(rows.columns[0]) if unit == "date" else numbers(rows.columns[0])
    inputs, outputs = numbers(rows.columns[1]), numbers(rows.columns[2])
    unreadable = pd.isna(times) if unit == "date" else ~np.isfinite(np.asarray(times, dtype=float))
    problems = (
        (0, np.asarray(unreadable), "not a date" if unit == "date" else "not a number"),
        *_length_problems(1, inputs),
        *_length_problems(2, outputs),
    )
    good = ~np.logical_or.reduce([mask for _, mask, _ in problems])
    broken, kinds = _broken(rows, columns, problems, shown)
    kept = np.asarray(times)[good]
    if unit == "date":
        kept = kept.astype("datetime64[ns]").astype(np.int64)
    return Values(kept, inputs[good].astype(np.int64), outputs[good].astype(np.int64), broken, kinds)


def in_seconds(times: Array | Whole, start: float, unit: TimeUnit) -> Array:
    """Return times from a start, both in the file's unit, in seconds.

    Examples
    --------
    >>> in_seconds(np.array([1500.0, 2500.0]), 1500.0, "ms")
    array([0., 1.])
    """
    return np.asarray((times - start) * SECONDS[unit], dtype=float)


EARLIEST, LATEST = np.datetime64("2000-01-01", "ns"), np.datetime64("2200-01-01", "ns")


def looks_like_date(value: Any) -> bool:
    """Whether a raw time is a date rather than a number.

    Examples
    --------
    >>> looks_like_date("2023-11-16 18:15:46.6805900"), looks_like_date("12.5"), looks_like_date(3)
    (True, False, False)
    """
    import pandas as pd

    plain = value.as_py() if isinstance(value, pa.Scalar) else value
    return bool(np.isnan(numbers([plain])[0])) and not pd.isna(dates([plain]))[0]


def numbers(raw: Sequence[Any]) -> Array:
    """Return numbers, NaN where there is none.

    Examples
    --------
    >>> numbers(["1.5", "x", 3, None])
    array([1.5, nan, 3. , nan])
    """
    import pandas as pd

    if isinstance(raw, pa.Array):
        try:
            return np.asarray(pc.cast(raw, pa.float64()).to_numpy(zero_copy_only=False))
        except pa.ArrowInvalid:
            raw = raw.to_pylist()
    texts = pd.Series([_plain(value) for value in raw], dtype=object)
    return np.asarray(pd.to_numeric(texts, errors="coerce"), dtype=float)


def dates(raw: Sequence[Any]) -> Any:
    """Return dates as NumPy's, to the nanosecond; not a time where there is none.

    Examples
    --------
    >>> dates(["2023-11-16 18:15:46.6805900", "yesterday"])
    array(['2023-11-16T18:15:46.680590000', 'NaT'], dtype='datetime64[ns]')
    """
    import pandas as pd

    if isinstance(raw, pa.Array):
        for zone in (None, "UTC"):  # twenty times as fast as pandas, but not for a single bad date
            try:
                return _plausible(pc.cast(raw, pa.timestamp("ns", zone)).to_numpy(zero_copy_only=False))
            except pa.ArrowInvalid:
                continue
        raw = raw.to_pylist()
    texts = pd.Series([_plain(value) for value in raw], dtype=object)
    found = pd.to_datetime(texts, format="ISO8601", errors="coerce", utc=True)
    return _plausible(found.dt.tz_localize(None).to_numpy().astype("datetime64[ns]"))


def _plausible(found: Any) -> Any:
    """Return dates, not a time where a request to a language model cannot have come: a number read as a year, say."""
    return np.where((found >= EARLIEST) & (found < LATEST), found, np.datetime64("NaT", "ns"))


def _plain(value: Any) -> Any:
    """Return a text or a number; anything else is nothing."""
    if isinstance(value, str):
        return value.strip()
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _length_problems(column: int, lengths: Array) -> tuple[tuple[int, Mask, str], ...]:
    return (
        (column, np.isnan(lengths), "not a number"),
        (column, lengths < 1, "less than one token"),
        (column, lengths > _MOST_TOKENS, "more than a thousand million tokens"),
        (column, lengths != np.floor(lengths), "not a whole number of tokens"),
    )


def _broken(
    rows: Rows, columns: Columns, problems: tuple[tuple[int, Mask, str], ...], shown: int
) -> tuple[tuple[BrokenRow, ...], Counter[str]]:
    """Return the first few broken rows in words, and how many there are of each kind, by their first problem."""
    masks = np.array([mask for _, mask, _ in problems])
    places = np.flatnonzero(masks.any(axis=0))
    which = masks[:, places].argmax(axis=0)
    kinds: Counter[str] = Counter()
    for problem, count in zip(*np.unique(which, return_counts=True), strict=True):
        column, _, what = problems[problem]
        kinds[f"{columns.names[column]} is {what}"] += int(count)
    first = []
    for place, problem in zip(places[:shown].tolist(), which.tolist(), strict=False):
        column, _, what = problems[problem]
        value = _text(rows.columns[column][place])
        name = columns.names[column]
        first.append(
            BrokenRow(int(rows.lines[place]), f"{name} is {value}: {what}" if value else f"there is no {name}")
        )
    return tuple(first), kinds


def _text(value: Any) -> str:
    plain = value.as_py() if isinstance(value, pa.Scalar) else value
    if plain is None:
        return ""
    return str(plain).strip()[:_SHOWN]
