import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulas.closed_form import DomainError
from formulas.interference import (
    CLOSED_LOOP_TPOT,
    CLOSED_LOOP_TTFT,
    PROMPT_BEFORE_TPOT,
    PROMPT_BEFORE_TTFT,
    closed_loop,
)
from formulas.interference.closed_loop import company
from tests.formulas import step_by_step

# Llama-3.1-8B on an H100 by the course's assumptions: a token's and a pair's FLOP, weights, a token of the cache
FLOPS, PAIR, WEIGHTS, KV = 2 * 7504658432, 4 * 32 * 32 * 128, 2 * 7504658432, 131072
PEAK, BANDWIDTH, OVERHEAD = 0.6 * 989e12, 0.8 * 3.35e12, 1e-3
SHARE = 0.9  # mean of lengths that are uniform from 0.8 to 1 of those named


def step_s(contexts, prompt, before):
    """Time of a step whose sequences have these contexts, and whose prompt tokens come after so many of their own."""
    context = sum(contexts)
    flops = FLOPS * (len(contexts) + prompt) + PAIR * (prompt * before + prompt**2 / 2 + context)
    return max(flops / PEAK, (WEIGHTS + KV * context) / BANDWIDTH) + OVERHEAD


def simulated(in_flight, prompt, output, budget, seed):
    """Mean TTFT and TPOT, and the relative standard error of the latter, without the first and the last requests."""
    rng, number = np.random.default_rng(seed), 40 * in_flight + 200
    prompts = rng.integers(int(0.8 * prompt), prompt, number, endpoint=True).tolist()
    outputs = rng.integers(int(0.8 * output), output, number, endpoint=True).tolist()
    ttft, decoding = step_by_step.closed_loop(in_flight, prompts, outputs, step_s, budget)
    some = slice(10 * in_flight, number - in_flight)
    tpot = (decoding / (np.array(outputs) - 1))[some]
    return ttft[some].mean(), tpot.mean(), tpot.std() / np.sqrt(tpot.size) / tpot.mean()


def means_of(prompt, output):
    """Mean prompt, decode steps, and context."""
    tokens = SHARE * output - 1
    return round(SHARE * prompt), tokens, SHARE * prompt + (tokens + 1) / 2


@pytest.mark.parametrize(
    ("in_flight", "prompt", "output", "within"),
    [(1, 512, 64, 0.003), (8, 512, 64, 0.01), (32, 512, 64, 0.015), (32, 1024, 128, 0.015), (16, 4096, 128, 0.015)],
)
def test_prompts_along_with_tokens_against_a_simulation(in_flight, prompt, output, within):
    length, tokens, context = means_of(prompt, output)

    def mixed(n, p):  # each prompt token attends to half of its prompt
        flops = FLOPS * (n + p) + PAIR * (p * length / 2 + n * context)
        return np.maximum(flops / PEAK, (WEIGHTS + KV * n * context) / BANDWIDTH) + OVERHEAD

    loop = closed_loop(in_flight, length, tokens, mixed, 8192)
    ttft, tpot, error = simulated(in_flight, prompt, output, 8192, 5)
    assert loop.mean_tpot == pytest.approx(tpot, rel=within + 3 * error)
    assert loop.mean_ttft == pytest.approx(ttft, rel=0.1)
    assert loop.throughput == pytest.approx(in_flight / (ttft + tokens * tpot), rel=0.02 + 3 * error)


@pytest.mark.parametrize(
    ("in_flight", "prompt", "output"), [(1, 512, 64), (8, 512, 64), (32, 512, 64), (32, 1024, 128), (16, 4096, 128)]
)
def test_prompts_before_tokens_against_a_simulation(in_flight, prompt, output):
    length, tokens, context = means_of(prompt, output)
    given = {"in_flight": in_flight, "tokens": tokens, "prompt_s": step_s([], length, 0)}
    ttft, tpot, error = simulated(in_flight, prompt, output, None, 6)
    formula = PROMPT_BEFORE_TPOT(step_s=step_s([context] * in_flight, 0, 0), **given)
    assert formula == pytest.approx(tpot, rel=0.004 + 3 * error)
    assert PROMPT_BEFORE_TTFT(**given) == pytest.approx(ttft, rel=0.07)


