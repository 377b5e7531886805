import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate

from formulas.closed_form import DomainError
from formulas.decode_pool import (
    AFFINE_MAX_RATE,
    AFFINE_MEAN_BATCH,
    AFFINE_MEAN_TPOT,
    AFFINE_RATIO,
    AFFINE_SHAPE,
    AFFINE_TPOT_VARIANCE,
    FIXED_AVERAGING,
    RANDOM_AVERAGING,
    affine_batch_law,
    affine_tpot_quantile,
    averaging,
    capacity,
    max_rate,
    stationary_law,
)
from formulas.montecarlo.confidence import mean_interval
from formulas.montecarlo.serving import AffineStep, InstanceSettings, Lengths, poisson_workload, simulate
from tests.formulas import step_by_step

A, B = 6.6e-3, 2.66e-5  # an 8B model on an H100, contexts of about 540 tokens
POOL = {"rate": 200, "tokens": 64, "fixed_s": A, "slope_s": B}
POOLS = {
    "load": st.floats(0.001, 0.98),
    "tokens": st.floats(1, 2000),
    "fixed_s": st.floats(1e-4, 0.05),
    "share": st.floats(1e-3, 1),
}


def affine(n):
    return A + B * n


def roofline(n):
    return 1e-3 + np.maximum(5.6e-3 + 2.66e-5 * n, 6e-5 * n)


