"""What every record has: an id, sources, a grade of confidence, and strict checking.

Strictness is the point of this module. A key that no one reads, a number written as text, a NaN or a
source that does not exist stops the load with a sentence naming file, record and field.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from hardware_db.sources import Citation, cite, source_ids


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("has characters that cannot be printed")
    return text


Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True), AfterValidator(_printable)]
Positive = Annotated[float, Field(gt=0)]
Fraction = Annotated[float, Field(gt=0, le=1)]
Count = Annotated[int, Field(gt=0)]
CountOrZero = Annotated[int, Field(ge=0)]
Year = Annotated[int, Field(ge=2000, le=2035)]
DataType = Literal["fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4", "int4"]
Confidence = Literal["confirmed-two-sources", "one-source", "from-memory"]

FIELD_RULE = "field_rule"


def broken_rule(field: str, reason: str) -> PydanticCustomError:
    """Return the error for a rule that spans fields, pointing at the field to look at first.

    Parameters
    ----------
    field : str
        Key of the record, dotted for sub-tables.
    reason : str
        What is wrong and what is allowed.
    """
    return PydanticCustomError(FIELD_RULE, "{reason}", {"field": field, "reason": reason})


class Table(BaseModel):
    """A part of a record: frozen, strict, no unknown keys, no NaN or infinity."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Record(Table):
    """A fact sheet with its sources.

    Attributes
    ----------
    id : str
        The table's name in the TOML file; stable, used in links and on the command line.
    sources : tuple of str
        Where the figures were read: an id of ``data/sources.toml``, optionally ``"id: place inside it"``.
    confidence : str
        Grade of the core fields: ``confirmed-two-sources``, ``one-source`` or ``from-memory``.
    unverified_fields : tuple of str
        Fields of this record that were recalled or assumed, not read.
    open_conflicts : tuple of str
        Where sources disagree: the value used and the others.
    notes : str or None
        What a reader should know before using the figures.
    """

    id: Text
    sources: Annotated[tuple[Text, ...], Field(min_length=1)]
    confidence: Confidence
    unverified_fields: tuple[Text, ...] = ()
    open_conflicts: tuple[Text, ...] = ()
    notes: Text | None = None

    def citations(self) -> tuple[Citation, ...]:
        """Return the sources in full: title, repository, commit, date, address."""
        return tuple(cite(source) for source in self.sources)

    def is_verified(self, field: str) -> bool:
        """Say whether a field was read from a source rather than recalled or assumed.

        Parameters
        ----------
        field : str
            Key as written in the data file, e.g. ``"tdp_w"`` or ``"dense_tflops.fp8"``.
        """
        return self.confidence != "from-memory" and field not in self.unverified_fields

    @model_validator(mode="after")
    def _sources_are_registered(self) -> Self:
        check_sources("sources", self.sources)
        return self

    @model_validator(mode="after")
    def _unverified_fields_exist(self) -> Self:
        for name in self.unverified_fields:
            value: object = self
            for part in name.split("."):
                # Only data fields count: a derived property is neither verified nor unverified.
                known = isinstance(value, BaseModel) and part in type(value).model_fields
                value = getattr(value, part) if known else None
            if value is None:
                raise broken_rule(
                    "unverified_fields", f"'{name}' is not a field that this record has; name one that is set"
                )
        return self


def check_sources(field: str, sources: tuple[str, ...]) -> None:
    """Refuse a source that ``data/sources.toml`` does not describe.

    Parameters
    ----------
    field : str
        The field that holds the sources, for the message.
    sources : tuple of str
        ``"id"`` or ``"id: place"``.

    Raises
    ------
    PydanticCustomError
        If an id is not registered; the loader turns it into a `DatabaseError`.
    """
    known = source_ids()
    for source in sources:
        if source.partition(":")[0] not in known:
            raise broken_rule(
                field,
                f"'{source}' does not start with an id of data/sources.toml; add the source there first",
            )
