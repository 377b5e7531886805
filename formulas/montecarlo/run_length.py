r"""How long a simulation of M/D/1 must be, and what it costs to start it empty.

Successive waits are so alike that near saturation a run must grow like :math:`1/(1-\rho)^2` for the same
relative error, in addition to the relaxation time, which grows alike. Both are closed forms here, from
Poisson's equation of the work found: its solution :math:`g(x) = x^2 / (2(1-\rho))` turns the sum of the
waits into a martingale, whose variance and end give the two answers.
"""

from __future__ import annotations

from math import ceil
from statistics import NormalDist
from typing import Any

import numpy as np
import sympy as sp

from formulas.closed_form import ClosedForm, Condition, Step, equation, less, tidy, variable
from formulas.queueing import md1
from formulas.queueing.pollaczek_khinchine import UNSTABLE

HALF_WIDTH = variable("relative_half_width", "r", "", "half-width of the interval, as a share of the mean")
NORMAL = variable("normal_quantile", "z", "", "normal quantile of the confidence, 1.96 for 95 %")
VARIANCE = variable("asymptotic_variance", r"\sigma^{2}", "s^2", "variance of the mean wait, times customers")
RUN = variable("customers", "n", "", "customers in the run")
DEFICIT = variable("start_deficit", "b", "s", "waiting that a run started empty misses, all customers together")
RELAXATION = variable("relaxation_customers", "m", "", "customers in one relaxation time")
WORK = variable("work", "x", "s", "work found in the system")

_R, _D, _RHO = md1.RATE.symbol, md1.SERVICE.symbol, md1.RHO.symbol
_STABLE = Condition(less(_RHO, 1), UNSTABLE)
_UNITS = {_R: _RHO, _D: 1}


def _potential(x: sp.Expr) -> sp.Expr:
    return x**2 / 2 / (1 - _R * _D)


def _poisson_steps() -> tuple[Step, ...]:
    x = WORK.symbol
    jump = _R * (_potential(x + _D) - _potential(x))
    drift = sp.expand(sp.simplify(-sp.diff(_potential(x), x) + jump + x))
    return (
        Step("A function of the work x found: g(x).", _potential(x)),
        Step("Its mean drift, plus x, is the mean wait: g solves Poisson's equation.", tidy(sp.factor(drift))),
    )


def _variance_steps() -> tuple[Step, ...]:
    x = WORK.symbol
    jump = _R * (_potential(x + _D) - _potential(x))
    innovation = tidy(sp.factor(sp.simplify(x - md1.MEAN_WAIT.expression + jump)))
    return (
        *_poisson_steps(),
        Step("What an arrival that finds x adds to the martingale: x - E[W] + R (g(x + D) - g(x)).", innovation),
        Step(
            "Its mean square over stationary arrivals, E[W²] / (1 - R D)², is the variance per customer.",
            equation(VARIANCE.symbol, ASYMPTOTIC_VARIANCE.expression),
        ),
    )


def _deficit_steps() -> tuple[Step, ...]:
    return (
        *_poisson_steps(),
        Step(
            "The martingale has mean zero, so the waits miss R E[g] of the work that a customer leaves "
            "behind on arrival, W + D, from an empty start to the steady state.",
            equation(DEFICIT.symbol, START_DEFICIT.expression),
        ),
    )


def _run_length_steps() -> tuple[Step, ...]:
    share = sp.factor(sp.simplify((ASYMPTOTIC_VARIANCE.expression / md1.MEAN_WAIT.expression**2).subs(_UNITS)))
    return (
        *ASYMPTOTIC_VARIANCE.steps,
        Step("Over the square of the mean, with ρ = R D.", tidy(share)),
        Step(
            "The half-width z σ / √n is set to r E[W], and solved for n.",
            equation(RUN.symbol, RUN_LENGTH.expression),
        ),
    )


def _relaxation_steps() -> tuple[Step, ...]:
    s = sp.Symbol("s", positive=True)
    exponent = _RHO * (sp.exp(s) - 1) - s
    return (
        Step("While the server is busy, the work, in services, has the exponent", exponent),
        Step("whose least value, at exp(s) = 1/ρ, is the rate at which the start is forgotten.",
             exponent.subs(s, -sp.log(_RHO)).expand()),
        Step("Its inverse is the relaxation time in services; ρ customers arrive in each.",
             equation(RELAXATION.symbol, RELAXATION_CUSTOMERS.expression)),
    )  # fmt: skip


