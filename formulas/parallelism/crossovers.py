r"""The rate above which a pipeline answers sooner than tensor parallelism.

At low rates the quicker prompt wins, at high rates the larger capacity. Three things can happen, whatever the
statistic. With tensor service time :math:`s`, slowest stage :math:`b` and unloaded pipeline time :math:`L \ge b`:

* :math:`s \le b` (for even stages :math:`K \ge n`): tensor parallel wins at every rate, it has the larger
  capacity too;
* :math:`s \ge L` (:math:`K \le 1` without hops): the pipeline wins at every rate;
* in between, tensor wins up to exactly one rate and the pipeline from there on.

One rate, because the advantage of the pipeline grows with the rate as soon as anyone waits. At unit rate the wait
:math:`\max_k (k s - A_k)` is convex in the service time :math:`s`, so its mean is. Its percentiles are
too: the gaps between arrivals have a log-concave density and the :math:`(A, s, t)` with wait at most t form a
convex set, so that :math:`P(W \le t)` is log-concave in :math:`(s, t)` (Prékopa 1973). A convex :math:`y(s)`
makes :math:`(y(R s) - y(R b))/R` increase in R.

A percentile never crosses below :math:`(1 - p) / s`: up to that rate a share p of the prompts wait in neither, and
the quicker prompt is all that counts. P90 and P99 cross well before the mean at usual speedups (n = 2 and K = 1.7: at
:math:`R D` = 1.26 by the mean, 0.99 by P90, 0.67 by P99), and after it only below K = 1.06 and 1.005.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import sympy as sp
from numpy.typing import ArrayLike, NDArray

from formulas.closed_form import ClosedForm, Condition, DomainError, Step, equation, less, variable
from formulas.parallelism.means import (
    BOTTLENECK,
    GPUS,
    LATENCY,
    PIPELINE_MEAN_TTFT,
    RATE,
    SERVICE,
    SPEEDUP,
    STAGES_MEAN_TTFT,
    TENSOR_MEAN_TTFT,
)
from formulas.parallelism.percentiles import bottleneck_and_latency
from formulas.queueing import md1

Array = NDArray[np.float64]
Winner = Literal["tensor", "pipeline"]

TENSOR_TIME = variable("tensor_time", "D_{t}", "s", "time of a prompt, tensor parallel")
LOAD = variable("crossover_load", r"\rho^{*}", "", "crossover rate times the service time on one accelerator")
CROSSOVER = variable("crossover_rate", "R^{*}", "1/s", "rate above which the pipeline wins")

_R, _D, _K, _N = (v.symbol for v in (RATE, SERVICE, SPEEDUP, GPUS))
_M, _L, _T = BOTTLENECK.symbol, LATENCY.symbol, TENSOR_TIME.symbol
_SLACK = 2 * (_L - _T) + _T - _M

_CELL = 1e-9  # in utilization: within it the difference of two percentiles is straight

TENSOR_ALWAYS = "Tensor parallel wins at every rate: its capacity is at least the pipeline's."
PIPELINE_ALWAYS = "The pipeline wins at every rate: even unloaded, tensor parallelism is no quicker."
_BETWEEN = (Condition(less(1, _K), PIPELINE_ALWAYS), Condition(less(_K, _N), TENSOR_ALWAYS))
_SOURCE = "DistServe (OSDI 2024), section 3.1, equations 2 and 3 set equal"


def _quadratic(difference: sp.Expr, unknown: sp.Symbol) -> sp.Poly:
    """Numerator of the difference of two means, positive at zero where tensor wins there."""
    return sp.Poly(sp.numer(sp.together(difference)), unknown)


def _as_written(poly: sp.Poly) -> sp.Eq:
    powers = [(c, poly.gen ** k[0]) for k, c in poly.terms()]
    return equation(sp.Add(*(sp.factor(c) * power for c, power in powers), evaluate=False), 0)


def _load_steps(two: bool = False) -> tuple[Step, ...]:
    x = LOAD.symbol
    unit = {_D: 1, _R: x, **({_N: 2} if two else {})}
    pipeline, tensor = (form.expression.subs(unit) for form in (PIPELINE_MEAN_TTFT, TENSOR_MEAN_TTFT))
    return (
        Step("Mean time to first token of both, in units of D and with ρ = R D, set equal.",
             equation(tensor, pipeline)),
        Step("The differences multiplied out: a quadratic.", _as_written(_quadratic(pipeline - tensor, x))),
        Step("Its roots lie evenly about the mean of the two capacities, so the smaller one is the crossover.",
             equation(x, (CROSSOVER_LOAD_TWO if two else CROSSOVER_LOAD).expression)),
    )  # fmt: skip


def _rate_steps() -> tuple[Step, ...]:
    return (*_load_steps(), Step("Divided by D.", equation(CROSSOVER.symbol, CROSSOVER_RATE.expression)))


def _stages_steps() -> tuple[Step, ...]:
    pipeline = STAGES_MEAN_TTFT.expression
    tensor = TENSOR_MEAN_TTFT.expression.subs(_K, 1).subs(_D, _T)
    poly = _quadratic(pipeline - tensor, _R)
    return (
        Step("Mean time to first token of both set equal.", equation(tensor, pipeline)),
        Step("The differences multiplied out: a quadratic.", _as_written(poly)),
        Step("Its roots lie evenly about the mean of the two capacities, so the smaller one is the crossover.",
             equation(CROSSOVER.symbol, STAGES_CROSSOVER_RATE.expression)),
    )  # fmt: skip


CROSSOVER_LOAD_TWO = ClosedForm(
    "crossover of two accelerators, by the mean",
    LOAD,
    ((_K + 2) * (3 * _K - 2) - sp.sqrt((_K - 2) * (3 * _K - 2) * (3 * _K**2 - 16 * _K + 4))) / (2 * (3 * _K - 2)),
    (SPEEDUP,),
    _SOURCE,
    (Condition(less(1, _K), PIPELINE_ALWAYS), Condition(less(_K, 2), TENSOR_ALWAYS)),
    lambda: _load_steps(two=True),
    (SERVICE,),
)
"""Rate times service time above which two accelerators are better used as a pipeline [].