@given(**POOLS)
@settings(max_examples=60, deadline=None)
def test_general_law_equals_the_closed_form(load, tokens, fixed_s, share):
    slope_s = share * fixed_s
    pool = {"rate": load / tokens / slope_s, "tokens": tokens, "fixed_s": fixed_s, "slope_s": slope_s}
    law = stationary_law(pool["rate"], tokens, lambda n: fixed_s + slope_s * n)
    assert law.mean_batch == pytest.approx(AFFINE_MEAN_BATCH(**pool), rel=1e-12)
    assert law.mean_tpot == pytest.approx(AFFINE_MEAN_TPOT(**pool), rel=1e-12)
    assert law.ratio == pytest.approx(AFFINE_RATIO(rate=pool["rate"], tokens=tokens, slope_s=slope_s), rel=1e-9)
    pi, below = affine_batch_law(np.arange(law.pi.size), **pool)
    np.testing.assert_allclose(law.pi, pi, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(np.cumsum(law.pi), below, atol=1e-12)
    for level in (0.01, 0.5, 0.9, 0.99):
        assert law.tpot_quantile(level) == pytest.approx(affine_tpot_quantile(level, **pool), rel=1e-10)


def test_closed_forms_agree_with_one_another():
    given = {**POOL, "mean_tpot": AFFINE_MEAN_TPOT(**POOL)}
    del given["rate"]
    assert AFFINE_MAX_RATE(**given) == pytest.approx(200, rel=1e-12)
    r, q = AFFINE_SHAPE(fixed_s=A, slope_s=B), AFFINE_RATIO(rate=200, tokens=64, slope_s=B)
    assert AFFINE_TPOT_VARIANCE(**POOL) == pytest.approx(B**2 * r * q / (1 - q) ** 2, rel=1e-12)
    law = stationary_law(200, 64, affine)
    n = np.arange(law.pi.size)
    variance = law.pi @ (n - law.mean_batch) ** 2 * B**2
    assert AFFINE_TPOT_VARIANCE(**POOL) == pytest.approx(variance, rel=1e-11)
    for form in (AFFINE_MEAN_BATCH, AFFINE_MEAN_TPOT, AFFINE_MAX_RATE, AFFINE_TPOT_VARIANCE):
        assert form.steps[-1].equation.rhs == form.expression


def test_flows_balance_between_batches():
    """As many requests come as go, at a step time that is not affine."""
    law = stationary_law(150, 64, roofline)
    n = np.arange(1, law.pi.size)
    np.testing.assert_allclose(law.rate * law.pi[:-1], law.pi[1:] * n / (64 * roofline(n)), rtol=1e-9)
    assert law.pi.sum() == pytest.approx(1, abs=1e-14)


@pytest.mark.parametrize("name", ["fixed", "geometric", "two lengths"])
def test_mean_is_insensitive_to_the_lengths_and_holds_by_events(name):
    rng, count, tokens = np.random.default_rng(8), 60_000, 20
    lengths = {
        "fixed": np.full(count, tokens),
        "geometric": rng.geometric(1 / tokens, count),
        "two lengths": rng.choice([2, 110], count, p=[5 / 6, 1 / 6]),
    }[name]
    rate = 0.5 / tokens / 5e-4
    arrivals = np.cumsum(rng.exponential(1 / rate, count))
    joined, finished = step_by_step.decode(arrivals, lengths, lambda n: 6e-3 + 5e-4 * n)
    law = stationary_law(rate, tokens, lambda n: 6e-3 + 5e-4 * n)
    stay = mean_interval((finished - joined)[2000:], 0.999).estimate
    spread = mean_interval((finished - joined)[2000:] - law.mean_tpot * lengths[2000:], 0.999)
    assert spread.contains(0) or abs(spread.estimate) < 0.005 * stay
    waits = mean_interval((joined - arrivals)[2000:], 0.999)
    assert waits.contains(law.boundary_wait) or waits.estimate == pytest.approx(law.boundary_wait, rel=0.02)


@pytest.mark.parametrize("lengths", ["fixed", "random"])
def test_percentiles_hold_by_events(lengths):
    """The 8B model at 300 requests/s: within 0.5 %, where a single step's law is off by about as much at P90."""
    rng, count = np.random.default_rng(5), 200_000
    drawn = np.full(count, 64) if lengths == "fixed" else rng.geometric(1 / 64, count)
    joined, finished = step_by_step.decode(np.cumsum(rng.exponential(1 / 300, count)), drawn, affine)
    tpot = ((finished - joined) / drawn)[2000:-2000]
    law = stationary_law(300, 64, affine)
    assert law.mean_tpot == pytest.approx(tpot.mean(), rel=5e-3)
    for level in (0.5, 0.9):
        assert law.tpot_quantile(level, lengths) == pytest.approx(np.quantile(tpot, level), rel=5e-3)
    assert law.tpot_quantile(0.9, lengths) < law.tpot_quantile(0.9, "instant")
    assert np.std(tpot) == pytest.approx(np.sqrt(averaging(law.ratio, lengths) * AFFINE_TPOT_VARIANCE(
        rate=300, tokens=64, fixed_s=A, slope_s=B)), rel=0.1)  # fmt: skip


def test_averaging_is_the_integral_of_the_correlation():
    for q in (0.06, 0.3, 0.7, 0.95):
        fixed = integrate.quad(lambda x, q=q: 2 * (1 - x) * (1 - (1 - q) * np.exp(q * x)) / q, 0, 1)[0]
        assert FIXED_AVERAGING(ratio=q) == pytest.approx(fixed, rel=1e-10)
        mixed = integrate.quad(lambda x, q=q: 2 * (1 - x) / (1 + (1 - q) * x), 0, 1)[0]
        assert RANDOM_AVERAGING(ratio=q) == pytest.approx(mixed, rel=1e-10)
    q = sp.Symbol("ratio", positive=True)
    assert sp.limit(FIXED_AVERAGING.expression, q, 0) == sp.Rational(2, 3)


@given(st.floats(0, 1 - 1e-9))
def test_averaging_is_smooth_and_grows_up_to_one(ratio):
    for lengths in ("fixed", "random"):
        here, more = averaging(ratio, lengths), averaging(min(ratio + 1e-3, 1 - 1e-9), lengths)
        assert 2 / 3 - 1e-12 <= here <= 1
        assert -1e-11 <= more - here <= 1e-3
    with pytest.raises(ValueError, match="not short"):
        averaging(ratio, "short")


@given(rate=st.floats(1, 170), more=st.floats(1.01, 1.5), cap=st.integers(1, 400))
@settings(max_examples=40, deadline=None)
def test_more_requests_take_longer_and_a_cap_shortens_steps(rate, more, cap):
    free, busy = stationary_law(rate, 64, roofline), stationary_law(rate * more, 64, roofline)
    assert busy.mean_tpot >= free.mean_tpot * (1 - 1e-12)
    assert free.tpot_quantile(0.5) <= free.tpot_quantile(0.9) <= free.tpot_quantile(0.99)
    if rate < 0.999 * capacity(64, roofline, cap):
        capped = stationary_law(rate, 64, roofline, cap)
        assert capped.mean_batch == pytest.approx(rate * 64 * capped.mean_tpot, rel=1e-12)
        assert capped.mean_tpot <= free.mean_tpot * (1 + 1e-12)
        assert 0 <= capped.slot_wait(0.0) <= capped.mean_slot_wait
        assert capped.slot_wait_quantile(0.5) <= capped.slot_wait_quantile(0.99)


def test_a_cap_that_never_binds_changes_nothing():
    free, capped = stationary_law(100, 64, affine), stationary_law(100, 64, affine, cap=500)
    assert capped.mean_tpot == pytest.approx(free.mean_tpot, rel=1e-12)
    assert capped.tpot_quantile(0.9) == pytest.approx(free.tpot_quantile(0.9), rel=1e-12)
    assert capped.mean_slot_wait < 1e-15
    assert free.slot_wait() == free.full == 0.0
    table = stationary_law(100, 64, affine(np.arange(1, 501)))
    np.testing.assert_array_equal(table.pi, capped.pi)


def test_one_slot_is_a_single_server():
    """A cap of one sequence is M/M/1: the wait is rho / (1 - rho) services."""
    law = stationary_law(4, 10, lambda n: 0.02 * n, cap=1)
    assert law.full == pytest.approx(0.8, rel=1e-12)
    assert law.mean_slot_wait == pytest.approx(0.8 / 0.2 * 0.2, rel=1e-12)
    assert law.slot_wait(0.0) == pytest.approx(0.4, rel=1e-12)
    assert law.slot_wait_quantile(0.1) == 0.0
    assert law.slot_wait_quantile(0.9) == pytest.approx(np.log(0.8 / 0.1), rel=1e-12)


@pytest.mark.parametrize("cv2", [0.0, 1.0])
def test_wait_for_a_slot_by_events(cv2):
    rng, count, tokens, cap = np.random.default_rng(2), 80_000, 20, 12
    rate = 0.9 * capacity(tokens, lambda n: 6e-3 + 5e-4 * n, cap)
    lengths = rng.geometric(1 / tokens, count) if cv2 else np.full(count, tokens)
    arrivals = np.cumsum(rng.exponential(1 / rate, count))
    joined, _ = step_by_step.decode(arrivals, lengths, lambda n: 6e-3 + 5e-4 * n, cap)
    law = stationary_law(rate, tokens, lambda n: 6e-3 + 5e-4 * n, cap)
    wait = (joined - arrivals)[2000:].mean() - law.boundary_wait
    assert law.slot_wait(cv2) == pytest.approx(wait, rel=0.15)


def test_largest_rates():
    mean = AFFINE_MAX_RATE(mean_tpot=0.015, tokens=64, fixed_s=A, slope_s=B)
    assert max_rate(0.015, 64, affine) == pytest.approx(mean, rel=1e-9)
    p90 = max_rate(0.015, 64, affine, level=0.9)
    assert affine_tpot_quantile(0.9, rate=p90, tokens=64, fixed_s=A, slope_s=B) == pytest.approx(0.015, rel=1e-9)
    bound = max_rate(0.015, 64, affine, cap=100)
    assert bound == pytest.approx(capacity(64, affine, cap=100), rel=1e-8)
    assert capacity(64, affine) == pytest.approx(1 / 64 / B, rel=1e-6)
    assert max_rate(0.015, 64, affine(np.arange(1, 101))) == pytest.approx(bound, rel=1e-12)
    with pytest.raises(DomainError, match="Too slow even unloaded"):
        max_rate(0.005, 64, affine)


def test_batch_quantiles_and_the_empty_pool():
    law = stationary_law(200, 64, affine)
    assert np.cumsum(law.pi)[law.batch_quantile(0.9)] >= 0.9 > np.cumsum(law.pi)[law.batch_quantile(0.9) - 1]
    quiet = stationary_law(1e-6, 64, affine)
    assert quiet.mean_tpot == pytest.approx(A + B, rel=1e-6)
    assert quiet.tpot_quantile(0.9) == pytest.approx(A + B, rel=1e-2)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: stationary_law(1000, 64, affine), "^Unstable"),
        (lambda: stationary_law(200, 64, affine, cap=20), "^Unstable"),
        (lambda: stationary_law(200, 64, affine, cap=0), "^Does not fit"),
        (lambda: stationary_law(0, 64, affine), "positive"),
        (lambda: stationary_law(1, 64, lambda n: 1e-9 * n**1.01), "^A step's time per sequence"),
        (lambda: stationary_law(1, 64, lambda n: 0 * n), "takes some time"),
        (lambda: stationary_law(1, 64, affine).tpot_quantile(1.0), "between 0 and 1"),
        (lambda: affine_tpot_quantile(0.9, **{**POOL, "rate": 1e4}), "^Unstable"),
        (lambda: affine_tpot_quantile(0.0, **POOL), "between 0 and 1"),
        (lambda: affine_batch_law(1, **{**POOL, "rate": 0}), "positive"),
        (lambda: AFFINE_MAX_RATE(mean_tpot=1e-3, tokens=64, fixed_s=A, slope_s=B), "^Too slow even unloaded"),
    ],
)
def test_outside_the_domain_the_answer_is_a_sentence(call, sentence):
    with pytest.raises(DomainError, match=sentence):
        call()


