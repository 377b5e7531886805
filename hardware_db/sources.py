"""The register of sources: each named once, cited by its id from every record that rests on it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hardware_db.errors import DatabaseError

SOURCES_FILE = Path(__file__).parent / "data" / "sources.toml"


@dataclass(frozen=True, slots=True)
class Source:
    """A place where figures were read.

    Attributes
    ----------
    title : str
        What it is.
    repository, commit, date, path : str or None
        For a repository: owner/name, the commit read, its date, and the file inside.
    urls : tuple of str
        Where to find it.
    low_quality : bool
        A reseller, a blog, or a page that was wrong elsewhere.
    """

    title: str
    repository: str | None = None
    commit: str | None = None
    date: str | None = None
    path: str | None = None
    urls: tuple[str, ...] = ()
    low_quality: bool = False


@dataclass(frozen=True, slots=True)
class Citation:
    """A source together with the place inside it that a record refers to."""

    source: Source
    place: str | None = None

    def __str__(self) -> str:
        source = self.source
        parts = [source.title]
        if self.place:
            parts.append(self.place)
        if source.repository:
            parts.append(source.repository + (f" @{source.commit}" if source.commit else ""))
        if source.date:
            parts.append(source.date)
        parts.extend(source.urls)
        if source.low_quality:
            parts.append("low quality")
        return ", ".join(parts)


@cache
def sources() -> Mapping[str, Source]:
    """Return all sources by id, in the order of the file.

    Examples
    --------
    >>> sources()["aiconfigurator"].repository
    'ai-dynamo/aiconfigurator'
    """
    try:
        tables = tomllib.loads(SOURCES_FILE.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DatabaseError(f"is not valid TOML: {error}", file=SOURCES_FILE) from error
    return MappingProxyType({key: _source(key, table) for key, table in tables.items()})


def _source(key: str, table: Any) -> Source:
    try:
        return Source(**{**table, "urls": tuple(table.get("urls", ()))})
    except (TypeError, AttributeError) as error:
        raise DatabaseError(f"is no source: {error}", file=SOURCES_FILE, record=key) from error


@cache
def source_ids() -> frozenset[str]:
    """Return the ids that a record may cite."""
    return frozenset(sources())


def cite(reference: str) -> Citation:
    """Resolve a record's reference to a full citation.

    Parameters
    ----------
    reference : str
        ``"id"`` or ``"id: place inside the source"``.

    Raises
    ------
    KeyError
        If the id is not registered.
    """
    key, _, place = reference.partition(":")
    return Citation(sources()[key], place.strip() or None)
