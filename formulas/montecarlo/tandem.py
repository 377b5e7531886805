r"""Pipelines by simulation: any number of stages, prompts of any length, a million at a time.

Stage by stage: the departures of one stage are the arrivals of the next, and each stage's waits are a cumulative
sum and a running minimum (:mod:`formulas.montecarlo.lindley`). It is what stands beside the closed forms of
:mod:`formulas.parallelism`, and the only answer for percentiles of prompts with different lengths, and for their
mean in more than two stages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulas.closed_form import DomainError
from formulas.montecarlo.agreement import PERCENTILES, CheckedValue, compare
from formulas.montecarlo.confidence import Interval
from formulas.montecarlo.lindley import simulate_waits
from formulas.montecarlo.run_length import relaxation_customers
from formulas.parallelism.means import STAGES_MEAN_TTFT
from formulas.parallelism.percentiles import pipeline_quantile
from formulas.parallelism.tandem import Lognormal, tandem_mean
from formulas.queueing import pollaczek_khinchine as pk

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PipelineCheck:
    """A simulated pipeline beside what is known exactly about it; times to first token in seconds.

    Attributes
    ----------
    customers, warm_up
        Prompts simulated, and how many of them at the start are left out.
    simulated
        Intervals of the mean and of the percentiles, by name.
    rows
        Those of them for which there is an exact value: all for equal prompts, the mean of at most two stages
        for others.
    equal_prompts_mean
        What the formula for equal prompts says about the mean: exact for them, too low for others.
    """

    rate: float
    stages: int
    cv: float
    customers: int
    warm_up: int
    seed: int
    simulated: Mapping[str, Interval]
    rows: tuple[CheckedValue, ...]
    equal_prompts_mean: float


def simulate_tandem(interarrivals: Any, stage_times: Any) -> Array:
    """Return the times to first token of prompts that find the pipeline empty at first.

    Parameters
    ----------
    interarrivals
        Time from each prompt's arrival to the next one's; the last is not used [s].
    stage_times
        Time of each prompt in each stage: stages along the first axis, prompts along the last, where a 1 serves for
        all [s].

    Returns
    -------
    ndarray
        From arrival to the end of the last stage, without hops [s].

    Examples
    --------
    >>> simulate_tandem([0.5, 0.5, 0.5], [[1.0, 0.1, 0.1], [1.0, 0.1, 0.1]])
    array([2. , 1.6, 1.2])
    """
    gaps = np.array(interarrivals, dtype=float)
    total = np.zeros(gaps.shape)
    for services in np.asarray(stage_times, dtype=float):
        time = simulate_waits(gaps, services)
        time += services
        total += time
        gaps[..., :-1] += np.diff(time, axis=-1)
    return total


def simulate_chunked(interarrivals: Any, chunks: Any, chunk_time: float, stages: int) -> Array:
    """Return the times to first token of prompts cut into equal chunks, which pass the stages one after another.

    Parameters
    ----------
    interarrivals
        Time from each prompt's arrival to the next one's; the last is not used [s].
    chunks
        Number of chunks of each prompt, at least 1 [].
    chunk_time
        Time of a chunk in each stage [s].
    stages
        Stages [].

    Examples
    --------
    >>> simulate_chunked([0.5, 0.5, 0.5], [10, 1, 1], 0.1, 2)
    array([1.1, 0.7, 0.3])
    """
    counts = np.asarray(chunks, dtype=np.int64)
    last = np.cumsum(counts) - 1
    gaps = np.zeros(int(last[-1]) + 1)
    gaps[last] = interarrivals
    return simulate_tandem(gaps, np.full((stages, 1), chunk_time))[last]


def lognormal_times(mean: float, cv: float, shape: Any, generator: np.random.Generator) -> Array:
    """Return log-normal times with the given mean and coefficient of variation; all equal at zero.

    Examples
    --------
    >>> lognormal_times(2.0, 0.0, 3, np.random.default_rng(1))
    array([2., 2., 2.])
    """
    sigma = sqrt(log(1.0 + cv**2))
    times = generator.standard_normal(shape)
    times *= sigma
    times += log(mean) - sigma**2 / 2
    return np.asarray(np.exp(times, out=times)) if cv else np.full(shape, mean)


def check_pipeline(
    rate: float,
    stage_times: Any,
    cv: float = 0.0,
    hop: float = 0.0,
    customers: int = 500_000,
    seed: int = 1,
    level: float = 0.95,
) -> PipelineCheck:
    """Simulate a pipeline and compare it with what is exactly known.

    Parameters
    ----------
    rate
        Prompts per second [1/s].
    stage_times
        Mean time of a prompt in each stage [s].
    cv
        Coefficient of variation of the prompts' times, log-normal; a long prompt is long in every stage [].
    hop
        Time from each stage to the next [s].
    customers
        Prompts simulated, the warm-up included [].
    seed
        Of the generator.
    level
        Confidence of the intervals [].

    Notes
    -----
    A batch should span ten relaxation times, else the verdict is "run too short". Those are taken as
    M/D/1's, times :math:`1 + c_v^2` for the spread and times the stages: a rule, not a bound.

    Examples
    --------
    >>> check = check_pipeline(10.0, [0.05, 0.05], customers=100_000)
    >>> [(row.name, row.verdict) for row in check.rows]
    [('mean', 'inside'), ('P50', 'inside'), ('P90', 'inside'), ('P99', 'inside')]
    """
    means = np.asarray(stage_times, dtype=float)
    utilization = rate * float(means.max())
    if not 0 < utilization < 1:
        raise DomainError(pk.UNSTABLE if utilization >= 1 else "A simulation needs a utilization above zero.")
    generator = np.random.default_rng(seed)
    gaps = generator.standard_exponential(customers)
    gaps /= rate
    lengths = lognormal_times(1.0, cv, customers, generator)
    ttft = simulate_tandem(gaps, means[:, np.newaxis] * lengths)
    ttft += hop * (len(means) - 1)
    relaxation = float(relaxation_customers(utilization)) * (1.0 + cv**2) * len(means)
    found = compare(ttft, _exact(rate, means, cv, hop), relaxation, level)
    latency = float(means.sum()) + hop * (len(means) - 1)
    equal = STAGES_MEAN_TTFT(rate=rate, bottleneck_time=float(means.max()), latency=latency)
    return PipelineCheck(rate, len(means), cv, customers, found.warm_up, seed, found.simulated, found.rows, equal)


def _exact(rate: float, means: Array, cv: float, hop: float) -> dict[str, float]:
    hops = hop * (len(means) - 1)
    if cv == 0:
        latency = float(means.sum()) + hops
        mean = STAGES_MEAN_TTFT(rate=rate, bottleneck_time=float(means.max()), latency=latency)
        return {"mean": mean} | {f"P{100 * p:g}": pipeline_quantile(p, rate, means, hop) for p in PERCENTILES}
    first = float(means[0])
    if len(means) == 1:
        second = first**2 * (1.0 + cv**2)
        return {"mean": first + pk.MEAN_WAIT(rate=rate, mean_service=first, service_second_moment=second)}
    if len(means) == 2 and first == means[1]:
        return {"mean": tandem_mean(rate, Lognormal(first, cv)).ttft + hops}
    return {}
