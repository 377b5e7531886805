"""Who routes and how: the counts, typed in or from the record, and the popularities of the experts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import hardware_db
from calculators.inputs import InputError, InputsError
from formulas import experts as forms
from formulas.closed_form import DomainError

if TYPE_CHECKING:
    from calculators.experts.compute import ExpertsInputs

Array = NDArray[np.float64]

_MOST_TOKENS = 2**40


@dataclass(frozen=True)
class Routing:
    """How the tokens of a layer are routed.

    Attributes
    ----------
    experts, chosen : int
        Routed experts of a layer, and those that a token chooses.
    weights : tuple of float
        Popularity of each expert.
    recorded : bool
        Whether the counts are those of the model's record, so that there are bytes and times.
    """

    experts: int
    chosen: int
    weights: tuple[float, ...]
    recorded: bool

    @property
    def even(self) -> bool:
        """Whether all experts are equally popular."""
        return min(self.weights) == max(self.weights)

    @cached_property
    def probabilities(self) -> Array:
        """The probability that a token chooses each expert."""
        return _probabilities(self.weights, self.chosen)

    def touched(self, tokens: Any) -> Any:
        """Return the expected number of different experts that ``tokens`` (number or array) touch."""
        if self.even:
            return forms.DISTINCT_EXPERTS(experts=self.experts, experts_per_token=self.chosen, tokens=tokens)
        return forms.touched_of(self.probabilities, tokens)

    def evenly_touched(self, tokens: Any) -> Any:
        """Return what they would touch if all experts were equally popular."""
        return forms.DISTINCT_EXPERTS(experts=self.experts, experts_per_token=self.chosen, tokens=tokens)

    def sd(self, tokens: float) -> float:
        """Return the standard deviation of that number."""
        if self.even:
            return float(forms.distinct_sd(self.experts, self.chosen, tokens))
        return forms.touched_sd(self.probabilities, tokens)

    def tokens_for(self, share: float) -> int | None:
        """Return the fewest tokens that touch a share of the experts on average; ``None`` where none is in sight."""
        if self.even:
            return forms.tokens_for_coverage(self.experts, self.chosen, share)
        wanted = share * self.experts
        low, high = 0, 1
        while self.touched(high) < wanted:
            low, high = high, 2 * high
            if high > _MOST_TOKENS:
                return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.touched(middle) < wanted else (low, middle)
        return high


def routing_of(inputs: ExpertsInputs) -> Routing | None:
    """Return how the tokens are routed; ``None`` where the model is dense and no counts are typed in.

    Raises
    ------
    InputsError
        If the counts or the popularities do not go together.
    """
    model = hardware_db.models()[inputs.model]
    if inputs.experts is None and inputs.experts_per_token is None and not model.experts:
        return None
    experts = inputs.experts or model.experts
    chosen = inputs.experts_per_token or model.experts_per_token
    for name, value in (("experts", experts), ("experts_per_token", chosen)):
        if not value:
            raise _wrong(
                name, None, f"a value is needed beside the other count, since {model.id} is dense and has none"
            )
    if chosen > experts:
        name = "experts_per_token" if inputs.experts_per_token else "experts"
        raise _wrong(name, getattr(inputs, name), f"{chosen} per token of {experts} experts: no more than there are")
    recorded = (experts, chosen) == (model.experts, model.experts_per_token)
    return Routing(experts, chosen, _weights(inputs, experts, chosen), recorded)


def _weights(inputs: ExpertsInputs, experts: int, chosen: int) -> tuple[float, ...]:
    if not inputs.popularity.strip():
        return tuple(map(float, forms.zipf_weights(experts, inputs.zipf_exponent)))
    if inputs.zipf_exponent:
        raise _wrong("zipf_exponent", inputs.zipf_exponent, "popularities are typed in too; give one or the other")
    weights = _read_popularity(inputs.popularity)
    if len(weights) != experts:
        raise _wrong("popularity", inputs.popularity, f"{len(weights)} popularities for {experts} experts; {_FORM}")
    try:
        return tuple(map(float, forms.checked_popularity(weights, chosen)))
    except DomainError as error:
        raise _wrong("popularity", inputs.popularity, str(error)) from None


_FORM = "allowed: positive numbers with commas between them, 8x5 for eight experts of popularity 5"
_PART = re.compile(r"(?:(\d{1,4})x)?((?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,2})?)", re.IGNORECASE | re.ASCII)


def _read_popularity(text: str) -> list[float]:
    """Return the popularities of each expert.

    >>> _read_popularity("2x5, 1, 0.5")
    [5.0, 5.0, 1.0, 0.5]
    """
    weights: list[float] = []
    for part in filter(None, re.split(r"[,;\s]+", text)):
        found = _PART.fullmatch(part)
        if found is None:
            raise _wrong("popularity", part, f"not understood; {_FORM}")
        weights += [float(found[2])] * int(found[1] or 1)
    return weights


def _wrong(name: str, value: object, sentence: str) -> InputsError:
    return InputsError([InputError(name, "" if value is None else value, sentence)])


@lru_cache(maxsize=64)
def _probabilities(weights: tuple[float, ...], chosen: int) -> Array:
    found = forms.inclusion_probabilities(weights, chosen)
    found.setflags(write=False)
    return found