ASYMPTOTIC_VARIANCE = ClosedForm(
    "asymptotic variance of the mean wait",
    VARIANCE,
    md1.WAIT_SECOND_MOMENT.expression / (1 - _R * _D) ** 2,
    (md1.RATE, md1.SERVICE),
    "Poisson's equation of the M/G/1 workload (Asmussen, Applied Probability and Queues, 2003)",
    (Condition(less(_R * _D, 1), UNSTABLE),),
    _variance_steps,
    (WORK, md1.MEAN),
)
"""Variance of the mean of n waits, times n, for long runs [s^2]."""

START_DEFICIT = ClosedForm(
    "waiting missed by an empty start",
    DEFICIT,
    _R * (md1.WAIT_SECOND_MOMENT.expression + 2 * _D * md1.MEAN_WAIT.expression + _D**2) / 2 / (1 - _R * _D),
    (md1.RATE, md1.SERVICE),
    "Poisson's equation of the M/G/1 workload, stopped at an arrival",
    (Condition(less(_R * _D, 1), UNSTABLE),),
    _deficit_steps,
    (WORK, md1.MEAN),
)
"""Sum of E[W] - E[W_n] over all customers n of a run started empty [s]; over n, the bias of its mean."""

RUN_LENGTH = ClosedForm(
    "customers needed for the mean wait",
    RUN,
    2 * NORMAL.symbol**2 * (2 + _RHO) / 3 / HALF_WIDTH.symbol**2 / _RHO / (1 - _RHO) ** 2,
    (md1.RHO, HALF_WIDTH, NORMAL),
    "The asymptotic variance over the square of the mean",
    (_STABLE,),
    _run_length_steps,
    (*ASYMPTOTIC_VARIANCE.arguments, WORK, md1.MEAN, VARIANCE),
)
"""Customers after which the interval for the mean wait has the half-width asked for []."""

RELAXATION_CUSTOMERS = ClosedForm(
    "customers in a relaxation time",
    RELAXATION,
    _RHO / (_RHO - 1 - sp.log(_RHO)),
    (md1.RHO,),
    "Spectral gap of the M/D/1 workload (Cohen, The Single Server Queue, 1982)",
    (_STABLE,),
    _relaxation_steps,
)
"""Customers in which the memory of the start falls by e, or faster []; about 2/(1-rho)^2 near saturation."""


def relaxation_customers(utilization: Any) -> Any:
    r"""Return :data:`RELAXATION_CUSTOMERS` without the cancellation of :math:`\rho - 1 - \ln\rho` near saturation [].

    Parameters
    ----------
    utilization
        In (0, 1) [].

    Examples
    --------
    >>> relaxation_customers(0.9)
    167.89
    >>> relaxation_customers(1 - 1e-12) * 1e-24
    2.0
    """
    rho = np.asarray(utilization, dtype=float)
    idle = 1.0 - rho
    # -idle - log(1 - idle) = idle²/2 + idle³/3 + …
    near = idle**2 * (1 / 2 + idle * (1 / 3 + idle * (1 / 4 + idle * (1 / 5 + idle / 6))))
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = np.where(idle < 1e-3, near, -idle - np.log1p(-idle))
    value = rho / gap
    return value if value.ndim else float(value)


def customers_needed(utilization: Any, relative_half_width: Any, confidence: float = 0.95) -> Any:
    """Return the customers to simulate, after the warm-up, for an interval of the given relative width.

    The interval is that of the mean wait.

    Parameters
    ----------
    utilization
        In (0, 1) [].
    relative_half_width
        Half-width as a share of the mean, 0.01 for 1 % [].
    confidence
        In (0, 1) [].

    Returns
    -------
    int or ndarray
        Customers [].

    Examples
    --------
    >>> customers_needed(0.9, 0.01)
    8252023
    """
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    needed = RUN_LENGTH(utilization=utilization, relative_half_width=relative_half_width, normal_quantile=z)
    return np.ceil(needed) if np.ndim(needed) else ceil(needed)


def warm_up(utilization: float, relaxations: float = 10.0) -> int:
    """Return the customers to leave out of a run started empty: ten relaxation times leave e^-10 of it.

    Parameters
    ----------
    utilization
        In (0, 1) [].
    relaxations
        Relaxation times to wait [].

    Examples
    --------
    >>> warm_up(0.9)
    1679
    """
    return ceil(relaxations * float(relaxation_customers(utilization)))
