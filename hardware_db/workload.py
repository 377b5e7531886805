"""Workloads: how long prompts and outputs are, and what users are promised."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from hardware_db.records import Count, Positive, Record, Table, Text, broken_rule

Spread = Annotated[float, Field(ge=0, le=10)]
Tokens = Annotated[float, Field(ge=1)]


class Slo(Table):
    """Targets that a source sets for one model.

    Attributes
    ----------
    model : str
        Id of the model.
    ttft_s, tpot_s : float
        Time to first token, and per output token after it [s].
    """

    model: Text
    ttft_s: Positive
    tpot_s: Positive

    @property
    def ttft_ms(self) -> float:
        """Time to first token [ms]."""
        return 1e3 * self.ttft_s

    @property
    def tpot_ms(self) -> float:
        """Time per output token [ms]."""
        return 1e3 * self.tpot_s


class Workload(Record):
    """Lengths of requests and, where a source sets them, targets.

    Attributes
    ----------
    name : str
        What a person calls it.
    kind : str
        ``chat``, ``code``, ``summarization``, ``agent`` or ``synthetic``.
    prompt_tokens, output_tokens : float
        Mean lengths [tokens].
    prompt_cv, output_cv : float or None
        Coefficients of variation, or None where no source gives them.
    median_prompt_tokens, median_output_tokens : float or None
        Medians [tokens].
    requests : int or None
        Requests over which they were taken.
    slos : tuple of Slo
        Targets for each model that a source names.
    """

    name: Text
    kind: Literal["chat", "code", "summarization", "agent", "synthetic"]
    prompt_tokens: Tokens
    output_tokens: Tokens
    prompt_cv: Spread | None = None
    output_cv: Spread | None = None
    median_prompt_tokens: Tokens | None = None
    median_output_tokens: Tokens | None = None
    requests: Count | None = None
    slos: tuple[Slo, ...] = ()

    def slo_for(self, model: str) -> Slo | None:
        """Return the targets that a source sets for a model, or None."""
        return next((slo for slo in self.slos if slo.model == model), None)

    @model_validator(mode="after")
    def _medians_fit_the_spreads(self) -> Self:
        """Mean and median of any distribution are at most a standard deviation apart."""
        for what in ("prompt", "output"):
            mean, cv, median = (
                getattr(self, name) for name in (f"{what}_tokens", f"{what}_cv", f"median_{what}_tokens")
            )
            if cv is not None and median is not None and abs(mean - median) > cv * mean * 1.01:
                raise broken_rule(
                    f"median_{what}_tokens",
                    f"{median:g} is more than a standard deviation ({cv * mean:.4g}) from the mean {mean:g}",
                )
        return self

    @model_validator(mode="after")
    def _one_target_for_a_model(self) -> Self:
        names = [slo.model for slo in self.slos]
        if len(set(names)) < len(names):
            raise broken_rule("slos", "a model stands there twice; give each its own targets once")
        return self
