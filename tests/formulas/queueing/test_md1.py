import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from formulas.closed_form import DomainError
from formulas.queueing import md1
from formulas.queueing.md1_wait import _erlang_cdf, _pole_survival

RELATIVE = 1e-9  # the project's target against exact references
LOADS = np.array([0.001, 0.01, 0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 0.9999])
LEVELS = np.array([0.5, 0.9, 0.95, 0.99, 0.999, 0.9999])
loads = st.one_of(st.floats(0.001, 0.9999), st.floats(-9.2, -0.1).map(lambda x: 1 - float(np.exp(x))))
levels = st.one_of(st.sampled_from([float(p) for p in LEVELS]), st.floats(0.01, 0.9999))


def exact_cdf(t, rho):
    """Erlang's sum with as many digits as its cancellation costs, for the binary numbers given."""
    t, rho = mpmath.mpf(t), mpmath.mpf(rho)
    if t < 0:
        return mpmath.mpf(0)
    terms = (mpmath.exp(rho * (t - k)) * (-rho * (t - k)) ** k / mpmath.factorial(k) for k in range(int(t) + 1))
    return (1 - rho) * mpmath.fsum(terms)


@pytest.mark.parametrize("load", ["0.1", "0.5", "0.8", "0.9", "0.99"])
def test_reference_values(md1_reference, load):
    expected, rho = md1_reference[load], float(load)
    for level, wait in expected["wait_quantiles"].items():
        assert md1.wait_quantile(float(level), rho) == pytest.approx(float(wait), rel=RELATIVE, abs=1e-300)
    one = {"rate": rho, "service_time": 1.0}
    assert md1.MEAN_WAIT(**one) == pytest.approx(float(expected["mean_wait"]), rel=RELATIVE)
    assert md1.MEAN_TTFT(**one) == pytest.approx(float(expected["mean_ttft"]), rel=RELATIVE)
    assert md1.WAIT_VARIANCE(**one) == pytest.approx(float(expected["var_wait"]), rel=RELATIVE)
    eta = md1.DECAY_RATE(utilization=rho, service_time=1.0)
    assert eta == pytest.approx(float(expected["decay_rate_eta"]), rel=RELATIVE)
    assert md1.TAIL_CONSTANT(utilization=rho) == pytest.approx(float(expected["tail_constant_C"]), rel=RELATIVE)
    assert md1.wait_survival(0, rho) == pytest.approx(float(expected["p_wait_positive"]), rel=RELATIVE)


def test_reference_covers_every_load(md1_reference):
    assert sorted(md1_reference) == ["0.1", "0.5", "0.8", "0.9", "0.99"]


@given(loads, levels)
@settings(max_examples=200, deadline=None)
def test_quantile_is_exact_at_any_load_and_level(rho, level):
    wait = md1.wait_quantile(level, rho)
    assume(0 < wait < 400)
    with mpmath.workdps(60 + int(wait)):
        cdf = exact_cdf(wait, rho)
        density = rho * (cdf - exact_cdf(wait - 1, rho))
        error = (cdf - mpmath.mpf(level)) / (density * wait)
        survival_error = md1.wait_survival(wait, rho) / (1 - cdf) - 1
    # near the atom the given float of the level itself is uncertain by 1e-16
    slack = RELATIVE + 4e-16 / (float(density) * wait)
    assert abs(error) < slack
    assert abs(survival_error) < RELATIVE


@pytest.mark.parametrize("t", [0.0, 0.5, 1.0, 1.5, 2.0, 4.0, 4.99, 5.0, 5.01, 6.5, 12.0, 19.9, 20.1])
def test_survival_is_exact_in_its_tail(t):
    for rho in LOADS:
        with mpmath.workdps(120):
            exact = 1 - exact_cdf(t, float(rho))
        got = md1.wait_survival(t, float(rho))
        assert abs(got - exact) < 1e-12
        if exact > 1e-6:
            assert abs(got / exact - 1) < RELATIVE
        assert md1.wait_cdf(t, float(rho)) == pytest.approx(1 - got, abs=3e-16)


