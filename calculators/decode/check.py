"""The simulation beside the formulas: the pool from step to step, with the same step times."""

from __future__ import annotations

from dataclasses import dataclass

from calculators.checks import ComparedFigure, compared
from calculators.clock import clock_of
from calculators.decode.compute import PERCENTILES, DecodeInputs, compute
from calculators.decode_pool import pool_of
from calculators.outputs import output
from calculators.simulation import output_lengths
from formulas.closed_form import DomainError
from formulas.montecarlo.serving import InstanceSettings, Lengths, poisson_workload, simulate

MOST_REQUESTS = 100_000
"""Requests of a check, however many are asked for: some seconds."""


@dataclass(frozen=True, kw_only=True)
class DecodeCheck:
    """The simulated pool beside the formulas."""

    customers: int = output("Requests simulated")
    warm_up: int = output("of which at either end, not counted")
    seed: int = output("Seed")
    peak_batch: int = output("Largest batch seen", "sequences")
    rows: tuple[ComparedFigure, ...] = output("Figures")


def check(inputs: DecodeInputs) -> DecodeCheck:
    """Simulate the pool and set the formulas beside it.

    Raises
    ------
    DomainError
        If there is no steady state to simulate.
    InputsError
        As for :func:`~calculators.decode.compute.compute`.
    """
    result, pool = compute(inputs), pool_of(inputs)
    if not result.stable:
        raise DomainError("There is no steady state to simulate.")
    requests = min(inputs.customers, MOST_REQUESTS)
    prompt = inputs.prompt_tokens + inputs.cached_tokens
    workload = poisson_workload(inputs.rate, requests, Lengths(prompt), output_lengths(inputs), inputs.seed)
    clock = clock_of(inputs, min(pool.slots or 1, requests), (prompt, prompt + inputs.output_tokens))
    served = simulate(workload, InstanceSettings("decode", clock, max_batch=pool.slots))
    skipped = requests // 10
    estimates = served.part(skipped, requests - skipped // 2).tpot_estimates()
    formulas = {"mean": result.mean_tpot_ms} | {
        f"P{level:g}": getattr(result, f"{key}_tpot_ms") for key, level in PERCENTILES.items()
    }
    return DecodeCheck(
        customers=requests,
        warm_up=skipped + skipped // 2,
        seed=inputs.seed,
        peak_batch=served.instances[0].peak_batch,
        rows=tuple(compared(f"{name} TPOT", value, estimates[name], 1e3) for name, value in formulas.items()),
    )