def test_under_a_cap_that_is_never_reached_the_law_is_that_without_one():
    free, capped = stationary_law(200, 64, affine), stationary_law(200, 64, affine, cap=100_000)
    assert capped.pi.size < 2000
    assert capped.full == capped.slot_wait() == 0
    assert capped.mean_batch == pytest.approx(free.mean_batch, rel=1e-12)
    for level in (0.5, 0.99):
        assert capped.tpot_quantile(level) == pytest.approx(free.tpot_quantile(level), rel=1e-9)


def test_from_the_arrival_the_waits_are_in_it():
    law = stationary_law(200, 64, affine)
    assert law.tpot_from_arrival() == pytest.approx(law.mean_tpot + law.boundary_wait / 64, rel=1e-12)
    assert law.tpot_from_arrival(0.9) == pytest.approx(law.tpot_quantile(0.9) + law.boundary_wait / 64, rel=1e-12)
    assert law.tpot_from_arrival(None, 1.0) > law.tpot_from_arrival()
    several = law.tpot_from_arrival([0.5, 0.9, 0.99])
    assert several.tolist() == [law.tpot_from_arrival(level) for level in (0.5, 0.9, 0.99)]
    with pytest.raises(DomainError, match="between 0 and 1"):
        law.tpot_from_arrival([0.5, 1.0])


