r"""The key-value cache on the move: time on a link, what a link carries, what prefill hides.

A request's cache leaves the instance that computed it once. Sent at the end, all of it comes after the prefill;
sent layer by layer, most of it travels while later layers are computed, and only a part stays exposed. Layers
and link are a tandem of two stages with constant times, :math:`c = T/L` and :math:`s = x/L`:
the last layer is through after :math:`c + s + (L - 1)\max(c, s)`, of which :math:`L c` is the prefill itself.

Transfers that come at random find each other at the link, which is then M/D/1 with the time that a transfer
occupies it as service time. That is the case of many prefill instances; the transfers of a single one
come at least a prefill apart and wait for each other only where they take longer than that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from formulas.closed_form import ClosedForm, Condition, DomainError, Step, at_most, equation, less, variable
from formulas.queueing import md1

Array = NDArray[np.float64]

BYTES = variable("kv_bytes", "v", "B", "cache of one request")
LINK = variable("link_bytes_s", "b", "B/s", "bandwidth of one link, one direction")
LINKS = variable("links", "k", "", "links used side by side")
EFFICIENCY = variable("link_efficiency", "e", "", "share of the bandwidth that is reached")
MESSAGES = variable("messages", "m", "", "messages of one request", nonnegative=True)
OVERHEAD = variable("message_overhead_s", "o", "s", "time that a message costs whatever its size", nonnegative=True)
LATENCY = variable("latency_s", "l", "s", "latency of the link", nonnegative=True)
LINK_S = variable("link_time_s", "x", "s", "time that one request occupies the link")
TRANSFER_S = variable("transfer_s", "t", "s", "time from the first byte sent to the last received")
RATE = variable("rate", "R", "1/s", "requests per second")
NEEDED = variable("required_bytes_s", r"b_{\min}", "B/s", "bandwidth that the requests need")
MAX_RATE = variable("max_rate", r"R_{\max}", "1/s", "requests per second that a link never reaches")
LOAD = variable("link_utilization", r"\rho", "", "share of the time that the link is busy")
MEAN_TRANSFER = variable("mean_transfer_s", r"E[t]", "s", "mean time of a transfer, the wait for the link included")
LAYERS = variable("layers", "L", "", "layers")
PREFILL = variable("prefill_s", "T", "s", "time to compute all layers", nonnegative=True)
EXPOSED = variable("exposed_s", r"t_{e}", "s", "time between the end of the prefill and the last byte received")
FRACTION = variable("fraction", "f", "", "transfer as a share of the prefill")

_V, _B, _LINKS, _E, _M, _O, _LAT, _X, _R = (
    v.symbol for v in (BYTES, LINK, LINKS, EFFICIENCY, MESSAGES, OVERHEAD, LATENCY, LINK_S, RATE)
)
_L, _T = LAYERS.symbol, PREFILL.symbol
_LINK_TIME = _V / (_E * _LINKS * _B) + _M * _O
_MOVED = (BYTES, LINK, LINKS, EFFICIENCY, MESSAGES, OVERHEAD)
LINK_UNSTABLE = "Unstable: the link needs longer for a request than passes until the next, so transfers pile up."
_STABLE = (Condition(less(_R * _X, 1), LINK_UNSTABLE),)
_WHOLE = Condition(at_most(1, _LINKS), "There is at least one link.")
_REACHED = Condition(at_most(_E, 1), "An efficiency is at most 1.")
_LAYER = Condition(at_most(1, _L), "A model has at least one layer.")
_ON_LINK = {md1.RATE.symbol: _R, md1.SERVICE.symbol: _X}
_PLAIN = "Bytes over bandwidth, and a fixed cost per message and per transfer"
_TANDEM = "Two constant stages in a row (Friedman, Operations Research 13, 1965): layers computed, layers sent"


def _transfer_steps() -> tuple[Step, ...]:
    return (
        Step("The bytes at the bandwidth reached, and what the messages cost, keep the link busy.",
             equation(_X, _LINK_TIME)),
        Step("The last byte arrives a latency later.", equation(TRANSFER_S.symbol, TRANSFER_TIME.expression)),
    )  # fmt: skip


def _wait_steps() -> tuple[Step, ...]:
    return (
        *md1.MEAN_WAIT.steps,
        Step("Here the link is the server, and a request occupies it for x.",
             equation(md1.MEAN.symbol, md1.MEAN_WAIT.expression.subs(_ON_LINK))),
        Step("A transfer is the wait, its own time on the link, and the latency.",
             equation(MEAN_TRANSFER.symbol, LINK_MEAN_TRANSFER.expression)),
    )  # fmt: skip


def _exposed_steps() -> tuple[Step, ...]:
    c, s, end = sp.symbols("c s t_{L}", positive=True)
    return (
        Step("Each layer takes an even part of the prefill and of the time on the link.", equation(c, _T / _L)),
        Step("The same for the link.", equation(s, _X / _L)),
        Step("The first layer is computed and sent; from then on the slower of the two sets the pace.",
             equation(end, c + s + (_L - 1) * sp.Max(c, s))),
        Step("Less the prefill itself, L c, and with the latency of the last message.",
             equation(EXPOSED.symbol, sp.Max(s, _L * s - (_L - 1) * c) + _LAT)),
        Step("The parts put in.", equation(EXPOSED.symbol, EXPOSED_TIME.expression)),
    )  # fmt: skip


LINK_TIME = ClosedForm("time that a request occupies the link", LINK_S, _LINK_TIME, _MOVED, _PLAIN, (_WHOLE, _REACHED))
"""Bytes over the bandwidth reached, and the cost of the messages [s]; the latency does not occupy the link."""

TRANSFER_TIME = ClosedForm(
    "time of a transfer",
    TRANSFER_S,
    _LINK_TIME + _LAT,
    (*_MOVED, LATENCY),
    _PLAIN,
    (_WHOLE, _REACHED),
    _transfer_steps,
    (LINK_S,),
)
"""Time of one request's cache on an idle link [s]; also what stays exposed when it is sent at the end.

