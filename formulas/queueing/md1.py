r"""M/D/1: prompts of one length on one server, the time to first token in closed form and exactly.

The formulas are Pollaczek and Khinchine's with the moments of a constant service time put in; the
distribution is computed exactly in :mod:`formulas.queueing.md1_wait`, in units of the service time, and
its functions are offered here too. One-term approximations stand beside them under their own names.

TTFT here is the wait plus the prompt's own service. Percentiles of TTFT are percentiles of the wait plus
the service time, because the service time is constant.
"""

from functools import partial
from typing import Any

import sympy as sp

from formulas.closed_form import ClosedForm, Condition, Step, at_most, equation, less, variable
from formulas.queueing import pollaczek_khinchine as pk
from formulas.queueing.md1_wait import max_utilization, wait_cdf, wait_density, wait_quantile, wait_survival
from formulas.queueing.roots import ConjugateUtilization

__all__ = [
    "DECAY_RATE", "LOW_LOAD_QUANTILE", "MAX_RATE_MEAN", "MEAN_TTFT", "MEAN_WAIT", "TAIL_CONSTANT",
    "TAIL_QUANTILE", "UTILIZATION", "WAIT_SECOND_MOMENT", "WAIT_VARIANCE",
    "max_utilization", "max_utilization_mean", "wait_cdf", "wait_density",
    "wait_quantile", "wait_survival",
]  # fmt: skip

RATE, RHO, MEAN = pk.RATE, pk.RHO, pk.MEAN
SERVICE = variable("service_time", "D", "s", "service time of a prompt")
LEVEL = variable("level", "p", "", "share of prompts, 0.99 for P99")
TTFT = variable("mean_ttft", r"E[\mathrm{TTFT}]", "s", "mean time to first token")
DECAY = variable("decay_rate", r"\eta", "1/s", "decay rate of the wait's tail")
TAIL = variable("tail_constant", "C", "", "constant of the wait's tail")
QUANTILE = variable("wait_quantile", "t_{p}", "s", "wait that a share p of the prompts do not exceed")

_R, _D, _RHO, _P = RATE.symbol, SERVICE.symbol, RHO.symbol, LEVEL.symbol
_U = ConjugateUtilization(_RHO)
_log = partial(sp.log, evaluate=False)  # deciding what it could simplify to takes SymPy 16 ms

_MOMENTS = {
    pk.MEAN_SERVICE.symbol: _D,
    pk.SECOND_MOMENT.symbol: _D**2,
    pk.THIRD_MOMENT.symbol: _D**3,
}
_GENERAL = (*pk.MEAN_WAIT.arguments, pk.THIRD_MOMENT, *pk.MEAN_WAIT.mentions, *pk.WAIT_VARIANCE.mentions)
_MENTIONED = (DECAY, TAIL)
_STABLE = (Condition(less(_R * _D, 1), pk.UNSTABLE),)
_STABLE_RHO = Condition(less(_RHO, 1), pk.UNSTABLE)
_SHARE = Condition(less(_P, 1), "A percentile's level lies below 1: the wait has no upper limit.")
_ERLANG = "Erlang 1909; Crommelin 1932"


def _from_general(form: ClosedForm, meaning: str) -> tuple[Step, ...]:
    general = equation(form.result.symbol, form.expression)
    return (
        *form.steps,
        Step(f"{meaning} for any service time (M/G/1).", general),
        Step("A constant service time D has the moments D, D² and D³.", general.subs(_MOMENTS)),
    )


def _mean_ttft_steps() -> tuple[Step, ...]:
    return (
        *MEAN_WAIT.steps,
        Step(
            "The first token comes after the wait and the prompt's own service.",
            equation(TTFT.symbol, MEAN_TTFT.expression),
        ),
    )


def _tail_steps() -> tuple[Step, ...]:
    s, u = sp.symbols("s u", positive=True)
    eta, image = DECAY.symbol, _RHO * sp.exp(-_RHO)
    pole = equation(eta + _RHO - _RHO * sp.exp(eta), 0)
    return (
        Step(
            "With time counted in services, the transform of the wait is",
            (1 - _RHO) * s / (s - _RHO + _RHO * sp.exp(-s)),
        ),
        Step("Its pole nearest to zero, at s = -η, sets the tail.", pole),
        Step("With u = η + ρ this says that u and ρ have the same image.", equation(u * sp.exp(-u), image)),
        Step("So u is the other branch of Lambert's function.", equation(u, -sp.LambertW(-image, -1))),
        Step(
            "The residue at the pole gives the constant in front: P(W > t) ≈ C exp(-η t).",
            equation(TAIL.symbol, (1 - _RHO) / (u - 1)),
        ),
    )


def _tail_quantile_steps() -> tuple[Step, ...]:
    t, c, eta = QUANTILE.symbol, TAIL.symbol, DECAY.symbol
    tail = equation(c * sp.exp(-eta * t), 1 - _P)
    return (*_tail_steps(), Step("The tail is set equal to the share that waits longer, and solved.", tail))


