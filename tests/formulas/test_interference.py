import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from formulas.closed_form import DomainError
from formulas.decode_pool import AFFINE_MEAN_TPOT, stationary_law
from formulas.interference import (
    BUSY_MEAN,
    BUSY_VARIANCE,
    FREE_TOKENS,
    PREFILL_FIRST_TPOT,
    PREFILL_FIRST_TTFT,
    REREAD_TOKENS,
    SLOWDOWN,
    SPARE_FLOPS,
    chunked,
    delay_busy_law,
    delay_busy_quantile,
    prefill_first,
)
from formulas.montecarlo.confidence import mean_interval
from formulas.queueing import md1
from formulas.step_time import Machine, StepLoad, attended_pairs, attention_flops, matmul_flops, step_time
from tests.formulas import step_by_step

PARAMS, TOKEN_BYTES, LAYERS, HEADS, DIM = 7504658432, 131072, 32, 32, 128  # Llama-3.1-8B
H100 = Machine(989e12, 3.35e12, 1, None, 0.6, 0.8, 2e-6, 1e-3)
PROMPT, STEPS = 512, 63
CONTEXT = PROMPT + (STEPS - 1) / 2
BUSY = {"work": st.floats(1e-3, 5), "rate": st.floats(0.1, 50), "load": st.floats(0.01, 0.9)}


def one_step(sequences, context, prompt, pairs=None):
    pairs = attended_pairs(prompt, 0) if pairs is None else pairs
    flops = matmul_flops(PARAMS, sequences + prompt)
    flops = flops + attention_flops(LAYERS, HEADS, DIM, DIM, pairs + sequences * context)
    kv = TOKEN_BYTES * sequences * context
    return step_time(StepLoad(flops, 2 * PARAMS, kv, 8, sequences + prompt, 4096, LAYERS), H100)


def mixed(sequences, prompt):
    return one_step(sequences, CONTEXT, prompt, prompt * PROMPT / 2).total_s


def plain(sequences):
    return mixed(sequences, 0.0)


def open_share(values):
    """Half-width of the 99.9 % interval of a simulated mean, relative to it."""
    interval = mean_interval(values, 0.999)
    return (interval.high - interval.low) / 2 / interval.estimate


PREFILL = one_step(0, 0, PROMPT).total_s
FIXED = float(plain(1.0)) - (float(plain(2.0)) - float(plain(1.0)))
SLOPE = float(plain(2.0)) - float(plain(1.0))


def test_a_prompt_in_a_step_of_32_sequences():
    """Lecture, section 2.2: 7.696 ms alone and with 128 tokens, 14.895 with 512, 55.484 with 2048."""
    alone = one_step(32, 700, 0)
    times = [one_step(32, 700, p).total_s for p in (128, 512, 2048)]
    np.testing.assert_allclose([alone.total_s, *times], [7.6960e-3, 7.6960e-3, 14.8954e-3, 55.4837e-3], rtol=1e-4)
    assert SLOWDOWN(mixed_step_s=times[1], decode_step_s=alone.total_s) == pytest.approx(1.9355, rel=1e-4)


def test_the_prompt_that_rides_free_takes_all_the_spare_arithmetic():
    alone = one_step(32, 700, 0)
    machine = {"compute_efficiency": 0.6, "peak_flops": 989e12, "tp": 1}
    spare = SPARE_FLOPS(memory_s=alone.memory_s, decode_flops=alone.compute_s * 0.6 * 989e12, **machine)
    pair = attention_flops(LAYERS, HEADS, DIM, DIM, 1)
    free = FREE_TOKENS(spare_flops=spare, token_flops=matmul_flops(PARAMS, 1), pair_flops=pair)
    assert free == pytest.approx(231.0, abs=0.5)
    step = one_step(32, 700, free)
    assert step.compute_s == pytest.approx(step.memory_s, rel=1e-12)
    assert one_step(32, 700, free + 1).total_s > alone.total_s
    with pytest.raises(DomainError, match="bound by compute"):
        SPARE_FLOPS(memory_s=1e-3, decode_flops=1e15, **machine)


@given(**BUSY)
@settings(deadline=None)
def test_busy_period_sums_to_its_moments(work, rate, load):
    interruption = load / rate
    law = delay_busy_law(work, rate, interruption)
    n = np.arange(law.size)
    assert law.sum() == pytest.approx(1, abs=1e-9)
    given = {"rate": rate, "work_s": work, "interruption_s": interruption}
    mean, variance = work + interruption * (law @ n), interruption**2 * (law @ n**2 - (law @ n) ** 2)
    assert mean == pytest.approx(BUSY_MEAN(**given), rel=1e-9)
    assert variance == pytest.approx(BUSY_VARIANCE(**given), rel=1e-6)
    quantiles = delay_busy_quantile([0.1, 0.5, 0.9, 0.99], work, rate, interruption)
    assert (np.diff(quantiles) >= 0).all()
    assert quantiles[0] >= work


