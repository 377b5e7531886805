"""What a deployment costs: an hour of it, and a million tokens in and out, apart."""

from __future__ import annotations

from dataclasses import dataclass

import hardware_db
from calculators.plan.deployments import Demand, Deployment

SECONDS = 3600.0


@dataclass(frozen=True)
class Costs:
    """US dollars; ``None`` where no price of the accelerator is known and none is typed in."""

    per_hour: float | None
    per_million_input: float | None
    per_million_output: float | None


def price_of(accelerator: str, typed: float | None) -> float | None:
    """Return the price of an hour of one accelerator: typed in, or the middle of what was seen, or ``None``."""
    if typed is not None:
        return typed
    seen = hardware_db.accelerators()[accelerator].price_usd_per_hour
    return None if seen is None else (seen.low * seen.high) ** 0.5


def costs_of(deployment: Deployment, demand: Demand) -> Costs:
    """Return what a deployment costs at the rate asked for.

    Each side bears its own accelerators. Where one set of instances does both, they are shared out by the time that a
    request's prompt and its tokens take of an instance.
    """
    per_hour = deployment.cost_per_hour(demand)
    if per_hour is None:
        return Costs(None, None, None)
    prefill = _prefill_share(deployment, demand)
    requests = SECONDS * demand.rate / 1e6
    lengths = demand.prefill
    return Costs(
        per_hour,
        prefill * per_hour / (requests * lengths.prompt_tokens),
        (1 - prefill) * per_hour / (requests * lengths.output_tokens),
    )


def _prefill_share(deployment: Deployment, demand: Demand) -> float:
    """Return the share of the cost that prompts bear."""
    if deployment.kind == "disaggregated":
        first, second = (side.gpus * (demand.price_of(side.accelerator) or 0.0) for side in deployment.sides)
        return first / (first + second)
    times = deployment.latency
    batch = max(times.mean_batch, 1.0) if times else 1.0
    pool = deployment.system.pool
    prompt_s = deployment.system.prefill_s
    tokens_s = pool.steps * float(pool.step_time([max(1, round(batch))])[0]) / batch
    return prompt_s / (prompt_s + tokens_s)
