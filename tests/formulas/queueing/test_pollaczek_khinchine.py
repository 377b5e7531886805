import sympy as sp

from formulas.queueing import md1
from formulas.queueing import pollaczek_khinchine as pk

MOMENTS = {pk.MEAN_SERVICE.symbol: md1.SERVICE.symbol}
MOMENTS |= {pk.SECOND_MOMENT.symbol: md1.SERVICE.symbol**2, pk.THIRD_MOMENT.symbol: md1.SERVICE.symbol**3}


def equal(a, b):
    return sp.simplify(a - b) == 0


def test_moments_are_the_derivatives_of_the_transform():
    s, rate = sp.Symbol("s"), pk.RATE.symbol
    m1, m2, m3 = (v.symbol for v in (pk.MEAN_SERVICE, pk.SECOND_MOMENT, pk.THIRD_MOMENT))
    residual = m1 - s * m2 / 2 + s**2 * m3 / 6  # (1 - E[exp(-sS)]) / s
    transform = (1 - rate * m1) / (1 - rate * residual)
    assert equal(-sp.diff(transform, s).subs(s, 0), pk.MEAN_WAIT.expression)
    assert equal(sp.diff(transform, s, 2).subs(s, 0), pk.WAIT_SECOND_MOMENT.expression)


def test_variance_is_second_moment_less_squared_mean():
    assert equal(pk.WAIT_VARIANCE.expression, pk.WAIT_SECOND_MOMENT.expression - pk.MEAN_WAIT.expression**2)


def test_exponential_service_gives_mm1():
    rate, mean = pk.RATE.symbol, pk.MEAN_SERVICE.symbol
    exponential = {pk.SECOND_MOMENT.symbol: 2 * mean**2, pk.THIRD_MOMENT.symbol: 6 * mean**3}
    rho = rate * mean
    assert equal(pk.MEAN_WAIT.expression.subs(exponential), rho * mean / (1 - rho))
    variance = rho * (2 - rho) * mean**2 / (1 - rho) ** 2
    assert equal(pk.WAIT_VARIANCE.expression.subs(exponential), variance)


def test_constant_service_gives_md1():
    for name in ("MEAN_WAIT", "WAIT_VARIANCE", "WAIT_SECOND_MOMENT"):
        general, special = getattr(pk, name), getattr(md1, name)
        assert equal(general.expression.subs(MOMENTS), special.expression)


def test_derivations_end_at_the_formula():
    for form in (pk.MEAN_WAIT, pk.WAIT_SECOND_MOMENT, md1.MEAN_WAIT, md1.MEAN_TTFT, md1.WAIT_VARIANCE):
        assert equal(form.steps[-1].equation.rhs, form.expression)


def test_distserve_equation_1():
    rate, service = md1.RATE.symbol, md1.SERVICE.symbol
    stated = service + rate * service**2 / (2 * (1 - rate * service))
    assert equal(md1.MEAN_TTFT.expression, stated)


def test_course_exercise(course):
    given = {"rate": course["ttft"]["rate"], "service_time": course["ttft"]["service_s"]}
    assert md1.UTILIZATION(**given) == course["ttft"]["utilization"]
    assert abs(md1.MEAN_WAIT(**given) / course["ttft"]["mean_wait_s"] - 1) < 1e-12
    assert abs(md1.MEAN_TTFT(**given) / course["ttft"]["mean_ttft_s"] - 1) < 1e-12