LOOPS = {
    "n": st.integers(1, 200),
    "m": st.integers(1, 2000),
    "p": st.integers(1, 4000),
    "budget": st.integers(300, 9000),
}
AFFINE = {"a": st.floats(1e-3, 0.1), "b": st.floats(0, 1e-3), "c": st.floats(0, 1e-4)}


def affine_loop(n, m, p, budget, a, b, c):
    try:
        return closed_loop(n, p, m, lambda sequences, prompt: a + b * sequences + c * prompt, budget)
    except DomainError:
        return None


@given(**LOOPS, **AFFINE)
@settings(deadline=None, max_examples=60)
def test_where_each_prompt_adds_as_much_it_is_the_closed_form(n, m, p, budget, a, b, c):
    loop = affine_loop(n, m, p, budget, a, b, c)
    if loop is None:
        return
    chunks, excess = loop.chunks, c * p
    form = CLOSED_LOOP_TPOT(in_flight=n, tokens=m, chunks=chunks, step_s=a + b * loop.mean_batch, excess_s=excess)
    assert loop.mean_tpot == pytest.approx(form, rel=1e-6)
    ttft = CLOSED_LOOP_TTFT(chunks=chunks, mean_tpot=form, excess_s=excess)
    assert loop.mean_ttft == pytest.approx(ttft - chunks * b, rel=1e-6)  # my own place is the prompt's


@given(**LOOPS, **AFFINE)
@settings(deadline=None, max_examples=60)
def test_more_in_flight_is_more_throughput_and_no_faster(n, m, p, budget, a, b, c):
    few, more = affine_loop(n, m, p, budget, a, b, c), affine_loop(n + 1, m, p, budget, a, b, c)
    if few is None or more is None or more.chunks != few.chunks:
        return
    assert more.mean_tpot >= few.mean_tpot * (1 - 1e-6)
    assert more.throughput >= few.throughput * (1 - 1e-6)
    assert 1 <= few.mean_batch <= n


@given(**LOOPS)
@settings(deadline=None, max_examples=60)
def test_the_others_are_somewhere(n, m, p, budget):
    try:
        others = company(n, p, m, budget)
    except DomainError:
        return
    assert others.probability.sum() == pytest.approx(1, abs=1e-6)
    assert (others.others_prompts + others.others_decoding == n - 1).all()


def test_alone_there_is_nobody_to_wait_for():
    loop = closed_loop(1, 512, 63, lambda n, p: 5e-3 + 1e-4 * n + 2e-5 * p, 8192)
    assert (loop.mean_batch, loop.mean_tpot) == (1.0, pytest.approx(5.1e-3))
    assert loop.mean_ttft == pytest.approx(5e-3 + 512 * 2e-5)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"in_flight": 512, "budget": 512}, "no room for a prompt"),
        ({"in_flight": 64, "budget": 512, "prompt_tokens": 4096}, "they queue for it"),
        ({"in_flight": 0}, "at least one request"),
        ({"tokens": 0}, "Without a decode step"),
    ],
)
def test_outside_there_is_a_sentence(given, sentence):
    with pytest.raises(DomainError, match=sentence):
        closed_loop(**({"in_flight": 4, "prompt_tokens": 512, "tokens": 63, "budget": 8192} | given), mixed_time=max)


def test_derivations_end_at_the_formula():
    for form in (CLOSED_LOOP_TPOT, CLOSED_LOOP_TTFT, PROMPT_BEFORE_TPOT):
        assert form.steps[-1].equation.rhs == form.expression
