"""Traffic as it is: what a trace says about arrivals and lengths, in numbers that the formulas take."""

from formulas.traffic.arrivals import (
    Dispersion,
    RateOverTime,
    autocorrelation,
    gap_cv2,
    index_of_dispersion,
    mean_rate,
    rate_over_time,
)
from formulas.traffic.lengths import (
    Fit,
    LengthStatistics,
    LognormalFit,
    correlation,
    fit_lognormal,
    histogram,
    length_statistics,
    rank_correlation,
)

__all__ = [
    "Dispersion", "Fit", "LengthStatistics", "LognormalFit", "RateOverTime", "autocorrelation", "correlation",
    "fit_lognormal", "gap_cv2", "histogram", "index_of_dispersion", "length_statistics", "mean_rate", "rank_correlation",
    "rate_over_time",
]  # fmt: skip
