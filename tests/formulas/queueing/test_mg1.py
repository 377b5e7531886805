import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from formulas.closed_form import DomainError
from formulas.queueing import md1, mg1
from formulas.queueing import pollaczek_khinchine as pk
from formulas.queueing.service import (
    GammaLengths,
    ListedLengths,
    LognormalLengths,
    UniformLengths,
    equal_service,
    mixed_service,
    service_law,
)
from tests.formulas.queueing.lattice import batch_work_cdf

RELATIVE = 1e-9
LOADS = [0.01, 0.1, 0.5, 0.8, 0.9, 0.99, 0.999]
LEVELS = np.array([0.5, 0.9, 0.95, 0.99, 0.999])
ROOFLINE = service_law(LognormalLengths(1000.0, 1.0), lambda x: 1e-3 + np.maximum(6e-3 + 1e-6 * x, 2e-5 * x))
LAWS = {
    "log-normal": service_law(LognormalLengths(1.0, 1.0), lambda x: x),
    "attention": service_law(LognormalLengths(1000.0, 2.0), lambda x: 1e-3 + 2e-5 * x + 1e-10 * x**2),
    "roofline": ROOFLINE,
    "gamma": service_law(GammaLengths(1.0, 2.0), lambda x: x),
    "uniform": service_law(UniformLengths(0.5, 1.5), lambda x: x),
    "two": service_law(ListedLengths([200.0, 8000.0], [0.95, 0.05]), lambda x: 2e-5 * x),
    "hit or miss": mixed_service(
        [equal_service(0.2), service_law(LognormalLengths(1.0, 0.7), lambda x: x)], [0.6, 0.4]
    ),
    "list": service_law(ListedLengths(np.geomspace(50, 30000, 30), np.linspace(3, 1, 30)), lambda x: 1e-3 + 2e-5 * x),
}
LATTICES = {
    "two": ([1, 4], [0.8, 0.2]),
    "far apart": ([1, 100], [0.99, 0.01]),
    "three": ([2, 3, 7], [0.5, 0.3, 0.2]),
    "thirty": (list(range(1, 31)), (np.linspace(1, 3, 30) / 60).tolist()),
}
EACH = pytest.mark.parametrize("name", LAWS)


@pytest.mark.parametrize("index", range(8))
def test_reference_values_of_lognormal_prompts(single_server, index):
    case = single_server["mg1_lognormal"][index]
    law, rate = service_law(LognormalLengths(1.0, case["cv"]), lambda x: x), case["utilization"]
    for name, exact in case["quantiles"].items():
        quantile = mg1.ttft_quantile if name.startswith("ttft") else mg1.wait_quantile
        got = quantile(float(name.split("_P")[1]), rate, law)
        assert got == pytest.approx(exact, rel=3 * RELATIVE, abs=1e-300)
    assert mg1.mean_wait(rate, law) == pytest.approx(case["mean_wait"], rel=1e-12)
    assert mg1.mean_ttft(rate, law) == pytest.approx(case["mean_wait"] + 1, rel=1e-12)
    if "wait_variance" in case:
        assert mg1.wait_variance(rate, law) == pytest.approx(case["wait_variance"], rel=1e-12)
        assert mg1.ttft_variance(rate, law) == pytest.approx(case["wait_variance"] + case["cv"] ** 2, rel=1e-12)


@pytest.mark.parametrize("load", LOADS)
def test_equal_prompts_are_md1(load):
    law = equal_service(0.05)
    exact = 0.05 * md1.wait_quantile(LEVELS, np.full(LEVELS.shape, load))
    np.testing.assert_allclose(mg1.wait_quantile(LEVELS, load / 0.05, law), exact, rtol=2e-8, atol=1e-300)
    np.testing.assert_allclose(mg1.ttft_quantile(LEVELS, load / 0.05, law), exact + 0.05, rtol=5e-9)
    t = np.array([0.0, 0.3, 0.99, 1.0, 1.7, 2.0, 3.4, 8.0, 20.0])
    np.testing.assert_allclose(mg1.wait_survival(0.05 * t, load / 0.05, law), md1.wait_survival(t, load), atol=RELATIVE)


@pytest.mark.parametrize("name", LATTICES)
@pytest.mark.parametrize("load", [0.1, 0.6, 0.95])
def test_whole_service_times_against_an_exact_sum(name, load):
    """Jumps of the service at any times: the work found is that of a batch queue, summed with positive terms."""
    sizes, shares = LATTICES[name]
    law = service_law(ListedLengths(sizes, shares), lambda x: x)
    longest = sizes[-1]
    cdf = batch_work_cdf(load / law.mean, sizes, shares, 6 * longest)
    for t in (
        0.4,
        1.0,
        1.5,
        longest - 0.5,
        longest,
        longest + 0.01,
        longest + 1,
        2 * longest,
        2.1 * longest + 0.3,
        5.2 * longest,
    ):
        assert mg1.wait_survival(t, load / law.mean, law) == pytest.approx(1 - cdf(t), abs=2e-8)
        own = sum(share * (cdf(t - size) if t >= size else 0.0) for size, share in zip(sizes, shares, strict=True))
        assert mg1.ttft_survival(t, load / law.mean, law) == pytest.approx(1 - own, abs=2e-8)


