"""The simulation beside the formulas: each way as the tandem of queues that it is."""

from __future__ import annotations

from dataclasses import dataclass

from calculators.checks import CheckedFigure, agree, each_level, figures_in_ms
from calculators.outputs import output
from calculators.parallelism.compute import ParallelismInputs, compute
from calculators.parallelism.ways import Way
from formulas.closed_form import DomainError
from formulas.montecarlo import tandem
from formulas.montecarlo.agreement import PERCENTILES

NAMES = {"tp": "Tensor", "pp": "Pipeline", "replicas": "Replicas"}


@dataclass(frozen=True)
class SimulatedFigure:
    """A simulated figure for which there is no closed form: percentiles of spread prompts, long pipelines."""

    label: str = output("Figure")
    simulated_ms: float = output("Simulated", "ms")
    low_ms: float = output("Interval from", "ms")
    high_ms: float = output("to", "ms")
    equal_prompts_ms: float | None = output("Formula for equal prompts", "ms")


@dataclass(frozen=True, kw_only=True)
class ParallelismCheck:
    """The simulations of the ways that are stable at this rate."""

    customers: int = output("Requests simulated")
    warm_up: int = output("of which warm-up at most, not counted")
    seed: int = output("Seed")
    agrees: bool | None = output("Every exact figure inside its interval", "", "None where a run is too short to tell")
    rows: tuple[CheckedFigure, ...] = output("Figures with a closed form")
    simulated: tuple[SimulatedFigure, ...] = output("Figures without")


def check(inputs: ParallelismInputs) -> ParallelismCheck:
    """Simulate each way that is stable, and hold what is exactly known against it.

    Raises
    ------
    DomainError
        If none is stable: there is no steady state to simulate.
    InputsError
        As for :func:`~calculators.parallelism.compute.compute`.
    """
    ways = [way for way in compute(inputs).ways if way.id in NAMES and way.is_stable(inputs.rate)]
    if not ways:
        raise DomainError("No way is stable at this rate: there is no steady state to simulate.")
    runs = {way: _simulate(way, inputs, len(ways)) for way in ways}
    rows = [row for way, run in runs.items() for row in figures_in_ms(run.rows, 1e3, f"{NAMES[way.id]}, ")]
    return ParallelismCheck(
        customers=inputs.customers,
        warm_up=max(run.warm_up for run in runs.values()),
        seed=inputs.seed,
        agrees=agree(rows),
        rows=tuple(rows),
        simulated=tuple(figure for way, run in runs.items() for figure in _without_formula(way, run)),
    )


def _simulate(way: Way, inputs: ParallelismInputs, ways: int) -> tandem.PipelineCheck:
    return tandem.check_pipeline(
        inputs.rate / way.replicas,
        [time / 1e3 for time in way.stage_times_ms],
        cv=inputs.prompt_cv,
        hop=way.hop_ms / 1e3,
        customers=inputs.customers,
        seed=inputs.seed,
        level=each_level(ways * (1 + len(PERCENTILES))),
    )


def _without_formula(way: Way, run: tandem.PipelineCheck) -> list[SimulatedFigure]:
    known = {row.name for row in run.rows}
    equal = {"mean": None} | {f"P{100 * p:g}": p for p in PERCENTILES}
    return [
        SimulatedFigure(
            f"{NAMES[way.id]}, {name}",
            1e3 * interval.estimate,
            1e3 * interval.low,
            1e3 * interval.high,
            way.ttft_ms(run.rate * way.replicas, equal[name]),
        )
        for name, interval in run.simulated.items()
        if name not in known
    ]
