"""The simulation beside the formula: Lindley's recursion with a seed, a warm-up and confidence intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calculators.checks import CheckedFigure, agree, each_level, figures_in_ms
from calculators.outputs import output
from calculators.service_time import prefill_time
from calculators.ttft.inputs import TtftInputs
from calculators.ttft.traffic import is_plain
from calculators.ttft.traffic_check import TrafficCheck, check_traffic
from formulas.closed_form import DomainError
from formulas.montecarlo import md1_check, run_length
from formulas.queueing import md1

Array = NDArray[np.float64]

LECTURE_UTILIZATION, LECTURE_P99 = 0.9, 16.0
"""P99 of TTFT [service times] that the lecture's short simulation gave at that utilization (lecture 5, section 4.3)."""


@dataclass(frozen=True)
class ShortRun:
    """What runs of one length, started empty, report as P99 of TTFT."""

    customers: int = output("Requests in the run")
    median_ms: float = output("Median P99", "ms")
    low_ms: float = output("5 % of runs below", "ms")
    high_ms: float = output("5 % of runs above", "ms")


@dataclass(frozen=True)
class Distribution:
    """The share of requests in bins of TTFT of equal width."""

    middle_ms: Array = output("Middle of bin, TTFT", "ms")
    simulated: Array = output("Simulated share")
    exact: Array = output("Exact share")


@dataclass(frozen=True, kw_only=True)
class TtftCheck:
    """The simulation's answer beside the exact one."""

    service_ms: float = output("Service time", "ms")
    utilization: float = output("Utilization")
    customers: int = output("Requests simulated")
    warm_up: int = output("of which warm-up, not counted")
    seed: int = output("Seed")
    confidence: float = output("Confidence of each interval")
    agrees: bool | None = output(
        "Every exact figure inside its interval", "", "None where the run is too short to tell"
    )
    needed_for_one_percent: int = output("Requests needed for 1 % on the mean wait")
    half_width_percent: float = output("Half-width expected of this run on the mean wait", "%")
    exact_p99_ms: float = output("Exact P99", "ms")
    rows: tuple[CheckedFigure, ...] = output("Figures")
    short_runs: tuple[ShortRun, ...] = output("Short runs")
    distribution: Distribution


def check(inputs: TtftInputs) -> TtftCheck | TrafficCheck:
    """Simulate the instance, or the pool under its traffic, and hold the answer against it.

    Raises
    ------
    DomainError
        If the utilization is 1 or more: there is no steady state to simulate.
    InputsError
        As for :func:`~calculators.ttft.compute.compute`.
    """
    if not (is_plain(inputs) and inputs.servers == 1 and inputs.trace is None):
        return check_traffic(inputs)
    service_ms = prefill_time(inputs).service_ms
    utilization = md1.UTILIZATION(rate=inputs.rate, service_time=service_ms / 1e3)
    if utilization >= 1:
        raise DomainError(f"The utilization is {utilization:.4g}: there is no steady state to simulate.")
    level = each_level(1 + len(md1_check.PERCENTILES))
    run = md1_check.check_md1(utilization, inputs.customers, inputs.seed, level)
    short = md1_check.short_run_percentiles(utilization, seed=inputs.seed)
    rows = figures_in_ms(run.rows, service_ms)
    counted = run.customers - run.warm_up
    needed = run_length.customers_needed(utilization, 0.01)
    return TtftCheck(
        service_ms=service_ms,
        utilization=utilization,
        customers=run.customers,
        warm_up=run.warm_up,
        seed=run.seed,
        confidence=level,
        agrees=agree(rows),
        needed_for_one_percent=needed,
        half_width_percent=math.sqrt(needed / counted),
        exact_p99_ms=service_ms * short.exact,
        rows=rows,
        short_runs=tuple(
            ShortRun(count, service_ms * median, service_ms * low, service_ms * high)
            for count, median, low, high in zip(short.customers, short.median, short.low, short.high, strict=True)
        ),
        distribution=_distribution(run, service_ms),
    )


def _distribution(run: md1_check.Md1Check, service_ms: float) -> Distribution:
    later = md1.wait_survival(run.edges - 1, np.full(run.edges.shape, run.utilization))
    later[0] = 1.0  # the first bin holds those who do not wait at all
    middle = service_ms * (run.edges[:-1] + run.edges[1:]) / 2
    return Distribution(middle, run.counts / run.counts.sum(), -np.diff(later))
