"""What the simulations of serving are fed with: the requests of a scenario, and the link between its pools."""

from __future__ import annotations

from typing import Any

from calculators.inputs import part_of
from calculators.kv_transfer import TransferInputs, context_of, link_values, route_of
from formulas.kv_cache import LINK_TIME
from formulas.montecarlo.serving import KvLink, Lengths, Workload, poisson_workload

LONGEST = 32
"""Output lengths of a simulation are cut at so many times the mean."""


def output_lengths(inputs: Any) -> Lengths:
    """Return the lengths of the outputs, from ``output_tokens`` and ``output_cv``."""
    return Lengths(inputs.output_tokens, inputs.output_cv, LONGEST * inputs.output_tokens)


def workload_of(inputs: Any, rate: float, requests: int) -> Workload:
    """Return so many requests of a scenario at a rate [requests/s], prompts of one length."""
    return poisson_workload(rate, requests, Lengths(inputs.prompt_tokens), output_lengths(inputs), inputs.seed)


def link_of(inputs: Any) -> KvLink:
    """Return the link between the pools, on which a request takes as long as in the formulas, messages included.

    The cached prefix moves with the prompt: its bytes are counted to the prompt's tokens.
    """
    given = part_of(TransferInputs, inputs, rate=1.0)  # what a transfer takes alone does not depend on it
    route = route_of(given)
    values = link_values(given, route, context_of(given))
    moved = float(values["kv_bytes"])
    return KvLink(moved / inputs.prompt_tokens, moved / float(LINK_TIME(**values)), route.latency_s)
