import numpy as np
import pytest

from formulas.montecarlo.serving import (
    AffineStep,
    InstanceSettings,
    LargestOf,
    Lengths,
    Workload,
    poisson_workload,
    simulate,
)
from tests.formulas.montecarlo.serving.token_by_token import TokenByToken

STEPS = LargestOf((AffineStep(1e-3, 4e-4, 3e-6, 4e-4, 3e-6), AffineStep(4e-3, 0.0, 1e-5, 0.0, 0.0, 1e-5)))
KINDS = {
    "prefill": InstanceSettings("prefill", STEPS),
    "decode": InstanceSettings("decode", STEPS),
    "decode, little memory": InstanceSettings("decode", STEPS, kv_tokens=300),
    "decode, few places": InstanceSettings("decode", STEPS, max_batch=3),
    "prefill first": InstanceSettings("prefill-first", STEPS),
    "prefill first, little memory": InstanceSettings("prefill-first", STEPS, kv_tokens=350),
    "prefill first, few places": InstanceSettings("prefill-first", STEPS, max_batch=4),
    "chunked": InstanceSettings("chunked", STEPS, chunk_tokens=32),
    "chunked, little memory": InstanceSettings("chunked", STEPS, kv_tokens=400, chunk_tokens=24),
    "chunked, starving": InstanceSettings("chunked", STEPS, chunk_tokens=2),
    "chunked, no bound": InstanceSettings("chunked", STEPS, chunk_tokens=10**9),
}
PROMPTS, OUTPUTS = Lengths(40, 1.0, longest=200), Lengths(15, 1.0, longest=90)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rate", [1.0, 12.0, 40.0])
def test_is_the_simulation_token_by_token(kind, rate):
    settings = KINDS[kind]
    workload = poisson_workload(rate, 300, PROMPTS, OUTPUTS, seed=7)
    if settings.kind == "decode":
        workload = workload.only(workload.output_tokens > 1)
    served = simulate(workload, settings)
    plain = TokenByToken(workload, settings).run()
    np.testing.assert_allclose(served.completions, plain.completion, rtol=1e-11)
    if settings.kind != "decode":
        np.testing.assert_allclose(served.first_tokens, plain.first, rtol=1e-11)
    limit = settings.kv_tokens or np.inf
    assert plain.peak <= served.instances[0].peak_kv_tokens <= limit
    assert served.instances[0].peak_batch <= (settings.max_batch or np.inf)


@pytest.mark.parametrize("kind", KINDS)
def test_any_callable_gives_what_its_fast_form_gives(kind):
    settings = KINDS[kind]
    workload = poisson_workload(10.0, 400, PROMPTS, OUTPUTS, seed=8)
    slow = InstanceSettings(
        settings.kind, lambda *step: STEPS(*step), settings.kv_tokens, settings.max_batch, settings.chunk_tokens
    )
    np.testing.assert_allclose(
        simulate(workload, settings).completions, simulate(workload, slow).completions, rtol=1e-11
    )


