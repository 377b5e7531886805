"""What a trace shows beyond its means: the rate over time, bursts by time scale, lengths with their fits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from calculators.outputs import output, readable
from calculators.traces import Trace
from formulas import traffic
from formulas.closed_form import DomainError

Array = NDArray[np.float64]

_BINS = 120
_CURVE_POINTS = 200
_WIDTHS_S = [base * 10.0**power for power in range(-4, 7) for base in (1, 2, 5)]

FITS: dict[traffic.Fit, str] = {"moments": "by mean and spread", "likelihood": "by the logarithms"}


@dataclass(frozen=True)
class RateCurve:
    """Rate of the trace over time."""

    start_s: Array = output("From", "s")
    rate: Array = output("Rate", "requests/s")


@dataclass(frozen=True)
class BurstCurve:
    """Index of dispersion against the length of the window."""

    window_s: Array = output("Window", "s")
    index: Array = output("Variance of the counts over their mean")
    poisson_error: Array = output("Standard error that Poisson arrivals would have")


@dataclass(frozen=True)
class LengthCurve:
    """Share of the requests longer than a length, and two log-normal laws."""

    tokens: Array = output("Length", "tokens")
    seen: Array = output("Share longer, trace")
    moments: Array = output("Share longer, log-normal by mean and spread")
    likelihood: Array = output("Share longer, log-normal by the logarithms")


@dataclass(frozen=True)
class FitRow:
    """One log-normal law and its misfit."""

    lengths: str = output("Lengths")
    fit: str = output("Log-normal law")
    mean: float = output("Mean", "tokens")
    cv: float = output("Spread")
    ks_percent: float = output("Largest difference of the shares", "%")
    p50_off_percent: float = output("Median off by", "%")
    p90_off_percent: float = output("P90 off by", "%")
    p99_off_percent: float = output("P99 off by", "%")


@dataclass(frozen=True)
class TraceStatistics:
    """What a trace shows; what cannot be said of it is ``None`` or an empty list."""

    width_s: float
    peak_over_mean: float
    rate: RateCurve
    bursts: BurstCurve | None
    inputs: LengthCurve
    outputs: LengthCurve
    fits: tuple[FitRow, ...]
    correlation: float | None
    rank_correlation: float | None


@lru_cache(maxsize=2)  # of a trace of millions of requests it takes a second
def statistics_of(trace: Trace) -> TraceStatistics:
    """Return what a trace shows."""
    duration = float(trace.arrivals[-1])
    width = next((width for width in _WIDTHS_S if duration / width <= _BINS), duration / _BINS)
    rate = traffic.rate_over_time(trace.arrivals, min(width, duration))
    lengths = {"prompts": trace.input_tokens, "outputs": trace.output_tokens}
    laws = {name: [traffic.fit_lognormal(tokens, fit) for fit in FITS] for name, tokens in lengths.items()}
    return TraceStatistics(
        width_s=rate.width_s,
        peak_over_mean=rate.peak_over_mean,
        rate=RateCurve(rate.starts_s, rate.rates),
        bursts=_bursts(trace),
        inputs=_length_curve(trace.input_tokens, laws["prompts"]),
        outputs=_length_curve(trace.output_tokens, laws["outputs"]),
        fits=tuple(_fit_row(name, law) for name, fitted in laws.items() for law in fitted),
        correlation=_correlation(trace, ranks=False),
        rank_correlation=_correlation(trace, ranks=True),
    )


def _bursts(trace: Trace) -> BurstCurve | None:
    try:
        found = traffic.index_of_dispersion(trace.arrivals)
    except DomainError:  # fewer than ten windows fit
        return None
    return BurstCurve(found.windows_s, found.index, found.poisson_error)


def _correlation(trace: Trace, *, ranks: bool) -> float | None:
    try:
        return (traffic.rank_correlation if ranks else traffic.correlation)(trace.input_tokens, trace.output_tokens)
    except DomainError:  # all of one length
        return None


def _length_curve(tokens: NDArray[np.int64], laws: list[traffic.LognormalFit]) -> LengthCurve:
    ordered = np.sort(tokens)
    lengths = np.geomspace(max(ordered[0], 1), max(ordered[-1], 2), _CURVE_POINTS)
    seen = 1 - np.searchsorted(ordered, lengths, side="right") / len(ordered)
    return LengthCurve(lengths, seen, *(_survival(law, lengths) for law in laws))


def _survival(law: traffic.LognormalFit, lengths: Array) -> Array:
    from scipy.special import ndtr  # slow to import, and needed by few

    if law.sigma == 0:
        return (lengths < law.mean).astype(float)
    return np.asarray(ndtr(-(np.log(lengths / law.mean) + law.sigma**2 / 2) / law.sigma))


def _fit_row(name: str, law: traffic.LognormalFit) -> FitRow:
    off = {level: 100 * law.quantile_errors[level] for level in (0.5, 0.9, 0.99)}
    return FitRow(name, FITS[law.fit], law.mean, law.cv, 100 * law.ks_distance, *off.values())


def on_trace(found: TraceStatistics, gap_scv: float) -> str:
    """Return what the arrivals and lengths of a trace amount to, in Markdown."""
    start = (
        f"The busiest {readable(found.width_s)} s has **{readable(found.peak_over_mean, 3)} times** the mean rate; gaps have a "
        f"squared coefficient of variation of **{readable(gap_scv, 3)}** (Poisson: 1)."
    )
    parts = [start]
    if found.bursts is not None:
        index, window = float(found.bursts.index[-1]), float(found.bursts.window_s[-1])
        parts.append(
            f"Over windows of {readable(window, 3)} s the counts vary {readable(index, 3)} times as much as Poisson's."
        )
        if index > 2 * max(gap_scv, 1):
            parts.append(
                "**The rate itself changes**: gamma arrivals with the spread of the gaps, which the formulas take, miss those "
                "bursts. The replay has them."
            )
    if found.correlation is not None and found.rank_correlation is not None:
        parts.append(
            f"Prompt and output lengths have a correlation of {found.correlation:.2f}, of their ranks "
            f"{found.rank_correlation:.2f}."
        )
    return " ".join(parts)