Examples
--------
>>> CROSSOVER_LOAD_TWO(speedup=1.7)
1.257098
"""

CROSSOVER_LOAD = ClosedForm(
    "crossover of n accelerators, by the mean",
    LOAD,
    (_N + _K - sp.sqrt((_N + _K) ** 2 - 8 * _N**2 * _K * (_K - 1) / (2 * _N * _K - _N - _K))) / 2,
    (SPEEDUP, GPUS),
    f"{_SOURCE}, for n accelerators",
    _BETWEEN,
    _load_steps,
    (SERVICE,),
)
"""Rate times service time above which n accelerators are better used as a pipeline of even stages [].

Examples
--------
>>> CROSSOVER_LOAD(speedup=3, gpus=4)
2.522308
"""

CROSSOVER_RATE = ClosedForm(
    "crossover rate, by the mean",
    CROSSOVER,
    (_N + _K - sp.sqrt((_N + _K) ** 2 - 8 * _N**2 * _K * (_K - 1) / (2 * _N * _K - _N - _K))) / (2 * _D),
    (SERVICE, SPEEDUP, GPUS),
    f"{_SOURCE}, for n accelerators",
    _BETWEEN,
    _rate_steps,
    (LOAD,),
)
"""Rate above which the mean is lower in a pipeline of n even stages [1/s].

Examples
--------
>>> CROSSOVER_RATE(service_time=0.121514582, speedup=1.5, gpus=2)
7.703265
"""

STAGES_CROSSOVER_RATE = ClosedForm(
    "crossover rate of any pipeline, by the mean",
    CROSSOVER,
    (_M + _T - sp.sqrt((_M + _T) ** 2 - 8 * _M * _T * (_L - _T) / _SLACK)) / (2 * _M * _T),
    (TENSOR_TIME, BOTTLENECK, LATENCY),
    f"{_SOURCE}, for stages and hops of any length",
    (
        Condition(less(_T, _L), PIPELINE_ALWAYS),
        Condition(less(_M, _T), TENSOR_ALWAYS),
    ),
    _stages_steps,
    (RATE,),
)
"""Rate above which the mean is lower in the pipeline whose slowest stage and whole are given [1/s].