def test_busy_period_by_drawing_it():
    """Work is done; what arrived meanwhile is served; what arrived during that; and so on."""
    rng = np.random.default_rng(3)
    work, rate, interruption = 0.5, 20.0, 0.03
    number = np.zeros(40_000, dtype=int)
    new = rng.poisson(rate * work, number.size)
    while new.any():
        number += new
        new = rng.poisson(rate * interruption * new)
    law = delay_busy_law(work, rate, interruption)
    seen = np.bincount(number, minlength=law.size)[: law.size] / number.size
    assert np.abs(seen - law).max() < 4 * np.sqrt(law.max() / number.size)
    exact = delay_busy_quantile(0.9, work, rate, interruption)
    assert exact == pytest.approx(work + interruption * np.quantile(number, 0.9), rel=0.02)


def test_no_work_is_done_at_once():
    assert delay_busy_quantile(0.99, 0.0, 10.0, 0.05) == 0.0
    assert delay_busy_quantile(0.5, 1.0, 10.0, 0.0) == 1.0


def test_derivations_end_at_the_formula():
    for form in (BUSY_MEAN, BUSY_VARIANCE, FREE_TOKENS, PREFILL_FIRST_TPOT, PREFILL_FIRST_TTFT):
        assert form.steps[-1].equation.rhs == form.expression


def test_prefill_first_without_prompts_is_the_decode_pool():
    pool = {v.name: v.symbol for v in AFFINE_MEAN_TPOT.arguments}
    service = PREFILL_FIRST_TPOT.argument("service_time").symbol
    alone = PREFILL_FIRST_TPOT.expression.subs(service, 0)
    assert sp.simplify(alone - AFFINE_MEAN_TPOT.expression) == 0
    assert set(pool) == {"rate", "tokens", "fixed_s", "slope_s"}
    none = prefill_first(100, 1e-12, STEPS, plain)
    assert none.mean_tpot == pytest.approx(stationary_law(100, STEPS, plain).mean_tpot, rel=1e-12)


def test_prefill_first_by_its_derivation():
    ahead, step = PREFILL_FIRST_TPOT.steps[-3].equation, PREFILL_FIRST_TPOT.steps[-2].equation
    busy = PREFILL_FIRST_TPOT.steps[-4].equation.rhs.subs({step.lhs: step.rhs, ahead.lhs: ahead.rhs})
    m = PREFILL_FIRST_TPOT.argument("tokens").symbol
    assert sp.simplify(busy / m - PREFILL_FIRST_TPOT.expression) == 0


@given(rate=st.floats(0.5, 55))
@settings(max_examples=25, deadline=None)
def test_prefill_first_equals_its_closed_forms(rate):
    both = prefill_first(rate, PREFILL, STEPS, plain)
    closed = PREFILL_FIRST_TPOT(rate=rate, service_time=PREFILL, tokens=STEPS, fixed_s=FIXED, slope_s=SLOPE)
    assert both.mean_tpot == pytest.approx(closed, rel=1e-6)
    assert both.mean_ttft >= md1.MEAN_TTFT(rate=rate, service_time=PREFILL)
    quantiles = [both.tpot_quantile(level) for level in (0.1, 0.5, 0.9, 0.99)]
    assert quantiles == sorted(quantiles)


@pytest.mark.parametrize("rate", [10, 20, 30, 40, 50])
def test_prefill_first_by_events(rate):
    """Within 1 % for the mean TTFT and TPOT and 1.5 % for P90, beside what the simulation itself leaves open."""
    rng, count = np.random.default_rng(rate), 60_000 if rate < 40 else 400_000
    arrivals = np.cumsum(rng.exponential(1 / rate, count))
    first, last = step_by_step.prefill_first(arrivals, STEPS, lambda n: FIXED + SLOPE * n, PREFILL)
    ttft, tpot = (first - arrivals)[2000:], ((last - first) / STEPS)[2000:]
    both = prefill_first(rate, PREFILL, STEPS, plain)
    noise = open_share(tpot)
    assert both.mean_ttft == pytest.approx(ttft.mean(), rel=0.01 + open_share(ttft))
    assert both.mean_tpot == pytest.approx(tpot.mean(), rel=0.01 + noise)
    assert both.tpot_quantile(0.9) == pytest.approx(np.quantile(tpot, 0.9), rel=0.015 + 2 * noise)
    assert both.token_times.deviation == pytest.approx(tpot.std(), rel=0.04 + 3 * noise)


@pytest.mark.parametrize(("rate", "budget"), [(10, 512), (40, 512), (40, 1024), (50, 1024), (40, 256)])
def test_chunked_by_events(rate, budget):
    rng, count = np.random.default_rng(rate), 120_000
    arrivals = np.cumsum(rng.exponential(1 / rate, count))
    table = np.asarray(mixed(np.arange(1.0, 400)[:, np.newaxis], np.arange(0.0, budget + 1)))
    first, last = step_by_step.chunked(arrivals, PROMPT, STEPS, lambda n, p: table[max(n, 1) - 1, p], budget)
    ttft, tpot = (first - arrivals)[2000:], ((last - first) / STEPS)[2000:]
    both = chunked(rate, PROMPT, STEPS, mixed, budget)
    noise = open_share(tpot)
    assert both.mean_ttft == pytest.approx(ttft.mean(), rel=0.02 + open_share(ttft))
    assert both.mean_tpot == pytest.approx(tpot.mean(), rel=0.01 + noise)
    assert both.tpot_quantile(0.9) == pytest.approx(np.quantile(tpot, 0.9), rel=0.015 + 2 * noise)


