r"""Pools of prefill and decode instances: how many of each, what the group carries, what rounding costs.

Each kind of instance has its goodput: the highest rate at which one of it keeps its target. Requests pass one of
either kind, so a group carries what its weaker side does, and whole instances leave a part of the other side idle.
DistServe's placement ends with these lines (Algorithm 1); figure 1 of the paper is one example of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
import sympy as sp

from formulas.closed_form import ClosedForm, Condition, DomainError, Step, at_most, equation, variable

_ROUNDING = 1e-9

RATE = variable("rate", "R", "1/s", "rate of requests")
CARRIED = variable("carried_rate", "R'", "1/s", "rate that is planned for")
EXTRA = variable("headroom", "h", "", "share of the rate kept free for bursts", nonnegative=True)
GOODPUT = variable("goodput", "g", "1/s", "highest rate of one instance within its target")
COUNT = variable("instances", "n", "", "instances of one kind")
PREFILL = variable("prefill_goodput", "g_{p}", "1/s", "highest rate of one prefill instance within its target")
DECODE = variable("decode_goodput", "g_{d}", "1/s", "highest rate of one decode instance within its target")
PREFILLS = variable("prefill_instances", "n_{p}", "", "prefill instances")
DECODES = variable("decode_instances", "n_{d}", "", "decode instances")
PREFILL_SIZE = variable("prefill_gpus", "k_{p}", "", "accelerators of a prefill instance")
DECODE_SIZE = variable("decode_gpus", "k_{d}", "", "accelerators of a decode instance")
GROUP = variable("group_goodput", "G", "1/s", "highest rate of the group within both targets")
LEFT = variable("goodput_after_loss", "G_{1}", "1/s", "highest rate with one instance less, whichever it is")
EACH = variable("goodput_per_gpu", r"\gamma", "1/s", "rate for each accelerator")
IDEAL = variable(
    "ideal_goodput_per_gpu", r"\gamma_{\infty}", "1/s", "the same in a pool so large that nothing is rounded"
)
RATIO = variable("ideal_ratio", r"\nu", "", "prefill instances for each decode instance, neither of them idle")
WASTE = variable("rounding_waste", "w", "", "share of the accelerators that rounding leaves idle")
MOST_WASTE = variable("largest_waste", "w_{max}", "", "what the waste stays below")
COLOCATED = variable(
    "colocated_per_gpu", r"\gamma_{c}", "1/s", "highest rate of a colocated accelerator within both targets"
)
GAIN = variable("gain", "x", "", "rate for each accelerator relative to a colocated one")
NEEDED = variable("gpus_needed", "A", "", "accelerators that the rate would take of instances in parts")
PRESENT = variable("gpus_present", "N", "", "accelerators that there are")
SHARE = variable("prefill_share", "s", "", "share of the accelerators that prefill")

_R, _GP, _GD = CARRIED.symbol, PREFILL.symbol, DECODE.symbol
_NP, _ND, _KP, _KD = (v.symbol for v in (PREFILLS, DECODES, PREFILL_SIZE, DECODE_SIZE))
_NEEDED = _KP / _GP + _KD / _GD  # accelerators for each request a second
_GPUS = _NP * _KP + _ND * _KD
_ALGORITHM = "DistServe (OSDI 2024), Algorithm 1"
_ONE = Condition(at_most(1, _NP), "There is at least one prefill instance.")
_OTHER = Condition(at_most(1, _ND), "There is at least one decode instance.")
_WHOLE = (_ONE, _OTHER)


def _ideal_steps() -> tuple[Step, ...]:
    s, each = SHARE.symbol, EACH.symbol
    prefill, decode = s * _GP / _KP, (1 - s) * _GD / _KD
    (share,) = sp.solve(sp.Eq(prefill, decode), s)
    return (
        Step("Of each accelerator's time a share s prefills; the sides carry", equation(each, sp.Min(prefill, decode))),
        Step("The smaller of the two is largest where they are equal.", equation(prefill, decode)),
        Step("Solved for the share.", equation(s, sp.factor(share))),
        Step("Put in.", equation(IDEAL.symbol, 1 / _NEEDED)),
    )


def _ratio_steps() -> tuple[Step, ...]:
    return (
        Step("Neither side is idle where both carry the same.", equation(_NP * _GP, _ND * _GD)),
        Step("For each decode instance.", equation(RATIO.symbol, _GD / _GP)),
    )


def _waste_steps() -> tuple[Step, ...]:
    return (
        Step("Accelerators that the rate would need if parts of instances could be had.",
             equation(NEEDED.symbol, _R * _NEEDED)),
        Step("Accelerators that there are.", equation(PRESENT.symbol, _GPUS)),
        Step("The share of them that is not needed.", equation(WASTE.symbol, WASTED.expression)),
    )  # fmt: skip


def _bound_steps() -> tuple[Step, ...]:
    return (
        *WASTED.steps,
        Step("Rounding up adds less than one instance on either side.",
             sp.StrictLessThan(_GPUS, _R * _NEEDED + _KP + _KD, evaluate=False)),
        Step("Put in.", sp.StrictLessThan(WASTE.symbol, WASTE_BOUND.expression, evaluate=False)),
    )  # fmt: skip


def _loss_steps() -> tuple[Step, ...]:
    first, second = sp.Min((_NP - 1) * _GP, _ND * _GD), sp.Min(_NP * _GP, (_ND - 1) * _GD)
    return (
        Step("A prefill instance is lost.", equation(LEFT.symbol, first)),
        Step("A decode instance is lost.", equation(LEFT.symbol, second)),
        Step("Whichever it is: the smaller of the two.", equation(LEFT.symbol, AFTER_LOSS.expression)),
    )


PLANNED_RATE = ClosedForm(
    "rate planned for",
    CARRIED,
    RATE.symbol * (1 + EXTRA.symbol),
    (RATE, EXTRA),
    "Definition: so much more than the mean rate is to be carried",
)

INSTANCES = ClosedForm(
    "instances for a rate",
    COUNT,
    sp.ceiling(CARRIED.symbol / GOODPUT.symbol),
    (CARRIED, GOODPUT),
    _ALGORITHM,
)
"""Instances of one kind for a rate, whole ones [].

