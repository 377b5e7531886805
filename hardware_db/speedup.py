"""Measured speedups of tensor parallelism: what engines reach, beside what an ideal link would give."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from hardware_db.records import Count, Positive, Record, Text, broken_rule


class Speedup(Record):
    """One measured pair of degrees.

    Attributes
    ----------
    model, accelerator : str
        Ids of the database where it has them, else names.
    engine : str
        The serving engine and its year.
    phase : str
        ``prefill`` or ``decode``.
    prompt_tokens : int
        Length of the prompt [tokens].
    from_tp, to_tp : int
        Degrees compared.
    speedup : float
        Time at `from_tp` over time at `to_tp`.
    """

    model: Text
    accelerator: Text
    engine: Text
    phase: Literal["prefill", "decode"]
    prompt_tokens: Count
    from_tp: Annotated[int, Field(ge=1)]
    to_tp: Annotated[int, Field(ge=2)]
    speedup: Positive

    @model_validator(mode="after")
    def _no_more_than_the_accelerators(self) -> Self:
        if not self.from_tp < self.to_tp:
            raise broken_rule("to_tp", f"{self.to_tp} must be more than from_tp = {self.from_tp}")
        if self.speedup > self.to_tp / self.from_tp:
            raise broken_rule("speedup", f"{self.speedup:g} is more than {self.to_tp / self.from_tp:g} times the chips")
        return self