def test_far_tail_has_the_real_pole_alone():
    with mpmath.workdps(260):
        for rho in (0.5, 0.9, 0.99):
            exact = 1 - exact_cdf(120.0, rho)
            assert abs(md1.wait_survival(120.0, rho) / exact - 1) < 1e-11


def test_the_two_methods_meet():
    t = np.linspace(4.5, 5.0, 11)[:, None]
    rho = np.linspace(0.5, 0.99, 20)
    tt, rr = (x.ravel() for x in np.broadcast_arrays(t, rho))
    survival, density = _pole_survival(tt, rr)
    np.testing.assert_allclose(survival, 1 - _erlang_cdf(tt, rr), rtol=1e-9)
    expected = rr * (_erlang_cdf(tt, rr) - _erlang_cdf(tt - 1, rr))
    np.testing.assert_allclose(density, expected, rtol=1e-7)


def test_quantiles_do_not_jump_where_the_method_changes():
    rho = 0.8
    switch = md1.wait_cdf(5.0, rho)
    around = md1.wait_quantile(switch + np.array([-1e-9, 0.0, 1e-9]), rho)
    np.testing.assert_allclose(around, 5.0, atol=1e-7)
    assert np.all(np.diff(around) > 0)


def test_round_trip():
    quantile = md1.wait_quantile(LEVELS[:, None], LOADS)
    cdf = md1.wait_cdf(quantile, LOADS)
    waits = quantile > 0
    np.testing.assert_allclose(1 - cdf[waits], np.broadcast_to(1 - LEVELS[:, None], cdf.shape)[waits], rtol=RELATIVE)
    np.testing.assert_array_less(np.broadcast_to(LEVELS[:, None] - 2e-15, cdf.shape)[~waits], cdf[~waits])


def test_percentiles_are_ordered_and_grow_with_load():
    rho = np.linspace(0.001, 0.9999, 400)
    quantile = md1.wait_quantile(LEVELS[:, None], rho)
    assert np.all(np.diff(quantile, axis=0) >= 0)
    assert np.all(np.diff(quantile, axis=1) >= 0)


@pytest.mark.parametrize(("level", "load"), [(0.9, 0.1), (0.7, 0.3), (0.3, 0.7), (0.8, 0.2), (0.01, 0.99)])
def test_at_the_atom_nobody_waits(level, load):
    assert md1.wait_quantile(level, load) == 0.0
    assert md1.wait_quantile(level + 1e-6, load) > 0.0
    assert md1.wait_cdf(0.0, load) == pytest.approx(level, abs=1e-15)


def test_density_jumps_at_one_service_time_only():
    rho = 0.8
    jump = md1.wait_density(1 - 1e-9, rho) - md1.wait_density(1 + 1e-9, rho)
    assert jump == pytest.approx(rho * (1 - rho), rel=1e-6)
    assert md1.wait_density(2 - 1e-9, rho) == pytest.approx(md1.wait_density(2 + 1e-9, rho), rel=1e-6)


def test_density_integrates_to_the_distribution():
    t = (np.arange(400_000) + 0.5) / 10_000
    mass = md1.wait_density(t, 0.6).sum() / 10_000
    assert mass == pytest.approx(md1.wait_cdf(40.0, 0.6) - 0.4, rel=1e-7)


def test_mean_is_the_integral_of_the_survival():
    t = (np.arange(200_000) + 0.5) / 2_000
    assert md1.wait_survival(t, 0.7).sum() / 2_000 == pytest.approx(0.7 / 0.6, rel=1e-6)


def test_heavy_traffic_limit():
    rho = np.array([0.99, 0.999, 0.9999])
    scaled = (1 - rho) * md1.wait_quantile(0.99, rho)
    limit = np.log(100) / 2
    assert np.all(np.abs(np.diff(scaled - limit)) > 0)
    assert scaled[-1] == pytest.approx(limit, rel=1e-4)


def test_finite_run_figure_of_the_course(course):
    figure = course["finite_run"]
    assert 1 + md1.wait_quantile(0.99, figure["utilization"]) == pytest.approx(figure["p99_ttft"], rel=1e-7)
    assert 1 + md1.wait_quantile(0.90, figure["utilization"]) == pytest.approx(figure["p90_ttft"], rel=1e-7)


