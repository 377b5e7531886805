r"""M/G/1: the wait behind a Poisson stream of prompts, in the moments of their service time.

A prompt that arrives waits for the work it finds: the prompts queued before it, and the rest of the one in
service. Pollaczek and Khinchine's formula says how much that is on average, whatever the service time's
distribution; the higher moments follow from the transform of the same formula.
"""

import sympy as sp

from formulas.closed_form import ClosedForm, Condition, Step, equation, less, tidy, variable

RATE = variable("rate", "R", "1/s", "arrival rate of prompts")
MEAN_SERVICE = variable("mean_service", "E[S]", "s", "mean service time")
SECOND_MOMENT = variable("service_second_moment", r"E[S^{2}]", "s^2", "second moment of the service time")
THIRD_MOMENT = variable("service_third_moment", r"E[S^{3}]", "s^3", "third moment of the service time")
RHO = variable("utilization", r"\rho", "", "utilization: share of the time that the server is busy")
MEAN = variable("mean_wait", "E[W]", "s", "mean wait in the queue")
SECOND = variable("wait_second_moment", r"E[W^{2}]", "s^2", "second moment of the wait")
QUEUED = variable("queued", "E[Q]", "", "mean number of prompts in the queue")

UNSTABLE = "Unstable: prompts arrive at least as fast as they are served, so there is no steady state."

_R, _S1, _S2, _S3 = (v.symbol for v in (RATE, MEAN_SERVICE, SECOND_MOMENT, THIRD_MOMENT))
_STABLE = (Condition(less(_R * _S1, 1), UNSTABLE),)
_MEAN_WAIT = _R * _S2 / 2 / (1 - _R * _S1)


def _mean_wait_steps() -> tuple[Step, ...]:
    wait, queued = MEAN.symbol, QUEUED.symbol
    found = equation(wait, queued * _S1 + _R * _S2 / 2)
    littled = found.subs(queued, _R * wait)
    solved = tidy(sp.solve(littled, wait)[0])
    return (
        Step(
            "A Poisson arrival sees the time average: the queue, and with probability R E[S] a prompt "
            "in service, whose mean remaining time is E[S²] / (2 E[S]).",
            found,
        ),
        Step("Little's law: the mean number queued is the rate times the mean wait.", littled),
        Step("Solved for the mean wait.", equation(wait, solved)),
    )


def _second_moment_steps() -> tuple[Step, ...]:
    s = sp.Symbol("s")
    service = 1 - s * _S1 + s**2 * _S2 / 2 - s**3 * _S3 / 6
    transform = (1 - _R * _S1) / (1 - _R * sp.cancel((1 - service) / s))
    second = tidy(sp.factor(sp.diff(transform, s, 2).subs(s, 0)))
    return (
        Step(
            "The transform of the wait, the service time's taken as far as its third moment.",
            transform,
        ),
        Step("E[W²] is its second derivative at s = 0.", equation(SECOND.symbol, second)),
    )


UTILIZATION = ClosedForm("utilization", RHO, _R * _S1, (RATE, MEAN_SERVICE), "Little's law, applied to the server")

MEAN_WAIT = ClosedForm(
    "mean wait of M/G/1",
    MEAN,
    _MEAN_WAIT,
    (RATE, MEAN_SERVICE, SECOND_MOMENT),
    "Pollaczek 1930, Khinchine 1932; Kleinrock, Queueing Systems I (1975), section 5.6",
    _STABLE,
    _mean_wait_steps,
    (QUEUED,),
)

WAIT_SECOND_MOMENT = ClosedForm(
    "second moment of the wait of M/G/1",
    SECOND,
    2 * _MEAN_WAIT**2 + _R * _S3 / 3 / (1 - _R * _S1),
    (RATE, MEAN_SERVICE, SECOND_MOMENT, THIRD_MOMENT),
    "Takács 1962, from the Pollaczek-Khinchine transform",
    _STABLE,
    _second_moment_steps,
)

WAIT_VARIANCE = ClosedForm(
    "variance of the wait of M/G/1",
    variable("wait_variance", r"\mathrm{Var}[W]", "s^2", "variance of the wait"),
    _MEAN_WAIT**2 + _R * _S3 / 3 / (1 - _R * _S1),
    (RATE, MEAN_SERVICE, SECOND_MOMENT, THIRD_MOMENT),
    "Takács 1962, from the Pollaczek-Khinchine transform",
    _STABLE,
    _second_moment_steps,
    (SECOND,),
)
