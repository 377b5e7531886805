"""The arrays behind the figures: experts touched, bytes and time against the tokens of a step; every mixture."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

import hardware_db
from calculators.experts.compute import ExpertsInputs, ExpertsResult, compute, mixtures
from calculators.experts.routing import Routing, routing_of
from calculators.experts.steps import as_dense, expert_bytes, load_of, sequences_of, time_of
from calculators.outputs import output
from formulas import experts as forms

Array = NDArray[np.float64]

POINTS = 90
LEAST_SHOWN = 4096


@dataclass(frozen=True)
class TouchedCurve:
    """The experts that a step touches against its tokens."""

    tokens: Array = output("Tokens in the step")
    touched: Array = output("Experts touched")
    even: Array = output("Experts touched, were all equally popular")
    low: Array = output("Less one standard deviation, even routing")
    high: Array = output("Plus one standard deviation, even routing")


def touched_curve(inputs: ExpertsInputs, routing: Routing) -> TouchedCurve:
    """Return the experts touched from one token to where nearly all are, and to the user's point."""
    enough = routing.tokens_for(0.999) or LEAST_SHOWN
    tokens = _tokens(min(max(2 * enough, 1.5 * sequences_of(inputs).tokens), 1e7))
    even = np.asarray(routing.evenly_touched(tokens))
    spread = np.asarray(forms.distinct_sd(routing.experts, routing.chosen, tokens))
    return TouchedCurve(
        tokens,
        np.asarray(routing.touched(tokens)),
        even,
        np.maximum(even - spread, routing.chosen),
        np.minimum(even + spread, routing.experts),
    )


@dataclass(frozen=True)
class StepCurve:
    """Bytes and time of a step of one instance against its tokens, beside dense models of the same size."""

    tokens: Array = output("Tokens in the step")
    expert_gb: Array = output("Expert weights read", "GB")
    step_ms: Array = output("Step", "ms")
    dense_active_ms: Array = output("Step, dense with the active size", "ms")
    dense_total_ms: Array = output("Step, dense with the total size", "ms")


def step_curve(inputs: ExpertsInputs, routing: Routing, result: ExpertsResult) -> StepCurve:
    """Return the step's bytes and time from one token to beyond the batch at which experts are bound by arithmetic."""
    tokens = _tokens(
        min(3 * max(LEAST_SHOWN / 3, result.reached_critical_batch or 0, sequences_of(inputs).tokens), 1e7)
    )
    dense = [time_of(inputs, as_dense(inputs, tokens, n)).total_s for n in (routing.chosen, routing.experts)]
    return StepCurve(
        tokens,
        expert_bytes(inputs, routing.touched(tokens)) / 1e9,
        1e3 * time_of(inputs, load_of(inputs, routing, tokens)).total_s,
        1e3 * dense[0],
        1e3 * dense[1],
    )


@dataclass(frozen=True)
class Mixture:
    """One mixture of experts of the database, at this page's step."""

    id: str = output("Model")
    experts: int = output("Experts")
    experts_per_token: int = output("for each token")
    shared_experts: int = output("shared")
    coverage: float = output("Share touched")
    expert_gb: float = output("Expert weights read", "GB")
    step_ms: float = output("Step", "ms")
    times_dense_active: float = output("over dense, active size")
    times_dense_total: float = output("over dense, total size")
    tokens_for_95_percent: int | None = output("95 % of the experts", "tokens")
    reached_critical_batch: float | None = output("Experts bound by compute from", "tokens")
    critical_batch_whole_step: float | None = output("Whole step bound by compute from", "tokens")
    total_params_b: float = output("Parameters", "1e9")
    active_params_b: float = output("active", "1e9")
    effective_params_b: float = output("read by the step", "1e9")
    moe_layers: int = output("Layers with experts")
    dense_layers: int = output("without")


def every_mixture(inputs: ExpertsInputs) -> list[Mixture]:
    """Return every mixture of experts of the database for this page's step on one instance."""
    found = []
    for name in mixtures():
        each = compute(as_instance_of(inputs, name))
        model = hardware_db.models()[name]
        figures = {field: getattr(each, field) for field in Mixture.__dataclass_fields__ if hasattr(each, field)}
        found.append(
            Mixture(
                id=name,
                shared_experts=model.moe.shared_experts if model.moe else 0,
                moe_layers=model.moe_layers,
                dense_layers=_dense_layers(model),
                expert_gb=(each.expert_bytes_per_step or 0.0) / 1e9,
                times_dense_active=(each.step_ms or 0.0) / (each.dense_active_step_ms or math.inf),
                times_dense_total=(each.step_ms or 0.0) / (each.dense_total_step_ms or math.inf),
                **figures,
            )
        )
    return found


def _dense_layers(model: hardware_db.Model) -> int:
    """Return the layers with a dense FFN: none where a layer is a mixer or an FFN, since those FFNs are mixtures."""
    return model.layers - model.moe_layers if model.block_layout == "paired" else 0


def as_instance_of(inputs: ExpertsInputs, model: str) -> ExpertsInputs:
    """Return the same step of another model on one instance, by its record; popularities typed in are for one model."""
    return replace(inputs, model=model, experts=None, experts_per_token=None, ep=1, popularity="")


@dataclass(frozen=True)
class ReadCurve:
    """Share of its routed experts that a step of one model reads."""

    id: str
    experts: int
    chosen: int
    coverage: Array


TOKENS = np.unique(np.round(np.geomspace(1, LEAST_SHOWN, 60)))


def read_curves(inputs: ExpertsInputs) -> list[ReadCurve]:
    """Return the share of the experts that a step reads, against its tokens, for every mixture."""
    routings = {name: routing_of(as_instance_of(inputs, name)) for name in mixtures()}
    return [
        ReadCurve(name, routing.experts, routing.chosen, np.asarray(routing.touched(TOKENS)) / routing.experts)
        for name, routing in routings.items()
        if routing is not None
    ]


def _tokens(top: float) -> Array:
    return np.unique(np.round(np.geomspace(1, top, POINTS)))
