"""One instance, from step to step: which requests each step holds, when it ends, who leaves.

The number of decode steps so far is the instance's own time: a sequence that joins at step s and wants k more
tokens leaves at s + k, whatever the steps take. So nothing is done for each sequence in each step.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf
from typing import Literal

from formulas.montecarlo.serving.clock import Run, StepTime, clock_of
from formulas.montecarlo.serving.workload import Workload

Kind = Literal["prefill", "decode", "prefill-first", "chunked"]

_NOTHING = Run(0.0, 0.0, 0)


@dataclass(frozen=True)
class InstanceSettings:
    """What an instance does in a step, how long that takes, and how much it holds.

    Parameters
    ----------
    kind
        "prefill": one whole prompt in each step, first come, first served. "decode": only requests whose prompt is
        cached already; all sequences take part in each step. "prefill-first": a step is one whole waiting prompt if
        there is one, and the decoding sequences wait; else a decode step. "chunked": all sequences take part in
        each step, and what they leave of the token budget goes to prompts, in order, in pieces if need be.
    step_time
        Any function of a step's contents; :class:`AffineStep` and :class:`LargestOf` pass many steps at once.
    kv_tokens
        Tokens that the cache holds, or None for any number. A request enters when its prompt and all its output fit,
        so that none is ever thrown out; until then it waits, and everyone behind it [].
    max_batch
        Requests that are in an instance at once and do not wait, or None for any number [].
    chunk_tokens
        Token budget of a step, for "chunked" [].

    Notes
    -----
    A step that has begun goes on: an arrival waits for its end. A prompt's last step yields its first token; it
    decodes from the next step on, each time one token more of context. With more decoding sequences than the budget
    of "chunked" no prompt advances. With a budget without end it takes all waiting prompts into one step, with
    the decoding sequences, while "prefill-first" takes them one by one, without: the decode steps last longer in
    the one, and are put off in the other.
    """

    kind: Kind
    step_time: StepTime
    kv_tokens: int | None = None
    max_batch: int | None = None
    chunk_tokens: int | None = None

    def __post_init__(self) -> None:
        if (self.chunk_tokens is not None) != (self.kind == "chunked"):
            raise ValueError("A token budget is needed for chunked, and for chunked only.")
        for limit in (self.kv_tokens, self.max_batch, self.chunk_tokens):
            if limit is not None and limit < 1:
                raise ValueError("A limit is at least one.")


@dataclass(frozen=True)
class InstanceTotals:
    """What one instance did in a run; `peak_kv_tokens` counts what was set aside for the requests inside."""

    requests: int
    steps: int
    prompt_tokens: int
    decoded_tokens: int
    busy_s: float
    peak_batch: int
    peak_kv_tokens: int


class Requests:
    """Lengths of requests, and the times that the instances write down, as plain lists."""

    def __init__(self, workload: Workload) -> None:
        self.prompts: list[int] = workload.prompt_tokens.tolist()
        self.outputs: list[int] = workload.output_tokens.tolist()
        self.first = [inf] * len(workload)
        self.completion = [inf] * len(workload)


class Instance(ABC):
    """One instance; the kinds differ in what they plan for the next step."""

    def __init__(self, requests: Requests, settings: InstanceSettings) -> None:
        self.present = 0
        self.end = inf
        self._requests = requests
        self._clock = clock_of(settings.step_time)
        self._kv_free: float = inf if settings.kv_tokens is None else settings.kv_tokens
        self._places: float = inf if settings.max_batch is None else settings.max_batch
        self._waiting: deque[int] = deque()
        self._leaving: list[tuple[int, int]] = []
        self._batch = 0
        self._context = 0
        self._decode_steps = 0
        self._start = 0.0
        self._run = _NOTHING
        self._decoding = 0
        self._prefilled: list[int] = []
        self._inside = self._kv = self._peak_batch = self._peak_kv = 0
        self._served = self._steps = self._prompt_tokens = self._decoded = 0
        self._busy = 0.0

    def arrive(self, request: int, time: float) -> None:
        """Let a request in at a time up to which the instance has been advanced."""
        self._waiting.append(request)
        self.present += 1
        if self.end == inf:
            self._begin(time, _NOTHING, 0)
        elif self._run.steps > 1 and len(self._waiting) == 1:
            self._run = self._run.cut(time - self._start)
            self.end = self._start + self._run.duration()

    def advance(self, until: float) -> None:
        """Pass all ends of steps before a time; the step that would begin at that time waits for who comes then."""
        while self.end < until:
            self._finish()
            self._plan(self.end)

    def totals(self) -> InstanceTotals:
        """Return what it did so far."""
        return InstanceTotals(
            self._served, self._steps, self._prompt_tokens, self._decoded, self._busy, self._peak_batch, self._peak_kv
        )

    @abstractmethod
    def _plan(self, time: float) -> None:
        """Choose what the next step holds."""

    def _begin(self, time: float, run: Run, decoding: int) -> None:
        self._start, self._run, self._decoding = time, run, decoding
        self.end = time + run.duration()

    def _decode(self, time: float) -> None:
        if self._batch:
            steps = self._leaving[0][0] - self._decode_steps
            self._begin(time, self._clock.decode_run(self._batch, self._context, steps), self._batch)
        else:
            self._run, self._decoding, self.end = _NOTHING, 0, inf

    def _prefill(self, time: float, finished: list[int], tokens: int, cached: float, decoding: int) -> None:
        self._prefilled = finished
        self._prompt_tokens += tokens
        context = self._context if decoding else 0
        self._begin(time, Run(self._clock(tokens, cached, decoding, context), 0.0, 1), decoding)

    def _finish(self) -> None:
        time, steps = self.end, self._run.steps
        self._steps += steps
        self._busy += time - self._start
        if self._decoding:
            self._decode_steps += steps
            self._context += steps * self._decoding
            self._decoded += steps * self._decoding
            leaving = self._leaving
            while leaving and leaving[0][0] == self._decode_steps:
                request = heappop(leaving)[1]
                self._batch -= 1
                self._context -= self._requests.prompts[request] + self._requests.outputs[request]
                self._leave(request, time)
        if self._prefilled:
            for request in self._prefilled:
                self._requests.first[request] = time
                if self._requests.outputs[request] == 1:
                    self._leave(request, time)
                else:
                    self._join(request)
            self._prefilled = []

    def _may_enter(self) -> bool:
        return bool(self._waiting) and self._inside < self._places and self._reserved(self._waiting[0]) <= self._kv_free

    def _enter(self) -> int:
        request = self._waiting.popleft()
        tokens = self._reserved(request)
        self._kv_free -= tokens
        self._kv += tokens
        self._inside += 1
        self._peak_kv = max(self._peak_kv, self._kv)
        self._peak_batch = max(self._peak_batch, self._inside)
        return request

    def _reserved(self, request: int) -> int:
        return self._requests.prompts[request] + self._requests.outputs[request] - 1

    def _join(self, request: int) -> None:
        left = self._requests.outputs[request] - 1
        heappush(self._leaving, (self._decode_steps + left, request))
        self._batch += 1
        self._context += self._requests.prompts[request] + 1

    def _leave(self, request: int, time: float) -> None:
        tokens = self._reserved(request)
        self._kv_free += tokens
        self._kv -= tokens
        self._inside -= 1
        self.present -= 1
        self._served += 1
        self._requests.completion[request] = time


class _DecodeOnly(Instance):
    def _plan(self, time: float) -> None:
        while self._may_enter():
            self._join(self._enter())
        self._decode(time)


class _PrefillFirst(Instance):
    def _plan(self, time: float) -> None:
        if self._may_enter():
            request = self._enter()
            self._prefill(time, [request], self._requests.prompts[request], 0, 0)
        else:
            self._decode(time)


class _Chunked(Instance):
    def __init__(self, requests: Requests, settings: InstanceSettings) -> None:
        super().__init__(requests, settings)
        self._budget = settings.chunk_tokens or 0
        self._open: int | None = None
        self._cached = 0

    def _plan(self, time: float) -> None:
        room = self._budget - self._batch
        tokens, pairs = 0, 0.0
        finished: list[int] = []
        while room > 0 and (self._open is not None or self._may_enter()):
            if self._open is None:
                self._open, self._cached = self._enter(), 0
            chunk = min(room, self._requests.prompts[self._open] - self._cached)
            pairs += chunk * (self._cached + chunk / 2)
            self._cached += chunk
            tokens += chunk
            room -= chunk
            if self._cached == self._requests.prompts[self._open]:
                finished.append(self._open)
                self._open = None
        if tokens:
            self._prefill(time, finished, tokens, pairs / tokens - tokens / 2, self._batch)
        else:
            self._decode(time)


_KINDS: dict[Kind, type[Instance]] = {
    "prefill": _PrefillFirst, "decode": _DecodeOnly, "prefill-first": _PrefillFirst, "chunked": _Chunked,
}  # fmt: skip


def new_instance(requests: Requests, settings: InstanceSettings) -> Instance:
    """Return an empty instance of the kind asked for."""
    return _KINDS[settings.kind](requests, settings)