Examples
--------
>>> link = {"link_bytes_s": 50e9, "links": 1, "link_efficiency": 1, "messages": 0, "message_overhead_s": 0}
>>> TRANSFER_TIME(kv_bytes=262144000, latency_s=5e-6, **link)
0.00524788
"""

REQUIRED_BANDWIDTH = ClosedForm(
    "bandwidth that the requests need", NEEDED, _R * _V, (RATE, BYTES), "DistServe (OSDI 2024), section 3.3"
)
"""Bytes per second that move on average [B/s]; a link with no more than this falls behind."""

LINK_MAX_RATE = ClosedForm("largest rate of a link", MAX_RATE, 1 / _X, (LINK_S,), "A link busy all the time")

LINK_UTILIZATION = ClosedForm(
    "utilization of the link", LOAD, _R * _X, (RATE, LINK_S), "Little's law, applied to the link"
)

LINK_MEAN_TRANSFER = ClosedForm(
    "mean time of a transfer on a link in turn",
    MEAN_TRANSFER,
    md1.MEAN_WAIT.expression.subs(_ON_LINK) + _X + _LAT,
    (RATE, LINK_S, LATENCY),
    "M/D/1 (Pollaczek-Khinchine): requests of one size, sent one after another",
    _STABLE,
    _wait_steps,
    (*md1.MEAN_WAIT.arguments, *md1.MEAN_WAIT.mentions, md1.MEAN),
)
"""Mean of wait, transfer and latency where requests of one size take their turns [s]."""

LINK_SHARED_MEAN_TRANSFER = ClosedForm(
    "mean time of a transfer on a link shared evenly",
    MEAN_TRANSFER,
    _X / (1 - _R * _X) + _LAT,
    (RATE, LINK_S, LATENCY),
    "M/G/1 with processor sharing (Kleinrock, Queueing Systems II, 1976, section 4.4): any sizes of that mean",
    _STABLE,
)
"""Mean where all transfers in flight share the bandwidth evenly [s]: for equal sizes longer than in turn."""

EXPOSED_TIME = ClosedForm(
    "exposed time of a layer-wise transfer",
    EXPOSED,
    sp.Max(_X / _L, _X - (_L - 1) * _T / _L) + _LAT,
    (LINK_S, PREFILL, LAYERS, LATENCY),
    _TANDEM,
    (_LAYER,),
    _exposed_steps,
)
"""Time from the end of the prefill to the last byte, each layer sent as soon as it is computed [s].

At best the last layer alone is exposed; a link that cannot keep up adds what it has fallen behind by.

Examples
--------
>>> EXPOSED_TIME(link_time_s=5.24e-3, prefill_s=54e-3, layers=32, latency_s=5e-6)
0.00016875
"""

TRANSFER_FRACTION = ClosedForm(
    "transfer as a share of the prefill",
    FRACTION,
    TRANSFER_S.symbol / _T,
    (TRANSFER_S, PREFILL),
    "Splitwise (ISCA 2024) and DistServe (OSDI 2024) compare the two",
)


@dataclass(frozen=True)
class Gantt:
    """When each layer is computed and sent, from the start of the prefill; one element per layer [s].

    Attributes
    ----------
    compute_start, compute_end
        On the accelerator.
    transfer_start, transfer_end
        On the link; the last byte is received a latency after the end.
    exposed_s
        From the end of the prefill to the last byte received.
    """

    compute_start: Array
    compute_end: Array
    transfer_start: Array
    transfer_end: Array
    exposed_s: float


def gantt(layers: int, compute_per_layer: Any, transfer_per_layer: Any, latency_s: float = 0.0) -> Gantt:
    """Return when the layers are computed and sent, each layer as soon as it and the link are ready.

    Parameters
    ----------
    layers
        Layers [].
    compute_per_layer, transfer_per_layer
        Time of a layer on the accelerator and on the link; numbers, or one for each layer [s].
    latency_s
        Latency of the link [s].

    Examples
    --------
    >>> gantt(3, 1.0, 2.0).transfer_end
    array([3., 5., 7.])
    """
    compute = np.broadcast_to(np.asarray(compute_per_layer, dtype=float), (layers,))
    transfer = np.broadcast_to(np.asarray(transfer_per_layer, dtype=float), (layers,))
    computed, sent = np.cumsum(compute), np.cumsum(transfer)
    transfer_end = sent + np.maximum.accumulate(computed - (sent - transfer))
    exposed = float(transfer_end[-1] - computed[-1] + latency_s)
    return Gantt(computed - compute, computed, transfer_end - transfer, transfer_end, exposed)


def transfer_quantile(level: Any, rate: Any, link_time_s: Any, latency_s: Any = 0.0) -> Any:
    """Time of a transfer, wait included, that a share `level` do not exceed: exact for M/D/1.

    Parameters
    ----------
    level
        Share, in (0, 1): 0.99 for P99 [].
    rate
        Requests per second [1/s].
    link_time_s
        Time that one request occupies the link [s].
    latency_s
        Latency of the link [s].

    Examples
    --------
    >>> transfer_quantile(0.99, 20, 5.24288e-3, 5e-6)
    0.0102
    """
    if np.ndim(rate) == np.ndim(link_time_s) == 0 and rate * link_time_s >= 1:
        raise DomainError(LINK_UNSTABLE)
    return latency_s + link_time_s * (1.0 + md1.wait_quantile(level, rate * link_time_s))
