"""What a deployment costs: an hour of it, and a million tokens in and out, apart."""

from __future__ import annotations

from dataclasses import dataclass

import hardware_db
from calculators.plan.deployments import Deployment
from calculators.scenario import Output, Prompt

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


def costs_of(deployment: Deployment, price: float | None, rate: float, lengths: Prompt, outputs: Output) -> Costs:
    """Return what a deployment costs at a rate [requests/s].

    Each side bears its own accelerators. Where one set of instances does both, they are shared out by the time that a
    request's prompt and its tokens take of an instance.
    """
    if price is None:
        return Costs(None, None, None)
    prefill, decode = _split(deployment)
    tokens_in = SECONDS * rate * lengths.prompt_tokens / 1e6
    tokens_out = SECONDS * rate * outputs.output_tokens / 1e6
    return Costs(price * deployment.gpus, price * prefill / tokens_in, price * decode / tokens_out)


def _split(deployment: Deployment) -> tuple[float, float]:
    """Return the accelerators that prompts and tokens each occupy."""
    if deployment.kind == "disaggregated":
        return deployment.prefill.gpus, deployment.decode.gpus
    times = deployment.latency
    batch = max(times.mean_batch, 1.0) if times else 1.0
    pool = deployment.system.pool
    prompt_s = deployment.system.prefill_s
    tokens_s = pool.steps * float(pool.step_time([max(1, round(batch))])[0]) / batch
    share = prompt_s / (prompt_s + tokens_s)
    return share * deployment.gpus, (1 - share) * deployment.gpus
