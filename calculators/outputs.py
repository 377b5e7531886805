"""What a result is: a frozen dataclass whose fields say what they are and in which unit.

The field's name carries its unit (``mean_ttft_ms``); :func:`output` adds what a person reads. From it come the
table of the command line, the JSON keys, the data table of a page and the rows of a CSV file.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import Any, cast, get_type_hints


@dataclass(frozen=True)
class Output:
    """What one figure of a result is.

    Attributes
    ----------
    label : str
        What a person reads.
    unit : str
        The unit, empty for a pure number.
    help : str
        How it is meant, where the label leaves that open.
    prefix : str
        For a nested result whose figures stand among those of the whole: what their names begin with.
    """

    label: str
    unit: str = ""
    help: str = ""
    prefix: str = ""


def output(label: str, unit: str = "", help: str = "", prefix: str = "", **kwargs: Any) -> Any:  # noqa: A002 - as for inputs
    """Declare one figure of a result as a dataclass field."""
    return field(metadata={"output": Output(label, unit, help, prefix)}, **kwargs)


def declared(result: type) -> Mapping[str, Output]:
    """Return the figures that the dataclass ``result`` declares, by name, in the order of declaration."""
    return _declared(cast("Hashable", result))


@cache
def _declared(result: Any) -> Mapping[str, Output]:
    return {f.name: f.metadata["output"] for f in fields(result) if "output" in f.metadata}


def spread(result: type) -> Mapping[str, Output]:
    """Return the figures of ``result`` by name, those of nested results with a prefix among them."""
    return _spread(cast("Hashable", result))


@cache
def _spread(result: Any) -> Mapping[str, Output]:
    found: dict[str, Output] = {}
    for name, each in declared(result).items():
        if each.prefix:
            inner = spread(get_type_hints(result)[name])
            found |= {
                f"{each.prefix}{key}": Output(f"{each.label}: {one.label}", one.unit, one.help)
                for key, one in inner.items()
            }
        else:
            found[name] = each
    return found


def as_dict(result: Any) -> dict[str, Any]:
    """Return the declared figures by name, ready for JSON: a number that does not exist is ``None``, never NaN."""
    found: dict[str, Any] = {}
    for name, each in declared(type(result)).items():
        value = _plain(getattr(result, name))
        found |= {f"{each.prefix}{key}": one for key, one in value.items()} if each.prefix else {name: value}
    return found


def columns_of(result: Any) -> dict[str, Any]:
    """Return the arrays of a result by title with unit: ``Mean TTFT (ms)``."""
    return {title: getattr(result, name) for name, title in titles(type(result)).items()}


def rows_of(results: Sequence[Any]) -> dict[str, list[Any]]:
    """Return several results of one type as columns by title with unit, a row for each."""
    if not results:
        return {}
    return {title: [getattr(row, name) for row in results] for name, title in titles(type(results[0])).items()}


def as_table(result: Any) -> dict[str, list[str]]:
    """Return the figures of a result as a table for people, nested ones under their own names; no lists."""
    rows = _rows(result)
    return {title: [row[place] for row in rows] for place, title in enumerate(("Figure", "Value", "Unit"))}


def _rows(result: Any, prefix: str = "") -> list[tuple[str, str, str]]:
    rows = []
    for name, each in declared(type(result)).items():
        value = getattr(result, name)
        if is_dataclass(value):
            rows += _rows(value, f"{each.label}: ")
        elif not isinstance(value, tuple):
            rows.append((prefix + each.label, readable(value), each.unit))
    return rows


def titles(result: type) -> Mapping[str, str]:
    """Return the title of each declared figure, with its unit: ``Mean TTFT (ms)``."""
    return {name: f"{each.label} ({each.unit})" if each.unit else each.label for name, each in declared(result).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if is_dataclass(value) and not isinstance(value, type):
        return as_dict(value)
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value


def readable(value: object, digits: int = 6) -> str:
    """Return a figure as a person reads it: so many significant digits, thousands apart, a dash for none.

    >>> readable(1234567.0), readable(14.0662071), readable(None), readable(True), readable(2022)
    ('1,234,570', '14.0662', '–', 'yes', '2022')
    >>> readable(11526.7, 4), readable(0.70331, 4)
    ('11,530', '0.7033')
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) > 9999 else str(value)
    if isinstance(value, float):
        return _readable_float(value, digits)
    return str(value)


def _readable_float(value: float, digits: int) -> str:
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(abs(value)))
    if not -5 <= exponent < 12:
        return f"{value:.{digits - 1}e}"
    places = digits - 1 - exponent
    text = f"{round(value, places):,.{max(0, places)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def apart(value: float, other: float) -> str:
    """Return a figure with four significant digits, or as many more as it takes to tell it from ``other``.

    >>> apart(0.99996, 1), apart(0.8, 1), apart(100.0000001, 100)
    ('0.99996', '0.8', '100.0000001')
    """
    for digits in range(4, 15):
        text = readable(float(value), digits)
        if text != readable(float(other), digits):
            return text
    return readable(float(value))


SECONDS_FROM_MS = 100_000.0
"""From how many milliseconds on a sentence says seconds; tables, files and the command line keep to ms."""


def duration(value_ms: float, other_ms: float | None = None) -> str:
    """Return a time for a sentence with its unit, with enough digits to tell it from ``other_ms`` where that is given.

    >>> duration(250.0), duration(99.99996, 100), duration(3_600_000.0), duration(3_600_000.4, 3_600_000)
    ('250 ms', '99.99996 ms', '3,600 s', '3,600.0004 s')
    """
    scale, unit = (1e3, "s") if abs(value_ms) >= SECONDS_FROM_MS else (1.0, "ms")
    value = float(value_ms) / scale
    return f"{readable(value) if other_ms is None else apart(value, other_ms / scale)} {unit}"


def short(value: float | None, unit: str = "") -> str:
    """Return a figure for a sentence or a headline: four significant digits and its unit, long times in seconds.

    >>> short(11526.7, "ms"), short(12_345_678.0, "ms"), short(None, "ms")
    ('11,530 ms', '12,350 s', '–')
    """
    if value is not None and unit == "ms" and abs(value) >= SECONDS_FROM_MS:
        value, unit = value / 1e3, "s"
    return "–" if value is None else f"{readable(float(value), 4)} {unit}".rstrip()


def counted(count: float | None, noun: str, plural: str = "") -> str:
    """Return a count with its noun, singular where the count reads 1.

    >>> counted(1, "sequence"), counted(4096, "sequence"), counted(2.5, "plain step"), counted(2, "batch", "batches")
    ('1 sequence', '4,096 sequences', '2.5 plain steps', '2 batches')
    """
    number = f"{count:,}" if isinstance(count, int) else readable(count, 4)
    return f"{number} {noun if number == '1' else plural or noun + 's'}"
