"""One step with a prompt in it: how much later its tokens come, and the prompt that costs nothing."""

from __future__ import annotations

import sympy as sp

from formulas.closed_form import ClosedForm, Condition, Step, at_most, equation, variable
from formulas.step_time import COMPUTE_EFFICIENCY, MEMORY, PEAK, RANKS

MIXED = variable("mixed_step_s", "T_{p}", "s", "time of the step with the prompt in it")
PLAIN = variable("decode_step_s", "T", "s", "time of the step without it")
TIMES = variable("slowdown", "s", "", "time of the step relative to one without the prompt")
SPARE = variable("spare_flops", "F_{s}", "FLOP", "arithmetic for which there is time while memory is read")
USED = variable("decode_flops", "F_{d}", "FLOP", "arithmetic of the decoding sequences", nonnegative=True)
PER_TOKEN = variable("token_flops", "f", "FLOP", "arithmetic of the matrix products for a token")
PER_PAIR = variable("pair_flops", "g", "FLOP", "arithmetic of attention for a pair of tokens")
FREE = variable("free_tokens", "p", "", "prompt tokens that ride for free")

_MEM, _EC, _PEAK, _N = (v.symbol for v in (MEMORY, COMPUTE_EFFICIENCY, PEAK, RANKS))
_S, _F, _G, _P = (v.symbol for v in (SPARE, PER_TOKEN, PER_PAIR, FREE))
_BUDGET = _MEM * _EC * _PEAK * _N


def _free_steps() -> tuple[Step, ...]:
    return (
        Step("While the memory is read there is time for more arithmetic than the sequences need; a prompt of p "
             "tokens takes it all when", equation(_F * _P + _G * _P**2 / 2, _S)),
        Step("Solved for the prompt.", equation(_P, FREE_TOKENS.expression)),
    )  # fmt: skip


SLOWDOWN = ClosedForm(
    "slowdown of a mixed step",
    TIMES,
    MIXED.symbol / PLAIN.symbol,
    (MIXED, PLAIN),
    "Every sequence in the step gets its token that much later",
)

SPARE_FLOPS = ClosedForm(
    "arithmetic that rides free",
    SPARE,
    _BUDGET - USED.symbol,
    (MEMORY, COMPUTE_EFFICIENCY, PEAK, RANKS, USED),
    "Roofline of the step: what the arithmetic could do in the time of the memory traffic, less what it does",
    (
        Condition(at_most(1, _N), "An instance has at least one rank."),
        Condition(at_most(USED.symbol, _BUDGET), "The step is bound by compute: every prompt token costs time."),
    ),
)

FREE_TOKENS = ClosedForm(
    "largest prompt that rides free",
    FREE,
    2 * _S / (_F + sp.sqrt(_F**2 + 2 * _G * _S)),
    (SPARE, PER_TOKEN, PER_PAIR),
    "Roofline of the mixed step: arithmetic and memory traffic take the same time",
    (),
    _free_steps,
)
"""Tokens of a prompt with no prefix in the cache [].

Examples
--------
>>> FREE_TOKENS(spare_flops=3.481e12, token_flops=15009316864, pair_flops=524288)
230.99
"""