Examples
--------
>>> STAGES_CROSSOVER_RATE(tensor_time=0.0625, bottleneck_time=0.052, latency=0.103)
11.457591
"""


@dataclass(frozen=True)
class Crossover:
    """Where tensor and pipeline parallelism change places.

    Attributes
    ----------
    rate
        Rate above which the pipeline wins, or None where one of them wins at every rate [1/s].
    winner
        The one that wins at every rate, or None where there is a crossover.
    reason
        A sentence that says which of these it is.
    tensor_capacity, pipeline_capacity
        Rates at which they become unstable [1/s].
    """

    rate: float | None
    winner: Winner | None
    reason: str
    tensor_capacity: float
    pipeline_capacity: float

    def winner_at(self, rate: float) -> Winner | None:
        """Which of the two answers sooner at a rate; None where both are unstable, or on the crossover itself."""
        if rate >= max(self.tensor_capacity, self.pipeline_capacity) or rate == self.rate:
            return None
        if self.rate is None:
            return self.winner
        return "tensor" if rate < self.rate else "pipeline"


def crossover(service_time: float, speedup: float, gpus: int, level: float | None = None) -> Crossover:
    """Crossover of tensor parallelism and a pipeline of even stages without hops, with its reason.

    Parameters
    ----------
    service_time
        Time of a prompt on one accelerator [s].
    speedup
        Of tensor parallelism over `gpus` accelerators [].
    gpus
        Accelerators [].
    level
        Percentile compared, 0.99 for P99; None compares the means [].

    Examples
    --------
    >>> crossover(0.1, 1.7, 2, level=0.9).rate
    9.907350
    >>> crossover(0.1, 2.0, 2).reason
    "Tensor parallel wins at every rate: its capacity is at least the pipeline's."
    """
    return _crossover(service_time / speedup, service_time / gpus, service_time, level)


def stages_crossover(
    tensor_time: float, stage_times: ArrayLike, hop: float = 0.0, level: float | None = None
) -> Crossover:
    """Crossover of tensor parallelism and any pipeline, its stages uneven or tensor parallel in themselves.

    Parameters
    ----------
    tensor_time
        Time of a prompt, tensor parallel [s].
    stage_times
        Time of a prompt in each stage [s].
    hop
        Time from each stage to the next [s].
    level
        Percentile compared, 0.99 for P99; None compares the means [].

    Examples
    --------
    >>> stages_crossover(0.0625, [0.051, 0.052]).rate
    11.457591
    """
    return _crossover(tensor_time, *bottleneck_and_latency(stage_times, hop), level)


def crossover_rate(service_time: Any, speedup: Any, gpus: Any, level: float | None = None) -> Any:
    """Rate above which a pipeline of even stages without hops wins.

    Parameters
    ----------
    service_time, speedup, gpus
        As for :func:`crossover`; they may be arrays.
    level
        Percentile compared, 0.99 for P99; None compares the means [].

    Returns
    -------
    float, None or ndarray
        Rate, None where there is no crossover; in an array, NaN there [1/s].

    Examples
    --------
    >>> crossover_rate(0.121514582, 1.88, 2)
    13.026010
    >>> crossover_rate(1.0, np.array([1.5, 1.9, 2.5]), 2, level=0.99)
    array([0.24960124, 1.26895815, nan])
    """
    service, speed = np.asarray(service_time, dtype=float), np.asarray(speedup, dtype=float)
    return stages_crossover_rate(service / speed, service / np.asarray(gpus), service, level)


def stages_crossover_rate(tensor_time: Any, bottleneck: Any, latency: Any, level: float | None = None) -> Any:
    """Rate above which a pipeline wins, given its slowest stage and its unloaded time; see :func:`crossover_rate`.

    Examples
    --------
    >>> stages_crossover_rate(0.0625, 0.052, 0.103, level=0.9)
    8.615002
    """
    given = np.broadcast_arrays(*(np.asarray(x, dtype=float) for x in (tensor_time, bottleneck, latency)))
    shape = given[0].shape
    tensor, slowest, whole = (x.reshape(-1) for x in given)
    whole = np.where(np.isclose(whole, tensor, rtol=1e-12, atol=0.0), tensor, whole)  # the sum of stages is rounded
    if level is None:
        rate = STAGES_CROSSOVER_RATE(tensor_time=tensor, bottleneck_time=slowest, latency=whole)
    else:
        rate = _percentile_crossover(tensor, slowest, whole, level)
    lost = np.isnan(rate) & (tensor < whole) & (slowest < tensor)  # to rounding: it is where tensor saturates
    rate = np.where(lost, 1.0 / tensor, rate)
    if shape:
        return rate.reshape(shape)
    return None if np.isnan(rate[0]) else float(rate[0])


def _percentile_crossover(tensor: Array, slowest: Array, whole: Array, level: float) -> Array:
    """Root in the utilization of tensor parallelism, between the first wait of anyone counted and saturation."""
    if not 0 < level < 1:
        raise DomainError("A percentile's level lies between 0 and 1.")
    exists = (tensor < whole) & (slowest < tensor)
    ratio = np.where(exists, slowest / tensor, 0.5)[:, np.newaxis]
    gain = np.where(exists, (whole - tensor) / tensor, 1.0)[:, np.newaxis]

    def advantage(load: Array) -> Array:
        """How much sooner the pipeline answers, in tensor-parallel times; its waits in the same call."""
        waits = md1.wait_quantile(level, np.stack([load, ratio * load]))
        return np.asarray(waits[0] - ratio * waits[1] - gain)

    low, width = np.full(ratio.shape, 1.0 - level), np.full(ratio.shape, level)
    sections = max(8, 512 // len(ratio))
    while width.max() > _CELL:
        points = low + width * np.linspace(0.0, 1.0, sections + 1)[:-1]
        value = advantage(points)
        below = np.maximum(np.count_nonzero(value < 0, axis=-1, keepdims=True) - 1, 0)
        low, width = np.take_along_axis(points, below, -1), width / sections
    ends = low + width * np.array([0.0, 1.0])
    value = advantage(ends)
    load = ends[:, 0] - value[:, 0] * width[:, 0] / (value[:, 1] - value[:, 0])
    return np.where(exists, load / tensor, np.nan)


def _crossover(tensor: float, slowest: float, whole: float, level: float | None) -> Crossover:
    rate = stages_crossover_rate(tensor, slowest, whole, level)
    capacities = 1.0 / tensor, 1.0 / slowest
    if rate is not None:
        better = "mean" if level is None else f"P{100 * level:g}"
        reason = f"By the {better}, tensor parallel wins below the crossover and the pipeline above it."
        return Crossover(rate, None, reason, *capacities)
    if tensor <= slowest:
        return Crossover(None, "tensor", TENSOR_ALWAYS, *capacities)
    return Crossover(None, "pipeline", PIPELINE_ALWAYS, *capacities)
