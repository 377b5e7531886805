"""DistServe's own choices beside ours: its table 3, with the step times that its simulator was released with.

Published figures: step times of simdistserve's profile (LLMServe/DistServe, ``simdistserve/estimators/profile_data``, A100-80GB),
targets and choices of tables 1 and 3 of DistServe (OSDI 2024, arXiv 2401.09670 v3). For OPT-175B the released profile has no
rows (an earlier revision had some, fitted with negative slopes, and none for three-way tensor parallelism, which DistServe chose), so the
step-time model takes their place there. Mean lengths of the data sets are those of the paper's figure 7, from memory.

What the two searches do not have in common, beside the numbers: DistServe simulates the data sets, whose prompts differ in
length, and a pipeline suffers from that while equal prompts pass it undisturbed; its simulator puts all waiting prompts into one
batch; it lets a sequence in as long as its present context fits, and we set its whole length aside, so that the memory which
stages free counts for more with us.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calculators.outputs import output
from calculators.placement.candidates import Candidate
from calculators.placement.cluster import SearchInputs
from calculators.placement.search import Search, Unit, best_unit, joint_choices, search
from calculators.placement.step_times import ModelledTimes, StepTimes

Array = NDArray[np.float64]

MANY = 95
"""Sequences from which the other of a profile's two decode fits holds."""

ACCELERATOR = "a100-80-sxm"
NODES, NODE_GPUS = 4, 8
LINK_GB_S = 25 / 8
"""The testbed of section 6.1: four nodes of eight, 25 Gbit/s between them."""


@dataclass(frozen=True)
class Fit:
    """One row of the profile, in ms: a + b Σl + c Σl² for a prefill, a + b Σcontext + c batch for a decode step."""

    prefill: tuple[float, float, float]
    few: tuple[float, float, float]
    many: tuple[float, float, float]


FITS: dict[str, dict[int, Fit]] = {
    "opt-13b": {
        1: Fit((18.1025, 0.101912, 7.12226e-6), (19.9347, 6.26936e-4, 0.038507), (7.16619, 5.79800e-4, 0.158311)),
        2: Fit((14.7430, 0.0685772, 2.44957e-6), (13.2948, 3.41092e-4, 0.062964), (10.63874, 3.11834e-4, 0.0856291)),
        4: Fit((12.0623, 0.0380814, 5.22625e-7), (10.2562, 1.87867e-4, 0.032693), (10.48351, 1.71209e-4, 0.0456665)),
    },
    "opt-66b": {
        2: Fit((43.0588, 0.274229, 2.24780e-5), (48.288, 9.42434e-4, 0.12755), (28.72769, 4.74485e-4, 0.296178)),
        3: Fit((32.998, 0.195683, 1.22052e-5), (35.80154, 5.84500e-4, 0.095267), (22.65386, 5.35849e-4, 0.208514)),
        4: Fit((29.4416, 0.151352, 8.31745e-6), (30.7603, 4.51948e-4, 0.063284), (27.47082, 4.04685e-4, 0.124807)),
        8: Fit((25.4907, 0.106592, 3.39105e-6), (23.1551, 2.26915e-4, 0.048006), (21.71773, 3.75809e-4, 0.0897861)),
    },
}
"""By model and tensor degree."""


@dataclass(frozen=True)
class FittedTimes:
    """The released profile: even stages of a share 1/pp each, and simdistserve's pp ms in every prefill stage for the hops."""

    model: str

    def refusal(self, tp: int) -> str:
        """Return that the profile has no row for a degree, if it has none."""
        known = FITS[self.model]
        return "" if tp in known else f"the released profile has TP {', '.join(map(str, known))} only"

    def prefill_s(self, inputs: SearchInputs, tp: int, pp: int) -> Array:
        """Time [s] of one prompt in each stage."""
        return np.full(pp, 1e-3 * (self._whole_ms(tp, inputs.prompt_tokens) / pp + pp))

    def relative_s(self, inputs: SearchInputs, tp: int, tokens: Array) -> Array:
        """Time of prompts of so many tokens over that of one of mean length []."""
        return np.asarray(self._whole_ms(tp, tokens) / self._whole_ms(tp, inputs.prompt_tokens))

    def _whole_ms(self, tp: int, tokens: Any) -> Any:
        fixed, token, square = FITS[self.model][tp].prefill
        return fixed + token * tokens + square * tokens**2

    def decode_s(self, inputs: SearchInputs, tp: int, pp: int, batch: Array, context_tokens: float) -> Array:  # noqa: ARG002
        """Time [s] of one step in each stage; where the second fit falls below the first one's end, that end is kept."""
        fit = FITS[self.model][tp]
        few, many, end = (
            a + (b * context_tokens + c) * n for (a, b, c), n in ((fit.few, batch), (fit.many, batch), (fit.few, MANY))
        )
        return np.tile(1e-3 / pp * np.where(batch < MANY, few, np.maximum(many, end)), (pp, 1))


@dataclass(frozen=True)
class Case:
    """One row of tables 1 and 3: targets [s], mean lengths, and the degrees (TP, PP) that DistServe chose."""

    model: str
    workload: str
    ttft_s: float
    tpot_s: float
    prompt_tokens: int
    output_tokens: int
    prefill: tuple[int, int]
    decode: tuple[int, int]


