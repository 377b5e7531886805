"""The simulation beside the formulas: transfers that share the link."""

from __future__ import annotations

from dataclasses import dataclass

from calculators.checks import CheckedFigure, agree, each_level, figures_in_ms
from calculators.kv_cache.compute import KvCacheInputs
from calculators.kv_transfer import route_of, transfer
from calculators.outputs import output
from calculators.service_time import prefill_time
from formulas.montecarlo import shared_link
from formulas.montecarlo.agreement import PERCENTILES


@dataclass(frozen=True, kw_only=True)
class KvCacheCheck:
    """The simulated link: Poisson requests of one size, sent one after another."""

    customers: int = output("Transfers simulated")
    warm_up: int = output("of which warm-up, not counted")
    seed: int = output("Seed")
    utilization: float = output("Utilization of the link")
    agrees: bool | None = output(
        "Every exact figure inside its interval", "", "None where the run is too short to tell"
    )
    rows: tuple[CheckedFigure, ...] = output("Figures")


def check(inputs: KvCacheInputs) -> KvCacheCheck:
    """Simulate the transfers and hold the exact figures against them.

    Raises
    ------
    DomainError
        If the link cannot keep up: there is no steady state to simulate.
    InputsError
        As for :func:`~calculators.kv_cache.compute.compute`.
    """
    route = route_of(inputs)
    link_ms = transfer(inputs, route, prefill_time(inputs).service_ms).link_ms
    run = shared_link.check_link(
        inputs.rate,
        link_ms / 1e3,
        route.latency_s,
        transfers=inputs.customers,
        seed=inputs.seed,
        level=each_level(1 + len(PERCENTILES)),
    )
    rows = figures_in_ms(run.rows, 1e3)
    return KvCacheCheck(
        customers=run.transfers,
        warm_up=run.warm_up,
        seed=run.seed,
        utilization=run.utilization,
        agrees=agree(rows),
        rows=rows,
    )
