"""Arrivals that are not Poisson: regular or bursty gaps, batches, single bursts, and rates that switch."""

from formulas.queueing.bursts.approximations import (
    ALLEN_CUNNEEN,
    KINGMAN_BOUND,
    KLB_BURSTY,
    KLB_REGULAR,
    klb_mean_wait,
)
from formulas.queueing.bursts.gamma_arrivals import (
    GAMMA_DECAY_RATE,
    gamma_mean_wait,
    gamma_no_wait,
    gamma_wait_quantile,
    gamma_wait_survival,
)
from formulas.queueing.bursts.gamma_prompts import (
    gamma_law_mean_wait,
    gamma_law_ttft_quantile,
    gamma_law_ttft_survival,
    gamma_law_wait_quantile,
    gamma_law_wait_survival,
)
from formulas.queueing.bursts.simultaneous import (
    BATCH_MEAN_WAIT,
    BURST_DRAIN,
    BURST_MEAN_WAIT,
    batch_wait_quantile,
    batch_wait_survival,
    burst_mean_wait,
    burst_quantile,
    largest_burst,
)
from formulas.queueing.bursts.switching import (
    SWITCHING_DISPERSION,
    SWITCHING_MEAN_WAIT,
    SWITCHING_RATE,
    Switching,
    burst_process,
)
from formulas.queueing.bursts.switching_queue import (
    switching_mean_wait,
    switching_wait_quantile,
    switching_wait_survival,
)

__all__ = [
    "ALLEN_CUNNEEN", "BATCH_MEAN_WAIT", "BURST_DRAIN", "BURST_MEAN_WAIT", "GAMMA_DECAY_RATE", "KINGMAN_BOUND",
    "KLB_BURSTY", "KLB_REGULAR", "SWITCHING_DISPERSION", "SWITCHING_MEAN_WAIT", "SWITCHING_RATE", "Switching",
    "batch_wait_quantile", "batch_wait_survival", "burst_mean_wait", "burst_process", "burst_quantile",
    "gamma_law_mean_wait", "gamma_law_ttft_quantile", "gamma_law_ttft_survival", "gamma_law_wait_quantile",
    "gamma_law_wait_survival", "gamma_mean_wait", "gamma_no_wait", "gamma_wait_quantile", "gamma_wait_survival",
    "klb_mean_wait", "largest_burst", "switching_mean_wait", "switching_wait_quantile", "switching_wait_survival",
]  # fmt: skip
