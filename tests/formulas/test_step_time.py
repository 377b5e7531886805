import numpy as np
import pytest

from formulas.step_time import (
    Machine,
    StepLoad,
    attended_pairs,
    attention_flops,
    matmul_flops,
    step_time,
)


def machine(course, tp=1):
    return Machine(tp=tp, **course["assumptions"])


def load(model, *, prompt=0, batch=0, context=0):
    """A prompt, and decoding sequences that read their cache; writes to the cache are left out."""
    pairs = attended_pairs(prompt, 0) + batch * context
    head = model["head_dim"]
    return StepLoad(
        flops=matmul_flops(model["matmul_params"], prompt + batch)
        + attention_flops(model["layers"], model["heads"], head, head, pairs),
        weight_bytes=2 * model["matmul_params"],
        kv_bytes=batch * context * model["kv_bytes_per_token"],
        kv_shards=model["kv_heads"],
        tokens=prompt + batch,
        hidden=model["hidden"],
        layers=model["layers"],
    )


@pytest.mark.parametrize(("name", "tp"), [("llama_8b", 1), ("llama_70b", 1), ("llama_70b", 2)])
def test_prefill_of_512_tokens(course, name, tp):
    step = step_time(load(course[name], prompt=512), machine(course, tp))
    assert 1e3 * step.total_s == pytest.approx(course["prefill_512_ms"][f"{name}_tp{tp}"], rel=1e-5)
    assert step.bound == "compute"


def test_decode_alone_and_with_a_prompt(course):
    figures = course["decode_ms"]
    for prompt, expected in zip(figures["prompt_tokens"], figures["step"], strict=True):
        mixed = load(course["llama_8b"], prompt=prompt, batch=figures["batch"], context=figures["context_tokens"])
        assert 1e3 * step_time(mixed, machine(course)).total_s == pytest.approx(expected, rel=1e-5)


def test_arrays_equal_numbers(course):
    prompts = np.array([0, 128, 512, 2048])
    many = step_time(load(course["llama_8b"], prompt=prompts, batch=32, context=700), machine(course))
    for i, prompt in enumerate(prompts):
        one = step_time(load(course["llama_8b"], prompt=int(prompt), batch=32, context=700), machine(course))
        assert one.total_s == pytest.approx(many.total_s[i], rel=1e-15)
        assert one.bound == many.bound[i]
    assert list(many.bound) == ["memory", "memory", "compute", "compute"]


def test_cache_is_replicated_beyond_its_shards(course):
    times = {tp: step_time(load(course["llama_8b"], batch=32, context=700), machine(course, tp)) for tp in (1, 8, 16)}
    assert times[8].kv_s == pytest.approx(times[1].kv_s / 8)
    assert times[16].kv_s == times[8].kv_s
    assert times[16].weights_s == pytest.approx(times[1].weights_s / 16)


def test_parts_add_up(course):
    step = step_time(load(course["llama_70b"], prompt=100, batch=64, context=900), machine(course, 4))
    assert step.weights_s + step.kv_s == pytest.approx(step.memory_s, rel=1e-15)
    whole = max(step.compute_s, step.memory_s) + step.collectives_s + step.overhead_s
    assert step.total_s == pytest.approx(whole, rel=1e-15)


def test_one_rank_communicates_nothing(course):
    assert step_time(load(course["llama_8b"], prompt=512), machine(course)).collectives_s == 0.0


def test_impossible_machines():
    with pytest.raises(ValueError, match="link between them"):
        Machine(1e15, 1e12, 2, None, 0.6, 0.8, 0.0, 0.0)
    with pytest.raises(ValueError, match="at least one rank"):
        Machine(1e15, 1e12, 0, None, 0.6, 0.8, 0.0, 0.0)


@pytest.mark.parametrize(("new", "cached", "window"), [(10, 3, 8), (10, 30, 8), (3, 2, 8), (5, 0, None), (5, 7, None)])
def test_attended_pairs_is_the_integral(new, cached, window):
    x = cached + (np.arange(100_000) + 0.5) * new / 100_000
    integral = np.mean(np.minimum(x, window or np.inf)) * new
    assert attended_pairs(new, cached, window) == pytest.approx(integral, rel=1e-8)
    assert attended_pairs(np.array([new]), cached, window)[0] == attended_pairs(new, cached, window)


def test_attention_is_four_per_head_dim():
    assert attention_flops(32, 32, 128, 128, 10.0) == 4 * 32 * 128 * 32 * 10
    assert attention_flops(61, 128, 192, 128, 1.0) == 2 * (192 + 128) * 128 * 61
