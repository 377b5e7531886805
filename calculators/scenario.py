"""The inputs that calculators share: traffic, how a prompt is served, the target, the step-time assumptions.

Each group is a dataclass; a calculator's own inputs class inherits the groups that it uses, so its command line,
its JSON and its links carry those and no others. :class:`Scenario` is all of them: the sidebar, which every page
shows, so that moving between pages keeps it.
"""

from __future__ import annotations

from dataclasses import dataclass

import hardware_db
from calculators.inputs import choice, integer, number, text

FROM_SET = "from the set"


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """How many requests arrive."""

    rate: float = number(
        "Arrival rate",
        unit="requests/s",
        low=0.001,
        high=1e6,
        default=50,
        step=1,
        symbol="R",
        help="Mean rate of requests at one instance. Arrivals are Poisson, independent of each other, where no "
        "burstiness says otherwise.",
    )


@dataclass(frozen=True, kw_only=True)
class TypedService:
    """How long one prompt occupies an instance, if that is known better than by computing it."""

    service_ms: float | None = number(
        "Service time",
        unit="ms",
        low=0.001,
        high=1e7,
        default=None,
        step=1,
        symbol="D",
        empty="computed",
        help="Time to prefill one prompt, alone on an instance. Leave it empty to have it computed; type a "
        "measured value to use that instead.",
    )


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """What there is to prefill."""

    prompt_tokens: int = integer(
        "Prompt length",
        unit="tokens",
        low=1,
        high=2_000_000,
        default=512,
        step=64,
        symbol="p",
        help="Tokens to prefill for each request, not counting those found in a prefix cache.",
    )
    cached_tokens: int = integer(
        "Cached prefix",
        unit="tokens",
        low=0,
        high=2_000_000,
        default=0,
        step=64,
        symbol="h",
        help="Tokens before the prompt whose keys and values are cached: attended to, not computed again.",
    )


@dataclass(frozen=True, kw_only=True)
class PromptSpread:
    """How much the prompts differ."""

    prompt_cv: float = number(
        "Spread of prompt lengths",
        low=0,
        high=5,
        default=0,
        step=0.25,
        symbol="c_v",
        help="Coefficient of variation of the prompts: 0 where all are equal, 1 for as much spread as mean. Above 0 "
        "they are log-normal, if nothing else says how they are spread.",
    )


@dataclass(frozen=True, kw_only=True)
class PromptLaw(PromptSpread):
    """How the lengths of the prompts are spread."""

    prompt_distribution: str = choice(
        "Distribution of prompt lengths",
        options=("lognormal", "gamma", "uniform", "two_point"),
        default="lognormal",
        help="The law of the lengths where their spread is above 0; the prompt length is their mean. two_point: short "
        "prompts of half the mean, and as many long ones, as long, as the spread needs. With a typed service time, "
        "that is the mean and times are in proportion to lengths.",
    )
    prompt_histogram: str = text(
        "Histogram of prompt lengths",
        longest=2000,
        help="As measured, instead of a law and its spread: the upper edge of each bucket in tokens, and its share, as in "
        "512:30, 2048:50, 8192:20. The prompt length stays the mean: all lengths are scaled to it. A trace fills it.",
    )


@dataclass(frozen=True, kw_only=True)
class Burstiness:
    """How unevenly requests arrive."""

    arrival_scv: float = number(
        "Burstiness of arrivals",
        low=0,
        high=100,
        default=1,
        step=1,
        symbol="c_a^2",
        help="Squared coefficient of variation of the gaps between arrivals, which are gamma distributed: 1 is "
        "Poisson, 0 is a steady beat, above 1 they come in bursts. Load generators call 1 over it burstiness.",
    )


@dataclass(frozen=True, kw_only=True)
class Routing:
    """How requests are spread over instances."""

    routing: str = choice(
        "Router",
        options=("random", "round_robin", "shortest_queue", "least_work", "shared"),
        default="random",
        help="How a request gets its instance: at random, in turn, the fewest requests there, the least work left there, "
        "or one queue that all instances share. With one instance it makes no difference.",
    )


@dataclass(frozen=True, kw_only=True)
class Output:
    """What there is to decode."""

    output_tokens: int = integer(
        "Output length",
        unit="tokens",
        low=1,
        high=1_000_000,
        default=64,
        step=16,
        symbol="m",
        help="Tokens generated for each request. The prefill brings the first; each of the others takes a decode step.",
    )


@dataclass(frozen=True, kw_only=True)
class OutputSpread:
    """How much the outputs differ."""

    output_cv: float = number(
        "Spread of the output lengths",
        low=0,
        high=3,
        default=0,
        step=0.1,
        symbol="c",
        help="Coefficient of variation of the output lengths: 0 where all are equal, about 1 for chat. Lengths are taken "
        "as log-normal.",
    )


