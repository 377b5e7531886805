"""Accelerators, links, models and workloads: figures with their sources, read from the TOML files under ``data/``.

Everything a caller needs is here; see ``README.md`` for the files and for how to add a record.
"""

from hardware_db.accelerator import Accelerator, DenseTflops, MemoryTier, Price
from hardware_db.assumptions import StepAssumptions
from hardware_db.attention import AttentionGroup
from hardware_db.dtypes import FORMATS, KV_BYTES, WeightFormat, weight_format
from hardware_db.errors import DatabaseError, UnknownFormat, UnsupportedDataType
from hardware_db.link import Link
from hardware_db.load import accelerators, assumptions, links, load_folder, models, speedups, workloads
from hardware_db.model import Model
from hardware_db.parameters import ParameterCount
from hardware_db.records import Record
from hardware_db.sources import Citation, Source, cite, sources
from hardware_db.speedup import Speedup
from hardware_db.workload import Slo, Workload

__all__ = [
    "FORMATS",
    "KV_BYTES",
    "Accelerator",
    "AttentionGroup",
    "Citation",
    "DatabaseError",
    "DenseTflops",
    "Link",
    "MemoryTier",
    "Model",
    "ParameterCount",
    "Price",
    "Record",
    "Slo",
    "Source",
    "Speedup",
    "StepAssumptions",
    "UnknownFormat",
    "UnsupportedDataType",
    "WeightFormat",
    "Workload",
    "accelerators",
    "assumptions",
    "cite",
    "links",
    "load_folder",
    "models",
    "sources",
    "speedups",
    "weight_format",
    "workloads",
]
