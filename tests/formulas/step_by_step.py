"""A pool by events, token by token: the plainest program that the closed forms can be held against."""

from collections import deque
from heapq import heappop, heappush

import numpy as np


def decode(arrivals, lengths, step_time, cap=10**9):
    """Times at which requests join the batch and finish; they join at the end of a step, in order."""
    joined, finished = np.zeros((2, len(arrivals)))
    batch, steps, now, upcoming = [], 0, 0.0, 0
    while batch or upcoming < len(arrivals):
        if not batch:
            now = max(now, arrivals[upcoming])
        while upcoming < len(arrivals) and arrivals[upcoming] <= now and len(batch) < cap:
            joined[upcoming] = now
            heappush(batch, (steps + lengths[upcoming], upcoming))
            upcoming += 1
        now, steps = now + step_time(len(batch)), steps + 1
        while batch and batch[0][0] == steps:
            finished[heappop(batch)[1]] = now
    return joined, finished


def prefill_first(arrivals, tokens, step_time, prefill_time):
    """Times of the first and last tokens, where prompts are served one at a time and before any decode step."""
    first, last = np.zeros((2, len(arrivals)))
    batch, steps, now, upcoming = [], 0, 0.0, 0
    while batch or upcoming < len(arrivals):
        if not batch:
            now = max(now, arrivals[upcoming])
        if upcoming < len(arrivals) and arrivals[upcoming] <= now:
            now += prefill_time
            first[upcoming] = now
            heappush(batch, (steps + tokens, upcoming))
            upcoming += 1
            continue
        now, steps = now + step_time(len(batch)), steps + 1
        while batch and batch[0][0] == steps:
            last[heappop(batch)[1]] = now
    return first, last


def chunked(arrivals, prompt, tokens, mixed_time, budget):
    """Times of the first and last tokens, where every step fills up to the budget with prompts in turn."""
    first, last = np.zeros((2, len(arrivals)))
    batch, steps, now, upcoming, done = [], 0, 0.0, 0, 0
    while batch or upcoming < len(arrivals):
        if not batch:
            now = max(now, arrivals[upcoming])
        room, complete = budget - len(batch), []
        taken = room
        while room > 0 and upcoming < len(arrivals) and arrivals[upcoming] <= now:
            part = min(room, prompt - done)
            room, done = room - part, done + part
            if done == prompt:
                complete.append(upcoming)
                upcoming, done = upcoming + 1, 0
        now, steps = now + float(mixed_time(len(batch), taken - room)), steps + 1
        while batch and batch[0][0] == steps:
            last[heappop(batch)[1]] = now
        for request in complete:
            first[request] = now
            heappush(batch, (steps + tokens, request))
    return first, last


def closed_loop(in_flight, prompts, outputs, step_time, budget=None):
    """Times to the first token, and from it to the last, with so many in flight: each one's successor follows at once.

    A step has every sequence and fills up to the budget with prompts in turn. Without a budget each prompt is a step
    of its own, before the next that decodes. `step_time` takes the contexts of the sequences, the prompt tokens, and
    how many of the same prompts come before them.
    """
    first, last, began = np.zeros((3, len(prompts)))
    waiting, batch, done, now, following = deque(range(in_flight)), {}, 0, 0.0, in_flight
    while waiting or batch:
        contexts, taken, before, complete = (), 0, 0.0, []
        if budget is not None or not waiting:
            contexts = [prompts[r] + outputs[r] - left for r, left in batch.items()]
        room = np.inf if budget is None else budget - len(batch)
        while waiting and room > 0 and not (budget is None and complete):
            part = min(room, prompts[waiting[0]] - done)
            room, taken, before, done = room - part, taken + part, before + part * done, done + part
            if done == prompts[waiting[0]]:
                complete, done = [*complete, waiting.popleft()], 0
        now += step_time(contexts, taken, before / taken if taken else 0.0)
        for r in list(batch) if len(contexts) else ():
            batch[r] -= 1
            if not batch[r]:
                del batch[r]
                last[r] = now
                if following < len(prompts):
                    began[following] = now
                    waiting.append(following)
                    following += 1
        for r in complete:
            first[r], batch[r] = now, outputs[r] - 1
    return first - began, last - first
