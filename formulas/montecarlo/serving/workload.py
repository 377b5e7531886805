"""Requests for a simulation: when they come and how long they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from formulas.closed_form import DomainError
from formulas.montecarlo.arrivals import gamma_gaps
from formulas.montecarlo.tandem import lognormal_times

Array = NDArray[np.float64]
Whole = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Workload:
    """Requests in order of arrival.

    Parameters
    ----------
    arrivals
        Times of arrival, ascending [s].
    prompt_tokens, output_tokens
        Tokens of each, at least one; the first output token is the prefill's [].

    Examples
    --------
    >>> len(Workload([0.0, 0.5], [512, 100], [64, 1]))
    2
    """

    arrivals: Any
    prompt_tokens: Any
    output_tokens: Any

    def __post_init__(self) -> None:
        arrivals = np.asarray(self.arrivals, dtype=float)
        prompts, outputs = np.asarray(self.prompt_tokens), np.asarray(self.output_tokens)
        if not arrivals.shape == prompts.shape == outputs.shape or arrivals.ndim != 1:
            raise ValueError("Arrivals, prompts and outputs are three lists of the same length.")
        if np.any(np.diff(arrivals) < 0):
            raise ValueError("Arrivals are in order of time.")
        if np.any(prompts < 1) or np.any(outputs < 1) or np.any(prompts % 1) or np.any(outputs % 1):
            raise ValueError("A prompt and an output are each a whole number of tokens, at least one.")
        object.__setattr__(self, "arrivals", arrivals)
        object.__setattr__(self, "prompt_tokens", prompts.astype(np.int64))
        object.__setattr__(self, "output_tokens", outputs.astype(np.int64))

    def __len__(self) -> int:
        return len(self.arrivals)

    def only(self, index: Any) -> Workload:
        """Return the requests of a slice, a mask or an ascending index."""
        return Workload(self.arrivals[index], self.prompt_tokens[index], self.output_tokens[index])


class LengthLaw(Protocol):
    """Lengths that can be drawn."""

    def draw(self, requests: int, generator: np.random.Generator) -> Whole:
        """Draw lengths."""


@dataclass(frozen=True)
class Lengths:
    """Lengths of prompts or outputs: log-normal, rounded to tokens; all equal at zero spread.

    Parameters
    ----------
    mean
        Mean length, at least 1 [].
    cv
        Coefficient of variation [].
    longest
        Longer ones are cut to this [].
    """

    mean: float
    cv: float = 0.0
    longest: int | None = None

    def draw(self, requests: int, generator: np.random.Generator) -> Whole:
        """Draw lengths.

        Examples
        --------
        >>> Lengths(512).draw(3, np.random.default_rng(1))
        array([512, 512, 512])
        """
        lengths = np.rint(lognormal_times(self.mean, self.cv, requests, generator))
        return np.clip(lengths, 1, self.longest).astype(np.int64)


@dataclass(frozen=True)
class DrawnLengths:
    """Lengths of any distribution, rounded to tokens.

    Parameters
    ----------
    law
        The distribution.
    longest
        Longer ones are cut to this [].
    """

    law: Any
    longest: int | None = None

    def draw(self, requests: int, generator: np.random.Generator) -> Whole:
        """Draw lengths.

        Examples
        --------
        >>> from formulas.queueing.service import ListedLengths
        >>> DrawnLengths(ListedLengths([8.0, 90.0])).draw(5, np.random.default_rng(1))
        array([90, 90,  8, 90,  8])
        """
        lengths = np.clip(np.rint(self.law.draw(requests, generator)), 1, self.longest)
        return np.asarray(lengths, dtype=np.int64)


def poisson_workload(rate: float, requests: int, prompts: LengthLaw, outputs: LengthLaw, seed: int) -> Workload:
    """Return requests that arrive as a Poisson process; the arguments are those of :func:`gamma_workload`.

    Examples
    --------
    >>> poisson_workload(10.0, 3, Lengths(512), Lengths(64, 0.5), seed=1).output_tokens
    array([32, 85, 77])
    """
    return gamma_workload(rate, requests, prompts, outputs, seed)


def gamma_workload(
    rate: float, requests: int, prompts: LengthLaw, outputs: LengthLaw, seed: int, arrival_scv: float = 1.0
) -> Workload:
    """Return requests whose gaps are gamma distributed.

    Parameters
    ----------
    rate
        Requests per second [1/s].
    requests
        Number of them [].
    prompts, outputs
        Distributions of their lengths, independent.
    seed
        Of the generators: at another rate, the same requests come faster or slower.
    arrival_scv
        Squared coefficient of variation of the gaps: 1 for a Poisson process, 0 for a steady beat [].

    Examples
    --------
    >>> gamma_workload(10.0, 3, Lengths(512), Lengths(64), seed=1, arrival_scv=0.0).arrivals
    array([0.1, 0.2, 0.3])
    """
    if not rate > 0:
        raise DomainError("A simulation needs a rate above zero.")
    gaps, prompt, output = (np.random.default_rng([seed, stream]) for stream in range(3))
    arrivals = np.cumsum(gamma_gaps(rate, 1 / arrival_scv if arrival_scv else np.inf, requests, gaps))
    return Workload(arrivals, prompts.draw(requests, prompt), outputs.draw(requests, output))