def test_chunks_shorten_the_tail_and_a_small_budget_needs_more_steps():
    whole = prefill_first(40, PREFILL, STEPS, plain)
    small, large = (chunked(40, PROMPT, STEPS, mixed, budget) for budget in (512, 2048))
    assert small.tpot_quantile(0.99) < large.tpot_quantile(0.99) < whole.tpot_quantile(0.99)
    assert small.excess_s < large.excess_s < PREFILL
    assert (small.prompt_steps, large.prompt_steps) == (2, 1)
    assert 0 < large.mixed_share < small.mixed_share < 1
    assert small.ttft_steps > small.prompt_steps
    assert small.mean_tpot < small.longest_s
    assert whole.mean_batch > small.mean_batch


def test_prompts_that_ride_free_cost_the_tokens_nothing():
    both = chunked(5, 64, STEPS, lambda n, p: 7e-3 + 2e-5 * n + 0 * p, 256)
    pool = stationary_law(5, STEPS, lambda n: 7e-3 + 2e-5 * n)
    assert both.excess_s == pytest.approx(0, abs=1e-15)
    assert both.mean_tpot == pytest.approx(pool.mean_tpot, rel=1e-9)
    assert both.tpot_quantile(0.9) >= both.mean_tpot


def test_reread_tokens():
    """Four chunks of 512: the second reads 512, the third 1024, the fourth 1536."""
    assert REREAD_TOKENS(prompt_tokens=2048, chunks=4) == 512 + 1024 + 1536
    assert REREAD_TOKENS(prompt_tokens=2048, chunks=1) == 0


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: prefill_first(80, PREFILL, STEPS, plain), "^Unstable: the prompts alone"),
        (lambda: prefill_first(70, PREFILL, STEPS, plain), "^Unstable"),
        (lambda: prefill_first(10, PREFILL, STEPS, plain).tpot_quantile(1.0), "between 0 and 1"),
        (lambda: chunked(70, PROMPT, STEPS, mixed, 512), "^Unstable"),
        (lambda: chunked(50, PROMPT, STEPS, mixed, 16), "^Starved"),
        (lambda: delay_busy_law(1.0, 10.0, 0.1), "^Unstable"),
        (lambda: delay_busy_law(-1.0, 10.0, 0.01), "cannot be negative"),
        (lambda: delay_busy_quantile(1.0, 1.0, 10.0, 0.01), "between 0 and 1"),
    ],
)
def test_outside_the_domain_the_answer_is_a_sentence(call, sentence):
    with pytest.raises(DomainError, match=sentence):
        call()


@pytest.mark.parametrize("rate", [10, 40])
def test_shares_within_a_time_undo_the_percentiles(rate):
    for law in (prefill_first(rate, PREFILL, STEPS, plain), chunked(rate, PROMPT, STEPS, mixed, 512)):
        for level in (0.1, 0.5, 0.9, 0.99):
            assert law.ttft_share_within(law.ttft_quantile(level)) == pytest.approx(level, abs=1e-6)
            time = law.tpot_quantile(level)
            within = law.tpot_share_within(time)
            assert within == pytest.approx(level, abs=1e-6) or (within == 1 and time == law.longest_s)
        assert law.ttft_share_within(0.0) == law.tpot_share_within(0.0) == 0
        several = law.ttft_quantile([0.5, 0.9])
        assert several == pytest.approx([float(law.ttft_quantile(level)) for level in (0.5, 0.9)], rel=1e-9)


def test_the_mean_is_that_of_the_law_of_the_first_token():
    law = prefill_first(40, PREFILL, STEPS, plain)
    levels = (np.arange(4000) + 0.5) / 4000
    assert law.ttft_quantile(levels).mean() == pytest.approx(law.mean_ttft, rel=2e-3)
    both = chunked(40, PROMPT, STEPS, mixed, 512)
    assert both.ttft_quantile(levels).mean() == pytest.approx(both.mean_ttft, rel=2e-3)


def test_a_guess_of_the_excess_changes_nothing_but_the_time():
    cold = chunked(30, PROMPT, STEPS, mixed, 512)
    warm = chunked(30, PROMPT, STEPS, mixed, 512, cold.excess_s)
    assert warm.mean_tpot == pytest.approx(cold.mean_tpot, rel=1e-3)
    assert warm.mean_ttft == pytest.approx(cold.mean_ttft, rel=1e-3)


def test_prompts_that_ride_for_free_take_nothing():
    law = chunked(1.0, 1, 10, lambda n, p: 0.01 + 1e-5 * n + 0 * p, 64)
    assert law.excess_s == 0
    assert law.tpot_share_within(1.0) == 1
