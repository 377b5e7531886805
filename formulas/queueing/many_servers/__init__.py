"""Many instances: one queue that they share, or a queue of their own behind a router."""

from formulas.queueing.many_servers.bursty import BURSTY_MEAN_WAIT, EVEN_MEAN_WAIT, bursty_queue_laws
from formulas.queueing.many_servers.erlang import (
    MMC_MEAN_WAIT,
    MMC_QUANTILE,
    ROUTED_UTILIZATION,
    erlang_b,
    erlang_c,
)
from formulas.queueing.many_servers.lattice import LatticeLaw, Law, QueueLaws, own_queue_laws
from formulas.queueing.many_servers.mgc import (
    ALLEN_CUNNEEN_MEAN_WAIT,
    KIMURA_MEAN_WAIT,
    MEASURED_ERRORS,
    ROUND_ROBIN_MEAN_WAIT,
    ErrorBand,
    SharedQueueLaws,
    mgc_mean_wait,
    mgc_wait_probability,
    shared_queue_laws,
)
from formulas.queueing.many_servers.service_times import (
    Constant,
    LawTimes,
    LognormalTimes,
    ObservedTimes,
    ServiceTimes,
    draw_times,
)

__all__ = [
    "ALLEN_CUNNEEN_MEAN_WAIT", "BURSTY_MEAN_WAIT", "EVEN_MEAN_WAIT", "KIMURA_MEAN_WAIT", "MEASURED_ERRORS", "MMC_MEAN_WAIT", "MMC_QUANTILE",
    "ROUND_ROBIN_MEAN_WAIT", "ROUTED_UTILIZATION", "Constant", "ErrorBand", "LatticeLaw", "Law", "LawTimes", "LognormalTimes",
    "ObservedTimes", "QueueLaws", "ServiceTimes", "SharedQueueLaws", "bursty_queue_laws", "draw_times", "erlang_b", "erlang_c",
    "mgc_mean_wait", "mgc_wait_probability", "own_queue_laws", "shared_queue_laws",
]  # fmt: skip