@dataclass(frozen=True, kw_only=True)
class Context:
    """How much a decoding sequence attends to."""

    context_tokens: int | None = integer(
        "Context of a sequence",
        unit="tokens",
        low=1,
        high=10_000_000,
        default=None,
        step=512,
        empty="from the lengths",
        help="Tokens in the cache of each decoding sequence. Leave it empty to take the prompt and, where tokens are decoded, "
        "half of the output.",
    )


@dataclass(frozen=True, kw_only=True)
class Batch(Context):
    """The sequences of one decode step."""

    batch: int = integer(
        "Batch",
        unit="sequences",
        low=1,
        high=100_000,
        default=32,
        step=8,
        symbol="n",
        help="Decoding sequences in one step. Under load the batch forms by itself; this is for looking at one step.",
    )


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """The model, the chip, and the data types."""

    model: str = choice(
        "Model",
        options=hardware_db.models(),
        default="llama-3.1-8b",
        listed_by="python -m calculators models",
        help="The model whose prompts are prefilled. Its shape and sources are on the hardware page.",
    )
    accelerator: str = choice(
        "Accelerator",
        options=hardware_db.accelerators(),
        default="h100-sxm",
        listed_by="python -m calculators hardware",
        help="The chip that one instance runs on, or several of it (tensor parallel).",
    )
    weight_dtype: str = choice(
        "Weights stored as",
        options=hardware_db.FORMATS,
        default="bf16",
        help="Format of the weights in memory: it sets the bytes that are read, and whether they fit.",
    )
    compute_dtype: str | None = choice(
        "Products computed in",
        options=hardware_db.DenseTflops.model_fields,
        default=None,
        empty="as the weights",
        help="Data type of the matrix products: it sets the peak rate. A chip without it is an error, not a guess.",
    )
    kv_dtype: str = choice(
        "KV cache stored as",
        options=hardware_db.KV_BYTES,
        default="bf16",
        help="Data type of the cached keys and values. It follows from nothing else: not from the weights' format.",
    )


@dataclass(frozen=True, kw_only=True)
class Interconnect:
    """What joins the accelerators of one instance."""

    tp_link: str | None = choice(
        "Link between them",
        options=hardware_db.links(),
        default=None,
        empty="scale-up link",
        listed_by="python -m calculators links",
        help="What carries the all-reduces of tensor parallelism, if not the accelerator's own scale-up link.",
    )


@dataclass(frozen=True, kw_only=True)
class TensorParallel(Interconnect):
    """Over how many accelerators each layer is split."""

    tp: int = integer(
        "Tensor parallel",
        low=1,
        high=128,
        default=1,
        step=1,
        symbol="K",
        help="How many accelerators share each layer of one instance. Each layer then costs two all-reduces.",
    )


@dataclass(frozen=True, kw_only=True)
class Instance(TensorParallel, Hardware):
    """One instance: the model, the chips, and how they share the work."""


@dataclass(frozen=True, kw_only=True)
class Memory:
    """What of the memory is left for the cache."""

    memory_share: float = number(
        "Usable share of memory",
        low=0.1,
        high=1,
        default=0.9,
        step=0.05,
        symbol="u",
        help="Share of the accelerator's memory that the server may use.",
    )
    reserve_gb: float = number(
        "Reserve",
        unit="GB",
        low=0,
        high=1000,
        default=2,
        step=1,
        symbol="r",
        help="Memory of each accelerator kept for activations, graphs and fragments.",
    )


@dataclass(frozen=True, kw_only=True)
class KvLink:
    """What a request's cache travels over from a prefill pool to a decode pool."""

    link: str = choice(
        "Link between the pools",
        options=hardware_db.links(),
        default="ib-ndr",
        listed_by="python -m calculators links",
        help="What a request's cache travels over from the prefill pool to the decode pool.",
    )
    link_gb_s: float | None = number(
        "Link bandwidth, one way",
        unit="GB/s",
        low=0.001,
        high=100_000,
        default=None,
        step=5,
        symbol="b",
        empty="from the data sheet",
        help="Bandwidth of one link in one direction. Leave it empty to take the link's own.",
    )
    link_latency_us: float | None = number(
        "Link latency",
        unit="µs",
        low=0,
        high=1e6,
        default=None,
        step=1,
        symbol="l",
        empty="from the data sheet",
        help="Start-up time of one transfer. Leave it empty to take the link's own.",
    )
    link_efficiency: float = number(
        "Link efficiency",
        low=0.01,
        high=1,
        default=1,
        step=0.05,
        symbol="e",
        help="Share of the bandwidth that a transfer reaches. Measured hand-offs reach 0.5 to 0.9; 0.7 is a fair guess.",
    )
    links_used: int = integer(
        "Links side by side",
        low=1,
        high=64,
        default=1,
        step=1,
        symbol="k",
        help="How many such links carry one request's cache together.",
    )
    message_overhead_us: float = number(
        "Overhead of a message",
        unit="µs",
        low=0,
        high=10_000,
        default=0,
        step=0.5,
        symbol="o",
        help="What each message costs whatever its size. With paged caches there is one for each layer and block.",
    )
    block_tokens: int = integer(
        "Block of the cache",
        unit="tokens",
        low=1,
        high=8192,
        default=16,
        step=16,
        help="Tokens in one block of a paged cache: a message carries one block of one layer.",
    )


