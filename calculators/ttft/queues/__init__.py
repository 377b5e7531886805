"""What the traffic makes of the queue, one class for each method: the mean and the percentiles of TTFT at any rate.

Rates are those of the whole pool [requests/s]; times are in ms.
"""

from calculators.ttft.queues.base import Kind, Queue
from calculators.ttft.queues.bursty import BatchD1, SwitchingD1
from calculators.ttft.queues.gamma import GammaD1, GammaG1
from calculators.ttft.queues.poisson import Md1, Mg1
from calculators.ttft.queues.pool import RoundRobin, SharedBursty, SharedEqual, SharedSpread

__all__ = [
    "BatchD1", "GammaD1", "GammaG1", "Kind", "Md1", "Mg1", "Queue", "RoundRobin", "SharedBursty", "SharedEqual", "SharedSpread",
    "SwitchingD1",
]  # fmt: skip
