"""Deployments: instances of one kind behind a router, or prefill and decode instances with a link between."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf

import numpy as np

from formulas.montecarlo.serving.instance import (
    Instance,
    InstanceSettings,
    InstanceTotals,
    Requests,
    new_instance,
)
from formulas.montecarlo.serving.served import Served
from formulas.montecarlo.serving.workload import Array, Whole, Workload
from formulas.montecarlo.shared_link import simulate_link

Stop = Callable[[], bool]
Progress = Callable[[float], None]

_BETWEEN_LOOKS = 256


@dataclass(frozen=True)
class KvLink:
    """The link that all caches take from prefill to decode, one after another.

    Parameters
    ----------
    bytes_per_token
        Size of the cache of one token [B].
    bytes_s
        Bandwidth [B/s].
    latency_s
        From the end of the sending to the arrival; it occupies nothing [s].

    Examples
    --------
    >>> KvLink(131072, 50e9, 5e-6).delivered(np.array([0.0, 1e-3]), np.array([2000, 2000]))
    array([0.00524788, 0.01049076])
    """

    bytes_per_token: float
    bytes_s: float
    latency_s: float = 0.0

    def delivered(self, departures: Array, tokens: Whole) -> Array:
        """Return the times at which caches are there, from when they are ready to go, in ascending order [s]."""
        through = departures + simulate_link(departures, self.bytes_per_token * tokens / self.bytes_s)
        return np.maximum.accumulate(through) + self.latency_s


def simulate(
    workload: Workload,
    settings: InstanceSettings,
    instances: int = 1,
    *,
    stop: Stop | None = None,
    progress: Progress | None = None,
) -> Served:
    """Simulate instances of one kind; a request goes to the one with the fewest present when it comes.

    Parameters
    ----------
    workload
        The requests. A "prefill" instance gives each only its first token, whatever output it wants; a "decode"
        instance finds each with its prompt cached and its first token out, the moment it arrives.
    settings
        Of every instance.
    instances
        Their number [].
    stop
        Asked now and then; once it says yes, no more requests are let in, and those inside are finished: the result
        is that of the shorter workload.
    progress
        Told now and then the share of the requests that came, in [0, 1].

    Examples
    --------
    >>> from formulas.montecarlo.serving import AffineStep
    >>> settings = InstanceSettings("prefill-first", AffineStep(0.0, 0.01, prompt_token_s=0.001))
    >>> served = simulate(Workload([0.0, 0.05], [100, 100], [3, 3]), settings)
    >>> served.ttft, served.tpot
    (array([0.1 , 0.15]), array([0.07, 0.02]))
    """
    if settings.kind == "decode":
        there = workload.arrivals
        came = Served(there, there, there, workload.prompt_tokens, workload.output_tokens, ())
        return _decoded(came, settings, instances, None, stop, progress)
    outputs = np.ones_like(workload.output_tokens) if settings.kind == "prefill" else workload.output_tokens
    pool = _Pool.of(Workload(workload.arrivals, workload.prompt_tokens, outputs), settings, instances)
    let_in = pool.run(stop, progress)
    part = workload.only(slice(let_in))
    first, completions = pool.times()
    return Served(
        part.arrivals, first[:let_in], completions[:let_in], part.prompt_tokens, part.output_tokens,
        pool.totals(), let_in < len(workload),
    )  # fmt: skip


def simulate_disaggregated(
    workload: Workload,
    prefill: InstanceSettings,
    decode: InstanceSettings,
    instances: tuple[int, int] = (1, 1),
    link: KvLink | None = None,
    *,
    stop: Stop | None = None,
    progress: Progress | None = None,
) -> Served:
    """Simulate prefill instances that hand each request to decode instances once its first token is out.

    Parameters
    ----------
    workload
        The requests. One that wants a single token is finished by its prefill.
    prefill, decode
        Settings of the instances, of those kinds.
    instances
        Numbers of prefill and of decode instances; on either side a request goes to the one with the fewest present
        when it comes.
    link
        What all caches pass in the order of their prefills' ends; None if that takes no time.
    stop, progress
        As in :func:`simulate`. After a stop among the prefills, those let in are decoded too; a stop among the
        decodes leaves out those that are not decoding yet.

    Notes
    -----
    Nothing holds up the prefills: a cache that waits, for the link or for a place in a decode instance, waits in memory
    that is not counted. The limits of `decode` count from the moment that its instance lets a request in.

    Examples
    --------
    >>> from formulas.montecarlo.serving import AffineStep
    >>> step = AffineStep(0.0, 0.01, prompt_token_s=0.001)
    >>> prefill, decode = InstanceSettings("prefill", step), InstanceSettings("decode", step)
    >>> link = KvLink(1000, 1e6, 0.0)
    >>> served = simulate_disaggregated(Workload([0.0, 0.05], [100, 100], [3, 3]), prefill, decode, link=link)
    >>> served.ttft, served.tpot
    (array([0.1 , 0.15]), array([0.06, 0.06]))
    """
    if (prefill.kind, decode.kind) != ("prefill", "decode"):
        raise ValueError("A disaggregated deployment has prefill instances and decode instances.")
    prefilled = simulate(workload, prefill, instances[0], stop=stop, progress=_share_of(progress, 0.0))
    later_stop = None if prefilled.stopped else stop
    return _decoded(prefilled, decode, instances[1], link, later_stop, _share_of(progress, 0.5))


def _decoded(
    prefilled: Served,
    settings: InstanceSettings,
    instances: int,
    link: KvLink | None,
    stop: Stop | None,
    progress: Progress | None,
) -> Served:
    """Hand requests that have their first token, and want more, to decode instances."""
    first = prefilled.first_tokens
    handed = np.flatnonzero(prefilled.output_tokens > 1)
    handed = handed[np.argsort(first[handed], kind="stable")]
    prompts, outputs = prefilled.prompt_tokens[handed], prefilled.output_tokens[handed]
    ready = first[handed] if link is None else link.delivered(first[handed], prompts)
    pool = _Pool.of(Workload(ready, prompts, outputs), settings, instances)
    let_in = pool.run(stop, progress)
    completions = first.copy()
    completions[handed] = pool.times()[1]
    kept = first < first[handed[let_in]] if let_in < len(handed) else np.ones(len(first), dtype=bool)
    kept[handed[:let_in]] = True
    return Served(
        prefilled.arrivals[kept], first[kept], completions[kept],
        prefilled.prompt_tokens[kept], prefilled.output_tokens[kept],
        prefilled.instances + pool.totals(), prefilled.stopped or let_in < len(handed),
    )  # fmt: skip


@dataclass(frozen=True)
class _Pool:
    """Instances of one kind and the requests that come to them."""

    arrivals: list[float]
    requests: Requests
    members: tuple[Instance, ...]

    @classmethod
    def of(cls, workload: Workload, settings: InstanceSettings, instances: int) -> _Pool:
        if instances < 1:
            raise ValueError("A deployment has at least one instance of each kind.")
        longest = int((workload.prompt_tokens + workload.output_tokens).max(initial=1)) - 1
        if settings.kv_tokens is not None and longest > settings.kv_tokens:
            raise ValueError(f"A request of {longest} tokens never fits into a cache of {settings.kv_tokens}.")
        requests = Requests(workload)
        members = tuple(new_instance(requests, settings) for _ in range(instances))
        return cls(workload.arrivals.tolist(), requests, members)

    def run(self, stop: Stop | None, progress: Progress | None) -> int:
        """Let the requests in until told to stop, finish them, and return how many they were."""
        let_in = 0
        while let_in < len(self.arrivals) and not (stop is not None and stop()):
            until = min(let_in + _BETWEEN_LOOKS, len(self.arrivals))
            self._let_in(range(let_in, until))
            let_in = until
            if progress is not None:
                progress(let_in / len(self.arrivals))
        for instance in self.members:
            instance.advance(inf)
        return let_in

    def _let_in(self, requests: Iterable[int]) -> None:
        arrivals, members, only = self.arrivals, self.members, self.members[0]
        several = len(members) > 1
        for request in requests:
            time = arrivals[request]
            for instance in members:
                if instance.end < time:
                    instance.advance(time)
            (min(members, key=_present) if several else only).arrive(request, time)

    def times(self) -> tuple[Array, Array]:
        """First tokens and completions; infinite for requests that were not let in [s]."""
        return np.array(self.requests.first), np.array(self.requests.completion)

    def totals(self) -> tuple[InstanceTotals, ...]:
        return tuple(instance.totals() for instance in self.members)


def _present(instance: Instance) -> int:
    return instance.present


def _share_of(progress: Progress | None, start: float) -> Progress | None:
    return None if progress is None else lambda share: progress(start + share / 2)
