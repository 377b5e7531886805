"""The database as tables to browse: which columns, which rows a search finds, one record in full."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hardware_db
from calculators.inputs import choice, text
from calculators.scenario import Hardware

TABLES: Mapping[str, Callable[[], Mapping[str, Any]]] = {
    "accelerators": hardware_db.accelerators,
    "links": hardware_db.links,
    "models": hardware_db.models,
    "assumptions": hardware_db.assumptions,
    "workloads": hardware_db.workloads,
    "speedups": hardware_db.speedups,
}
"""The tables that can be browsed, by the name that a link carries."""

NOTES: Mapping[str, str] = {
    "accelerators": "dense rates, links one way, memory as the driver reports it",
    "links": "one way, for each accelerator",
    "models": "parameters recounted from each shape, compared with the published totals",
    "assumptions": "what a step reaches of the nominal rates",
    "workloads": "mean lengths in tokens of each source's tokenizer; what is not verified is named in its column",
    "speedups": "of tensor parallelism, as engines were measured",
}
"""How the figures of a table are meant."""

TENSOR_DTYPES = tuple(hardware_db.DenseTflops.model_fields)


@dataclass(frozen=True, kw_only=True)
class HardwareInputs(Hardware):
    """Which table is shown, what is searched in it, which record is opened."""

    table: str = choice("Table", options=TABLES, default="accelerators", help="Which part of the database is shown.")
    find: str = text("Find", help="Shows the records that have all of these words in their id, name, vendor or kind.")
    roofline_dtype: str = choice(
        "Rooflines for",
        options=TENSOR_DTYPES,
        default="bf16",
        help="Data type whose dense rates the rooflines show.",
    )
    record: str | None = choice(
        "Record in full",
        options=dict.fromkeys(key for table in TABLES.values() for key in table()),
        default=None,
        empty="the accelerator",
        help="One record with all its fields and its sources.",
    )


Column = tuple[str, Callable[[Any], Any]]

_ACCELERATOR: tuple[Column, ...] = (
    ("Id", lambda a: a.id),
    ("Vendor", lambda a: a.vendor),
    ("Name", lambda a: a.name),
    ("Memory (GB)", lambda a: round(a.memory_bytes / 1e9, 1)),
    ("Memory bandwidth (GB/s)", lambda a: a.memory_bandwidth_gb_s),
    ("BF16 dense (TFLOP/s)", lambda a: a.dense_tflops.bf16),
    ("FP16 dense (TFLOP/s)", lambda a: a.dense_tflops.fp16),
    ("FP8 dense (TFLOP/s)", lambda a: a.dense_tflops.fp8),
    ("FP4 dense (TFLOP/s)", lambda a: a.dense_tflops.fp4),
    ("Scale-up, one way (GB/s)", lambda a: a.scale_up_gb_s),
    ("Scale-up domain", lambda a: a.scale_up_domain),
    ("Power (W)", lambda a: a.tdp_w),
    ("Rent from (USD/h)", lambda a: a.price_usd_per_hour and a.price_usd_per_hour.low),
    ("Rent to (USD/h)", lambda a: a.price_usd_per_hour and a.price_usd_per_hour.high),
    ("Year", lambda a: a.launch_year),
    ("Announced only", lambda a: a.announced),
    ("Confidence", lambda a: a.confidence),
)
_LINK: tuple[Column, ...] = (
    ("Id", lambda k: k.id),
    ("Name", lambda k: k.name),
    ("Kind", lambda k: k.kind),
    ("One way (GB/s)", lambda k: k.gb_s),
    ("Latency (µs)", lambda k: k.latency_us),
    ("Efficiency", lambda k: k.efficiency),
    ("Applies to", lambda k: k.applies_to),
    ("Year", lambda k: k.year),
    ("Confidence", lambda k: k.confidence),
)
_MODEL: tuple[Column, ...] = (
    ("Id", lambda m: m.id),
    ("Kind", lambda m: m.kind),
    ("Parameters (1e9)", lambda m: m.parameters.total / 1e9),
    ("Active (1e9)", lambda m: m.parameters.active / 1e9),
    ("Layers", lambda m: m.layers),
    ("Hidden", lambda m: m.hidden),
    ("Heads", lambda m: m.heads),
    ("KV heads", lambda m: m.kv_heads),
    ("Attention", lambda m: m.attention),
    ("KV, BF16 (bytes/token)", lambda m: m.kv_bytes_per_token_bf16),
    ("Experts", lambda m: m.experts or None),
    ("Experts per token", lambda m: m.experts_per_token or None),
    ("Native weights", lambda m: m.native_weights),
    ("Context (tokens)", lambda m: m.max_context),
    ("Confidence", lambda m: m.confidence),
)
_ASSUMPTIONS: tuple[Column, ...] = (
    ("Id", lambda s: s.id),
    ("Name", lambda s: s.name),
    ("Compute efficiency", lambda s: s.compute_efficiency),
    ("Memory efficiency", lambda s: s.memory_efficiency),
    ("Link efficiency", lambda s: s.link_efficiency),
    ("Step overhead (ms)", lambda s: s.step_overhead_ms),
    ("All-reduce latency (µs)", lambda s: s.allreduce_latency_us),
    ("lm_head for", lambda s: s.lm_head_tokens),
    ("Confidence", lambda s: s.confidence),
)
_WORKLOAD: tuple[Column, ...] = (
    ("Id", lambda w: w.id),
    ("Name", lambda w: w.name),
    ("Kind", lambda w: w.kind),
    ("Prompt (tokens)", lambda w: w.prompt_tokens),
    ("Prompt, CV", lambda w: w.prompt_cv),
    ("Output (tokens)", lambda w: w.output_tokens),
    ("Output, CV", lambda w: w.output_cv),
    ("Requests", lambda w: w.requests),
    ("Targets (TTFT, TPOT)", lambda w: "; ".join(map(_targets, w.slos)) or None),
    ("Confidence", lambda w: w.confidence),
    ("Not verified", lambda w: ", ".join(w.unverified_fields) or None),
    ("Sources", lambda w: "; ".join(w.sources)),
)
_SPEEDUP: tuple[Column, ...] = (
    ("Id", lambda s: s.id),
    ("Model", lambda s: s.model),
    ("Accelerator", lambda s: s.accelerator),
    ("Engine", lambda s: s.engine),
    ("Phase", lambda s: s.phase),
    ("Prompt (tokens)", lambda s: s.prompt_tokens),
    ("From tp", lambda s: s.from_tp),
    ("To tp", lambda s: s.to_tp),
    ("Speedup", lambda s: s.speedup),
    ("Confidence", lambda s: s.confidence),
    ("Not verified", lambda s: ", ".join(s.unverified_fields) or None),
    ("Sources", lambda s: "; ".join(s.sources)),
)


def _targets(slo: hardware_db.Slo) -> str:
    return f"{slo.model} {slo.ttft_ms:,g} ms, {slo.tpot_ms:g} ms"


_COLUMNS = {
    "accelerators": _ACCELERATOR,
    "links": _LINK,
    "models": _MODEL,
    "assumptions": _ASSUMPTIONS,
    "workloads": _WORKLOAD,
    "speedups": _SPEEDUP,
}
_SEARCHED = (
    "id",
    "name",
    "vendor",
    "kind",
    "form",
    "memory_type",
    "scale_up_link",
    "attention",
    "applies_to",
    "hf_repo",
    "model",
    "accelerator",
    "engine",
    "phase",
)


def found(inputs: HardwareInputs) -> list[Any]:
    """Return the records of the chosen table that have every word of the search."""
    words = inputs.find.casefold().split()
    return [record for record in TABLES[inputs.table]().values() if all(word in _searchable(record) for word in words)]


def _searchable(record: Any) -> str:
    return " ".join(str(getattr(record, name, "") or "") for name in _SEARCHED).casefold()


def columns(table: str, records: list[Any]) -> dict[str, list[Any]]:
    """Return the table's columns, by title with unit."""
    return {title: [value(record) for record in records] for title, value in _COLUMNS[table]}


