"""Reading the data files: parsed and checked once per process, the three kinds apart from each other."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, cast

from pydantic import ValidationError

from hardware_db.accelerator import Accelerator
from hardware_db.assumptions import StepAssumptions
from hardware_db.errors import DatabaseError
from hardware_db.link import Link
from hardware_db.model import Model
from hardware_db.records import FIELD_RULE, Record
from hardware_db.speedup import Speedup
from hardware_db.workload import Workload

DATA = Path(__file__).parent / "data"
_ID = re.compile(r"[a-z0-9][a-z0-9.-]*")

R = TypeVar("R", bound=Record)


@cache
def accelerators() -> Mapping[str, Accelerator]:
    """Return all accelerators by id; the mapping cannot be changed.

    Examples
    --------
    >>> accelerators()["h100-sxm"].peak_flops("bf16")
    989e12
    """
    found = load_folder(DATA / "accelerators", Accelerator)
    check_links(found, links())
    return found


@cache
def links() -> Mapping[str, Link]:
    """Return all links by id; the mapping cannot be changed.

    Examples
    --------
    >>> links()["nvlink4"].bytes_s
    450e9
    """
    return load_folder(DATA / "links", Link)


@cache
def models() -> Mapping[str, Model]:
    """Return all models by id; the mapping cannot be changed.

    Examples
    --------
    >>> models()["llama-3.1-8b"].parameters.matmul_active
    7504658432
    """
    return load_folder(DATA / "models", Model)


@cache
def assumptions() -> Mapping[str, StepAssumptions]:
    """Return all named sets of step-time assumptions by id; the mapping cannot be changed.

    Examples
    --------
    >>> assumptions()["course"].compute_efficiency
    0.6
    """
    return load_folder(DATA / "assumptions", StepAssumptions)


@cache
def speedups() -> Mapping[str, Speedup]:
    """Return all measured speedups by id; the mapping cannot be changed.

    Examples
    --------
    >>> speedups()["opt-13b-a100-512-1-2"].speedup
    1.43
    """
    return load_folder(DATA / "speedups", Speedup)


@cache
def workloads() -> Mapping[str, Workload]:
    """Return all workloads by id; the mapping cannot be changed.

    Examples
    --------
    >>> workloads()["chat-sharegpt"].slo_for("opt-66b").ttft_ms
    2500.0
    """
    found = load_folder(DATA / "workloads", Workload)
    check_models(found, models())
    return found


def check_models(found: Mapping[str, Workload], known: Mapping[str, Model]) -> None:
    """Refuse workloads with targets for a model that does not exist.

    Raises
    ------
    DatabaseError
        Names record and field.
    """
    for key, workload in found.items():
        for slo in workload.slos:
            if slo.model not in known:
                reason = f"'{slo.model}' is not the id of a model"
                raise DatabaseError(reason, file=DATA / "workloads", record=key, field="slos")


def check_links(found: Mapping[str, Accelerator], known: Mapping[str, Link]) -> None:
    """Refuse accelerators that name a link which does not exist, or claim more of it than it carries one way.

    Raises
    ------
    DatabaseError
        Names record and field.
    """
    folder = DATA / "accelerators"
    for key, chip in found.items():
        for field, rate in (("scale_up_link_id", chip.scale_up_gb_s), ("host_link_id", chip.host_gb_s)):
            name = getattr(chip, field)
            if name is None:
                continue
            if name not in known:
                raise DatabaseError(f"'{name}' is not the id of a link", file=folder, record=key, field=field)
            if rate is not None and rate > 1.01 * known[name].gb_s:
                rated = field.replace("link_id", "gb_s")
                reason = f"{rate:g} is more than the {known[name].gb_s:g} of {name}; give one direction"
                raise DatabaseError(reason, file=folder, record=key, field=rated)


def load_folder(folder: Path, record_type: type[R]) -> Mapping[str, R]:
    """Read every ``*.toml`` of a folder, files by name and records in the order of the file.

    Parameters
    ----------
    folder : Path
        Holds one or more TOML files; each table is a record and its name the record's id.
    record_type : type
        `Accelerator`, `Link` or `Model`.

    Returns
    -------
    Mapping
        Read-only, from id to record.

    Raises
    ------
    DatabaseError
        If a file is not TOML, a record breaks a rule, or an id occurs twice. Names file, record and field.
    """
    records: dict[str, R] = {}
    origin: dict[str, Path] = {}
    files = sorted(folder.glob("*.toml"))
    if not files:
        raise DatabaseError("there is no .toml file in this folder", file=folder)
    for file in files:
        for key, table in _parse(file).items():
            if key in origin:
                raise DatabaseError(
                    f"the id is already used in {origin[key].name}; ids must be unique", file=file, record=key
                )
            records[key] = _build(record_type, key, table, file)
            origin[key] = file
    return MappingProxyType(records)


def _parse(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DatabaseError(f"is not valid TOML: {error}", file=file) from error


def _build(record_type: type[R], key: str, table: object, file: Path) -> R:
    if not isinstance(table, dict):
        raise DatabaseError("stands outside a record; put it under a [record-id] heading", file=file, field=key)
    if not _ID.fullmatch(key):
        reason = "an id has lower-case letters, digits, points and hyphens only: it goes into links"
        raise DatabaseError(reason, file=file, record=key)
    if "id" in table:
        raise DatabaseError("must not be written: the heading is the id", file=file, record=key, field="id")
    try:
        return record_type.model_validate({"id": key, **cast("dict[str, Any]", _frozen(table))})
    except ValidationError as error:
        raise _as_database_error(error, key, file) from None


def _frozen(value: object) -> object:
    """Turn TOML arrays into tuples, which strict frozen records ask for."""
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    if isinstance(value, dict):
        return {key: _frozen(item) for key, item in value.items()}
    return value


def _as_database_error(error: ValidationError, key: str, file: Path) -> DatabaseError:
    first, *rest = error.errors(include_url=False)
    if first["type"] == FIELD_RULE:
        field, reason = first["ctx"]["field"], first["msg"]
    else:
        field = ".".join(str(part) for part in first["loc"])
        reason = first["msg"][0].lower() + first["msg"][1:]
        if first["type"] not in {"missing", "extra_forbidden"}:
            reason += f", got {first['input']!r}"
    if rest:
        reason += f" (and {len(rest)} more in this record)"
    return DatabaseError(reason, file=file, record=key, field=field)
