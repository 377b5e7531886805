"""Links between chips, hosts and servers: one direction, in decimal gigabytes a second."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from hardware_db.records import Count, Fraction, Positive, Record, Text, Year, broken_rule


class Link(Record):
    """A link type as one accelerator (or, where `applies_to` says so, one instance) sees it.

    Attributes
    ----------
    gb_s : float
        One direction, all lanes and ports together [GB/s, 1e9].
    both_directions_gb_s : float
        The vendor's headline, twice `gb_s` [GB/s].
    both_directions_note : str or None
        Why the headline is not twice one direction, where it is not.
    per_link_gb_s, links : float, int or None
        One direction of one physical link [GB/s], and how many there are.
    latency_us, latency_basis : float, str or None
        A typical start-up time of one transfer [us], and what kind of number that is.
    efficiency, efficiency_basis : float, str or None
        Share of `gb_s` that large messages reach, in (0, 1], and how it is known.
    """

    name: Text
    kind: Literal["scale-up", "scale-out", "scale-up-and-out", "host", "die-to-die"]
    generation: Text | None = None
    gb_s: Positive
    both_directions_gb_s: Positive
    both_directions_note: Text | None = None
    per_link_gb_s: Positive | None = None
    links: Count | None = None
    applies_to: Text
    latency_us: Positive | None = None
    latency_basis: Text | None = None
    efficiency: Fraction | None = None
    efficiency_basis: Text | None = None
    year: Year

    @property
    def bytes_s(self) -> float:
        """One direction [B/s]."""
        return self.gb_s * 1e9

    @property
    def latency_s(self) -> float | None:
        """Typical start-up time of one transfer [s], or None where no figure is known."""
        return None if self.latency_us is None else self.latency_us * 1e-6

    @property
    def effective_bytes_s(self) -> float | None:
        """One direction that large messages reach [B/s], or None where no efficiency is known."""
        return None if self.efficiency is None else self.bytes_s * self.efficiency

    @model_validator(mode="after")
    def _headline_is_twice_one_direction(self) -> Self:
        twice = 2 * self.gb_s
        if self.both_directions_note is None and abs(self.both_directions_gb_s - twice) > 1e-6 * twice:
            raise broken_rule(
                "both_directions_gb_s",
                f"{self.both_directions_gb_s:g} is not twice gb_s = {self.gb_s:g}; "
                "give one direction in gb_s, or say in both_directions_note why the two directions differ",
            )
        return self

    @model_validator(mode="after")
    def _links_add_up(self) -> Self:
        if self.per_link_gb_s is not None and self.links is not None:
            total = self.per_link_gb_s * self.links
            # 1 %: lane rates are published rounded (0.985 for 0.9846).
            if abs(total - self.gb_s) > 0.01 * self.gb_s:
                raise broken_rule(
                    "per_link_gb_s",
                    f"{self.links} links of {self.per_link_gb_s:g} give {total:g}, "
                    f"but gb_s is {self.gb_s:g}; they must agree within 1 %",
                )
        return self
