r"""Short prompts served together: closed forms of what that costs and brings.

A prompt of a few hundred tokens makes an accelerator compute-bound. Batching prompts beyond that length, :math:`L_m`,
brings no capacity and makes each wait for the others' arithmetic; prompts shorter than it take hardly longer together than
alone. Two prompts that have both waited for a third are served sooner together if a batch of two takes less than one
and a half times a single prompt: alone they are done after one and two services, together both after one of the pair.
"""

from __future__ import annotations

import sympy as sp

from formulas.closed_form import ClosedForm, Condition, Step, at_most, equation, less, variable
from formulas.queueing import md1
from formulas.queueing import pollaczek_khinchine as pk
from formulas.queueing.mg1 import TTFT

MOST = variable("most", "b", "", "largest batch")
SATURATION = variable("saturation_tokens", "L_{m}", "", "tokens that make the accelerator compute-bound")
PROMPT = variable("prompt_tokens", "L", "", "tokens of a prompt")
FIXED = variable("fixed_s", r"\tau_{0}", "s", "time of a batch without its prompts")
EACH = variable("each_s", r"\alpha", "s", "time that each prompt adds to a batch")
SINGLE = variable("single_s", "T_{1}", "s", "time of a prompt alone")
PAIR = variable("pair_s", "T_{2}", "s", "time of two prompts together")
SAVING = variable(
    "pair_saving",
    r"\Delta",
    "s",
    "time that each of two waiting prompts saves on average if served together",
    real=True,
)

_B, _LM, _L, _T0, _A, _T1, _T2, _R, _D = (
    v.symbol for v in (MOST, SATURATION, PROMPT, FIXED, EACH, SINGLE, PAIR, pk.RATE, md1.SERVICE)
)
_LOAD = _R * _A
_INOUE = "Inoue, Performance Evaluation 144 (2020) 102135; arXiv 1912.06322"
_TAKE_ALL = (Condition(less(_LOAD, 1), pk.UNSTABLE),)


def _pair_steps() -> tuple[Step, ...]:
    return (
        Step(
            "One after the other, two prompts that wait are done after T₁ and 2 T₁: on average after",
            sp.Rational(3, 2) * _T1,
        ),
        Step("Together, both are done after", _T2),
        Step("The difference.", equation(SAVING.symbol, PAIR_SAVING.expression)),
    )


LARGEST_BATCH_OF_PROMPTS = ClosedForm(
    "prompts that fill an accelerator",
    MOST,
    sp.floor(_LM / _L),
    (SATURATION, PROMPT),
    "DistServe (OSDI 2024), section 4.3: batches of short prompts up to the saturation length",
    (Condition(at_most(_L, _LM), "A prompt of the saturation length or longer fills the accelerator alone."),),
)

BATCH_CAPACITY = ClosedForm(
    "rate that batches of one duration can take",
    pk.RATE,
    _B / _D,
    (MOST, md1.SERVICE),
    "A full batch in every service",
)

PAIR_SAVING = ClosedForm(
    "time saved by serving two waiting prompts together",
    SAVING,
    sp.Rational(3, 2) * _T1 - _T2,
    (SINGLE, PAIR),
    "Counting; at low rates it decides whether batching lowers the mean time to first token",
    (),
    _pair_steps,
)

TAKE_ALL_BOUND = ClosedForm(
    "bound of the mean time to first token, all who wait in one batch",
    TTFT,
    (_A + _T0) / 2 / (1 - _LOAD) * (1 + 2 * _R * _T0 + (1 - _R * _T0) / (1 + _LOAD)),
    (pk.RATE, FIXED, EACH),
    _INOUE + ", the bound that is close at low rates",
    _TAKE_ALL,
)

TAKE_ALL_HEAVY_BOUND = ClosedForm(
    "bound of the mean time to first token, all who wait in one batch, for high rates",
    TTFT,
    sp.Rational(3, 2) * _T0 / (1 - _LOAD) + _A * (_LOAD + 2) / 2 / (1 - _LOAD**2),
    (pk.RATE, FIXED, EACH),
    _INOUE + ", the bound that is close at high rates",
    _TAKE_ALL,
)
