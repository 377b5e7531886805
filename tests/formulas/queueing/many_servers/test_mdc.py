import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from formulas.closed_form import DomainError
from formulas.montecarlo.lindley import simulate_waits
from formulas.queueing import md1
from formulas.queueing.many_servers import mdc
from formulas.queueing.many_servers.erlang import MMC_MEAN_WAIT, erlang_c
from formulas.queueing.many_servers.ladder import factorise, whole_services

RELATIVE = 1e-9  # the project's target against exact references
LEVELS = np.array([0.5, 0.9, 0.95, 0.99, 0.999, 0.9999])
SERVERS = [1, 2, 3, 7, 16, 17, 64, 256]
loads = st.floats(0.01, 0.999)
servers = st.sampled_from(SERVERS)


def roots_inside(c, rho):
    """Crommelin's: all roots of z^c = exp(c rho (z - 1)) inside the unit circle, but 1."""
    w = -rho * mpmath.exp(-rho)
    return [-mpmath.lambertw(w * mpmath.expjpi(mpmath.mpf(2 * j) / c)) / rho for j in range(1, c)]


def mean_and_probability(c, rho):
    rho = mpmath.mpf(rho)
    load, inside = c * rho, roots_inside(c, rho)
    in_system = mpmath.re(mpmath.fsum(1 / (1 - z) for z in inside)) + (c - (c - load) ** 2) / (2 * (c - load))
    return (in_system - load) / load, 1 - (c - load) / mpmath.re(mpmath.fprod(1 - z for z in inside))


def test_reference_values(many_servers_reference):
    cases = many_servers_reference["mdc"]
    assert sorted({case["servers"] for case in cases}) == [2, 8, 64]
    assert len(cases) == 18
    for case in cases:
        c, rho = case["servers"], float(case["utilization"])
        assert mdc.mean_wait(c, rho) == pytest.approx(float(case["mean_wait"]), rel=1e-13)
        assert mdc.wait_probability(c, rho) == pytest.approx(float(case["wait_probability"]), rel=1e-13)
        assert c * factorise(c, rho).gap[0] == pytest.approx(float(case["decay_rate"]), rel=1e-12)
        for level, wait in case["wait_quantiles"].items():
            assert mdc.wait_quantile(float(level), c, rho) == pytest.approx(float(wait), rel=RELATIVE, abs=1e-300)


@pytest.mark.parametrize(("c", "rho"), [
    (2, 0.01), (2, 0.9999), (3, 0.3), (16, 0.2), (32, 0.3), (256, 0.5), (256, 0.93), (256, 0.94), (256, 0.999), (1024, 0.99),
])  # fmt: skip
def test_roots_inside_in_many_digits_give_the_same(c, rho):
    with mpmath.workdps(60):
        mean, probability = mean_and_probability(c, rho)
        assert abs(mdc.mean_wait(c, rho) / mean - 1) < 2e-14
        assert abs(mdc.wait_probability(c, rho) / probability - 1) < 2e-14


def test_spitzers_sums_give_the_same():
    from scipy.stats import poisson

    for c, rho in ((4, 0.3), (8, 0.5), (30, 0.7), (256, 0.88)):
        n = np.arange(1, 400)
        delayed = poisson.sf(n * c - 1, n * c * rho)
        beyond = (rho * delayed - poisson.sf(n * c, n * c * rho)) / rho  # of E[(N - nc)+]
        assert mdc.wait_probability(c, rho) == pytest.approx(-np.expm1(-np.sum(delayed / n)), rel=1e-10)
        assert mdc.mean_wait(c, rho) == pytest.approx(np.sum(beyond), rel=1e-8)


@given(loads, st.sampled_from([float(p) for p in LEVELS]))
@settings(max_examples=60)
def test_one_server_is_md1(rho, level):
    wait = md1.wait_quantile(level, rho)
    assume(wait == 0 or wait > 1e-4)  # nearer to the atom the level itself is uncertain
    assert mdc.wait_quantile(level, 1, rho) == pytest.approx(wait, rel=RELATIVE)
    assert mdc.mean_wait(1, rho) == pytest.approx(md1.MEAN_WAIT(rate=rho, service_time=1.0), rel=1e-13)
    assert mdc.wait_probability(1, rho) == pytest.approx(rho, rel=1e-13)