def test_memoryless_service_is_mm1():
    law = service_law(GammaLengths(1.0, 1.0), lambda x: x)
    t = np.array([0.01, 0.5, 3.0, 40.0])
    for load in (0.05, 0.7, 0.99):
        np.testing.assert_allclose(mg1.wait_survival(t, load, law), load * np.exp(-(1 - load) * t), atol=1e-9)
        np.testing.assert_allclose(mg1.ttft_survival(t, load, law), np.exp(-(1 - load) * t), atol=1e-9)
        exact = -np.log(1 - LEVELS) / (1 - load)
        np.testing.assert_allclose(mg1.ttft_quantile(LEVELS, load, law), exact, rtol=3 * RELATIVE)


@EACH
@pytest.mark.parametrize("load", [0.01, 0.4, 0.9, 0.999])
def test_quantile_and_survival_go_together(name, load):
    law = LAWS[name]
    rate = load / law.mean
    for quantile, survival in ((mg1.wait_quantile, mg1.wait_survival), (mg1.ttft_quantile, mg1.ttft_survival)):
        t = quantile(LEVELS, rate, law)
        assert np.all(np.diff(t) >= 0)
        after, before = survival(t, rate, law), survival(t * (1 - 1e-9), rate, law)
        late = 1 - LEVELS
        assert np.all(after <= late * (1 + 1e-8) + 1e-9)
        assert np.all((before >= late * (1 - 1e-6) - 1e-9) | (t == 0))


def test_a_long_list_of_lengths_keeps_its_digits():
    """Hundreds of kinks, of which pairs are not taken out: against the exact sum, for whole service times."""
    rng = np.random.default_rng(1)
    sizes, counts = np.unique(np.ceil(rng.lognormal(3.5, 1.0, 400)), return_counts=True)
    sizes, shares = sizes.astype(int).tolist(), (counts / counts.sum()).tolist()
    law = service_law(ListedLengths(sizes, shares), lambda x: x)
    cdf = batch_work_cdf(0.8 / law.mean, sizes, shares, 900)
    for t in (1.0, 20.0, 20.5, 100.0, 333.3, 800.0):
        assert mg1.wait_survival(t, 0.8 / law.mean, law) == pytest.approx(1 - cdf(t), abs=1e-8)
        own = sum(share * cdf(t - size) for size, share in zip(sizes, shares, strict=True) if t >= size)
        assert mg1.ttft_survival(t, 0.8 / law.mean, law) == pytest.approx(1 - own, abs=2e-7)


@EACH
def test_survivals_integrate_to_the_means(name):
    law = LAWS[name]
    nodes, weights = np.polynomial.legendre.leggauss(8)
    edges = np.concatenate([[0.0], np.unique(np.concatenate([np.geomspace(0.02, 1e6, 60), law.atoms / law.mean]))])
    half = np.diff(edges)[:, None] / 2 * law.mean
    t = edges[:-1, None] * law.mean + half * (1 + nodes)
    for mean, survival in ((mg1.mean_wait, mg1.wait_survival), (mg1.mean_ttft, mg1.ttft_survival)):
        area = (half * weights * survival(t, 0.5 / law.mean, law)).sum()
        assert area == pytest.approx(mean(0.5 / law.mean, law), rel=2e-4)


@EACH
def test_more_load_is_later(name):
    """Stochastic order in the rate: no survival falls as the rate grows."""
    law = LAWS[name]
    rates = np.linspace(0.02, 0.98, 9) / law.mean
    for t in (0.5 * law.mean, 2.0 * law.mean, 15 * law.mean):
        for survival in (mg1.wait_survival, mg1.ttft_survival):
            assert np.all(np.diff(survival(t, rates, law)) >= -1e-9)


@given(cv=st.floats(0.02, 3.0), load=st.floats(0.02, 0.995), level=st.floats(0.3, 0.999))
@settings(max_examples=40, deadline=None)
def test_the_first_token_comes_after_the_wait_and_after_the_service(cv, load, level):
    law = service_law(LognormalLengths(1.0, cv), lambda x: x)
    wait, ttft = mg1.wait_quantile(level, load, law), mg1.ttft_quantile(level, load, law)
    assert ttft >= max(wait, law.quantile(level)) * (1 - 1e-8)
    assert mg1.ttft_survival(ttft, load, law) == pytest.approx(1 - level, rel=1e-6, abs=1e-9)
    assert 0 < mg1.wait_survival(0.0, load, law) == pytest.approx(load)


@given(scale=st.floats(1e-4, 1e3), load=st.floats(0.1, 0.95))
@settings(max_examples=20, deadline=None)
def test_time_has_no_unit_of_its_own(scale, load):
    one, other = LAWS["log-normal"], service_law(LognormalLengths(1.0, 1.0), lambda x: scale * x)
    assert mg1.ttft_quantile(0.9, load / scale, other) == pytest.approx(
        scale * mg1.ttft_quantile(0.9, load, one), rel=1e-8
    )