@pytest.mark.parametrize("instances", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_lost_or_done_twice(kind, instances):
    settings = KINDS[kind]
    workload = poisson_workload(25.0, 2000, PROMPTS, OUTPUTS, seed=9)
    served = simulate(workload, settings, instances)
    extra = 0 if settings.kind == "prefill" else int((workload.output_tokens - 1).sum())
    prompts = 0 if settings.kind == "decode" else int(workload.prompt_tokens.sum())
    finished = np.count_nonzero(workload.output_tokens > 1) if settings.kind == "decode" else 2000
    assert len(served) == 2000
    assert np.all(np.isfinite(served.completions))
    assert sum(i.requests for i in served.instances) == finished
    assert sum(i.decoded_tokens for i in served.instances) == extra
    assert sum(i.prompt_tokens for i in served.instances) == prompts
    assert all(i.busy_s <= served.completions.max() for i in served.instances)


@pytest.mark.parametrize("kind", [k for k in KINDS if not k.startswith("decode")])
def test_first_come_first_served(kind):
    workload = poisson_workload(25.0, 2000, PROMPTS, OUTPUTS, seed=10)
    served = simulate(workload, KINDS[kind])
    alone = [STEPS(tokens, 0, 0, 0) for tokens in workload.prompt_tokens]
    assert np.all(np.diff(served.first_tokens) >= 0)
    assert np.all(served.completions >= served.first_tokens)
    assert np.all(served.ttft >= np.multiply(alone, 1 - 1e-9))


def test_a_long_prompt_delays_who_comes_behind_it():
    arrivals, outputs = [0.0, 0.001, 0.002], [4, 4, 4]
    settings = InstanceSettings("prefill-first", AffineStep(1e-3, prompt_token_s=1e-3))
    short = simulate(Workload(arrivals, [10, 10, 10], outputs), settings)
    long = simulate(Workload(arrivals, [2000, 10, 10], outputs), settings)
    np.testing.assert_allclose(long.ttft - short.ttft, 1.99)
    before = simulate(Workload(arrivals, [10, 10, 2000], outputs), settings)
    np.testing.assert_allclose(before.ttft[:2], short.ttft[:2])
    assert before.tpot[0] > short.tpot[0] + 0.5


def test_chunks_bound_what_a_long_prompt_costs_the_decoding():
    step = AffineStep(4e-3, 1e-4, prompt_token_s=1e-4)
    workload = Workload([0.0, 0.05], [10, 4000], [100, 10])
    whole = simulate(workload, InstanceSettings("prefill-first", step))
    chunked = simulate(workload, InstanceSettings("chunked", step, chunk_tokens=50))
    assert chunked.tpot[0] < whole.tpot[0]
    assert chunked.ttft[1] > whole.ttft[1]


def test_a_budget_without_end_takes_all_prompts_and_the_decoding_into_one_step():
    step = AffineStep(1.0, 0.01, prompt_token_s=0.1)
    served = simulate(
        Workload([0.0, 0.5, 0.6], [10, 5, 15], [3, 1, 1]), InstanceSettings("chunked", step, None, None, 10**6)
    )
    np.testing.assert_allclose(served.first_tokens, [2.0, 5.01, 5.01])
    np.testing.assert_allclose(served.completions, [6.02, 5.01, 5.01])


def test_several_prompts_in_a_step_do_not_attend_to_one_another():
    pairs = AffineStep(0.0, pair_s=1.0)
    served = simulate(Workload([0.0, 0.0], [10, 20], [1, 1]), InstanceSettings("chunked", pairs, chunk_tokens=100))
    np.testing.assert_allclose(served.first_tokens, 50.0 + 200.0)


def test_who_comes_as_a_step_begins_takes_part_in_it():
    served = simulate(Workload([0.0, 0.0, 1.0], [9, 9, 9], [2, 3, 2]), InstanceSettings("decode", AffineStep(1.0)))
    np.testing.assert_allclose(served.completions, [1.0, 2.0, 2.0])


def test_a_sequence_waits_for_memory_and_so_does_everyone_behind_it():
    workload = Workload([0.0, 0.1, 0.2], [50, 60, 5], [11, 3, 3])
    served = simulate(workload, InstanceSettings("decode", AffineStep(1.0), kv_tokens=100))
    np.testing.assert_allclose(served.completions, [10.0, 12.0, 12.0])


def test_a_request_that_never_fits():
    with pytest.raises(ValueError, match="A request of 109 tokens never fits into a cache of 100"):
        simulate(Workload([0.0], [100], [10]), InstanceSettings("prefill-first", AffineStep(1.0), kv_tokens=100))


@pytest.mark.parametrize(
    ("kind", "limits", "sentence"),
    [
        ("chunked", {}, "token budget"),
        ("prefill", {"chunk_tokens": 512}, "token budget"),
        ("decode", {"kv_tokens": 0}, "at least one"),
    ],
)
def test_settings_that_make_no_sense(kind, limits, sentence):
    with pytest.raises(ValueError, match=sentence):
        InstanceSettings(kind, AffineStep(1.0), **limits)