@given(loads)
@settings(max_examples=40)
def test_one_servers_survival_is_md1s(rho):
    t = np.array([0.0, 0.3, 1.0, 2.5, 7.0, 15.9, 16.0, 17.2, 40.0])
    survival = md1.wait_survival(t, rho)
    seen = survival > 1e-6
    np.testing.assert_allclose(mdc.wait_survival(t, 1, rho)[seen], survival[seen], rtol=RELATIVE)


@pytest.mark.parametrize("c", SERVERS)
def test_the_two_methods_meet(c):
    """Just before the switch the queue's probabilities, at it the poles."""
    rho = np.concatenate([np.linspace(0.3, 0.95, 30), np.linspace(0.955, 0.999, 10)])
    switch = whole_services(c)
    by_queue = mdc.wait_survival(np.nextafter(switch, 0.0), c, rho)
    by_poles = mdc.wait_survival(float(switch), c, rho)
    seen = by_poles > 1e-6 * mdc.wait_probability(c, rho)
    assert seen.sum() >= 4
    np.testing.assert_allclose(by_queue[seen], by_poles[seen], rtol=RELATIVE)


@pytest.mark.parametrize("c", SERVERS)
def test_mean_is_the_integral_of_the_survival(c):
    for rho in (0.6, 0.9, 0.99):
        end = mdc.wait_quantile(1 - 1e-9, c, rho) + 1.0
        nodes, weights = np.polynomial.legendre.leggauss(40)
        pieces = np.linspace(0.0, end, 400)
        half = np.diff(pieces) / 2
        t = pieces[:-1, None] + half[:, None] * (nodes + 1)
        mean = float(np.sum(half[:, None] * weights * mdc.wait_survival(t, c, rho)))
        assert mean == pytest.approx(mdc.mean_wait(c, rho), rel=1e-6)


@given(loads, servers)
@settings(max_examples=60)
def test_round_trip(rho, c):
    quantile = mdc.wait_quantile(LEVELS, c, rho)
    delayed = mdc.wait_probability(c, rho)
    waits = quantile > 0
    np.testing.assert_allclose(mdc.wait_survival(quantile[waits], c, rho), 1 - LEVELS[waits], rtol=1e-8)
    assert np.all(1 - LEVELS[~waits] >= delayed - 2e-15)


@given(loads, st.integers(1, 60), st.integers(1, 60))
@settings(max_examples=60)
def test_more_servers_wait_less_at_the_same_utilization(rho, few, more):
    assume(few < more)
    assert mdc.mean_wait(more, rho) < mdc.mean_wait(few, rho)
    assert mdc.wait_probability(more, rho) < mdc.wait_probability(few, rho)
    assert np.all(mdc.wait_quantile(LEVELS, more, rho) <= mdc.wait_quantile(LEVELS, few, rho))


@pytest.mark.parametrize("c", SERVERS)
def test_percentiles_are_ordered_and_grow_with_load(c):
    rho = np.concatenate([np.linspace(0.005, 0.999, 200), [0.9999, 0.99999]])
    quantile = mdc.wait_quantile(LEVELS[:, None], c, rho)
    assert np.all(np.isfinite(quantile))
    assert np.all(np.diff(quantile, axis=0) >= 0)
    assert np.all(np.diff(quantile, axis=1) >= 0)
    assert np.all(np.diff(mdc.mean_wait(c, rho)) >= 0)


@given(loads, servers)
@settings(max_examples=60)
def test_between_half_of_the_exponential_wait_and_all_of_it(rho, c):
    exponential = MMC_MEAN_WAIT(wait_probability=erlang_c(c, rho), servers=c, utilization=rho, mean_service=1.0)
    assert exponential * (0.5 - 1e-12) <= mdc.mean_wait(c, rho) <= exponential
    assert mdc.wait_probability(c, rho) <= erlang_c(c, rho) + 1e-15


@pytest.mark.parametrize("c", [2, 16, 256])
def test_heavy_traffic_limit(c):
    idle = np.array([1e-4, 1e-6, 1e-9])
    scaled = 2 * c * idle * mdc.wait_quantile(0.99, c, 1 - idle)
    np.testing.assert_allclose(scaled, np.log(100), rtol=20 * c * 1e-4)
    assert scaled[-1] == pytest.approx(np.log(100), rel=1e-6)


