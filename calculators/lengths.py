"""The distribution of prompt lengths that the inputs describe: a histogram, or a law with a mean and a spread."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from calculators.inputs import InputError, InputsError
from calculators.outputs import readable
from formulas.closed_form import DomainError
from formulas.queueing.service import (
    GammaLengths,
    HistogramLengths,
    ListedLengths,
    LognormalLengths,
    UniformLengths,
)
from formulas.queueing.service.lengths import Lengths

WIDEST_UNIFORM = 0.577
"""Coefficient of variation of lengths between nothing and twice the mean: 1/sqrt(3), rounded down."""

AS_GIVEN = 0.03
"""Relative difference of two means up to which a histogram counts as taken as it is: buckets do not keep a mean exactly."""

LONGEST, LARGEST, RAREST = 10_000_000, 1e15, 1e-12
"""Longest prompt [tokens] and largest share of a bucket, and the part of all prompts up to which a bucket counts as empty."""

_HOW = "write the upper edge of each bucket in tokens, and its share: 512:30, 2048:50, 8192:20"


def lengths_of(inputs: Any) -> Lengths:
    """Return the distribution of the prompt lengths [tokens] of inputs that have those of a prompt and its law.

    Raises
    ------
    InputsError
        If the histogram is none, or lengths that may not be negative cannot have that spread.

    Examples
    --------
    >>> from calculators.scenario import Workload
    >>> lengths_of(Workload(prompt_tokens=100, prompt_cv=1.0, prompt_distribution="two_point"))
    ListedLengths(lengths=array([ 50., 300.]), shares=array([0.8, 0.2]))
    >>> lengths_of(Workload(prompt_tokens=150, prompt_histogram="100:3, 300:1"))
    HistogramLengths(edges=(0.0, 171.42857, 514.28571), shares=(3.0, 1.0))
    """
    mean, cv = float(inputs.prompt_tokens), inputs.prompt_cv
    if inputs.prompt_histogram:
        return histogram_of(inputs.prompt_histogram).scaled_to(mean)
    if not cv:
        return ListedLengths(mean)
    match inputs.prompt_distribution:
        case "gamma":
            return GammaLengths(mean, cv)
        case "uniform":
            if cv > WIDEST_UNIFORM:
                sentence = (
                    f"uniform lengths cannot be spread more than {WIDEST_UNIFORM}, or the shortest would be below nothing; "
                    "lower it, or choose another prompt_distribution"
                )
                raise InputsError([InputError("prompt_cv", cv, sentence)])
            return UniformLengths(mean * (1 - 3**0.5 * cv), mean * (1 + 3**0.5 * cv))
        case "two_point":
            long = 1 / (1 + 4 * cv**2)  # its share, with which the short ones have half the mean
            return ListedLengths([mean / 2, mean * (1 + 2 * cv**2)], [1 - long, long])
    return LognormalLengths(mean, cv)


def quantile_of(lengths: Lengths, level: float) -> float:
    """Return the length [tokens] that a share `level` of the prompts do not exceed.

    >>> quantile_of(ListedLengths([50.0, 300.0], [0.8, 0.2]), 0.9)
    300.0
    """
    if isinstance(lengths, ListedLengths):
        return float(lengths.lengths[np.searchsorted(np.cumsum(lengths.shares), level)])
    return float(lengths.quantile(level))


def spread_of(inputs: Any) -> float:
    """Return the coefficient of variation of the prompt lengths: the histogram's own, if there is one.

    >>> from calculators.scenario import Workload
    >>> spread_of(Workload(prompt_cv=0.5)), round(spread_of(Workload(prompt_histogram="512:1")), 4)
    (0.5, 0.5774)
    """
    return histogram_of(inputs.prompt_histogram).cv if inputs.prompt_histogram else float(inputs.prompt_cv)


@lru_cache(maxsize=64)
def histogram_of(text: str) -> HistogramLengths:
    """Return the histogram that a text stands for.

    Raises
    ------
    InputsError
        If it stands for none, naming the bucket.

    Examples
    --------
    >>> histogram_of("512:30, 2048:50")
    HistogramLengths(edges=(0.0, 512.0, 2048.0), shares=(30.0, 50.0))
    """
    edges, shares = [0.0], []
    for place, bucket in enumerate(text.replace(",", " ").replace(";", " ").split(), 1):
        edge, colon, share = bucket.replace("_", "?").partition(":")  # Python reads "1_000"; it is more likely damaged
        try:
            edges.append(float(edge))
            shares.append(float(share))
        except ValueError:
            what = "has no share" if not colon else "is no number before and after its colon"
            raise _wrong(text, f"bucket {place}, {bucket[:20]}, {what}; {_HOW}") from None
        if not (edges[-2] + 1 <= edges[-1] <= LONGEST and 0 <= shares[-1] <= LARGEST):
            limits = f"edges rise by a token or more, up to {LONGEST:,}, and shares go from 0 to {LARGEST:.0e}"
            raise _wrong(text, f"bucket {place}, {bucket[:20]}, is out of range: {limits}; {_HOW}")
    least = RAREST * sum(shares)
    try:
        return HistogramLengths(tuple(edges), tuple(share if share > least else 0.0 for share in shares))
    except DomainError as wrong:
        raise _wrong(text, f"{wrong} {_HOW[0].upper()}{_HOW[1:]}") from None


def _wrong(text: str, sentence: str) -> InputsError:
    return InputsError([InputError("prompt_histogram", text, sentence)])


def text_of(edges: Any, shares: Any) -> str:
    """Return a histogram as its input takes it.

    >>> text_of([0, 512, 2048], [30, 50])
    '512:30,2048:50'
    """
    return ",".join(f"{edge:g}:{share:g}" for edge, share in zip(edges[1:], shares, strict=True))


def in_words(inputs: Any) -> str:
    """Return the lengths in a few words, to stand before the word prompts or lengths.

    >>> from calculators.scenario import Workload
    >>> in_words(Workload()), in_words(Workload(prompt_cv=1.5)), in_words(Workload(prompt_histogram="9:1,99:1"))
    ('equal prompts', 'lognormal prompts, cv 1.5', 'prompts by a histogram, cv 1.06')
    """
    if inputs.prompt_histogram:
        return f"prompts by a histogram, cv {readable(spread_of(inputs), 3)}"
    return f"{inputs.prompt_distribution} prompts, cv {inputs.prompt_cv:g}" if inputs.prompt_cv else "equal prompts"


def histogram_remarks(inputs: Any) -> tuple[str, ...]:
    """Return what of a histogram is not taken as it stands: its mean is that of the prompts."""
    if not inputs.prompt_histogram:
        return ()
    mean = histogram_of(inputs.prompt_histogram).mean
    if abs(mean / inputs.prompt_tokens - 1) <= AS_GIVEN:
        return ()
    sentence = (
        f"The histogram's mean is {mean:,.0f} tokens; its lengths are taken times "
        f"{readable(inputs.prompt_tokens / mean, 3)}, to the prompt length of {inputs.prompt_tokens:,}. Set that to "
        f"{mean:,.0f} to take them as they are."
    )
    return (sentence,)
