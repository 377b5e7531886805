"""The largest rate at which enough requests meet their targets, by simulation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from formulas.closed_form import DomainError
from formulas.montecarlo.serving.served import Served


@dataclass(frozen=True)
class Targets:
    """What a request should meet, and the share of requests that should."""

    ttft_s: float
    tpot_s: float
    attainment: float = 0.9

    def met(self, served: Served) -> bool:
        """Whether the share of the requests that meet both is large enough."""
        return float(served.meets(self.ttft_s, self.tpot_s).mean()) >= self.attainment


def simulated_goodput(
    served_at: Callable[[float], Served], targets: Targets, low: float, high: float, relative: float = 0.005
) -> float:
    """Return the largest rate that meets the targets, by bisection.

    Parameters
    ----------
    served_at
        Simulates a rate [1/s]. With the same seed at every rate the same requests come faster or slower, and the
        attainment falls nearly without noise; what the seed is worth remains in the result.
    targets
        What to meet.
    low, high
        Rates that do and do not [1/s].
    relative
        Width of the last bracket, as a share of the rate [].

    Returns
    -------
    float
        The middle of the last bracket [1/s].

    Examples
    --------
    >>> from formulas.montecarlo.serving import AffineStep, InstanceSettings, Lengths, poisson_workload, simulate
    >>> prefill = InstanceSettings("prefill", AffineStep(0.0, prompt_token_s=1e-4))
    >>> def served_at(rate):
    ...     return simulate(poisson_workload(rate, 5_000, Lengths(100), Lengths(1), seed=1), prefill)
    >>> 70 < simulated_goodput(served_at, Targets(0.05, 0.01), 50.0, 99.0) < 80
    True
    """
    if not targets.met(served_at(low)):
        raise DomainError(f"The targets are missed already at {low:g} requests/s.")
    if targets.met(served_at(high)):
        raise DomainError(f"The targets are still met at {high:g} requests/s.")
    while high - low > relative * low:
        middle = (low + high) / 2
        if targets.met(served_at(middle)):
            low = middle
        else:
            high = middle
    return (low + high) / 2
