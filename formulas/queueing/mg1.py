r"""M/G/1: prompts of different lengths on one server, the wait and the time to first token exactly.

Means and variances are Pollaczek and Khinchine's in the moments of the service law; percentiles are computed from
their transform in :mod:`formulas.queueing.mg1_distribution`, and its functions are offered here too. The time to first token is
the wait plus the prompt's own service, which is independent of it: variances add, percentiles do not.

Times are in seconds. Outside the domain an array has NaN, a number a :class:`~formulas.closed_form.DomainError`.
"""

from __future__ import annotations

from typing import Any

import sympy as sp

from formulas.closed_form import ClosedForm, Condition, Step, equation, less, tidy, variable
from formulas.queueing import pollaczek_khinchine as pk
from formulas.queueing.mg1_distribution import (
    delay_quantile,
    delay_survival,
    max_rate,
    ttft_quantile,
    ttft_survival,
    wait_quantile,
    wait_survival,
)
from formulas.queueing.service.law import ServiceLaw

__all__ = [
    "MEAN_TTFT", "MEAN_WAIT_BY_SPREAD", "delay_quantile", "delay_survival", "max_rate", "mean_ttft", "mean_wait", "ttft_quantile", "ttft_survival",
    "ttft_variance", "wait_quantile", "wait_survival", "wait_variance",
]  # fmt: skip

SPREAD = variable(
    "service_scv", "c_{s}^{2}", "", "squared coefficient of variation of the service time", nonnegative=True
)
TTFT = variable("mean_ttft", r"E[\mathrm{TTFT}]", "s", "mean time to first token")

_R, _S1, _S2, _RHO, _C2 = (v.symbol for v in (pk.RATE, pk.MEAN_SERVICE, pk.SECOND_MOMENT, pk.RHO, SPREAD))


def _by_spread_steps() -> tuple[Step, ...]:
    moment = equation(_S2, (1 + _C2) * _S1**2)
    general = pk.MEAN_WAIT.expression.subs(_S2, moment.rhs).subs(_R, _RHO / _S1)
    return (
        *pk.MEAN_WAIT.steps,
        Step("The second moment, by the squared coefficient of variation.", moment),
        Step("Put in, with ρ = R E[S].", equation(pk.MEAN.symbol, tidy(sp.simplify(general)))),
    )


def _ttft_steps() -> tuple[Step, ...]:
    return (
        *pk.MEAN_WAIT.steps,
        Step(
            "The first token comes after the wait and the prompt's own service.",
            equation(TTFT.symbol, MEAN_TTFT.expression),
        ),
    )


MEAN_WAIT_BY_SPREAD = ClosedForm(
    "mean wait of M/G/1, by the spread of the service time",
    pk.MEAN,
    _RHO * (1 + _C2) * _S1 / 2 / (1 - _RHO),
    (pk.RHO, SPREAD, pk.MEAN_SERVICE),
    "Pollaczek 1930, Khinchine 1932; Kleinrock, Queueing Systems I (1975), section 5.6",
    (Condition(less(_RHO, 1), pk.UNSTABLE),),
    _by_spread_steps,
    (pk.QUEUED, pk.RATE, pk.SECOND_MOMENT),
)

MEAN_TTFT = ClosedForm(
    "mean time to first token of M/G/1",
    TTFT,
    _S1 + pk.MEAN_WAIT.expression,
    pk.MEAN_WAIT.arguments,
    "Pollaczek-Khinchine, and the prompt's own service",
    pk.MEAN_WAIT.domain,
    _ttft_steps,
    (pk.QUEUED, pk.MEAN),
)


def mean_wait(rate: Any, law: ServiceLaw) -> Any:
    """Mean wait in the queue.

    Parameters
    ----------
    rate
        Prompts per second [1/s].
    law
        Distribution of the service time.

    Returns
    -------
    float or ndarray
        Mean wait [s].

    Examples
    --------
    >>> from formulas.queueing.service import LognormalLengths, service_law
    >>> law = service_law(LognormalLengths(1000.0, 2.0), lambda length: length / 1000)
    >>> mean_wait(0.8, law)
    10.0
    """
    return pk.MEAN_WAIT(rate=rate, mean_service=law.mean, service_second_moment=law.second_moment)


def wait_variance(rate: Any, law: ServiceLaw) -> Any:
    """Variance of the wait [s^2]; the arguments are those of :func:`mean_wait`."""
    moments = {"mean_service": law.mean, "service_second_moment": law.second_moment}
    return pk.WAIT_VARIANCE(rate=rate, service_third_moment=law.third_moment, **moments)


def mean_ttft(rate: Any, law: ServiceLaw) -> Any:
    """Mean time to first token [s]; the arguments are those of :func:`mean_wait`."""
    return MEAN_TTFT(rate=rate, mean_service=law.mean, service_second_moment=law.second_moment)


def ttft_variance(rate: Any, law: ServiceLaw) -> Any:
    """Variance of the time to first token [s^2]: the wait's and the service's."""
    return wait_variance(rate, law) + law.variance