def test_round_robin_of_equal_prompts_in_a_simulation():
    """Every c-th arrival of a Poisson stream at one server: Lindley's recursion, without a queue of c servers."""
    rng = np.random.default_rng(4)
    gaps = rng.gamma(8, 1 / (8 * 0.8), 400_000)
    waits = simulate_waits(gaps, 1.0)[1000:]
    for level in (0.9, 0.99):
        share = np.mean(waits <= mdc.wait_quantile(level, 8, 0.8))
        assert share == pytest.approx(level, abs=6 * np.sqrt(level * (1 - level) / len(waits)) * 2)


def test_largest_utilization_for_a_percentile():
    limits = np.array([0.0, 0.1, 1.0, 4.0, 30.0])
    for c in (1, 8, 64):
        rho = mdc.max_utilization(limits, LEVELS[:, None], c)
        assert rho.shape == (6, 5)
        survival = mdc.wait_survival(np.broadcast_to(limits, rho.shape), c, rho)
        np.testing.assert_allclose(survival, np.broadcast_to(1 - LEVELS[:, None], rho.shape), rtol=1e-8)
    assert mdc.max_utilization(4, 0.99, 1) == pytest.approx(md1.max_utilization(4, 0.99), rel=1e-12)
    assert mdc.max_utilization(1.169595458752122, 0.99, 8) == pytest.approx(0.8, rel=1e-10)
    assert 0.999999 < mdc.max_utilization(1e7, 0.5, 8) < 1


def test_idle_servers():
    assert mdc.wait_quantile(0.99, 8, 0.0) == 0.0
    assert mdc.mean_wait(8, 0.0) == 0.0
    assert mdc.wait_probability(1, 0.0) < 1e-299
    assert mdc.wait_survival(-1.0, 8, 0.5) == 1.0


@pytest.mark.parametrize("function", [mdc.mean_wait, mdc.wait_probability, lambda *x: mdc.wait_quantile(0.9, *x)])
def test_outside_the_domain(function):
    with pytest.raises(DomainError, match="no steady state"):
        function(4, 1.0)
    with pytest.raises(DomainError, match="cannot be negative"):
        function(4, -0.1)
    for wrong in (0, -3, 2.5, 5000):
        with pytest.raises(DomainError, match="whole number from 1 to 1024"):
            function(wrong, 0.5)
    np.testing.assert_array_equal(np.isnan(function(4, np.array([-0.1, 0.5, 1.0, 2.0]))), [True, False, True, True])


def test_level_and_limit_outside_the_domain():
    for level in (0.0, 1.0, 1.5):
        with pytest.raises(DomainError, match="lies between"):
            mdc.wait_quantile(level, 4, 0.5)
        with pytest.raises(DomainError, match="lies between"):
            mdc.max_utilization(1.0, level, 4)
    for limit in (-1.0, np.inf):
        with pytest.raises(DomainError, match="negative or endless"):
            mdc.max_utilization(limit, 0.9, 4)
    assert np.isnan(mdc.wait_quantile(np.array([1.0]), 4, 0.5))[0]


def test_numbers_in_numbers_out():
    assert type(mdc.wait_quantile(0.99, 8, 0.9)) is float
    assert type(mdc.mean_wait(8, np.float64(0.9))) is float
    assert type(mdc.wait_survival(1.0, 8, 0.9)) is float
    assert mdc.wait_quantile(LEVELS[:, None], 8, np.array([0.1, 0.2, 0.3])).shape == (6, 3)
    assert mdc.wait_quantile(0.99, 8.0, 0.9) == mdc.wait_quantile(0.99, np.int64(8), 0.9)


@pytest.mark.parametrize("rho", [np.array([]), np.array([1.5, np.nan])])
def test_nothing_inside_the_domain(rho):
    for found in (mdc.mean_wait(8, rho), mdc.wait_quantile(0.9, 8, rho), mdc.wait_survival(0.1, 8, rho)):
        assert found.shape == rho.shape
        assert np.all(np.isnan(found))
