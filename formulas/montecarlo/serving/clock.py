r"""The clock of the simulation: how long a step takes, and how to pass many steps at once.

While a batch of b sequences stays the same, each step adds b tokens of context. A step time that is affine in the
context then grows by the same amount each step, and k steps take :math:`k t + g k(k-1)/2`: no loop is needed. A
larger-of-two model of arithmetic and memory traffic is two such functions, with one change-over at most.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor, isclose, sqrt
from typing import NamedTuple, Protocol, runtime_checkable

StepTime = Callable[[float, float, float, float], float]
"""Time of a step [s] from its prompt tokens, the tokens cached before them, its decoding sequences, and the sum of
their contexts. Of several prompts in one step, `cached_tokens` is the number h that gives the attended pairs
p h + p^2/2 of all together: negative for several fresh prompts, which do not attend to one another."""

_PROBE = 4096.0


class Run(NamedTuple):
    """Steps of an unchanged batch: the first one's time [s], how much longer each next one is [s], how many []."""

    first_s: float
    growth_s: float
    steps: int

    def duration(self) -> float:
        """Time of all steps [s].

        Examples
        --------
        >>> Run(1.0, 0.5, 3).duration()
        4.5
        """
        return self.steps * (self.first_s + self.growth_s * (self.steps - 1) / 2)

    def cut(self, elapsed_s: float) -> Run:
        """Only the steps that start before a time has passed, at least one.

        Examples
        --------
        >>> Run(1.0, 0.5, 10).cut(2.5), Run(1.0, 0.5, 10).cut(2.6)
        (Run(first_s=1.0, growth_s=0.5, steps=2), Run(first_s=1.0, growth_s=0.5, steps=3))
        """
        linear = self.first_s - self.growth_s / 2
        guess = ceil(2 * elapsed_s / (linear + sqrt(linear**2 + 2 * self.growth_s * elapsed_s)))
        steps = min(max(guess, 1), self.steps)
        while steps > 1 and self._replace(steps=steps - 1).duration() >= elapsed_s:
            steps -= 1
        while steps < self.steps and self._replace(steps=steps).duration() < elapsed_s:
            steps += 1
        return self._replace(steps=steps)


@runtime_checkable
class Clock(Protocol):
    """A step time that can also pass several decode steps at once."""

    def __call__(self, prompt_tokens: float, cached_tokens: float, decoding: float, context_sum: float) -> float:
        """Time of a step [s]."""

    def decode_run(self, decoding: int, context_sum: int, steps: int) -> Run:
        """At most `steps` decode steps of a batch whose contexts sum to `context_sum` in the first."""


@dataclass(frozen=True)
class EachStep:
    """Any step time, asked once for every step."""

    step_time: StepTime

    def __call__(self, prompt_tokens: float, cached_tokens: float, decoding: float, context_sum: float) -> float:
        """Time of a step [s]."""
        return self.step_time(prompt_tokens, cached_tokens, decoding, context_sum)

    def decode_run(self, decoding: int, context_sum: int, steps: int) -> Run:  # noqa: ARG002  one at a time
        """Return one decode step."""
        return Run(self.step_time(0, 0, decoding, context_sum), 0.0, 1)


