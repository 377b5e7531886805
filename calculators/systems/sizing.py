"""How many instances a rate needs within its targets, behind a router and in bursts.

Spread at random at random times, an instance carries the same however many there are. Where bursts thin out over them, or a router
evens the arrivals, each carries more among more: then every number is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from calculators.fleet import MOST_INSTANCES, fewest_servers, instances_for
from calculators.scenario import ServiceLevels
from calculators.systems.base import System
from calculators.systems.disaggregated import Disaggregated


def depends_on_number(system: System) -> bool:
    """Return whether an instance carries more, or less, among more of them."""
    return system.inputs.arrival_scv != 1 or system.routing != "random"


def fewest_prefill(one: Disaggregated, rate: float, targets: ServiceLevels) -> int | None:
    """Return the fewest prefill instances that bring enough first tokens in time at a rate [requests/s].

    ``None`` where no number does. The number in ``one`` makes no difference.
    """
    slo_ms, level = targets.ttft_slo_ms, targets.attainment
    if float(one.prefill_law.quantile(level)) > 1e-3 * slo_ms:
        return None

    def keeps(count: int) -> bool:
        return replace(one, prefill_instances=count).first_in_time(rate, slo_ms) >= level

    return _fewest(one, rate, 1 / one.prefill_s, lambda: one.prefill_goodput(slo_ms, level), keeps)


def fewest_decode(one: Disaggregated, rate: float, targets: ServiceLevels) -> int | None:
    """Return the fewest decode instances that bring enough next tokens in time at a rate [requests/s].

    ``None`` where no number does. The number in ``one`` makes no difference.
    """
    slo_ms, level = targets.tpot_slo_ms, targets.attainment
    if not one.pool.max_rate(slo_ms, level):
        return None

    def keeps(count: int) -> bool:
        return replace(one, decode_instances=count).next_in_time(rate, slo_ms) >= level

    return _fewest(one, rate, one.pool.capacity, lambda: one.decode_goodput(slo_ms, level), keeps)


def fewest_sets(made: Callable[[int], System], rate: float, targets: ServiceLevels) -> int | None:
    """Return over how few sets of instances that do both a rate [requests/s] is spread so that enough requests keep both targets.

    Parameters
    ----------
    made
        Makes one of so many sets.
    rate, targets
        What all of them are to carry, and how.

    Returns
    -------
    int or None
        ``None`` where no number does.
    """
    one = made(1)
    if not one.pool.serves:
        return None

    def keeps(count: int) -> bool:
        times = made(count).at(rate / count)
        return times is not None and times.attainment(targets) >= targets.attainment

    return _fewest(one, rate, one.bound, lambda: one.goodput(targets), keeps)


def _fewest(
    one: System, rate: float, bound: float, goodput: Callable[[], float | None], keeps: Callable[[int], bool]
) -> int | None:
    """Return the fewest: by what one carries, or where that depends on the number, by asking whether each keeps the targets.

    ``bound`` is a rate [requests/s] that no instance carries more than.
    """
    if depends_on_number(one):
        return fewest_servers(keeps, instances_for(rate, bound), MOST_INSTANCES)
    each = goodput()
    return instances_for(rate, each) if each else None