def _low_load_steps() -> tuple[Step, ...]:
    t = QUANTILE.symbol
    cdf = equation((1 - _RHO) * sp.exp(_RHO * t / _D), _P)
    return (
        Step("Erlang's sum has a single term for waits below one service time.", cdf),
        Step("Solved for the wait.", equation(t, LOW_LOAD_QUANTILE.expression)),
    )


UTILIZATION = ClosedForm("utilization", RHO, _R * _D, (RATE, SERVICE), "Little's law, applied to the server")

MEAN_WAIT = ClosedForm(
    "mean wait",
    MEAN,
    pk.MEAN_WAIT.expression.subs(_MOMENTS),
    (RATE, SERVICE),
    "Pollaczek-Khinchine with a constant service time; DistServe (OSDI 2024), section 3.1, equation 1",
    _STABLE,
    lambda: _from_general(pk.MEAN_WAIT, "The mean wait"),
    _GENERAL,
)

MEAN_TTFT = ClosedForm(
    "mean time to first token",
    TTFT,
    _D + MEAN_WAIT.expression,
    (RATE, SERVICE),
    "DistServe (OSDI 2024), section 3.1, equation 1",
    _STABLE,
    _mean_ttft_steps,
    (*_GENERAL, MEAN),
)

WAIT_SECOND_MOMENT = ClosedForm(
    "second moment of the wait",
    pk.SECOND,
    pk.WAIT_SECOND_MOMENT.expression.subs(_MOMENTS),
    (RATE, SERVICE),
    "Takács 1962, with a constant service time",
    _STABLE,
    lambda: _from_general(pk.WAIT_SECOND_MOMENT, "The second moment of the wait"),
    _GENERAL,
)

WAIT_VARIANCE = ClosedForm(
    "variance of the wait",
    pk.WAIT_VARIANCE.result,
    pk.WAIT_VARIANCE.expression.subs(_MOMENTS),
    (RATE, SERVICE),
    "Takács 1962, with a constant service time",
    _STABLE,
    lambda: _from_general(pk.WAIT_VARIANCE, "The variance of the wait"),
    _GENERAL,
)

MAX_RATE_MEAN = ClosedForm(
    "largest rate for a mean wait",
    RATE,
    2 * MEAN.symbol / _D / (_D + 2 * MEAN.symbol),
    (MEAN, SERVICE),
    "The mean wait, solved for the rate",
    (),
    lambda: (*MEAN_WAIT.steps, Step("Solved for the rate.", equation(_R, MEAN_WAIT.solve_for("rate")[0]))),
    _GENERAL,
)

DECAY_RATE = ClosedForm(
    "decay rate of the wait",
    DECAY,
    (_U - _RHO) / _D,
    (RHO, SERVICE),
    _ERLANG + ": the real root of the characteristic equation",
    (_STABLE_RHO,),
    _tail_steps,
    _MENTIONED,
)

TAIL_CONSTANT = ClosedForm(
    "constant of the wait's tail",
    TAIL,
    (1 - _RHO) / (_U - 1),
    (RHO,),
    _ERLANG + ": the residue at that root",
    (_STABLE_RHO,),
    _tail_steps,
    _MENTIONED,
)

TAIL_QUANTILE = ClosedForm(
    "one-term percentile of the wait",
    QUANTILE,
    _D * _log((1 - _RHO) / (_U - 1) / (1 - _P)) / (_U - _RHO),
    (LEVEL, RHO, SERVICE),
    "One term of the expansion over the poles; an approximation: 0.9 % off for P99 at load 0.3, 2e-7 at 0.7",
    (_STABLE_RHO, _SHARE),
    _tail_quantile_steps,
    _MENTIONED,
)

LOW_LOAD_QUANTILE = ClosedForm(
    "percentile of the wait, below one service time",
    QUANTILE,
    _D * _log(_P / (1 - _RHO)) / _RHO,
    (LEVEL, RHO, SERVICE),
    _ERLANG + ": the first term of the finite sum, exact here",
    (
        _STABLE_RHO,
        Condition(at_most(1 - _RHO, _P), "A share 1 - ρ of the prompts do not wait: this percentile is zero."),
        Condition(at_most(_P, (1 - _RHO) * sp.exp(_RHO)), "This percentile is longer than one service time."),
    ),
    _low_load_steps,
)


def max_utilization_mean(mean_wait: Any) -> Any:
    r"""Largest utilization at which the mean wait is at most `mean_wait` service times: :math:`2w/(1+2w)`.

    Parameters
    ----------
    mean_wait
        Mean wait in units of the service time, at least 0 [].

    Examples
    --------
    >>> max_utilization_mean(2.0)
    0.8
    """
    return MAX_RATE_MEAN(mean_wait=mean_wait, service_time=1.0)