def test_low_load_quantile_is_the_exact_one():
    for level, load in ((0.95, 0.1), (0.99, 0.1), (0.9, 0.3)):
        closed = md1.LOW_LOAD_QUANTILE(level=level, utilization=load, service_time=2.0)
        assert closed == pytest.approx(2 * md1.wait_quantile(level, load), rel=1e-13)
    with pytest.raises(DomainError, match="longer than one service time"):
        md1.LOW_LOAD_QUANTILE(level=0.99, utilization=0.9, service_time=1.0)
    with pytest.raises(DomainError, match="is zero"):
        md1.LOW_LOAD_QUANTILE(level=0.05, utilization=0.9, service_time=1.0)


def test_one_term_quantile_is_as_good_as_its_source_says():
    for load, error in ((0.3, 0.0095), (0.5, 2e-4), (0.7, 3e-7), (0.9, 1e-10)):
        one_term = md1.TAIL_QUANTILE(level=0.99, utilization=load, service_time=1.0)
        assert abs(one_term / md1.wait_quantile(0.99, load) - 1) < error


def test_largest_utilization_for_a_percentile():
    assert md1.max_utilization(4, 0.99) == pytest.approx(0.56078, abs=5e-6)
    limits = np.array([0.0, 0.1, 1.0, 4.0, 30.0, 5000.0])
    rho = md1.max_utilization(limits, LEVELS[:, None])
    assert rho.shape == (6, 6)
    survival = md1.wait_survival(np.broadcast_to(limits, rho.shape), rho)
    np.testing.assert_allclose(survival, np.broadcast_to(1 - LEVELS[:, None], rho.shape), rtol=1e-8)
    np.testing.assert_allclose(rho[:, 0], 1 - LEVELS, rtol=1e-12)


def test_largest_utilization_for_a_mean():
    assert md1.max_utilization_mean(md1.MEAN_WAIT(rate=0.7, service_time=1)) == pytest.approx(0.7, rel=1e-14)
    assert md1.max_utilization_mean(0.0) == 0.0


def test_idle_server():
    assert md1.wait_quantile(0.99, 0.0) == 0.0
    assert md1.wait_survival(0.0, 0.0) == 0.0


@pytest.mark.parametrize("function", [md1.wait_quantile, md1.wait_survival, md1.wait_cdf, md1.wait_density])
def test_outside_the_domain(function):
    with pytest.raises(DomainError, match="no steady state"):
        function(0.5, 1.0)
    with pytest.raises(DomainError, match="cannot be negative"):
        function(0.5, -0.1)
    values = function(0.5, np.array([-0.1, 0.5, 1.0, 2.0]))
    np.testing.assert_array_equal(np.isnan(values), [True, False, True, True])


def test_level_outside_zero_and_one():
    for level in (0.0, 1.0, 1.5):
        with pytest.raises(DomainError, match="lies between"):
            md1.wait_quantile(level, 0.5)
        with pytest.raises(DomainError, match="lies between"):
            md1.max_utilization(1.0, level)
    with pytest.raises(DomainError, match="cannot be negative"):
        md1.max_utilization(-1.0, 0.9)
    assert np.isnan(md1.wait_quantile(np.array([1.0]), 0.5))[0]
    assert np.isnan(md1.max_utilization(np.array([-1.0]), 0.5))[0]


def test_numbers_in_numbers_out():
    assert type(md1.wait_quantile(0.99, 0.9)) is float
    assert type(md1.wait_survival(3, np.float64(0.9))) is float
    assert md1.wait_quantile(0.99, np.array([0.9])).shape == (1,)
    assert md1.wait_quantile(np.array([[0.9], [0.99]]), np.array([0.1, 0.2, 0.3])).shape == (2, 3)


def test_every_limit_has_a_largest_utilization():
    limits = np.concatenate([np.linspace(0, 40, 4001), np.geomspace(1e-6, 1e6, 400)])
    for level in (0.01, 0.5, 0.9, 0.99, 0.999, 0.9999):
        largest = md1.max_utilization(limits, level)
        assert np.all((largest > 0) & (largest < 1))
        assert np.all(np.diff(largest[:4001]) >= 0)
