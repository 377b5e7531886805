"""Weight formats: bytes per parameter with their scales, and which weights they cover.

The policy, in one place:

* A quantized format covers **layer weights**: attention, FFN, experts, linear mixers.
* Embeddings, ``lm_head``, the router and norms stay at 2 bytes, as published checkpoints keep them.
* **MXFP4 covers routed experts only**, as gpt-oss ships it; every other weight stays BF16. A dense model
  therefore gains nothing from it.
* KV-cache and activation types are separate choices and follow from nothing here.

A format that is not listed is an error, never taken as FP16.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from hardware_db.errors import UnknownFormat

_FP32 = 4.0
_HALF = 2.0
_BYTE = 1.0
_NVFP4 = 9 / 16
"""Four bits and one FP8 scale for each 16 values: (16/2 + 1) / 16."""
_MXFP4 = 17 / 32
"""Four bits and one 8-bit exponent for each 32 values: (32/2 + 1) / 32."""
_INT4 = 0.5 + 2 / 128
"""Four bits and one FP16 scale for each 128 values, the usual group of AWQ and GPTQ; no zero points."""


@dataclass(frozen=True, slots=True)
class WeightFormat:
    """How weights are stored.

    Attributes
    ----------
    id, name : str
        Stable id, and the name to show.
    layer_bytes : float
        Attention, dense FFN, shared experts and linear mixers [B per parameter].
    expert_bytes : float
        Routed experts [B per parameter].
    kept_bytes : float
        Embeddings, ``lm_head``, router and norms [B per parameter].
    native_compute : tuple of str
        Data types a chip may run these weights in without unpacking them to a wider type, best first.
    fallback_compute : tuple of str
        Data types the weights are unpacked to where the chip has none of the native ones.
    note : str
        The assumption behind the numbers.
    """

    id: str
    name: str
    layer_bytes: float
    expert_bytes: float
    kept_bytes: float
    native_compute: tuple[str, ...]
    fallback_compute: tuple[str, ...]
    note: str

    @property
    def bytes_per_parameter(self) -> float:
        """Bytes per parameter, scales included, of the weights that the format quantizes hardest [B]."""
        return min(self.layer_bytes, self.expert_bytes)

    def compute_dtype(self, available: tuple[str, ...]) -> str | None:
        """Return the data type that products run in on a chip with these rates, or None.

        Parameters
        ----------
        available : tuple of str
            `Accelerator.data_types` of the chip.
        """
        wanted = (*self.native_compute, *self.fallback_compute)
        return next((dtype for dtype in wanted if dtype in available), None)


_TO_HALF = ("bf16", "fp16")

FORMATS: Mapping[str, WeightFormat] = MappingProxyType(
    {
        f.id: f
        for f in (
            WeightFormat("fp32", "FP32", _FP32, _FP32, _FP32, ("fp32",), (), "4 bytes everywhere"),
            WeightFormat("bf16", "BF16", _HALF, _HALF, _HALF, ("bf16",), ("fp16",), "2 bytes everywhere"),
            WeightFormat("fp16", "FP16", _HALF, _HALF, _HALF, ("fp16",), ("bf16",), "2 bytes everywhere"),
            WeightFormat(
                "fp8", "FP8", _BYTE, _BYTE, _HALF, ("fp8",), _TO_HALF,
                "scales of tensors or 128x128 blocks are below 0.03 % and left out",
            ),
            WeightFormat(
                "int8", "INT8", _BYTE, _BYTE, _HALF, ("int8",), _TO_HALF, "a scale for each channel left out"
            ),
            WeightFormat(
                "nvfp4", "NVFP4", _NVFP4, _NVFP4, _HALF, ("fp4",), _TO_HALF, "an FP8 scale for each 16 values"
            ),
            WeightFormat(
                "mxfp4", "MXFP4 (routed experts)", _HALF, _MXFP4, _HALF, ("fp4",), _TO_HALF,
                "an 8-bit scale for each 32 values; routed experts only, the rest BF16",
            ),
            WeightFormat(
                "mxfp4-fp8", "MXFP4 routed experts, FP8 rest", _BYTE, _MXFP4, _HALF, ("fp4", "fp8"), _TO_HALF,
                "as DeepSeek-V4: experts with an 8-bit scale for each 32 values (assumed), the rest FP8",
            ),
            WeightFormat(
                "int4", "INT4 (group of 128)", _INT4, _INT4, _HALF, ("fp16", "bf16"), (),
                "weight-only: an FP16 scale for each 128 values, products in 16 bits",
            ),
        )
    }
)  # fmt: skip


KV_BYTES: Mapping[str, float] = MappingProxyType({"bf16": _HALF, "fp16": _HALF, "fp8": _BYTE, "int8": _BYTE})
"""Bytes of one cached element by data type; scales, one for many elements, are left out."""


def weight_format(name: str) -> WeightFormat:
    """Return a weight format by its id.

    Raises
    ------
    UnknownFormat
        If there is none of that name; the message lists those there are.

    Examples
    --------
    >>> weight_format("nvfp4").bytes_per_parameter
    0.5625
    """
    try:
        return FORMATS[name]
    except KeyError:
        raise UnknownFormat(f"Weight format '{name}' is not known; choose one of {', '.join(FORMATS)}.") from None
