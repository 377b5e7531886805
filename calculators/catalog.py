"""The ordered list of rooms: ``app.py``, the command line and the tests all read it."""

from __future__ import annotations

from calculators import (
    compare,
    decode,
    experts,
    hardware,
    interference,
    kv_cache,
    parallelism,
    placement,
    plan,
    pools,
    speculative,
    ttft,
)
from calculators.room import Calculator, Room

ROOMS: tuple[Room, ...] = (
    plan.ROOM,
    placement.ROOM,
    pools.ROOM,
    compare.ROOM,
    ttft.ROOM,
    parallelism.ROOM,
    kv_cache.ROOM,
    decode.ROOM,
    interference.ROOM,
    speculative.ROOM,
    experts.ROOM,
    hardware.ROOM,
)
"""Every page; the first is the front page."""

SECTIONS: dict[str, tuple[Room, ...]] = {
    section: tuple(room for room in ROOMS if room.section == section)
    for section in dict.fromkeys(room.section for room in ROOMS)
}
"""The pages of each drop-down of the navigation, in the same order; under an empty name those in front of them."""

CALCULATORS: dict[str, Calculator] = {room.name: room for room in ROOMS if isinstance(room, Calculator)}
"""Every calculator by name, in the same order."""


def room_at(path: str) -> Room:
    """Return the room at a path of the app: its name, or nothing for the front page."""
    return next(room for room in ROOMS if path in (room.path, room.name))
