"""Service times from prompt lengths: distributions of lengths, the law that they produce, and its transforms."""

from formulas.queueing.service.histogram import HistogramLengths
from formulas.queueing.service.law import ServiceLaw, equal_service, mixed_service, scaled, service_law
from formulas.queueing.service.lengths import GammaLengths, Lengths, ListedLengths, LognormalLengths, UniformLengths

__all__ = [
    "GammaLengths", "HistogramLengths", "Lengths", "ListedLengths", "LognormalLengths", "ServiceLaw", "UniformLengths",
    "equal_service", "mixed_service", "scaled", "service_law",
]  # fmt: skip
