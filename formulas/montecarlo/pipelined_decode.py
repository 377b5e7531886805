"""Decoding in a pipeline, micro-batch by micro-batch: what stands beside :mod:`formulas.decode_pool.pipeline`.

There are as many micro-batches as stages. An arrival joins the smallest, at its next pass through the first stage; one that
is empty starts at once. A pass takes the stages in order, waits where another micro-batch is still inside, and gives
every sequence one token; the next pass begins when the token is back at the first stage.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np

from formulas.montecarlo.serving.workload import Array, Workload

StageTime = Callable[[int, int], float]
"""Time of a stage [s] for a micro-batch of so many sequences whose contexts sum to so many tokens."""


@dataclass
class _MicroBatch:
    """Sequences that go round together; its number of passes so far is its own time."""

    passes: int = 0
    context: int = 0
    size: int = 0
    running: bool = False
    leaving: list[tuple[int, int]] = field(default_factory=list)
    joining: deque[int] = field(default_factory=deque)

    @property
    def present(self) -> int:
        """Sequences inside and about to join."""
        return self.size + len(self.joining)


def simulate_pipelined_decode(
    workload: Workload, stage_times: Sequence[StageTime], hops_s: float = 0.0, slots: int | None = None
) -> Array:
    """Return when each request has its last token, its prompt cached and its first token out at its arrival.

    Parameters
    ----------
    workload
        The requests; one that wants a single token is complete when it arrives.
    stage_times
        Of each stage.
    hops_s
        Time of all hops of one round, spread evenly over the stages; no stage is busy in them [s].
    slots
        Most sequences at once in all micro-batches; others wait in the order of arrival. None for any number [].

    Returns
    -------
    ndarray
        Times of completion [s].

    Examples
    --------
    >>> stages = [lambda sequences, context: 0.010, lambda sequences, context: 0.010]
    >>> simulate_pipelined_decode(Workload([0.0, 0.0, 1.0], [8, 8, 8], [3, 3, 3]), stages)
    array([0.04, 0.05, 1.04])
    """
    return _Ring(workload, stage_times, hops_s, slots).run()


class _Ring:
    def __init__(self, workload: Workload, stages: Sequence[StageTime], hops_s: float, slots: int | None) -> None:
        self._arrivals: list[float] = workload.arrivals.tolist()
        self._prompts: list[int] = workload.prompt_tokens.tolist()
        self._outputs: list[int] = workload.output_tokens.tolist()
        self._stages = list(stages)
        self._hop = hops_s / len(self._stages)
        self._free_slots = len(workload) if slots is None else slots
        self._batches = [_MicroBatch() for _ in self._stages]
        self._stage_free = [0.0] * len(self._stages)
        self._ready: list[tuple[float, int]] = []
        self._waiting: deque[int] = deque()
        self._completion = self._arrivals.copy()

    def run(self) -> Array:
        """Take what comes next, an arrival or a micro-batch at the first stage, until all are done."""
        place, count = 0, len(self._arrivals)
        while place < count or self._ready:
            start = max(self._ready[0][0], self._stage_free[0]) if self._ready else np.inf
            if place < count and self._arrivals[place] <= start:
                if self._outputs[place] > 1:
                    self._waiting.append(place)
                    self._admit(self._arrivals[place])
                place += 1
            else:
                self._turn(heappop(self._ready))
        return np.array(self._completion)

    def _admit(self, time: float) -> None:
        while self._waiting and self._free_slots:
            self._free_slots -= 1
            number = min(range(len(self._batches)), key=lambda each: self._batches[each].present)
            batch = self._batches[number]
            batch.joining.append(self._waiting.popleft())
            if not batch.running:
                batch.running = True
                heappush(self._ready, (time, number))

    def _turn(self, turn: tuple[float, int]) -> None:
        """Finish the pass that a micro-batch is back from, let others in, and send it round again."""
        ready, number = turn
        batch = self._batches[number]
        self._leave(batch, ready)
        self._admit(ready)
        while batch.joining:
            request = batch.joining.popleft()
            heappush(batch.leaving, (batch.passes + self._outputs[request] - 1, request))
            batch.size += 1
            batch.context += self._prompts[request] + 1
        if batch.size:
            heappush(self._ready, (self._pass(batch, ready), number))
            batch.passes += 1
            batch.context += batch.size
        else:
            batch.running = False

    def _pass(self, batch: _MicroBatch, ready: float) -> float:
        time = ready
        for place, stage in enumerate(self._stages):
            time = max(time, self._stage_free[place]) + stage(batch.size, batch.context)
            self._stage_free[place] = time
            time += self._hop
        return time

    def _leave(self, batch: _MicroBatch, time: float) -> None:
        while batch.leaving and batch.leaving[0][0] == batch.passes:
            request = heappop(batch.leaving)[1]
            batch.size -= 1
            batch.context -= self._prompts[request] + self._outputs[request]
            self._free_slots += 1
            self._completion[request] = time
