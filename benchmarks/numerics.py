"""The formulas and the simulation, timed in this process without a server."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from benchmarks.report import Benchmark, Figure, Goal
from calculators.ttft.compute import sweep
from formulas.montecarlo.md1_check import check_md1

CUSTOMERS = 1_000_000
CIW_CUSTOMERS = 20_000
UTILIZATION = 0.8


def times_ms(function: Callable[[], object], repetitions: int) -> tuple[float, list[float]]:
    """Return the time of the first call, which compiles and imports what it needs, and those of later calls."""
    taken = []
    for _ in range(repetitions + 1):
        start = time.perf_counter()
        function()
        taken.append(1e3 * (time.perf_counter() - start))
    return taken[0], taken[1:]


def measure_sweep(quick: bool) -> list[Figure]:
    """Time the sweep that the page draws."""
    first, taken = times_ms(lambda: sweep(20.0, points=200), 20 if quick else 200)
    return [
        Figure(
            statistics.median(taken),
            f"median of {len(taken)} calls of calculators.ttft.compute.sweep, which computes P95 and P99.9 too; "
            f"the first call took {first:.3g} ms",
        )
    ]


def measure_simulation(quick: bool) -> list[Figure]:
    """Time the simulation with its statistics, and ciw on the same queue."""
    first, taken = times_ms(lambda: check_md1(UTILIZATION, CUSTOMERS, seed=1), 3 if quick else 15)
    ours_ms = statistics.median(taken)
    ours = Figure(
        ours_ms,
        f"median of {len(taken)} calls of check_md1 at utilization {UTILIZATION:g}: waits, mean and four percentiles "
        f"with confidence intervals, histogram; the first call took {first:.3g} ms",
    )
    customers = CIW_CUSTOMERS // 4 if quick else CIW_CUSTOMERS
    theirs_us = _ciw_us_per_customer(customers, 1 if quick else 3)
    if theirs_us is None:
        return [ours, Figure(None, "not measured: ciw is not installed (requirements-dev.txt has it)")]
    ours_us = 1e3 * ours_ms / CUSTOMERS
    remark = f"ciw {theirs_us:.3g} µs a customer over {customers:,} without statistics, ours {ours_us:.3g} µs with them"
    return [ours, Figure(theirs_us / ours_us, remark)]


def _ciw_us_per_customer(customers: int, repetitions: int) -> float | None:
    """Return ciw's median time for each customer of the same queue, or None without ciw."""
    try:
        import ciw
    except ImportError:
        return None
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(UTILIZATION)],
        service_distributions=[ciw.dists.Deterministic(1.0)],
        number_of_servers=[1],
    )
    taken = []
    for seed in range(repetitions):
        ciw.seed(seed)
        simulation = ciw.Simulation(network)
        start = time.perf_counter()
        simulation.simulate_until_max_customers(customers, method="Finish")
        taken.append(1e6 * (time.perf_counter() - start) / customers)
    return statistics.median(taken)


SWEEP = Benchmark(
    "sweep",
    (Goal("200-point M/D/1 sweep: mean, P50, P90, P95, P99, P99.9", "ms", 3),),
    measure_sweep,
)
SIMULATION = Benchmark(
    "simulation",
    (
        Goal("Monte-Carlo of one million M/D/1 customers with statistics", "ms", 40),
        Goal("time of ciw for one customer over ours", "times", 400, at_least=True),
    ),
    measure_simulation,
)