Examples
--------
>>> INSTANCES(carried_rate=50, goodput=6)
9.0
"""

GROUP_GOODPUT = ClosedForm(
    "goodput of a group",
    GROUP,
    sp.Min(_NP * _GP, _ND * _GD),
    (PREFILLS, PREFILL, DECODES, DECODE),
    "Requests pass both sides; DistServe (OSDI 2024), section 2.3 and figure 1",
    _WHOLE,
)
"""What a group carries: its weaker side [1/s].

Examples
--------
>>> GROUP_GOODPUT(prefill_instances=2, prefill_goodput=5.6, decode_instances=1, decode_goodput=10)
10.0
"""

AFTER_LOSS = ClosedForm(
    "goodput with an instance lost",
    LEFT,
    sp.Min((_NP - 1) * _GP, (_ND - 1) * _GD),
    (PREFILLS, PREFILL, DECODES, DECODE),
    "The group without one of its instances, whichever carries less",
    _WHOLE,
    _loss_steps,
)

GOODPUT_PER_GPU = ClosedForm(
    "goodput per accelerator",
    EACH,
    RATE.symbol / _GPUS,
    (RATE, PREFILLS, PREFILL_SIZE, DECODES, DECODE_SIZE),
    "DistServe (OSDI 2024), section 1: per-GPU goodput",
    _WHOLE,
)
"""Rate within the targets for each accelerator [1/s].

Examples
--------
>>> GOODPUT_PER_GPU(rate=60, prefill_instances=10, prefill_gpus=1, decode_instances=3, decode_gpus=1)
4.615385
"""

IDEAL_GOODPUT = ClosedForm(
    "goodput per accelerator without rounding",
    IDEAL,
    1 / _NEEDED,
    (PREFILL_SIZE, PREFILL, DECODE_SIZE, DECODE),
    "Both sides in proportion to what a request takes of them",
    (),
    _ideal_steps,
    (EACH, SHARE),
)

IDEAL_RATIO = ClosedForm(
    "ideal ratio of instances",
    RATIO,
    _GD / _GP,
    (PREFILL, DECODE),
    "Both sides carry the same rate",
    (),
    _ratio_steps,
    (PREFILLS, DECODES),
)
"""Prefill instances for each decode instance [].

Examples
--------
>>> IDEAL_RATIO(prefill_goodput=6, decode_goodput=20)
3.333333
"""

WASTED = ClosedForm(
    "waste of rounding",
    WASTE,
    1 - _R * _NEEDED / _GPUS,
    (CARRIED, PREFILL_SIZE, PREFILL, DECODE_SIZE, DECODE, PREFILLS, DECODES),
    "What whole instances have beyond the rate, in accelerators",
    (
        *_WHOLE,
        Condition(at_most(_R, sp.Min(_NP * _GP, _ND * _GD) * (1 + _ROUNDING)), "The group does not carry this rate."),
    ),
    _waste_steps,
    (NEEDED, PRESENT),
)
"""Share of the accelerators that is idle because instances are whole [].

