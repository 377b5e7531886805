"""Exact percentiles of the time to first token under tensor and pipeline parallelism, for equal prompts.

Each is the percentile of a wait in M/D/1, in units of the way's own service time, plus what passes
without any wait. Rates and levels may be arrays; where a queue is unstable, an array has NaN and a number a
:class:`~formulas.closed_form.DomainError`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from formulas.parallelism.means import STAGES_MEAN_TTFT
from formulas.queueing.md1 import wait_quantile

Array = NDArray[np.float64]


def tensor_quantile(level: Any, rate: Any, service_time: Any, speedup: Any) -> Any:
    """Time to first token that a share `level` of the prompts do not exceed, tensor parallel.

    Parameters
    ----------
    level
        Share, in (0, 1): 0.99 for P99 [].
    rate
        Prompts per second [1/s].
    service_time
        Time of a prompt on one accelerator [s].
    speedup
        How many times as fast all of them together are [].

    Returns
    -------
    float or ndarray
        Time to first token [s].

    Examples
    --------
    >>> tensor_quantile(0.99, 14, 0.1, 1.6)
    1.142874
    """
    return _with_wait(level, rate, service_time / speedup, service_time / speedup)


def replicas_quantile(level: Any, rate: Any, service_time: Any, gpus: Any) -> Any:
    """Time to first token that a share `level` do not exceed, `gpus` separate replicas with a random split.

    Examples
    --------
    >>> replicas_quantile(0.99, 8, 0.1, 2)
    0.351992
    """
    return _with_wait(level, rate / gpus, service_time, service_time)


def pipeline_quantile(level: Any, rate: Any, stage_times: ArrayLike, hop: Any = 0.0, replicas: Any = 1) -> Any:
    """Time to first token that a share `level` of the prompts do not exceed, pipeline parallel.

    Parameters
    ----------
    level
        Share, in (0, 1): 0.99 for P99 [].
    rate
        Prompts per second, over all replicas [1/s].
    stage_times
        Time of a prompt in each stage, along the last axis: uneven stages and stages that are tensor parallel
        in themselves included [s].
    hop
        Time from each stage to the next, in which no stage is busy [s].
    replicas
        Pipelines that share the rate at random [].

    Returns
    -------
    float or ndarray
        Time to first token [s].

    Examples
    --------
    >>> pipeline_quantile(0.99, 14, even_stages(0.1, 2))
    0.424275
    """
    bottleneck, latency = bottleneck_and_latency(stage_times, hop)
    return _with_wait(level, rate / replicas, bottleneck, latency)


def pipeline_mean(rate: Any, stage_times: ArrayLike, hop: Any = 0.0, replicas: Any = 1) -> Any:
    """Mean time to first token of any pipeline; the arguments are those of :func:`pipeline_quantile`.

    Examples
    --------
    >>> pipeline_mean(8, [0.04, 0.06], hop=0.001)
    0.1286923
    """
    bottleneck, latency = bottleneck_and_latency(stage_times, hop)
    return STAGES_MEAN_TTFT(rate=rate / replicas, bottleneck_time=bottleneck, latency=latency)


def pipeline_capacity(stage_times: ArrayLike, replicas: Any = 1) -> Any:
    """Rate that a pipeline never reaches: one prompt per time of the slowest stage [1/s].

    Examples
    --------
    >>> pipeline_capacity([0.04, 0.05], replicas=2)
    40.0
    """
    return replicas / bottleneck_and_latency(stage_times)[0]


def bottleneck_and_latency(stage_times: ArrayLike, hop: Any = 0.0) -> tuple[Any, Any]:
    """Time of the slowest stage, and of a prompt through all stages and the hops between them [s].

    Examples
    --------
    >>> bottleneck_and_latency([0.04, 0.06], hop=0.001)
    (0.06, 0.101)
    """
    times = np.asarray(stage_times, dtype=float)
    if times.ndim == 0 or times.shape[-1] == 0:
        raise ValueError("A pipeline has at least one stage.")
    bottleneck, latency = times.max(axis=-1), times.sum(axis=-1) + (times.shape[-1] - 1) * np.asarray(hop)
    return (bottleneck, latency) if np.ndim(latency) else (float(bottleneck), float(latency))


def even_stages(service_time: float, stages: int) -> Array:
    """Stage times of a pipeline that divides evenly [s].

    Examples
    --------
    >>> even_stages(0.1, 4)
    array([0.025, 0.025, 0.025, 0.025])
    """
    return np.full(stages, service_time / stages)


def _with_wait(level: Any, rate: Any, interval: Any, latency: Any) -> Any:
    return latency + interval * wait_quantile(level, rate * interval)
