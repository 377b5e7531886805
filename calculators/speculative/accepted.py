"""What is known of acceptance: one probability, rates by position, or a measured curve; and how far one fits the others."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calculators.inputs import InputError, InputsError
from calculators.speculative.given import LONGEST, SpeculativeInputs
from formulas import speculative as forms
from formulas.closed_form import DomainError

Array = NDArray[np.float64]

_SEPARATORS = re.compile(r"[\s,;]+")


@dataclass(frozen=True)
class Acceptance:
    """Acceptance along the draft.

    Attributes
    ----------
    kind : str
        ``one`` probability, ``rates`` by position, or a ``curve`` of acceptance lengths.
    rates : ndarray
        Conditional acceptance of positions 1 to :data:`LONGEST`; beyond what was measured, the last one.
    measured : int
        Positions that were measured; all of them for one probability.
    curve : AcceptanceCurve or None
        The measured tokens per round, with the bonus token; of rates, those that they give.
    fit : AcceptanceFit or None
        The one acceptance nearest to the curve, and its misfit.
    adjusted : tuple of int
        Lengths at which no rates give the measured curve, so that a near one is used.
    """

    kind: str
    rates: Array
    measured: int
    curve: forms.AcceptanceCurve | None = None
    fit: forms.AcceptanceFit | None = None
    adjusted: tuple[int, ...] = ()

    @property
    def tokens(self) -> Array:
        """Tokens of a round with the bonus token, for drafts of 0 to :data:`LONGEST` tokens."""
        return forms.tokens_by_length(self.rates)

    @property
    def independent(self) -> float:
        """The one acceptance: as typed, or the best fit."""
        return float(self.rates[0]) if self.fit is None else self.fit.acceptance


def acceptance_of(inputs: SpeculativeInputs) -> Acceptance:
    """Return what the inputs say of acceptance.

    Raises
    ------
    InputsError
        If rates or curve cannot be read, cannot be, or both are given.
    """
    if inputs.acceptance_rates and inputs.acceptance_curve:
        raise _refused(
            "acceptance_curve", inputs.acceptance_curve, "rates by position are given too; clear one of the two"
        )
    if inputs.acceptance_rates:
        return _of_rates(inputs)
    if inputs.acceptance_curve:
        return _of_curve(inputs)
    return Acceptance("one", np.full(LONGEST, inputs.acceptance), LONGEST)


def _of_rates(inputs: SpeculativeInputs) -> Acceptance:
    name, written = "acceptance_rates", inputs.acceptance_rates
    values = [_number(name, written, word) for word in _words(written)]
    _check_count(name, written, len(values))
    try:
        rates = forms.conditional_rates(values) if inputs.rates_of == "all-rounds" else np.asarray(values)
        tokens = forms.tokens_by_length(rates)[1:]
    except DomainError as refusal:
        raise _refused(name, written, _as_clause(refusal)) from None
    curve = forms.AcceptanceCurve(tuple(range(1, len(rates) + 1)), tuple(map(float, tokens)))
    return Acceptance("rates", _extended(rates), len(rates), curve, forms.fit_acceptance(curve))


def _of_curve(inputs: SpeculativeInputs) -> Acceptance:
    name, written = "acceptance_curve", inputs.acceptance_curve
    pairs = []
    for word in _words(re.sub(r"\s*[:=]\s*", ":", written)):
        length, colon, tokens = word.partition(":")
        if not colon:
            raise _refused(name, written, f"{word} is no pair; write draft length and tokens, such as 4:3.11")
        pairs.append((_number(name, written, length), _number(name, written, tokens)))
    _check_count(name, written, int(max((k for k, _ in pairs), default=0)))
    try:
        curve = forms.acceptance_curve(pairs, bonus=inputs.lengths_count == "bonus-token")
    except DomainError as refusal:
        raise _refused(name, written, _as_clause(refusal)) from None
    implied = forms.implied_rates(curve)
    rates = np.asarray(implied.rates)
    return Acceptance("curve", _extended(rates), len(rates), curve, forms.fit_acceptance(curve), implied.adjusted)


def _words(written: str) -> list[str]:
    return [word for word in _SEPARATORS.split(written.strip()) if word]


def _number(name: str, written: str, word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = np.nan
    if "_" in word or not np.isfinite(value):
        raise _refused(
            name, written, f"{word or 'nothing'} is not a number; write numbers with a point, apart by commas"
        )
    return value


def _check_count(name: str, written: str, count: int) -> None:
    if not 1 <= count <= LONGEST:
        raise _refused(name, written, f"it speaks of {count} positions; allowed: 1 to {LONGEST}")


def _extended(rates: Array) -> Array:
    return np.concatenate((rates, np.full(LONGEST - len(rates), rates[-1])))


def _refused(name: str, written: str, sentence: str) -> InputsError:
    return InputsError([InputError(name, written, sentence)])


def _as_clause(refusal: DomainError) -> str:
    text = str(refusal)
    return text[0].lower() + text[1:].removesuffix(".")
