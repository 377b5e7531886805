r"""A decode pool behind arrivals in bursts, or with contexts that differ: the law at random arrivals, moved and stretched.

Over a request's stay many others come, and what counts of their gaps is the index of dispersion :math:`c_a^2` of their number.
A token then sees :math:`(c_a^2 - 1)/(1 - q)` more sequences, q being the pool's ratio, and times per token vary about their mean
by :math:`c_a` times as much. Where what a sequence adds to a step has a squared coefficient of variation :math:`c_w^2`, as with
prompts that differ, the index of dispersion of what all of them add is :math:`c_a^2 + c_w^2`, and times vary by its root; their mean
is not moved. An approximation, for gaps that are short beside a stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from formulas.decode_pool.law import PoolLaw

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BunchedTimes:
    """Times per output token from the arrival in the pool, where requests come in bursts.

    Attributes
    ----------
    law
        The pool at random arrivals.
    lengths_cv2
        Squared coefficient of variation of the output lengths [].
    arrival_scv
        Index of dispersion of the arrivals: 1 at random [].
    work_scv
        Squared coefficient of variation of what a sequence adds to a step: 0 where all contexts are alike [].

    Examples
    --------
    >>> from formulas.decode_pool import stationary_law
    >>> law = stationary_law(200, 64, lambda n: 6.6e-3 + 2.66e-5 * n)
    >>> BunchedTimes(law, 0.0).mean == law.tpot_from_arrival()
    True
    >>> BunchedTimes(law, 0.0, 4.0).mean / law.tpot_from_arrival()
    1.012
    """

    law: PoolLaw
    lengths_cv2: float
    arrival_scv: float = 1.0
    work_scv: float = 0.0

    @cached_property
    def _at_random(self) -> float:
        return float(self.law.tpot_from_arrival(None, self.lengths_cv2))

    @cached_property
    def mean(self) -> float:
        """Mean time per output token [s]."""
        ratio = self.law.ratio
        slope = ratio / (self.law.rate * self.law.tokens)
        return self._at_random + slope * (self.arrival_scv - 1) / (1 - ratio)

    @property
    def _stretch(self) -> float:
        """How many times as much as at random times per token vary []."""
        return float((self.arrival_scv + self.work_scv) ** 0.5)

    def quantile(self, level: Any) -> Array:
        """Time per output token that a share `level`, in (0, 1), of the requests do not exceed [s]."""
        plain = np.asarray(self.law.tpot_from_arrival(np.asarray(level, dtype=float), self.lengths_cv2))
        return np.asarray(self.mean + self._stretch * (plain - self._at_random))

    def share_within(self, time: ArrayLike) -> Array:
        """Share of the requests whose time per output token does not exceed `time` [s]."""
        plain = self._at_random + (np.asarray(time, dtype=float) - self.mean) / self._stretch
        return self.law.share_within(plain, self.lengths_cv2)
