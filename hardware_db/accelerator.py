"""Accelerators: memory as the driver reports it, dense rates, links in one direction."""

from __future__ import annotations

import re
from typing import Annotated, Self, cast

from pydantic import Field, model_validator

from hardware_db.errors import UnsupportedDataType
from hardware_db.records import (
    Count,
    DataType,
    Fraction,
    Positive,
    Record,
    Table,
    Text,
    Year,
    broken_rule,
    check_sources,
)

_UNIT_BYTES = {"MiB": 2**20, "GiB": 2**30, "MB": 10**6, "GB": 10**9}
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?) (MiB|GiB|MB|GB)\b")
_BASIS = re.compile(r": (\d+(?:\.\d+)?) (MiB|GiB|MB|GB)$")

# Tensor units double their rate from one width to the next. A record that departs from this has either
# taken a sparse or a non-tensor figure for one of the two, or a chip that really differs: it must say so.
_USUAL_RATIOS: tuple[tuple[DataType, DataType, float], ...] = (
    ("bf16", "tf32", 2.0),
    ("fp16", "bf16", 1.0),
    ("fp8", "bf16", 2.0),
    ("fp8", "fp16", 2.0),
    ("fp4", "fp8", 2.0),
)
_RATIO_TOLERANCE = 0.08


class DenseTflops(Table):
    """Dense tensor rates by data type [TFLOP/s, or TOP/s for integers]; absent means no units for it."""

    fp32: Positive | None = None
    tf32: Positive | None = None
    bf16: Positive | None = None
    fp16: Positive | None = None
    fp8: Positive | None = None
    int8: Positive | None = None
    fp4: Positive | None = None
    int4: Positive | None = None


