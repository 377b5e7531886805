"""The page's inputs: acceptance and costs, acceptance as measured, the target and its chips, the draft and its chips."""

from __future__ import annotations

from dataclasses import dataclass

import hardware_db
from calculators.inputs import choice, integer, number, same_as, text
from calculators.scenario import Assumptions, Batch, Hardware, Memory, Output, Prompt, Simulation

LONGEST = 256
"""Longest draft that is looked at [tokens]."""


@dataclass(frozen=True, kw_only=True)
class Round:
    """What decides a round, where it is known."""

    acceptance: float = number(
        "Acceptance",
        low=0,
        high=1,
        default=0.8,
        step=0.05,
        symbol="\\alpha",
        help="Probability that the target accepts a drafted token, the same at every position and independent of the "
        "others. Type measured acceptance in the sidebar to do without that.",
    )
    draft_tokens: int = integer(
        "Draft tokens",
        low=1,
        high=LONGEST,
        default=4,
        step=1,
        symbol="\\gamma",
        help="Tokens that the draft model proposes in a round. The target verifies them in one step and adds one of its own.",
    )
    draft_cost: float | None = number(
        "Draft cost",
        unit="plain steps",
        low=0,
        high=10,
        default=None,
        step=0.05,
        symbol="c",
        empty="from the hardware",
        help="Time to draft one token, in plain decode steps of the target. Leave it empty to have it computed.",
    )
    verify_cost: float | None = number(
        "Verify cost",
        unit="plain steps",
        low=0.01,
        high=1000,
        default=None,
        step=0.1,
        symbol="v",
        empty="from the hardware",
        help="Time to verify a draft of any length, in plain decode steps. Leave it empty to have it computed for each "
        "length.",
    )


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Acceptance as an engine measured it, in place of one probability."""

    acceptance_rates: str = text(
        "Acceptance by position",
        longest=1500,
        help="Rates of positions 1, 2, 3, … of the draft, such as 0.8, 0.75, 0.6. They replace the acceptance. Beyond the "
        "last one given, it is used for all further positions.",
    )
    rates_of: str = choice(
        "Rates are of",
        options=("drafts-reached", "all-rounds"),
        default="drafts-reached",
        help="drafts-reached: the share accepted of those drafts whose predecessors all were. all-rounds: the share of all "
        "rounds that accept the position, as vLLM and llama.cpp print it; it never rises along the draft.",
    )
    acceptance_curve: str = text(
        "Measured acceptance lengths",
        longest=1500,
        help="Pairs of draft length and mean acceptance length, such as 1:1.78, 2:2.38, 4:3.11. They replace the acceptance.",
    )
    lengths_count: str = choice(
        "Lengths count",
        options=("bonus-token", "accepted-only"),
        default="bonus-token",
        help="bonus-token: with the token that the target always adds, as vLLM and SGLang report it. accepted-only: the "
        "accepted drafts alone.",
    )


@dataclass(frozen=True, kw_only=True)
class Target:
    """The target model and its chips."""

    target: str = choice(
        "Target model",
        options=hardware_db.models(),
        default="llama-3.1-70b",
        listed_by="python -m calculators models",
        help="The model whose output is wanted: it verifies the drafts.",
    )
    target_accelerator: str = choice(
        "Target accelerator",
        options=hardware_db.accelerators(),
        default="h100-sxm",
        listed_by="python -m calculators hardware",
        help="The chip that the target runs on, or several of it.",
    )
    target_tp: int | None = integer(
        "Target accelerators",
        low=1,
        high=128,
        default=None,
        step=1,
        empty="as few as hold it",
        help="How many accelerators share each layer of the target (tensor parallel). Left empty, the smallest power of two "
        "that holds the weights and leaves a tenth of the memory.",
    )
    target_dtype: str | None = choice(
        "Target weights stored as",
        options=hardware_db.FORMATS,
        default=None,
        empty="as published",
        help="Format of the target's weights. Where the chip lacks the type, products are computed in a wider one.",
    )


@dataclass(frozen=True, kw_only=True)
class Draft:
    """The draft model and its chips."""

    draft: str = choice(
        "Draft model",
        options=hardware_db.models(),
        default="llama-3.2-1b",
        listed_by="python -m calculators models",
        help="The small model that proposes tokens. Whether it shares the target's vocabulary is not checked here.",
    )
    draft_size_b: float | None = number(
        "Draft parameters",
        unit="billion",
        low=0.001,
        high=2000,
        default=None,
        step=0.1,
        empty="of the draft model",
        help="Parameters that a draft step reads and computes with, if they are not the draft model's; its cache is still "
        "that of the model chosen.",
    )
    draft_accelerator: str | None = choice(
        "Draft accelerator",
        options=hardware_db.accelerators(),
        default=None,
        empty="the target's own",
        listed_by="python -m calculators hardware",
        help="The chip that the draft runs on, beside the target's: another GPU, or a machine of on-chip memory. Left empty, "
        "the draft takes turns with the target on its chips.",
    )
    draft_tp: int | None = integer(
        "Draft accelerators",
        low=1,
        high=128,
        default=None,
        step=1,
        empty="as few as hold it",
        help="How many accelerators share each layer of the draft model. Left empty, the smallest power of two that holds the "
        "weights, in whichever memory, and leaves a tenth.",
    )
    draft_dtype: str | None = choice(
        "Draft weights stored as",
        options=hardware_db.FORMATS,
        default=None,
        empty="8 bits if it can",
        help="Format of the draft's weights. Left empty, FP8, else INT8, else 16 bits, as the chip computes.",
    )
    draft_link: str = choice(
        "Link to the draft",
        options=hardware_db.links(),
        default="pcie5-x16",
        listed_by="python -m calculators links",
        help="What joins the draft's chips to the target's. Each round crosses it once in each direction.",
    )
    draft_round_trip_us: float | None = number(
        "Round trip to the draft",
        unit="µs",
        low=0,
        high=1e6,
        default=None,
        step=5,
        empty="from the link",
        help="What the two hand-overs of a round cost together. Left empty, twice the link's latency: tokens are small. Not "
        "counted where the draft runs on the target's own chips.",
    )
    draft_overhead_ms: float | None = number(
        "Overhead of a draft step",
        unit="ms",
        low=0,
        high=1000,
        default=None,
        step=0.05,
        empty="by the kind of chip",
        help="What a draft step costs before it reads anything. Left empty, 0.3 ms, and 0.045 ms on machines of on-chip "
        "memory: what the course's 0.90 and 0.057 ms for a draft of 1.6 billion parameters leave beside the reading.",
    )


@dataclass(frozen=True, kw_only=True)
class SpeculativeInputs(Simulation, Assumptions, Memory, Draft, Target, Measured, Round, Batch, Output, Prompt):
    """A round of speculative decoding, and what it runs on."""

    kv_dtype: str = same_as(Hardware, "kv_dtype")

    @property
    def typed(self) -> bool:
        """Whether both costs are typed in, so that no hardware is looked at."""
        return self.draft_cost is not None and self.verify_cost is not None

    @property
    def context(self) -> int:
        """Tokens that a decoding sequence attends to: typed in, or the prompt and half of the output."""
        return self.context_tokens or self.prompt_tokens + self.cached_tokens + self.output_tokens // 2