@dataclass(frozen=True)
class Roofline:
    """The rate that an accelerator reaches at most, against arithmetic intensity."""

    id: str
    name: str
    intensity: NDArray[np.float64]
    tflops: NDArray[np.float64]
    ridge: float


INTENSITIES = np.geomspace(1, 10_000, 3)
"""The two ends of the plot and one point between: a roofline bends once, at its ridge."""


def rooflines(inputs: HardwareInputs) -> tuple[list[Roofline], list[str]]:
    """Return the rooflines of the accelerators found, and the names of those without the data type.

    At intensity I [FLOP/byte] the rate is min(peak, I × memory bandwidth); both nominal, for one accelerator.
    """
    chosen = hardware_db.accelerators().values() if inputs.table != "accelerators" else found(inputs)
    own = hardware_db.accelerators()[inputs.accelerator]
    lines, without = [], []
    for accelerator in {each.id: each for each in (*chosen, own)}.values():
        if inputs.roofline_dtype not in accelerator.data_types:
            without.append(accelerator.name)
            continue
        peak, bandwidth = accelerator.peak_flops(inputs.roofline_dtype), accelerator.memory_bandwidth_bytes_s
        ridge = peak / bandwidth
        intensity = np.unique(np.append(INTENSITIES, ridge))
        tflops = np.minimum(peak, intensity * bandwidth) / 1e12
        lines.append(Roofline(accelerator.id, accelerator.name, intensity, tflops, ridge))
    return lines, without


def record_of(inputs: HardwareInputs) -> Any:
    """Return the record that is shown in full."""
    wanted = inputs.record or inputs.accelerator
    first = [inputs.table] if inputs.record else []
    for table in (*first, *TABLES):
        if wanted in TABLES[table]():
            return TABLES[table]()[wanted]
    raise KeyError(wanted)


def fields_of(record: Any) -> dict[str, list[str]]:
    """Return a record's fields as two columns: name, and value with a mark where it was not verified."""
    skipped = {"sources", "unverified_fields", "open_conflicts", "notes"}
    names, values = [], []
    for name, value in _flat(record.model_dump(exclude=skipped, exclude_none=True)):
        names.append(name)
        values.append(value if record.is_verified(name) else f"{value}  (not verified)")
    return {"Field": names, "Value": values}


def _flat(fields: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for name, value in fields.items():
        if isinstance(value, dict):
            rows += _flat(value, f"{prefix}{name}.")
        elif isinstance(value, tuple | list):
            rows += [(f"{prefix}{name}", "; ".join(map(_item, value)))] if value else []
        else:
            rows.append((f"{prefix}{name}", f"{value:,}" if isinstance(value, int) and value > 9999 else str(value)))
    return rows


def _item(value: Any) -> str:
    """Return one value of a list: a part of a record reads ``name value, name value``."""
    return ", ".join(f"{name} {each}" for name, each in value.items()) if isinstance(value, dict) else str(value)