class Price(Table):
    """What an hour of one accelerator was rented for: the span seen, and where."""

    low: Positive
    high: Positive
    source: Annotated[tuple[Text, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _span(self) -> Self:
        if self.low > self.high:
            raise broken_rule("price_usd_per_hour.low", f"{self.low:g} is above high = {self.high:g}")
        check_sources("price_usd_per_hour.source", self.source)
        return self


class MemoryTier(Table):
    """One level of a machine that does not have a single memory; a bandwidth of None is not published."""

    name: Text
    bytes: Count
    bandwidth_gb_s: Positive | None = None


class Accelerator(Record):
    """One accelerator as software sees it: a GPU, a TPU chip, a card.

    Attributes
    ----------
    memory_bytes : int
        Memory as the driver reports it [B]. `memory_basis` says how that is known and repeats the amount.
    memory_bandwidth_gb_s : float
        Nominal bandwidth of that memory [GB/s, 1e9].
    memory_tiers : tuple of MemoryTier
        For SRAM and tiered machines, fastest first; `memory_bytes` is one of them and never the whole story.
    dense_tflops : DenseTflops
        Rates without sparsity. `sparsity_unstated` lists types whose source does not say dense or sparse;
        `unusual_rates` explains rates that do not double from width to width.
    scale_up_gb_s, scale_up_peer_gb_s : float or None
        One direction per accelerator: to all peers together, and to one peer [GB/s].
    scale_up_domain : int or None
        How many accelerators the scale-up link reaches.
    peer_over_host_gb_s : float or None
        For a part without a scale-up link: the rate to a peer through the host's PCIe [GB/s].
    host_gb_s : float or None
        One direction to the host [GB/s].
    announced : bool
        The row rests on an announcement or on press reports, not on a shipped part.
    """

    vendor: Text
    name: Text
    form: Text
    launch_year: Year
    memory_type: Text
    memory_label: Text
    memory_bytes: Count
    memory_basis: Text
    memory_bandwidth_gb_s: Positive
    memory_tiers: tuple[MemoryTier, ...] = ()
    dense_tflops: DenseTflops
    headline_rates: Text | None = None
    sparsity_unstated: tuple[DataType, ...] = ()
    unusual_rates: Text | None = None
    measured_bf16_gemm_efficiency: Fraction | None = None
    scale_up_link: Text
    scale_up_link_id: Text | None = None
    scale_up_gb_s: Positive | None = None
    scale_up_peer_gb_s: Positive | None = None
    scale_up_domain: Annotated[int, Field(ge=2)] | None = None
    peer_over_host_gb_s: Positive | None = None
    host_link: Text | None = None
    host_link_id: Text | None = None
    host_gb_s: Positive | None = None
    tdp_w: Positive | None = None
    price_usd_per_hour: Price | None = None
    announced: bool = False

    @property
    def data_types(self) -> tuple[str, ...]:
        """Data types that the chip has tensor rates for, widest first."""
        return tuple(name for name in DenseTflops.model_fields if getattr(self.dense_tflops, name) is not None)

    def peak_flops(self, dtype: str) -> float:
        """Return the dense rate for a data type [FLOP/s].

        Parameters
        ----------
        dtype : str
            One of ``fp32, tf32, bf16, fp16, fp8, int8, fp4, int4``.

        Raises
        ------
        UnsupportedDataType
            If the chip has no rate for it; nothing is ever derived from another width.
        """
        if dtype not in self.data_types:
            has = ", ".join(self.data_types)
            raise UnsupportedDataType(
                f"{self.name} has no {dtype} rate" + (f"; it has {has}." if has else "; none is published.")
            )
        return cast(float, getattr(self.dense_tflops, dtype)) * 1e12

    @property
    def memory_bandwidth_bytes_s(self) -> float:
        """Nominal memory bandwidth [B/s]."""
        return self.memory_bandwidth_gb_s * 1e9

    @property
    def scale_up_bytes_s(self) -> float | None:
        """One direction to all scale-up peers together [B/s]."""
        return None if self.scale_up_gb_s is None else self.scale_up_gb_s * 1e9

    @property
    def scale_up_peer_bytes_s(self) -> float | None:
        """One direction to one scale-up peer [B/s]."""
        return None if self.scale_up_peer_gb_s is None else self.scale_up_peer_gb_s * 1e9

    @property
    def peer_over_host_bytes_s(self) -> float | None:
        """One direction to a peer through the host, for parts without a scale-up link [B/s]."""
        return None if self.peer_over_host_gb_s is None else self.peer_over_host_gb_s * 1e9

    @property
    def host_bytes_s(self) -> float | None:
        """One direction to the host [B/s]."""
        return None if self.host_gb_s is None else self.host_gb_s * 1e9

    def group_bandwidth_bytes_s(self, ranks: int) -> float | None:
        """Return what a ring collective among `ranks` accelerators can use, one direction each [B/s].

        Behind a switch one peer gets the full rate. Without one (AMD's mesh, a torus) a group uses the links
        to its own members only, so a pair of MI300X sees 64 GB/s, not 448. Where the rate to one peer is not
        published (`scale_up_peer_gb_s` is None) the total is returned, an upper bound.

        Parameters
        ----------
        ranks : int
            Members of the group, at least 1. A group of one exchanges nothing and gets the full rate.

        Returns
        -------
        float or None
            None if there is no scale-up link, or it does not reach that many accelerators.

        Raises
        ------
        ValueError
            If `ranks` is below 1.
        """
        if ranks < 1:
            raise ValueError(f"A group needs at least one rank, not {ranks}.")
        if self.scale_up_gb_s is None:
            return None
        if self.scale_up_domain is not None and ranks > self.scale_up_domain:
            return None
        if self.scale_up_peer_gb_s is None or ranks == 1:
            return self.scale_up_gb_s * 1e9
        return min(self.scale_up_gb_s, self.scale_up_peer_gb_s * (ranks - 1)) * 1e9

    @model_validator(mode="after")
    def _memory_agrees_with_its_basis(self) -> Self:
        stated = _BASIS.search(self.memory_basis)
        if stated is None:
            raise broken_rule(
                "memory_basis", "must end with the amount, such as 'driver: 81559 MiB' or 'label: 288 GB'"
            )
        amount = round(float(stated[1]) * _UNIT_BYTES[stated[2]])
        if amount != self.memory_bytes:
            raise broken_rule(
                "memory_bytes",
                f"{self.memory_bytes} is not the {stated[1]} {stated[2]} = {amount} of memory_basis",
            )
        label = _AMOUNT.search(self.memory_label)
        # A label may be decimal or binary (7 % apart) and ECC takes 6 %: more than 12 % is a slip of units.
        if label and not self.memory_tiers:
            ratio = self.memory_bytes / (float(label[1]) * _UNIT_BYTES[label[2]])
            if not 0.88 <= ratio <= 1.12:
                raise broken_rule("memory_bytes", f"{self.memory_bytes} is not within 12 % of the label {label[0]}")
        return self

    @model_validator(mode="after")
    def _tiers_hold_the_memory(self) -> Self:
        tiers = {(tier.bytes, tier.bandwidth_gb_s) for tier in self.memory_tiers}
        if tiers and (self.memory_bytes, self.memory_bandwidth_gb_s) not in tiers:
            raise broken_rule("memory_tiers", "one tier must have the record's memory_bytes and memory_bandwidth_gb_s")
        speeds = [tier.bandwidth_gb_s for tier in self.memory_tiers if tier.bandwidth_gb_s is not None]
        if speeds != sorted(speeds, reverse=True):
            raise broken_rule("memory_tiers", "tiers must be listed fastest first")
        return self

    @model_validator(mode="after")
    def _rates_are_dense(self) -> Self:
        if self.unusual_rates is not None:
            return self
        for upper, lower, usual in _USUAL_RATIOS:
            fast, slow = getattr(self.dense_tflops, upper), getattr(self.dense_tflops, lower)
            if fast is None or slow is None:
                continue
            if abs(fast / slow / usual - 1) > _RATIO_TOLERANCE:
                raise broken_rule(
                    f"dense_tflops.{upper}",
                    f"{fast:g} is {fast / slow:.2f} times {lower} = {slow:g} "
                    f"where dense rates have {usual:g}; "
                    "give rates without sparsity, or explain the ratio in unusual_rates",
                )
        return self

    @model_validator(mode="after")
    def _unstated_sparsity_has_a_rate(self) -> Self:
        for dtype in self.sparsity_unstated:
            if dtype not in self.data_types:
                raise broken_rule("sparsity_unstated", f"names {dtype}, for which dense_tflops has no rate")
        return self

    @model_validator(mode="after")
    def _links_are_consistent(self) -> Self:
        if self.scale_up_gb_s is None:
            if self.scale_up_peer_gb_s is not None:
                raise broken_rule("scale_up_peer_gb_s", "needs scale_up_gb_s beside it")
            return self
        if self.scale_up_peer_gb_s is not None and self.scale_up_peer_gb_s > self.scale_up_gb_s:
            raise broken_rule(
                "scale_up_peer_gb_s",
                f"{self.scale_up_peer_gb_s:g} to one peer exceeds "
                f"scale_up_gb_s = {self.scale_up_gb_s:g} to all; "
                "give one direction in both",
            )
        if self.peer_over_host_gb_s is not None:
            raise broken_rule("peer_over_host_gb_s", "is only for parts without scale_up_gb_s")
        return self