Examples
--------
>>> WASTED(carried_rate=50, prefill_gpus=1, prefill_goodput=6, decode_gpus=1, decode_goodput=20,
...        prefill_instances=9, decode_instances=3)
0.0972222
"""

WASTE_BOUND = ClosedForm(
    "largest waste of rounding",
    MOST_WASTE,
    (_KP + _KD) / (_R * _NEEDED + _KP + _KD),
    (CARRIED, PREFILL_SIZE, PREFILL, DECODE_SIZE, DECODE),
    "Less than one instance of either kind is added by rounding up",
    (),
    _bound_steps,
    (PREFILLS, DECODES, WASTE, NEEDED, PRESENT),
)
"""What the waste of rounding stays below at a rate [].

Examples
--------
>>> WASTE_BOUND(carried_rate=50, prefill_gpus=1, prefill_goodput=6, decode_gpus=1, decode_goodput=20)
0.155844
"""

GAIN_OVER_COLOCATED = ClosedForm(
    "gain over colocated serving",
    GAIN,
    EACH.symbol / COLOCATED.symbol,
    (EACH, COLOCATED),
    "DistServe (OSDI 2024), figure 1: 3.3 requests/s for each GPU against 1.6",
)
"""How many times as much an accelerator carries as where both phases share it [].

Examples
--------
>>> GAIN_OVER_COLOCATED(goodput_per_gpu=10 / 3, colocated_per_gpu=1.6)
2.083333
"""


@dataclass(frozen=True)
class Split:
    """How many instances of each kind, the accelerators they take [], and what they carry [1/s]."""

    prefill_instances: int
    decode_instances: int
    gpus: int
    goodput: float

    @property
    def goodput_per_gpu(self) -> float:
        """Rate for each accelerator that the split takes [1/s]."""
        return self.goodput / self.gpus


def best_split(
    gpus: int, prefill_goodput: float, decode_goodput: float, prefill_gpus: int = 1, decode_gpus: int = 1
) -> Split:
    """Return the whole numbers of instances that carry most on so many accelerators.

    Parameters
    ----------
    gpus
        Accelerators that may be used [].
    prefill_goodput, decode_goodput
        Highest rate of one instance of each kind within its target [1/s].
    prefill_gpus, decode_gpus
        Accelerators of one instance of each kind [].

    Returns
    -------
    Split
        Of those that carry most, the one with the fewest accelerators.

    Raises
    ------
    DomainError
        If there is no room for one instance of each kind, or a goodput is not above zero.

    Examples
    --------
    >>> best_split(5, 6, 20)
    Split(prefill_instances=4, decode_instances=1, gpus=5, goodput=20)
    """
    if not (prefill_goodput > 0 and decode_goodput > 0):
        raise DomainError("Both goodputs are above zero.")
    if gpus < prefill_gpus + decode_gpus:
        raise DomainError(
            f"{gpus} accelerators are too few: one instance of each kind takes {prefill_gpus + decode_gpus}."
        )
    prefills = np.arange(1, (gpus - decode_gpus) // prefill_gpus + 1)
    decodes = (gpus - prefills * prefill_gpus) // decode_gpus
    goodput = float(np.minimum(prefills * prefill_goodput, decodes * decode_goodput).max())
    return split_for(goodput, prefill_goodput, decode_goodput, prefill_gpus, decode_gpus)


def split_for(
    rate: float, prefill_goodput: float, decode_goodput: float, prefill_gpus: int = 1, decode_gpus: int = 1
) -> Split:
    """Return the fewest instances of each kind that carry a rate [1/s]; the other arguments as in :func:`best_split`.

    Examples
    --------
    >>> split_for(50, 6, 20)
    Split(prefill_instances=9, decode_instances=3, gpus=12, goodput=54)
    """
    prefills, decodes = (max(1, ceil(rate / each * (1 - _ROUNDING))) for each in (prefill_goodput, decode_goodput))
    goodput = min(prefills * prefill_goodput, decodes * decode_goodput)
    return Split(prefills, decodes, prefills * prefill_gpus + decodes * decode_gpus, goodput)
