"""The simulation of real traffic, beside the formula that answered for it, and the replay of a trace."""

from __future__ import annotations

from dataclasses import dataclass, replace

from calculators.checks import CheckedFigure, ComparedFigure, RepeatedFigure, agree, compared, each_level, figures_in_ms
from calculators.outputs import output
from calculators.ttft.inputs import TtftInputs
from calculators.ttft.methods import queue_of
from calculators.ttft.queues import Queue
from calculators.ttft.replay import Replay, replay
from calculators.ttft.simulated import Run, Simulated, simulate
from calculators.ttft.trace import trace_of
from formulas.closed_form import DomainError
from formulas.montecarlo.agreement import checked_value, estimates, long_enough

LEVELS = (0.5, 0.9, 0.95, 0.99)

MOST_REQUESTS = 500_000
"""Requests of a check of real traffic, however many are asked for: a second or two."""


@dataclass(frozen=True, kw_only=True)
class TrafficCheck:
    """The simulated traffic beside what was answered for it."""

    method: str = output("Method")
    utilization: float = output("Utilization")
    customers: int = output("Requests simulated")
    warm_up: int = output("of which warm-up, not counted")
    seed: int = output("Seed")
    confidence: float = output("Confidence of each interval")
    agrees: bool | None = output(
        "Every exact figure inside its interval", "", "None where the run is too short to tell, or nothing is exact"
    )
    approximate: bool = output("Whether the method is an approximation")
    rows: tuple[CheckedFigure, ...] = output("Exact figures")
    compared: tuple[ComparedFigure, ...] = output("Figures that are not exact")
    replay: Replay | None = output("The trace replayed")


def check_traffic(inputs: TtftInputs) -> TrafficCheck:
    """Simulate the very traffic and set the answer beside it.

    An answer that is itself a simulation is held against one with another seed.

    Raises
    ------
    DomainError
        If there is no steady state.
    InputsError
        As for :func:`~calculators.ttft.compute.compute`.
    """
    queue = queue_of(inputs)
    utilization = queue.utilization(inputs.rate)
    if utilization >= 1:
        raise DomainError(f"The utilization is {utilization:.4g}: there is no steady state to simulate.")
    run, seed = _another_run(inputs, queue)
    level = each_level(1 + len(LEVELS))
    simulated = estimates(run.ttft_ms, LEVELS, level)
    answers = {"mean": queue.mean_ttft_ms(inputs.rate)}
    answers |= {f"P{100 * p:g}": queue.value_ms(p, inputs.rate) for p in LEVELS}
    trusted = long_enough(len(run.ttft_ms), run.relaxation)
    exact = [name for name in answers if _is_exact(queue, name)]
    rows = figures_in_ms((checked_value(name, answers[name], simulated[name], trusted=trusted) for name in exact), 1.0)
    return TrafficCheck(
        method=queue.name,
        utilization=utilization,
        customers=run.customers,
        warm_up=run.warm_up,
        seed=seed,
        confidence=level,
        agrees=agree(rows) if rows else None,
        approximate=queue.kind == "approximation",
        rows=rows,
        compared=tuple(
            compared(
                name, value, simulated[name], 1.0, RepeatedFigure if queue.kind == "simulation" else ComparedFigure
            )
            for name, value in answers.items()
            if name not in exact
        ),
        replay=None if inputs.trace is None else replay(inputs, trace_of(inputs)),
    )


def _is_exact(queue: Queue, name: str) -> bool:
    if isinstance(queue, Simulated):
        return queue.exact_mean and name == "mean"
    return queue.kind != "approximation"


def _another_run(inputs: TtftInputs, queue: Queue) -> tuple[Run, int]:
    customers = min(inputs.customers, MOST_REQUESTS)
    if not isinstance(queue, Simulated):
        return simulate(inputs, queue, inputs.rate, customers), inputs.seed  # type: ignore[arg-type]
    seed = (inputs.seed + 1) % 2**31
    other = queue_of(replace(inputs, seed=seed))
    assert isinstance(other, Simulated)  # noqa: S101 - the seed does not change the method
    return other.simulated(inputs.rate, customers), seed
