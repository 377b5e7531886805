"""The sets that are fitted: which rows each is for."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.calibration.rows import Row


@dataclass(frozen=True)
class Wanted:
    """A set to fit: its id's rows, by engine, chips, models and perhaps weight formats."""

    name: str
    engine: str
    chips: tuple[str, ...]
    models: tuple[str, ...]
    formats: tuple[str, ...] | None = None

    def has(self, row: Row) -> bool:
        """Whether the row belongs to it."""
        inputs = row.inputs
        return (
            row.engine == self.engine
            and inputs.accelerator in self.chips
            and inputs.model in self.models
            and (self.formats is None or inputs.weight_dtype in self.formats)
        )


SETS = {
    "vllm-2025-hopper": Wanted(
        "vLLM of 2025 on H100 and H200, dense models", "vllm", ("h100-sxm", "h200-sxm"), ("llama-3.1-70b", "qwen3-32b")
    ),
    "vllm-2025-b200": Wanted("vLLM of 2025 on B200, dense models", "vllm", ("b200-sxm",), ("llama-3.1-70b",)),
    "vllm-2026-h100-moe": Wanted(
        "vLLM of 2026 on H100, mixtures of experts", "vllm", ("h100-sxm",), ("gpt-oss-120b", "minimax-m2")
    ),
    "vllm-2026-h200-moe": Wanted(
        "vLLM of 2026 on H200, mixtures of experts", "vllm", ("h200-sxm",), ("gpt-oss-120b", "minimax-m2", "kimi-k2")
    ),
    "vllm-2026-b200-moe": Wanted(
        "vLLM of 2026 on B200, mixtures of experts", "vllm", ("b200-sxm",), ("gpt-oss-120b", "minimax-m2")
    ),
    "vllm-2026-b300-moe": Wanted(
        "vLLM of 2026 on B300, mixtures of experts", "vllm", ("b300-sxm",), ("minimax-m2", "kimi-k2")
    ),
    "trtllm-2025-h200": Wanted(
        "TensorRT-LLM of 2025 on H200, dense models", "trtllm", ("h200-sxm",), ("llama-3.1-70b",)
    ),
    "trtllm-2025-h200-moe": Wanted(
        "TensorRT-LLM of 2025 on H200, mixtures of experts", "trtllm", ("h200-sxm",), ("gpt-oss-120b",)
    ),
    "trtllm-2025-h100-fp8": Wanted(
        "TensorRT-LLM of 2025 on H100, dense models in FP8", "trtllm", ("h100-sxm",), ("qwen3-32b",), ("fp8",)
    ),
    "trtllm-2025-h100-bf16": Wanted(
        "TensorRT-LLM of 2025 on H100, dense models in BF16", "trtllm", ("h100-sxm",), ("llama-3.1-8b",), ("bf16",)
    ),
    "trtllm-2025-h100-moe": Wanted(
        "TensorRT-LLM of 2025 on H100, mixtures of experts", "trtllm", ("h100-sxm",), ("qwen3-235b-a22b",)
    ),
    "trtllm-2025-b200": Wanted(
        "TensorRT-LLM of 2025 on B200, dense models", "trtllm", ("b200-sxm",), ("llama-3.1-70b",)
    ),
    "trtllm-2025-b200-moe": Wanted(
        "TensorRT-LLM of 2025 on B200, mixtures of experts", "trtllm", ("b200-sxm",), ("gpt-oss-120b",)
    ),
    "sglang-2025-h100": Wanted("SGLang of 2025 on H100, dense models", "sglang", ("h100-sxm",), ("qwen3-32b",)),
    "sglang-2026-b200-moe": Wanted(
        "SGLang of 2026 on B200, mixtures of experts", "sglang", ("b200-sxm",), ("qwen3.5-397b-a17b",)
    ),
}
