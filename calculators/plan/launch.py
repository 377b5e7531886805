"""The plan as commands: what starts it with vLLM, SGLang or Dynamo, each with the version whose options it follows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import hardware_db
from calculators.lengths import lengths_of, quantile_of, spread_of
from calculators.plan.compute import PlanInputs, Recommendation
from calculators.plan.deployments import Side
from formulas.queueing.service import LognormalLengths


@dataclass(frozen=True)
class Launch:
    """Commands or a manifest for one engine."""

    title: str
    language: str
    text: str
    note: str = ""


def launches(inputs: PlanInputs, plan: Recommendation) -> list[Launch]:
    """Return the recommended deployment for vLLM, SGLang and Dynamo."""
    return [_vllm(inputs, plan), _sglang(inputs, plan), _dynamo(inputs, plan)]


PREFILL_FIRST = "This engine always cuts prompts into chunks; a budget of at least the prompt's length comes closest to prefill first."


def _memory(inputs: PlanInputs) -> str:
    return f"{inputs.memory_share:g}"


def _budget(inputs: PlanInputs, plan: Recommendation) -> int:
    return plan.chunk_tokens or max(2048, inputs.prompt_tokens)


def _vllm(inputs: PlanInputs, plan: Recommendation) -> Launch:
    transfer = """ \\\n  --kv-transfer-config '{"kv_connector": "NixlConnector", "kv_role": "kv_both"}'"""
    apart = plan.kind == "disaggregated"

    def command(side: Side, name: str, budget: int) -> str:
        return (
            f"# {side.instances} × {name}, {side.tp} × {side.accelerator} each\n"
            f"vllm serve $MODEL --tensor-parallel-size {side.tp} --pipeline-parallel-size 1 \\\n"
            f"  --max-num-batched-tokens {budget} --gpu-memory-utilization {_memory(inputs)} \\\n"
            f"  --max-model-len {_longest(inputs)}" + _formats(inputs, "vllm") + transfer * apart
        )

    budget = _budget(inputs, plan)
    sides = (
        [(plan.prefill, "prefill instance"), (plan.decode, "decode instance")]
        if apart
        else [(plan.prefill, "instance")]
    )
    text = "\n\n".join(command(side, name, budget) for side, name in sides)
    proxy = (
        "\n\n# a proxy or router in front sends each request to a prefill instance, then to a decode instance" * apart
    )
    note = "" if plan.kind != "prefill_first" else PREFILL_FIRST
    return Launch("vLLM, options of 0.12", "bash", f"MODEL=…  # {inputs.model}\n\n{text}{proxy}", note)


def _sglang(inputs: PlanInputs, plan: Recommendation) -> Launch:
    apart = plan.kind == "disaggregated"

    def command(side: Side, mode: str, name: str) -> str:
        apart_options = f" \\\n  --disaggregation-mode {mode} --disaggregation-transfer-backend nixl" * bool(mode)
        return (
            f"# {side.instances} × {name}, {side.tp} × {side.accelerator} each\n"
            f"python -m sglang.launch_server --model-path $MODEL --tp-size {side.tp} \\\n"
            f"  --chunked-prefill-size {_budget(inputs, plan)} --mem-fraction-static {_memory(inputs)} \\\n"
            f"  --context-length {_longest(inputs)}"
            + _formats(inputs, "sglang")
            + " --enable-mixed-chunk" * (plan.kind == "chunked")
            + apart_options
        )

    if apart:
        text = "\n\n".join(
            [
                command(plan.prefill, "prefill", "prefill instance"),
                command(plan.decode, "decode", "decode instance"),
                "# in front: python -m sglang_router.launch_router --pd-disaggregation --prefill URL … --decode URL …",
            ]
        )
    else:
        text = command(plan.prefill, "", "instance")
    return Launch("SGLang, options of 0.5", "bash", f"MODEL=…  # {inputs.model}\n\n{text}")


def _dynamo(inputs: PlanInputs, plan: Recommendation) -> Launch:
    apart = plan.kind == "disaggregated"
    workers = [("VllmDecodeWorker", plan.decode, "")]
    if apart:
        workers.append(("VllmPrefillWorker", plan.prefill, " --is-prefill-worker"))
    parts = [_worker(inputs, plan, *each) for each in workers]
    text = "\n".join(
        [
            "apiVersion: nvidia.com/v1alpha1",
            "kind: DynamoGraphDeployment",
            "metadata:",
            f"  name: {inputs.model.replace('.', '-')}",
            "spec:",
            "  services:",
            "    Frontend:",
            "      componentType: frontend",
            "      replicas: 1",
            "      extraPodSpec:",
            "        mainContainer:",
            "          image: IMAGE  # the runtime image of your Dynamo version",
            *parts,
        ]
    )
    return Launch("Dynamo on Kubernetes, vLLM workers, fields of 0.8", "yaml", text)


def _worker(inputs: PlanInputs, plan: Recommendation, name: str, side: Side, role: str) -> str:
    arguments = (
        f"python3 -m dynamo.vllm --model MODEL --tensor-parallel-size {side.tp} --max-num-batched-tokens "
        f"{_budget(inputs, plan)} --gpu-memory-utilization {_memory(inputs)} --max-model-len {_longest(inputs)}"
        f"{_formats(inputs, 'vllm').replace(CONTINUED, '')}{role}"
    )
    return "\n".join(
        [
            f"    {name}:",
            "      componentType: worker",
            f"      replicas: {side.instances}",
            "      resources:",
            "        limits:",
            f'          gpu: "{side.tp}"',
            "      extraPodSpec:",
            "        mainContainer:",
            "          image: IMAGE",
            '          command: ["/bin/sh", "-c"]',
            f"          args: [{arguments!r}]",
        ]
    )


def _longest(inputs: PlanInputs) -> int:
    """Return the context that a request may have: of lengths that spread, one in a thousand of each is longer."""
    most = hardware_db.models()[inputs.model].max_context
    prompt = inputs.prompt_tokens
    if spread_of(inputs):
        prompt = math.ceil(quantile_of(lengths_of(inputs), LONGEST_SHARE))
    output = inputs.output_tokens
    if inputs.output_cv:
        output = math.ceil(LognormalLengths(float(output), inputs.output_cv).quantile(LONGEST_SHARE))
    longest = inputs.cached_tokens + prompt + output
    return max(min(longest, most), inputs.cached_tokens + inputs.prompt_tokens + inputs.output_tokens)


def _formats(inputs: PlanInputs, engine: str) -> str:
    """Return the options for weights and caches that are not stored as the checkpoint has them."""
    found = f" --quantization {inputs.weight_dtype}" if inputs.weight_dtype in QUANTIZED_AT_LOAD else ""
    if inputs.kv_dtype in KV_DTYPES[engine]:
        found += f" --kv-cache-dtype {KV_DTYPES[engine][inputs.kv_dtype]}"
    return f" \\\n {found}" if found else ""


CONTINUED = " \\\n "
LONGEST_SHARE = 0.999
QUANTIZED_AT_LOAD = ("fp8",)
KV_DTYPES = {"vllm": {"fp8": "fp8"}, "sglang": {"fp8": "fp8_e4m3"}}
"""Share of the requests of each length that fit, formats that the engines make of a checkpoint in 16 bits, and theirs of the cache."""
