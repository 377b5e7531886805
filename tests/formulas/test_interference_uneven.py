"""Prefill first and chunks where prompts, outputs and gaps spread: against busy periods and the event simulation."""

from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulas.closed_form import DomainError
from formulas.decode_pool import BunchedTimes, stationary_law
from formulas.interference import NUMBER_DISPERSION, TIME_DISPERSION, Prompts, Unevenness, chunked, prefill_first
from formulas.interference.prompts import max_rate
from formulas.interference.stretched import lengths_in_bins, prompts_in_bins
from formulas.montecarlo.serving import AffineStep, InstanceSettings, LargestOf, Lengths, gamma_workload, simulate
from formulas.queueing import md1
from formulas.queueing.bursts import gamma_law_ttft_quantile
from formulas.queueing.mg1_distribution import ttft_quantile
from formulas.queueing.service import LognormalLengths, equal_service, service_law

A_STEP, A_SEQUENCE, A_TOKEN = 6.6e-3, 2.66e-5, 2.75e-5
PROMPT, STEPS = 512, 63


def decode_step(n):
    return A_STEP + A_SEQUENCE * n


def mixed_step(n, p):
    return A_STEP + A_SEQUENCE * n + A_TOKEN * p


def law_of(cv):
    prefill = 1e-3
    if not cv:
        return equal_service(prefill + A_TOKEN * PROMPT)
    return service_law(LognormalLengths(PROMPT, cv), lambda length: prefill + A_TOKEN * np.asarray(length))


@given(load=st.floats(0.05, 0.9), cv=st.floats(0, 2))
def test_dispersions_are_the_moments_of_busy_periods(load, cv):
    """Of Poisson arrivals: variances of the number and the time of a busy period, and their product, over R."""
    law = law_of(round(cv, 3))
    rate, mean, second = load / law.mean, law.mean, law.second_moment
    number_variance = (load * (1 - load) + rate**2 * second) / (1 - load) ** 3
    time_variance = (second - mean**2 + load * mean**2) / (1 - load) ** 3
    number, time = 1 / (1 - load), mean / (1 - load)
    uneven = Unevenness(1.0, law.scv)
    of_number = uneven.number(load) / (1 - load) ** 2
    assert of_number == pytest.approx((number_variance + number**2) / number, rel=1e-9)
    values = {"rate": rate, "service_time": mean, "arrival_scv": 1.0, "service_scv": law.scv}
    assert NUMBER_DISPERSION(**values) == pytest.approx(of_number, rel=1e-12)
    assert TIME_DISPERSION(**values) == pytest.approx(uneven.time * mean**2 / (1 - load) ** 2, rel=1e-12)
    assert TIME_DISPERSION(**values) == pytest.approx((time_variance + time**2) * (1 - load), rel=1e-9)


def test_dispersions_by_simulation():
    """Gamma gaps and gamma services, counted on the clock that stands still during services."""
    rng, rate, load = np.random.default_rng(5), 1.0, 0.5
    c_a, c = 3.0, 2.0
    gaps = rng.gamma(1 / c_a, c_a / rate, 2_000_000)
    services = rng.gamma(1 / c, load * c, gaps.size)
    # Of each arrival, the time until then less the services before it that are done: what the other clock shows.
    shown = np.maximum.accumulate(np.cumsum(gaps) - np.cumsum(services) + services)
    window = 400.0
    bins = np.arange(0.0, shown[-1], window)
    numbers = np.histogram(shown, bins)[0]
    times = np.histogram(shown, bins, weights=services)[0]
    values = {"rate": rate, "service_time": load, "arrival_scv": c_a, "service_scv": c}
    assert numbers.var() / numbers.mean() == pytest.approx(NUMBER_DISPERSION(**values), rel=0.12)
    assert times.var() / numbers.mean() == pytest.approx(TIME_DISPERSION(**values), rel=0.12)


@pytest.mark.parametrize("cv", [0, 1])
@pytest.mark.parametrize("scv", [1, 4])
def test_prompts_alone_are_the_queue(cv, scv):
    law = law_of(cv)
    prompts = Prompts(40.0, law, float(scv))
    for level in (0.5, 0.9, 0.99):
        time = float(prompts.finished_quantile(level))
        assert float(prompts.finished_within(time)) == pytest.approx(level, abs=1e-6)
        if scv != 1:
            expected = gamma_law_ttft_quantile(level, 40.0, 1 / scv, law)
        elif cv:
            expected = ttft_quantile(level, 40.0, law)
        else:
            expected = law.mean * (1 + md1.wait_quantile(level, 40.0 * law.mean))
        assert time == pytest.approx(float(expected), rel=1e-9)


@pytest.mark.parametrize("cv", [0, 1])
def test_the_largest_rate_of_prompts_is_one_at_which_they_are_just_in_time(cv):
    law = law_of(cv)
    for scv in (0.3, 1.0, 5.0):
        rate = max_rate(0.15, 0.9, law, scv)
        assert float(Prompts(rate, law, scv).finished_within(0.15)) == pytest.approx(0.9, abs=1e-4)
    assert max_rate(0.5 * law.mean, 0.9, law) is None


def test_prompts_faster_than_they_are_served_are_refused():
    with pytest.raises(DomainError, match=r"^Unstable"):
        Prompts(1000.0, law_of(1))


@pytest.mark.parametrize(("tokens", "cv2"), [(63, 0.0), (63, 1.0), (400, 0.25), (20, 2.0)])
def test_bins_are_all_requests(tokens, cv2):
    for bins in (lengths_in_bins, prompts_in_bins):
        shares, lengths = bins(tokens, cv2)
        assert shares.sum() == pytest.approx(1, abs=1e-12)
        assert (np.diff(lengths) >= 0).all()
    assert prompts_in_bins(tokens, cv2)[0] @ prompts_in_bins(tokens, cv2)[1] == pytest.approx(tokens, rel=1e-9)


