"""Traces of requests from files: arrivals and lengths, with every row that could not be used."""

from calculators.traces.formats import AZURE, FORMATS, MOONCAKE, Columns, TraceError
from calculators.traces.reader import Trace, read_trace
from calculators.traces.rows import BrokenRow

__all__ = ["AZURE", "FORMATS", "MOONCAKE", "BrokenRow", "Columns", "Trace", "TraceError", "read_trace"]