@dataclass(frozen=True)
class AffineStep:
    """A step time, or one side of its maximum, as a sum of shares of what the step holds.

    Parameters
    ----------
    base_s
        Whatever the step holds [s].
    sequence_s
        For each decoding sequence [s].
    context_token_s
        For each token in the contexts of the decoding sequences [s].
    prompt_token_s
        For each prompt token [s].
    pair_s
        For each pair of a prompt token and one that it attends to [s].
    cached_token_s
        For each token cached before the prompt tokens [s].
    """

    base_s: float
    sequence_s: float = 0.0
    context_token_s: float = 0.0
    prompt_token_s: float = 0.0
    pair_s: float = 0.0
    cached_token_s: float = 0.0

    def __call__(self, prompt_tokens: float, cached_tokens: float, decoding: float, context_sum: float) -> float:
        """Time of a step [s].

        Examples
        --------
        >>> AffineStep(5e-3, 1e-4)(0, 0, 10, 7000)
        0.006
        """
        return (
            self.base_s
            + self.sequence_s * decoding
            + self.context_token_s * context_sum
            + prompt_tokens * (self.prompt_token_s + self.pair_s * (cached_tokens + prompt_tokens / 2))
            + self.cached_token_s * cached_tokens
        )

    def decode_run(self, decoding: int, context_sum: int, steps: int) -> Run:
        """Return all the decode steps."""
        return Run(self(0, 0, decoding, context_sum), self.context_token_s * decoding, steps)

    @classmethod
    def of(cls, step_time: StepTime) -> AffineStep:
        """Return a function's shares, read off at a few points.

        Parameters
        ----------
        step_time
            Affine in sequences, contexts, prompt tokens, attended pairs and cached tokens; else a ValueError.

        Examples
        --------
        >>> AffineStep.of(lambda prompt, cached, decoding, context: 0.5 + 0.25 * decoding)
        AffineStep(base_s=0.5, sequence_s=0.25, context_token_s=0.0, prompt_token_s=0.0, pair_s=0.0, cached_token_s=0.0)
        """
        n = _PROBE
        base = step_time(0, 0, 0, 0)
        sequence = (step_time(0, 0, n, 0) - base) / n
        context = (step_time(0, 0, 0, n) - base) / n
        cached = (step_time(0, n, 0, 0) - base) / n
        once, twice = step_time(n, 0, 0, 0) - base, step_time(2 * n, 0, 0, 0) - base
        found = cls(base, sequence, context, 2 * once / n - twice / (2 * n), (twice - 2 * once) / n**2, cached)
        for point in ((300, 700, 20, 9000), (64, 0, 1, 100)):
            if not isclose(found(*point), step_time(*point), rel_tol=1e-9):
                raise ValueError("The step time is not affine: give it as it is, and each step is computed.")
        return found


@dataclass(frozen=True)
class LargestOf:
    """The largest of affine step times: of arithmetic and memory traffic, say.

    Examples
    --------
    >>> steps = LargestOf((AffineStep(1.0, 0.0, 0.125), AffineStep(0.0, 0.0, 0.25)))
    >>> steps(0, 0, 2, 4), steps.decode_run(2, 4, 100)
    (1.5, Run(first_s=1.5, growth_s=0.25, steps=3))
    """

    pieces: tuple[AffineStep, ...]

    def __call__(self, prompt_tokens: float, cached_tokens: float, decoding: float, context_sum: float) -> float:
        """Time of a step [s]."""
        return max([piece(prompt_tokens, cached_tokens, decoding, context_sum) for piece in self.pieces])

    def decode_run(self, decoding: int, context_sum: int, steps: int) -> Run:
        """Return the decode steps up to where another piece becomes the largest."""
        sides = [
            (p.base_s + p.sequence_s * decoding + p.context_token_s * context_sum, p.context_token_s * decoding)
            for p in self.pieces
        ]
        first, growth = max(sides)
        if steps > 1:
            for other, faster in sides:
                if faster > growth:
                    steps = min(steps, floor((first - other) / (faster - growth)) + 1)
        return Run(first, growth, steps)


def clock_of(step_time: StepTime) -> Clock:
    """Return the step time as a clock: those that have a `decode_run` jump, others are asked for every step.

    Examples
    --------
    >>> clock_of(AffineStep(0.5, 0.25)).decode_run(2, 100, 7)
    Run(first_s=1.0, growth_s=0.0, steps=7)
    >>> clock_of(lambda prompt, cached, decoding, context: 0.5).decode_run(2, 100, 7)
    Run(first_s=0.5, growth_s=0.0, steps=1)
    """
    return step_time if isinstance(step_time, Clock) else EachStep(step_time)