@lru_cache
def simulated(kind, rate, prompt_cv, output_cv, scv):
    clock = LargestOf((AffineStep(A_STEP, A_SEQUENCE, prompt_token_s=A_TOKEN),))
    if kind == "prefill-first":
        clock = PrefillApart()
    workload = gamma_workload(rate, 40_000, Lengths(PROMPT, prompt_cv), Lengths(STEPS + 1, output_cv), 3, scv)
    settings = InstanceSettings(kind, clock, chunk_tokens=512 if kind == "chunked" else None)
    return simulate(workload, settings).part(2000, 39_000)


class PrefillApart:
    """A prompt takes 1 ms and its tokens; a decode step, its sequences."""

    def __call__(self, prompt_tokens, _cached_tokens, decoding, _context_sum):
        return 1e-3 + A_TOKEN * prompt_tokens if prompt_tokens else decode_step(decoding)


UNEVEN = [(1, 0, 1), (0, 1, 1), (0, 0, 4), (1, 1, 1), (1, 1, 3), (0, 0, 0.3)]


@pytest.mark.parametrize(("prompt_cv", "output_cv", "scv"), UNEVEN)
def test_prefill_first_by_events(prompt_cv, output_cv, scv):
    """Means within 4 % and P90 within 8 % at a load of the prompts of 0.45, simulation noise included."""
    rate = 0.45 / law_of(0).mean
    served = simulated("prefill-first", rate, prompt_cv, output_cv, scv)
    both = prefill_first(rate, law_of(prompt_cv), STEPS, decode_step, arrival_scv=scv, lengths_cv2=output_cv**2)
    tpot = served.tpot[served.output_tokens > 1]
    assert both.mean_ttft == pytest.approx(served.ttft.mean(), rel=0.04)
    assert float(both.ttft_quantile(0.9)) == pytest.approx(np.quantile(served.ttft, 0.9), rel=0.05)
    assert both.mean_tpot == pytest.approx(tpot.mean(), rel=0.04)
    assert float(both.tpot_quantile(0.9)) == pytest.approx(np.quantile(tpot, 0.9), rel=0.08)


@pytest.mark.parametrize(("prompt_cv", "output_cv", "scv"), UNEVEN)
def test_chunked_by_events(prompt_cv, output_cv, scv):
    """Of TPOT, means within 5 % and P90 within 8 %; of TTFT, 15 %: those that wait are taken for equal ones."""
    rate = 0.45 / law_of(0).mean
    served = simulated("chunked", rate, prompt_cv, output_cv, scv)
    uneven = Unevenness(scv, prompt_cv**2)
    both = chunked(rate, PROMPT, STEPS, mixed_step, 512, prompts=uneven, lengths_cv2=output_cv**2)
    tpot = served.tpot[served.output_tokens > 1]
    assert both.mean_ttft == pytest.approx(served.ttft.mean(), rel=0.15)
    assert float(both.ttft_quantile(0.9)) == pytest.approx(np.quantile(served.ttft, 0.9), rel=0.15)
    assert both.mean_tpot == pytest.approx(tpot.mean(), rel=0.05)
    assert float(both.tpot_quantile(0.9)) == pytest.approx(np.quantile(tpot, 0.9), rel=0.08)


@pytest.mark.parametrize("scv", [0.3, 4.0])
def test_a_pool_behind_bursts_by_events(scv):
    rate = 200.0
    workload = gamma_workload(rate, 60_000, Lengths(PROMPT), Lengths(STEPS + 1), 4, scv)
    served = simulate(workload, InstanceSettings("decode", AffineStep(A_STEP, A_SEQUENCE))).part(3000, 58_000)
    times = BunchedTimes(stationary_law(rate, STEPS, decode_step), 0.0, scv)
    assert times.mean == pytest.approx(served.tpot.mean(), rel=0.01)
    assert float(times.quantile(0.9)) == pytest.approx(np.quantile(served.tpot, 0.9), rel=0.03)
    share = float(times.share_within(np.quantile(served.tpot, 0.9)))
    assert share == pytest.approx(0.9, abs=0.05)


def test_chunked_with_even_prompts_is_unchanged():
    plain = chunked(40, PROMPT, STEPS, mixed_step, 512)
    even = chunked(40, PROMPT, STEPS, mixed_step, 512, prompts=Unevenness(1.0, 0.0), lengths_cv2=0.0)
    assert even.mean_tpot == plain.mean_tpot
    assert even.mean_ttft == plain.mean_ttft


def test_so_loose_a_limit_that_hardly_any_load_misses_it():
    law = service_law(LognormalLengths(0.02, 2.0), lambda time: np.asarray(time))
    highest = max_rate(60.0, 0.01, law, 2.0)
    assert 0.999 / law.mean < highest < 1 / law.mean


def test_what_differs_from_sequence_to_sequence_adds_to_the_dispersion_and_not_to_the_mean():
    law = stationary_law(200, 64, lambda n: 6.6e-3 + 2.66e-5 * n)
    alike, different, bursts = BunchedTimes(law, 0.0), BunchedTimes(law, 0.0, 1.0, 3.0), BunchedTimes(law, 0.0, 4.0)
    assert different.mean == alike.mean < bursts.mean
    away = float(different.quantile(0.9)) - different.mean
    assert away == pytest.approx(2 * (float(alike.quantile(0.9)) - alike.mean))
    assert away == pytest.approx(float(bursts.quantile(0.9)) - bursts.mean)
    assert float(different.share_within(different.quantile(0.9))) == pytest.approx(0.9)