CASES = (
    Case("opt-13b", "ShareGPT", 0.25, 0.1, 756, 200, (2, 1), (1, 1)),
    Case("opt-66b", "ShareGPT", 2.5, 0.15, 756, 200, (4, 1), (2, 2)),
    Case("opt-66b", "HumanEval", 0.125, 0.2, 171, 98, (4, 1), (2, 2)),
    Case("opt-66b", "LongBench", 15, 0.15, 1738, 91, (4, 1), (2, 2)),
    Case("opt-175b", "ShareGPT", 4.0, 0.2, 756, 200, (3, 3), (4, 3)),
)


@dataclass(frozen=True, kw_only=True)
class Compared:
    """DistServe's choice and ours for one model and workload, both valued by our closed forms."""

    model: str = output("Model")
    workload: str = output("Workload")
    step_times: str = output("Step times")
    theirs: str = output("DistServe chose", "", "Prefill and decode, one instance of each in a unit")
    theirs_per_gpu: float | None = output("Its goodput", "requests/s", "Of an accelerator, by our closed forms")
    ours: str = output("We choose", "", "Under the same rule: one instance of each in a unit")
    ours_per_gpu: float = output("Our goodput", "requests/s", "Of an accelerator")
    share: float | None = output("Its share", "", "Its goodput over ours")
    several: str = output("Several in a unit", "", "Our choice where a unit may hold several instances of a side")
    several_per_gpu: float = output("then", "requests/s", "Goodput of an accelerator")
    why: str = output("Why they differ")


def inputs_of(case: Case, spread: float = 0.0) -> SearchInputs:
    """Return the search that a case is: DistServe's testbed and targets, nine in ten requests within each.

    ``spread`` is the coefficient of variation of prompts and outputs, log-normal: those of the data sets are not known here.
    """
    return SearchInputs(
        model=case.model, accelerator=ACCELERATOR, nodes=NODES, node_gpus=NODE_GPUS, network="slow", link_gb_s=LINK_GB_S,
        prompt_tokens=case.prompt_tokens, output_tokens=case.output_tokens, ttft_slo_ms=1e3 * case.ttft_s,
        tpot_slo_ms=1e3 * case.tpot_s, attainment=0.9, prompt_cv=spread, output_cv=spread,
    )  # fmt: skip


@lru_cache(maxsize=2)  # it depends on nothing that a planner moves
def compared(spread: float = 0.0) -> tuple[Compared, ...]:
    """Return every row of DistServe's table 3 beside our own choice, for lengths of that coefficient of variation."""
    return tuple(compare(case, spread) for case in CASES)


def compare(case: Case, spread: float = 0.0) -> Compared:
    """Return one row beside our own choice."""
    fitted = case.model in FITS
    times: StepTimes = FittedTimes(case.model) if fitted else ModelledTimes()
    found = search(inputs_of(case, spread), times)
    (ours, *_) = joint_choices(NODE_GPUS, found.allowed("prefill"), found.allowed("decode"), one_of_each=True)
    theirs, several = _their_unit(case, found), found.units[0]
    share = theirs.goodput_per_gpu / ours.goodput_per_gpu if theirs else None
    return Compared(
        model=case.model, workload=case.workload, step_times="released profile" if fitted else "step-time model, course set",
        theirs=f"TP {case.prefill[0]} PP {case.prefill[1]}; TP {case.decode[0]} PP {case.decode[1]}",
        theirs_per_gpu=theirs.goodput_per_gpu if theirs else None,
        ours=f"{ours.prefill.name}; {ours.decode.name}", ours_per_gpu=ours.goodput_per_gpu, share=share,
        several=f"{several.prefill_instances} × {several.prefill.name}; {several.decode_instances} × {several.decode.name}",
        several_per_gpu=several.goodput_per_gpu,
        why=_why(case, found, theirs, ours),
    )  # fmt: skip


def _their_unit(case: Case, found: Search) -> Unit | None:
    def those(side: str, degrees: tuple[int, int]) -> list[Candidate]:
        return [
            each for each in found.candidates if each.side == side and (each.tp, each.pp) == degrees and each.allowed
        ]

    units = [
        unit
        for one in those("prefill", case.prefill)
        for other in those("decode", case.decode)
        if one.nodes == other.nodes and (unit := best_unit(NODE_GPUS, one, other, 1))
    ]
    return max(units, key=lambda unit: unit.goodput_per_gpu, default=None)


def _why(case: Case, found: Search, theirs: Unit | None, ours: Unit) -> str:
    """Return in a sentence or two, from the figures, what the difference comes from."""
    if theirs is None:
        refused = [
            each
            for each in found.candidates
            if not each.allowed
            and (
                (each.side == "prefill" and (each.tp, each.pp) == case.prefill)
                or (each.side == "decode" and (each.tp, each.pp) == case.decode)
            )
        ]
        return (
            f"Theirs is refused: {refused[0].side} {refused[0].name}: {refused[0].reasons[0]}."
            if refused
            else "Theirs shares no node."
        )
    if (theirs.prefill.name, theirs.decode.name) == (ours.prefill.name, ours.decode.name):
        return "The same."
    said = []
    for one, other in ((theirs.prefill, ours.prefill), (theirs.decode, ours.decode)):
        if one.name != other.name:
            said.append(
                f"{one.side}: {one.name} carries {one.goodput:.3g} requests/s on {one.gpus} and {other.name} {other.goodput:.3g} on {other.gpus}"
            )
    bound = "prefill" if (ours.prefill.goodput or 0) < (ours.decode.goodput or 0) else "decode"
    return f"{'; '.join(said)}. Our unit is bound by its {bound} side."