def test_spread_makes_it_later():
    laws = [service_law(GammaLengths(1.0, cv), lambda x: x) for cv in (0.1, 0.5, 1.0, 2.0)]
    for level in (0.9, 0.99):
        assert np.all(np.diff([mg1.ttft_quantile(level, 0.7, law) for law in laws]) > 0)


def test_narrow_prompts_approach_equal_ones():
    law = service_law(LognormalLengths(1.0, 1e-4), lambda x: x)
    assert mg1.wait_quantile(0.99, 0.8, law) == pytest.approx(md1.wait_quantile(0.99, 0.8), rel=1e-6)
    assert mg1.ttft_quantile(0.99, 0.3, law) == pytest.approx(1 + md1.wait_quantile(0.99, 0.3), rel=1e-6)


def test_a_quantile_may_be_a_jump():
    law = LAWS["two"]
    assert mg1.ttft_quantile(0.5, 0.1 / law.mean, law) == pytest.approx(2e-5 * 200, rel=1e-12)
    assert mg1.ttft_quantile(0.957, 0.03 / law.mean, law) == pytest.approx(2e-5 * 8000, rel=1e-12)


@pytest.mark.parametrize("name", ["log-normal", "roofline", "two", "hit or miss"])
def test_largest_rate_meets_the_limit_exactly(name):
    law = LAWS[name]
    for level in (0.5, 0.94):
        limit = 1.5 * law.quantile(level)
        rate = mg1.max_rate(limit, level, law)
        assert 0 < rate < 1 / law.mean
        assert mg1.ttft_quantile(level, 0.999 * rate, law) <= limit * (1 + 1e-9)
        assert mg1.ttft_quantile(level, 1.001 * rate, law) > limit
    assert mg1.max_rate(0.5 * law.quantile(0.94), 0.94, law) == 0.0


def test_largest_rate_of_equal_prompts_and_of_arrays():
    law = equal_service(1.0)
    limits = np.array([0.5, 1.0, 2.0, 5.0])
    exact = np.array([0.0, 0.01, *md1.max_utilization(np.array([1.0, 4.0]), 0.99)])
    np.testing.assert_allclose(mg1.max_rate(limits, 0.99, law), exact, rtol=1e-7)
    with pytest.raises(DomainError, match="lies between"):
        mg1.max_rate(1.0, 1.0, law)


def test_idle_server():
    law = LAWS["log-normal"]
    assert mg1.wait_quantile(0.99, 0.0, law) == 0.0
    assert mg1.ttft_quantile(0.99, 0.0, law) == pytest.approx(law.quantile(0.99), rel=1e-12)
    assert mg1.ttft_survival(1.0, 0.0, law) == pytest.approx(1 - law.cdf(1.0), rel=1e-12)


def test_outside_the_domain():
    law = LAWS["log-normal"]
    for function in (mg1.wait_quantile, mg1.ttft_quantile, mg1.wait_survival, mg1.ttft_survival):
        with pytest.raises(DomainError, match="no steady state"):
            function(0.5, 1.0, law)
        with pytest.raises(DomainError, match="cannot be negative"):
            function(0.5, -0.1, law)
        np.testing.assert_array_equal(np.isnan(function(0.5, np.array([-0.1, 0.5, 1.0]), law)), [True, False, True])
    with pytest.raises(DomainError, match="lies between"):
        mg1.ttft_quantile(1.0, 0.5, law)
    assert np.isnan(mg1.wait_quantile(np.array([1.0]), 0.5, law))[0]


def test_numbers_in_numbers_out():
    law = LAWS["log-normal"]
    assert type(mg1.ttft_quantile(0.9, 0.5, law)) is float
    assert type(mg1.wait_survival(1, 0.5, law)) is float
    assert mg1.ttft_quantile(np.array([[0.5], [0.9]]), np.array([0.1, 0.2, 0.3]), law).shape == (2, 3)


def test_the_spread_enters_by_its_square():
    moments = {pk.RHO.symbol: pk.RATE.symbol * pk.MEAN_SERVICE.symbol}
    form = mg1.MEAN_WAIT_BY_SPREAD
    spread = pk.SECOND_MOMENT.symbol / pk.MEAN_SERVICE.symbol**2 - 1
    same = form.expression.subs(mg1.SPREAD.symbol, spread).subs(moments) - pk.MEAN_WAIT.expression
    assert sp.simplify(same) == 0
    assert sp.simplify(form.steps[-1].equation.rhs - form.expression) == 0
    assert sp.simplify(mg1.MEAN_TTFT.steps[-1].equation.rhs - mg1.MEAN_TTFT.expression) == 0


def test_prompts_of_one_time_that_hardly_anybody_has_change_nothing():
    lengths = LognormalLengths(1.0, 0.5)
    shortest = float(lengths.quantile(1e-9))
    law, smooth = (service_law(lengths, time) for time in (lambda x: np.maximum(x, shortest), lambda x: x))
    levels = np.array([0.5, 0.99])
    assert mg1.ttft_quantile(levels, 0.7, law) == pytest.approx(mg1.ttft_quantile(levels, 0.7, smooth), rel=1e-6)
