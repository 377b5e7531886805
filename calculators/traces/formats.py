"""Which columns of a trace hold what: the public formats, and those that the caller names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

TimeUnit = Literal["date", "s", "ms", "us", "ns"]

SECONDS: dict[TimeUnit, float] = {"date": 1e-9, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
"""Seconds in a unit; a date is counted in nanoseconds."""


class TraceError(ValueError):
    """A file that is no trace, or not a readable one; the message is a sentence for people."""


@dataclass(frozen=True)
class Columns:
    """Names of the columns of a trace.

    Parameters
    ----------
    time
        Of the time of arrival.
    input_tokens, output_tokens
        Of the lengths.
    time_unit
        Unit of the times, or "date" for ISO 8601 dates; None looks at the first one: a date, or seconds.
    name
        What the format is called.

    Examples
    --------
    >>> Columns("start", "prompt", "completion", "ms").names
    ('start', 'prompt', 'completion')
    """

    time: str
    input_tokens: str
    output_tokens: str
    time_unit: TimeUnit | None = None
    name: str = "your columns"

    @property
    def names(self) -> tuple[str, str, str]:
        """The three names: time, input, output."""
        return self.time, self.input_tokens, self.output_tokens


AZURE = Columns("TIMESTAMP", "ContextTokens", "GeneratedTokens", "date", "Azure LLM inference trace")
"""Azure/AzurePublicDataset, AzureLLMInferenceTrace: dates to 100 ns."""

MOONCAKE = Columns("timestamp", "input_length", "output_length", "ms", "Mooncake trace")
"""kvcache-ai/Mooncake, FAST 2025: milliseconds from the start, and hash ids of prefix blocks, which are not read."""

FORMATS = (AZURE, MOONCAKE)


def choose_columns(found: Sequence[str], wanted: Columns | None) -> Columns:
    """Return the caller's columns, or those of the format that has them all.

    Parameters
    ----------
    found
        Names in the file.
    wanted
        What the caller named, or None to recognise the format.

    Raises
    ------
    TraceError
        If a column is missing.

    Examples
    --------
    >>> choose_columns(["timestamp", "input_length", "output_length", "hash_ids"], None).name
    'Mooncake trace'
    """
    there = ", ".join(found) or "none"
    if wanted is not None:
        if len(set(wanted.names)) < len(wanted.names):
            raise TraceError(
                f"The time of arrival, the input tokens and the output tokens are three columns; {', '.join(wanted.names)} are "
                f"not. The file has: {there}."
            )
        missing = [name for name in wanted.names if name not in found]
        if missing:
            raise TraceError(f"There is no column {' and no column '.join(missing)}. The file has: {there}.")
        return wanted
    for known in FORMATS:
        if set(known.names) <= set(found):
            return known
    formats = "; ".join(f"{known.name}: {', '.join(known.names)}" for known in FORMATS)
    raise TraceError(
        f"The columns are of no format known here, so name those of the time of arrival, the input tokens and the output "
        f"tokens. The file has: {there}. Known formats have: {formats}."
    )