@pytest.mark.parametrize("load", [0.8, 0.9, 0.95])
def test_waits_for_a_slot_hold_by_events(load):
    """Where the cap binds: the mean within 1 %, P90 within 4 %, as `tpot_from_arrival` says."""
    cap = 64
    rate = load * capacity(63, affine, cap)
    settings_ = InstanceSettings("decode", AffineStep(A, B), max_batch=cap)
    served = simulate(poisson_workload(rate, 100_000, Lengths(512), Lengths(64), seed=3), settings_)
    tpot = served.part(10_000, 95_000).tpot
    law = stationary_law(rate, 63, affine, cap)
    assert law.tpot_from_arrival() == pytest.approx(tpot.mean(), rel=0.015)
    assert law.tpot_from_arrival(0.9) == pytest.approx(np.quantile(tpot, 0.9), rel=0.05)


@given(st.floats(0.05, 0.95), st.sampled_from([None, 40, 200]))
@settings(max_examples=30, deadline=None)
def test_the_share_within_a_time_undoes_the_percentile(load, cap):
    law = stationary_law(load * capacity(63, affine, cap), 63, affine, cap)
    for level in (0.1, 0.5, 0.9, 0.99):
        time = law.tpot_from_arrival(level)  # several levels share the time of a full batch
        assert law.share_within(time * (1 - 1e-9)) - 0.01 <= level <= law.share_within(time * (1 + 1e-9)) + 0.01
    assert law.share_within(0.0) == 0
    assert law.share_within(1e3) == 1


def test_the_largest_rate_counts_the_waits_where_asked():
    plain = max_rate(0.015, 64, affine, level=0.9)
    waited = max_rate(0.015, 64, affine, level=0.9, lengths_cv2=0.0)
    assert waited < plain
    law = stationary_law(waited, 64, affine)
    assert law.tpot_from_arrival(0.9) == pytest.approx(0.015, rel=1e-9)
