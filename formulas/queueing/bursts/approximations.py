r"""One server behind arrivals of any regularity, by two moments: a bound and two approximations of the mean wait.

They know the gaps between arrivals and the service times by their squared coefficients of variation alone. For Poisson
arrivals Allen and Cunneen's is Pollaczek and Khinchine's, which is exact. Elsewhere the true mean also depends on
what two moments do not say. Errors against exact means, gamma arrivals and equal prompts
(:mod:`formulas.queueing.bursts.gamma_arrivals`), at utilizations 0.5, 0.8, 0.9:

=====================  ========================  =======================  ====================
squared variation      Kingman's bound           Allen-Cunneen            Kraemer-Langenbach-Belz
=====================  ========================  =======================  ====================
1/8 (round robin, 8)   +2582 %, +157 %, +54 %    +570 %, +65 %, +25 %     -89 %, -41 %, -21 %
1/2                    +466 %, +73 %, +29 %      +41 %, +11 %, +5 %       +1 %, +2 %, +1 %
1 (Poisson)            +300 %, +56 %, +23 %      exact                    exact
2                      +225 %, +47 %, +20 %      -19 %, -6 %, -3 %        -37 %, -15 %, -8 %
4                      +189 %, +41 %, +18 %      -28 %, -10 %, -5 %       -50 %, -22 %, -12 %
9                      +168 %, +38 %, +16 %      -33 %, -12 %, -6 %       -57 %, -26 %, -14 %
=====================  ========================  =======================  ====================

With log-normal prompts of variation 1 (:mod:`formulas.queueing.bursts.gamma_prompts`):

=====================  ========================  =======================  ====================
squared variation      Kingman's bound           Allen-Cunneen            Kraemer-Langenbach-Belz
=====================  ========================  =======================  ====================
1/8 (round robin, 8)   +100 %, +19 %, +8 %       +50 %, +12 %, +5 %       -5 %, 0 %, 0 %
1/2                    +138 %, +25 %, +10 %      +19 %, +5 %, +2 %        +6 %, +2 %, +1 %
2                      +154 %, +31 %, +13 %      -15 %, -5 %, -2 %        -22 %, -8 %, -4 %
4                      +154 %, +33 %, +14 %      -25 %, -9 %, -4 %        -38 %, -15 %, -8 %
9                      +153 %, +34 %, +15 %      -32 %, -11 %, -5 %       -50 %, -22 %, -11 %
=====================  ========================  =======================  ====================

So Kraemer and Langenbach-Belz's correction serves regular arrivals of variable prompts, and does harm for bursty ones, where
both say too little. All are for arrivals without memory of each other: a rate that switches between
calm and busy spells (:mod:`formulas.queueing.bursts.switching`) is not described by the variation of its gaps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp

from formulas.closed_form import ClosedForm, Condition, Step, at_most, equation, less, variable
from formulas.queueing import pollaczek_khinchine as pk
from formulas.queueing.mg1 import SPREAD

ARRIVAL_SCV = variable(
    "arrival_scv", "c_{a}^{2}", "", "squared coefficient of variation of the gaps between arrivals", nonnegative=True
)

_RHO, _CA, _CS, _S = pk.RHO.symbol, ARRIVAL_SCV.symbol, SPREAD.symbol, pk.MEAN_SERVICE.symbol
_ARGUMENTS = (pk.RHO, ARRIVAL_SCV, SPREAD, pk.MEAN_SERVICE)
_STABLE = Condition(less(_RHO, 1), pk.UNSTABLE)
_HEAVY = _RHO * (_CA + _CS) * _S / 2 / (1 - _RHO)


def _kingman_steps() -> tuple[Step, ...]:
    wait, rate = pk.MEAN.symbol, pk.RATE.symbol
    gap_variance, service_variance = _CA / rate**2, _CS * _S**2
    return (
        Step(
            "In the steady state the next wait is W + S - A, or zero, whichever is longer; with the idle time I that is "
            "cut off, squares and means leave",
            equation(wait, (gap_variance + service_variance) / 2 / (1 / rate - _S) - sp.Symbol("V_I") / 2 / (1 / rate - _S)),
        ),
        Step("in which the idle time's variance counts as a loss, and is left out for the bound.",
             sp.LessThan(wait, rate * (gap_variance + service_variance) / 2 / (1 - rate * _S), evaluate=False)),
        Step("With ρ = R E[S].", sp.LessThan(wait, KINGMAN_BOUND.expression, evaluate=False)),
    )  # fmt: skip


KINGMAN_BOUND = ClosedForm(
    "Kingman's bound of the mean wait",
    variable("mean_wait_bound", r"E[W]_{\max}", "s", "upper bound of the mean wait"),
    (_CA / _RHO + _RHO * _CS) * _S / 2 / (1 - _RHO),
    _ARGUMENTS,
    "Kingman, Biometrika 49 (1962) 315; an upper bound, never an estimate",
    (_STABLE,),
    _kingman_steps,
    (pk.MEAN, pk.RATE, variable("V_I", r"V_{I}", "s^2", "variance of the idle time cut off in a step")),
)

ALLEN_CUNNEEN = ClosedForm(
    "mean wait by Allen and Cunneen",
    pk.MEAN,
    _HEAVY,
    _ARGUMENTS,
    "Allen, Probability, Statistics and Queueing Theory (1978), for one server; exact for Poisson arrivals and in heavy traffic",
    (_STABLE,),
)

KLB_REGULAR = ClosedForm(
    "mean wait by Kraemer and Langenbach-Belz, regular arrivals",
    pk.MEAN,
    _HEAVY * sp.exp(-2 * (1 - _RHO) * (1 - _CA) ** 2 / (3 * _RHO * (_CA + _CS))),
    _ARGUMENTS,
    "Kraemer, Langenbach-Belz, Proc. 8th International Teletraffic Congress (1976) 235",
    (_STABLE, Condition(at_most(_CA, 1), "These arrivals are more irregular than Poisson's: the other form holds.")),
)

KLB_BURSTY = ClosedForm(
    "mean wait by Kraemer and Langenbach-Belz, bursty arrivals",
    pk.MEAN,
    _HEAVY * sp.exp(-(1 - _RHO) * (_CA - 1) / (_CA + 4 * _CS)),
    _ARGUMENTS,
    "Kraemer, Langenbach-Belz, Proc. 8th International Teletraffic Congress (1976) 235",
    (_STABLE, Condition(at_most(1, _CA), "These arrivals are more regular than Poisson's: the other form holds.")),
)


def klb_mean_wait(utilization: Any, arrival_scv: Any, service_scv: Any, mean_service: Any) -> Any:
    """Mean wait by Kraemer and Langenbach-Belz, for arrivals of any regularity.

    Parameters
    ----------
    utilization
        Utilization, in (0, 1) [].
    arrival_scv, service_scv
        Squared coefficients of variation of the gaps and of the service times, not both zero [].
    mean_service
        Mean service time [s].

    Returns
    -------
    float or ndarray
        Mean wait [s].

    Examples
    --------
    >>> klb_mean_wait(0.8, [0.5, 1.0, 2.0], 1.0, 1.0)
    array([2.91781343, 4.        , 5.8032966 ])
    """
    given = {"utilization": utilization, "service_scv": service_scv, "mean_service": mean_service}
    if not any(np.ndim(x) for x in (arrival_scv, *given.values())):
        return (KLB_REGULAR if arrival_scv <= 1 else KLB_BURSTY)(arrival_scv=arrival_scv, **given)
    regular, bursty = (form(arrival_scv=arrival_scv, **given) for form in (KLB_REGULAR, KLB_BURSTY))
    return np.where(np.asarray(arrival_scv) <= 1, regular, bursty)
