"""What can be deployed: each way to serve at each tensor degree, with as many instances as the rate needs."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from calculators.degrees import tensor_degrees
from calculators.inputs import InputsError, part_of
from calculators.machine import MachineInputs, machine_of
from calculators.plan.apart import disaggregated
from calculators.plan.deployments import Demand, Deployment, Refused
from calculators.plan.together import colocated
from calculators.systems import PrefillFirst, ServingInputs

DEGREES = (1, 2, 4, 8)
"""Tensor degrees that are tried."""


@lru_cache(maxsize=64)  # the page asks for the result and for the deployments behind it
def candidates(demand: Demand) -> tuple[tuple[Deployment, ...], tuple[Refused, ...]]:
    """Return what serves the rate within the targets, the best first, and which degrees do not.

    The cheapest is the best where there are two kinds of accelerators with their prices, else the one with the fewest; before
    all, those for which there are accelerators enough.
    """
    found: list[Deployment] = []
    refused: list[Refused] = []
    usable: list[dict[int, ServingInputs]] = []
    for kind in demand.kinds:
        fits, misfits = _usable(kind)
        deployments, slow = colocated(fits, demand)
        found += deployments
        refused += [*misfits, *slow]
        usable.append(fits)
    found += disaggregated(usable[0], usable[-1], demand)
    by_cost = len(demand.kinds) > 1 and None not in demand.prices

    def rank(each: Deployment) -> tuple[bool, float, float, float]:
        cost = (each.cost_per_hour(demand) or 0.0) if by_cost else 0.0
        times = each.latency
        return (
            each.gpus > demand.most_gpus,
            cost,
            each.gpus,
            0.0 if times is None else -times.attainment(demand.targets),
        )

    return tuple(sorted(found, key=rank)), tuple(refused)


def _usable(inputs: ServingInputs) -> tuple[dict[int, ServingInputs], list[Refused]]:
    """Return the degrees at which the model can be served on a kind of accelerator, and why it cannot at the others."""
    usable, refused = {}, []
    for rule in tensor_degrees(inputs, DEGREES):
        shared = replace(inputs, tp=rule.degree)
        try:
            machine_of(part_of(MachineInputs, shared))
            slots = PrefillFirst(shared).pool.slots
        except InputsError as error:
            if any(each.name not in ("tp", "accelerator") for each in error.errors):
                raise
            refused.append(Refused(inputs.accelerator, rule.degree, error.errors[0].sentence))
            continue
        if rule.reasons:
            refused.append(Refused(inputs.accelerator, rule.degree, "; ".join(rule.reasons)))
        elif not slots:
            reason = "the weights, the reserve and one request do not fit in memory"
            refused.append(Refused(inputs.accelerator, rule.degree, reason))
        else:
            usable[rule.degree] = shared
    return usable, refused
