"""The rows of a file of measurements that a closed loop can be held against, and why the others cannot."""

from __future__ import annotations

import csv
import gzip
import io
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import hardware_db
from calculators.closed_loop import ClosedLoopInputs, LoopSteps, steps_of
from calculators.machine import machine_of
from calculators.memory import MemoryInputs, sequences_that_fit
from formulas.closed_form import DomainError
from formulas.step_time import Machine

CHIPS = {"h100_sxm": "h100-sxm", "h200_sxm": "h200-sxm", "b200_sxm": "b200-sxm", "b300_sxm": "b300-sxm"}
MODELS = {
    "meta-llama/Llama-3.1-70B": "llama-3.1-70b",
    "meta-llama/Llama-3.1-8B-Instruct": "llama-3.1-8b",
    "Qwen/Qwen3-32B": "qwen3-32b",
    "Qwen/Qwen3-235B-A22B-FP8": "qwen3-235b-a22b",
    "Qwen/Qwen3.5-397B-A17B": "qwen3.5-397b-a17b",
    "openai/gpt-oss-120b": "gpt-oss-120b",
    "MiniMaxAI/MiniMax-M2.5": "minimax-m2",  # of one shape
    "moonshotai/Kimi-K2.5": "kimi-k2",
}
FORMATS = {"": "bf16", "bf16": "bf16", "fp8": "fp8", "fp4": "nvfp4", "int4": "int4"}
COUNTED_AS = "vllm-2023-a100"
"""The set whose way of counting holds for all: lm_head for a prompt's last token, writing the cache counts."""
LENGTH_SHARE = 0.9
"""Mean share of the lengths named in runs of InferenceMAX: uniform from 0.8 to 1 (its RANDOM_RANGE_RATIO)."""
LONGEST_WAIT = 0.25
"""Share of a request's stay before its first token beyond which it did not decode when the loop takes it to."""


@dataclass(frozen=True)
class Row:
    """One measurement, with what it is about."""

    inputs: ClosedLoopInputs
    engine: str
    version: str
    tpot_ms: float
    ttft_ms: float
    lengths: tuple[int, int]

    @property
    def table(self) -> tuple[str, str, str]:
        """What has a table of degrees against lengths of its own."""
        return self.inputs.accelerator, self.inputs.model, self.inputs.weight_dtype

    @cached_property
    def steps(self) -> LoopSteps:
        """The steps, which no assumption changes."""
        return steps_of(self.inputs)

    @cached_property
    def machine(self) -> Machine:
        """What they run on."""
        return machine_of(self.inputs)


def read(path: Path) -> tuple[list[Row], Counter[str]]:
    """Return the rows that a closed loop can be held against, and how many were left out for which reason."""
    raw = path.read_bytes()
    text = gzip.decompress(raw).decode() if path.suffix == ".gz" else raw.decode()
    rows, left_out, seen = [], Counter[str](), set()
    for fields in csv.DictReader(io.StringIO(text)):
        reason = _reason(fields)
        if not reason:
            row = _row(fields)
            key = (row.inputs, row.engine, fields["silicon_tpot_ms"])
            reason = "given twice" if key in seen else _unlike_a_closed_loop(row)
            seen.add(key)
        if reason:
            left_out[reason] += 1
        else:
            rows.append(row)
    return rows, left_out


def _number(fields: Mapping[str, str], name: str) -> int:
    return int(float(fields[name] or 0))


def _reason(fields: Mapping[str, str]) -> str:
    """Return why a row says too little, or something that the model does not describe."""
    tp, experts_over = _number(fields, "tp_size"), (_number(fields, "moe_tp_size"), _number(fields, "moe_ep_size"))
    if fields["mode"] != "agg":
        return "prefill and decode on instances of their own"
    if "DeepSeek" in fields["model_path"]:
        return "DeepSeek: with and without speculative decoding, which no column tells"
    if fields["system"] not in CHIPS or fields["model_path"] not in MODELS:
        return "another model or chip"
    if not _number(fields, "concurrency"):
        return "requests in flight not given"
    if _number(fields, "attention_dp_size") > 1:
        return "attention in data parallel"
    mixture = hardware_db.models()[MODELS[fields["model_path"]]].kind == "moe"
    if tp not in (1, 2, 4, 8) or (mixture and (experts_over[0] * experts_over[1] != tp or min(experts_over) > 1)):
        return "columns of the parallel degrees that contradict each other or other rows"
    if fields["backend"] == "vllm" and fields["system"] == "h200_sxm" and not fields["measured_on"]:
        return "vLLM on H200 without a date: degrees that contradict each other in part of them"
    if "nightly" in fields["backend_version"]:
        return "nightly build"
    return ""


def _row(fields: Mapping[str, str]) -> Row:
    model, chip = MODELS[fields["model_path"]], CHIPS[fields["system"]]
    weights, share = FORMATS[fields["precision"]], LENGTH_SHARE if fields["measured_on"] else 1.0
    if model == "gpt-oss-120b":
        weights = "mxfp4"
    return Row(
        inputs=ClosedLoopInputs(
            assumptions=COUNTED_AS,
            model=model,
            accelerator=chip,
            weight_dtype=weights,
            compute_dtype=("bf16" if chip.startswith("h") else "fp8") if weights == "mxfp4" else None,
            kv_dtype=_kv_dtype(fields["backend"], model, chip, weights),
            tp=_number(fields, "tp_size"),
            prompt_tokens=round(share * _number(fields, "isl")),
            output_tokens=round(share * _number(fields, "osl")),
            in_flight=_number(fields, "concurrency"),
        ),
        engine=fields["backend"],
        version=fields["backend_version"],
        tpot_ms=float(f"{float(fields['silicon_tpot_ms']):.5g}"),
        ttft_ms=float(f"{float(fields['silicon_ttft_ms']):.5g}"),
        lengths=(_number(fields, "isl"), _number(fields, "osl")),
    )


def _kv_dtype(engine: str, model: str, chip: str, weights: str) -> str:
    """Return the type of the cache: as InferenceMAX's scripts set it, else as the engine takes it from the weights."""
    if model == "llama-3.1-70b" or (model == "gpt-oss-120b" and engine == "vllm" and chip.startswith("b")):
        return "fp8"
    return "fp8" if engine == "trtllm" and weights in ("fp8", "nvfp4") else "bf16"


def _unlike_a_closed_loop(row: Row) -> str:
    """Return why not all requests in flight were being served."""
    inputs = row.inputs
    shared = {name: getattr(inputs, name) for name in ("model", "accelerator", "weight_dtype", "kv_dtype", "tp")}
    room = sequences_that_fit(MemoryInputs(**shared), inputs.prompt_tokens + inputs.output_tokens)
    if not room or room < inputs.in_flight:
        return "KV cache of the requests in flight does not fit"
    stay_ms = row.ttft_ms + (inputs.output_tokens - 1) * row.tpot_ms
    if row.ttft_ms > LONGEST_WAIT * stay_ms:
        return "requests held back: the first token takes more than a quarter of the stay"
    try:
        steps_of(inputs)
    except DomainError:
        return "prompts queue for the budget of a step"
    return ""


def diagonals(rows: Sequence[Row]) -> list[int]:
    """Return for each row on which of three diagonals its configuration is."""
    degrees, lengths = defaultdict(set), defaultdict(set)
    for row in rows:
        degrees[row.table].add(row.inputs.tp)
        lengths[row.table].add(row.lengths)
    return [
        (sorted(degrees[row.table]).index(row.inputs.tp) + sorted(lengths[row.table]).index(row.lengths)) % 3
        for row in rows
    ]
