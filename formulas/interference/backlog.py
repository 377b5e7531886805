"""The prompt tokens that wait at the start of a step, as a Markov chain, and the first tokens that come of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import ArrayLike, NDArray

from formulas.closed_form import DomainError

Array = NDArray[np.float64]
MixedTime = Callable[[Array, Array], Array]

_MOST_UNITS = 192
_MOST_PROMPTS = 150
_LOST = 1e-3
_FADED = 1e-6
_RARE = 1e-9
_STARVED = "Starved: the decoding sequences fill the budget, so that no prompt advances."
_TOO_NEAR = f"So close to saturation that more than {_MOST_PROMPTS} prompts wait: no answer there."
_UNSTABLE = "Unstable: prompts arrive at least as fast as the budget takes them, so there is no steady state."


@dataclass(frozen=True)
class FirstToken:
    """Time to first token: the rest of a step that an arrival finds running, uniform over it, and the steps after.

    Attributes
    ----------
    weight
        Probability of each case []: what waits, and how many come before within the same step.
    running_s
        Time of the step that runs at the arrival [s].
    after_s
        Time from its end to the first token [s].
    """

    weight: Array
    running_s: Array
    after_s: Array

    def share_within(self, time: ArrayLike) -> Array:
        """Probability that the first token comes within a time [s]."""
        times = np.asarray(time, dtype=float)[..., np.newaxis]
        return np.asarray((np.clip((times - self.after_s) / self.running_s, 0.0, 1.0) * self.weight).sum(axis=-1))

    @property
    def mean(self) -> float:
        """Mean time to first token [s]."""
        return float(self.weight @ (self.running_s / 2 + self.after_s))


class Backlog:
    """Prompt tokens that wait at the start of a step, in units of a fraction of a prompt, at a fixed batch.

    A step takes up to the room that the batch leaves in the budget; where that is not a whole number of units, it
    takes one of the two next to it, so that it is right on average.
    """

    def __init__(self, rate: float, prompt: float, mixed_time: MixedTime, batch: float, budget: int) -> None:
        room = budget - batch
        if room <= 0:
            raise DomainError(_STARVED)
        self.full_s = float(mixed_time(np.array([batch]), np.array([room]))[0])
        load = rate * prompt * self.full_s / room
        if load >= 1:
            raise DomainError(_UNSTABLE)
        prompts = min(int(8 + 2 * room / prompt + 8 / (1 - load)), _MOST_PROMPTS)
        self.rate, self.units = rate, min(max(_MOST_UNITS // prompts, 4), 32)
        self.unit, self.room = prompt / self.units, room * self.units / prompt
        self._batch, self._mixed_time = np.array([batch]), mixed_time
        waiting = np.arange(float(prompts * self.units))
        self.step_s = self._mixed(waiting)
        most = rate * float(self.step_s.max())  # arrivals in a step, on average
        self.arrivals = int(most + 8 * np.sqrt(most)) + 12
        self.left = np.maximum(waiting - self.room, 0.0)
        self._moves = self._transitions()
        balance = self._moves.T - np.eye(waiting.size)
        balance[0] = 1.0
        self.law = np.linalg.solve(balance, np.eye(1, waiting.size)[0])
        if self.law[-self.units :].sum() > _LOST:
            raise DomainError(_TOO_NEAR)
        self.mean_step_s = float(self.law @ self.step_s)
        more = max(self.mean_step_s - float(self.step_s[0]), 0.0)  # to rounding, where prompts ride for free
        self.excess = more / (rate * self.mean_step_s)

    def _mixed(self, waiting: Array) -> Array:
        taken = np.minimum(waiting, self.room) * self.unit
        return np.broadcast_to(self._mixed_time(self._batch, taken), taken.shape)

    def _transitions(self) -> Array:
        from scipy.special import gammaln

        size = self.step_s.size
        moves: Array = np.zeros((size, size))
        low = np.floor(self.left).astype(int)
        share, rows = self.left - low, np.arange(size)
        mean = self.rate * self.step_s
        for k in range(self.arrivals):
            chance = np.exp(k * np.log(mean) - mean - gammaln(k + 1))
            for start, part in ((low, 1 - share), (low + 1, share)):
                moves[rows, np.minimum(start + k * self.units, size - 1)] += part * chance
        moves /= moves.sum(axis=1, keepdims=True)
        return moves

    def fluctuation(self, steps: Array) -> tuple[Array, Array]:
        """Variance of the excess over so many steps [s^2], and what a new token's exceeds the mean by [s].

        Parameters
        ----------
        steps
            Numbers of steps, of requests of several lengths [].
        """
        away = self.step_s - self.mean_step_s
        waiting = np.arange(away.size)
        finished = np.ceil(waiting / self.units - 1e-9) - np.ceil(self.left / self.units - 1e-9)
        ending = self.law * finished
        weight = ending / ending.sum() if ending.sum() > 0 else ending  # none: so rare that it does not matter
        variance, startup = steps * float(self.law @ away**2), np.zeros(steps.shape)
        expected = away
        for k in range(1, ceil(steps.max()) + 1):  # `expected`: of the excess k steps on, from each state
            expected = self._moves @ expected
            startup += float(weight @ expected) * np.clip(steps - k + 1, 0.0, 1.0)
            variance += 2 * np.maximum(steps - k, 0.0) * float(self.law @ (away * expected))
            if np.abs(expected).max() < _FADED * self.mean_step_s:
                break
        return variance, startup

    def first_token(self, shares: Array, own_tokens: Array) -> tuple[FirstToken, float]:
        """Law of the time from the arrival to the first token, and the mean number of whole steps in it [].

        Parameters
        ----------
        shares, own_tokens
            Lengths that a prompt has itself, with their shares []; those before and after it have the length of the chain.
        """
        from scipy.special import gammaln, pdtrc

        k = np.arange(self.arrivals)
        step_s, left = self.step_s[:, np.newaxis, np.newaxis], self.left[:, np.newaxis, np.newaxis]
        arrivals = self.law[:, np.newaxis, np.newaxis] * step_s / self.mean_step_s
        mean = self.rate * step_s
        earlier = (
            pdtrc(k[:, np.newaxis], mean) / mean
        )  # those before it in the same step, at a uniform moment of the step
        work = left + self.units * k[:, np.newaxis] + own_tokens / self.unit
        steps = np.ceil(work / self.room - 1e-9)
        full = (steps - 1) * self.full_s
        weight = arrivals * earlier * shares
        some = weight > _RARE
        weight, work, steps, full = (np.broadcast_to(each, some.shape)[some] for each in (weight, work, steps, full))
        running = np.broadcast_to(step_s, some.shape)[some]
        later = self.rate * (running / 2 + full)
        last = np.full_like(work, self.full_s)
        for j in k:
            chance = np.exp(j * np.log(later) - later - gammaln(j + 1))
            last += chance * (self._mixed(work - (steps - 1) * self.room + j * self.units) - self.full_s)
        weight = weight / weight.sum()
        return FirstToken(weight, running, full + last), float(weight @ steps)
