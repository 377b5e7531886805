"""A pool by events, token by token: the plainest program that the closed forms can be held against."""

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
