"""What makes an answer checkable, as data: a formula with the numbers to put in, a fact with its sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import hardware_db
from formulas.closed_form import ClosedForm


@dataclass(frozen=True)
class ShownFormula:
    """A formula, the numbers to put in (SI units, by name), and a remark in Markdown."""

    form: ClosedForm
    values: Mapping[str, float] = field(default_factory=dict)
    remark: str = ""


@dataclass(frozen=True)
class Fact:
    """A record that an answer rests on.

    Attributes
    ----------
    what : str
        What it is.
    confidence : str
        How sure it is.
    sources : tuple of str
        Where it was read.
    remarks : tuple of str
        What a person should know about it.
    """

    what: str
    confidence: str
    sources: tuple[str, ...]
    remarks: tuple[str, ...] = ()


def fact_of(record: hardware_db.Record, kind: str, *remarks: str) -> Fact:
    """Return a record of the database as a fact: its citations, what was not verified, where sources disagree."""
    unverified = f"Not verified: {', '.join(record.unverified_fields)}." if record.unverified_fields else ""
    said = (*remarks, unverified, *record.open_conflicts, record.notes or "")
    return Fact(
        f"{kind}: {record.id}",
        record.confidence,
        tuple(map(str, record.citations())),
        tuple(filter(None, said)),
    )
