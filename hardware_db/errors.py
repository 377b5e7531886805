"""The errors of this room. Each is one sentence that a person can act on."""

from __future__ import annotations

from pathlib import Path


class DatabaseError(ValueError):
    """A data file holds something that a record may not hold.

    Parameters
    ----------
    reason : str
        What is wrong and what is allowed.
    file : Path
        The TOML file.
    record : str, optional
        The id of the record, when the fault lies in one.
    field : str, optional
        The key inside the record, dotted for sub-tables.
    """

    def __init__(self, reason: str, *, file: Path, record: str = "", field: str = "") -> None:
        where = [file.name]
        if record:
            where.append(f"record [{record}]")
        if field:
            where.append(f"field {field}")
        super().__init__(f"{', '.join(where)}: {reason}")
        self.reason = reason
        self.file = file
        self.record = record
        self.field = field


class UnsupportedDataType(ValueError):  # noqa: N818 - says what is wrong without the suffix
    """A chip was asked for the rate of a data type that it has no units for."""


class UnknownFormat(ValueError):  # noqa: N818 - as above
    """A weight format was named that the database does not define."""