@dataclass(frozen=True, kw_only=True)
class FirstTokenLimit:
    """What the time to the first token must not exceed."""

    ttft_slo_ms: float = number(
        "TTFT target",
        unit="ms",
        low=0.001,
        high=1e8,
        default=100,
        step=10,
        symbol="T",
        help="Service-level objective for the time from a request's arrival to its first token.",
    )


@dataclass(frozen=True, kw_only=True)
class FirstTokenTarget(FirstTokenLimit):
    """For which share of the requests, or for their mean, the limit of the first token holds."""

    slo_statistic: str = choice(
        "Target holds for",
        options=("percentile", "mean"),
        default="percentile",
        help="Whether the target is set on a percentile of the TTFT or on its mean.",
    )
    percentile: float = number(
        "Percentile",
        unit="%",
        low=1,
        high=99.99,
        default=90,
        step=1,
        symbol="p",
        help="The share of requests that must meet the target: 90 means that nine in ten do.",
    )


@dataclass(frozen=True, kw_only=True)
class NextTokenTarget:
    """What the time per output token must not exceed, and for which share of the requests."""

    tpot_slo_ms: float = number(
        "TPOT target",
        unit="ms",
        low=0.001,
        high=1e7,
        default=15,
        step=1,
        help="Service-level objective for the time per output token: from a request's first token to its last, for each "
        "token after the first.",
    )
    attainment: float = number(
        "Attainment",
        low=0.01,
        high=0.9999,
        default=0.9,
        step=0.01,
        help="The share of requests that must meet the targets: 0.9 means that nine in ten do.",
    )


@dataclass(frozen=True, kw_only=True)
class ServiceLevels(NextTokenTarget, FirstTokenLimit):
    """Both limits, and the share of requests that must meet both."""


@dataclass(frozen=True, kw_only=True)
class Assumptions:
    """The named set of step-time assumptions, and what of it is overridden."""

    assumptions: str = choice(
        "Step-time assumptions",
        options=hardware_db.assumptions(),
        default="course",
        listed_by="python -m calculators assumptions",
        help="A named set of efficiencies and overheads. What is typed in below replaces its values one by one.",
    )
    compute_efficiency: float | None = number(
        "Compute efficiency",
        low=0.01,
        high=1,
        default=None,
        step=0.05,
        symbol="\\eta_c",
        empty=FROM_SET,
        help="Share of the dense peak rate that matrix products reach.",
    )
    memory_efficiency: float | None = number(
        "Memory efficiency",
        low=0.01,
        high=1,
        default=None,
        step=0.05,
        symbol="\\eta_m",
        empty=FROM_SET,
        help="Share of the memory bandwidth that reads and writes reach.",
    )
    step_overhead_ms: float | None = number(
        "Step overhead",
        unit="ms",
        low=0,
        high=1000,
        default=None,
        step=0.1,
        symbol="t_0",
        empty=FROM_SET,
        help="What every step costs before it computes anything: scheduling, launches, sampling.",
    )
    allreduce_latency_us: float | None = number(
        "All-reduce latency",
        unit="µs",
        low=0,
        high=100_000,
        default=None,
        step=1,
        symbol="t_a",
        empty=FROM_SET,
        help="What one all-reduce costs beside moving its bytes. It counts only with tensor parallelism.",
    )


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """How large the simulations are that stand beside the formulas."""

    customers: int = integer(
        "Simulated requests",
        low=10_000,
        high=5_000_000,
        default=1_000_000,
        step=100_000,
        help="How many requests a simulation serves, its warm-up included.",
    )
    seed: int = integer(
        "Seed",
        low=0,
        high=2**31 - 1,
        default=1,
        step=1,
        help="The same seed gives the same simulation again.",
    )


@dataclass(frozen=True, kw_only=True)
class Workload(Routing, Burstiness, OutputSpread, Output, PromptLaw, Prompt, Traffic):
    """What the requests are."""


@dataclass(frozen=True, kw_only=True)
class Machine(Memory, Instance, TypedService):
    """What they are served with."""


@dataclass(frozen=True, kw_only=True)
class Targets(ServiceLevels, FirstTokenTarget):
    """What their users are promised."""


@dataclass(frozen=True, kw_only=True)
class Scenario(Simulation, Assumptions, KvLink, Targets, Machine, Batch, Workload):
    """Every shared input: of these the sidebar holds those that the page uses."""


GROUPS: tuple[tuple[str, type], ...] = (
    ("Workload", Workload),
    ("Decode step", Batch),
    ("Model and hardware", Machine),
    ("Targets", Targets),
    ("Link between the pools", KvLink),
    ("Assumptions", Assumptions),
    ("Simulation", Simulation),
)
"""The groups in the order in which the sidebar draws them, with their headings."""
