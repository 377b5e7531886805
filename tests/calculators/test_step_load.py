"""What a step does, on real records: against the figures of the lecture and against counting by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hardware_db
from calculators.machine import MachineInputs, machine_of
from calculators.step_load import StepContents, attention_flops, matmul_flops, step_load
from formulas.step_time import step_time

LLAMA_8B = MachineInputs()


def step_ms(inputs, **contents):
    return 1e3 * step_time(step_load(inputs, StepContents(**contents)), machine_of(inputs)).total_s


@pytest.mark.parametrize(("prompt", "expected"), [(0, 7.6960), (128, 7.6960), (512, 14.8954), (2048, 55.4837)])
def test_mixed_steps_of_the_lecture(prompt, expected):
    time = step_ms(LLAMA_8B, prompt_tokens=prompt, sequences=32, context_tokens=700)
    assert time == pytest.approx(expected, rel=1e-4)


def test_attention_and_projections_of_exercise_9():
    inputs = MachineInputs(model="llama-3.1-70b", compute_efficiency=1, memory_efficiency=1)
    contents = StepContents(sequences=1024, context_tokens=1)
    load = step_load(inputs, contents)
    time = step_time(load, machine_of(inputs))
    assert 1e3 * matmul_flops(inputs, contents) / 989e12 == pytest.approx(143.9227, rel=1e-4)
    assert 1e3 * time.weights_s == pytest.approx(41.4936, rel=1e-4)
    assert attention_flops(inputs, contents) / load.kv_bytes == pytest.approx(8)
    assert matmul_flops(inputs, contents) / load.weight_bytes == pytest.approx(1024)


def test_a_latent_is_attended_in_its_own_width_and_read_once_for_all_heads():
    inputs, contents = MachineInputs(model="deepseek-v3"), StepContents(sequences=1, context_tokens=1000)
    intensity = attention_flops(inputs, contents) / step_load(inputs, contents).kv_bytes
    assert intensity == pytest.approx(2 * 128 * (576 + 512) / (2 * 576))  # 242: nearly at the ridge of an H100


def test_a_draft_of_several_tokens_counts_each_pair_once():
    one_by_one = sum(
        attention_flops(LLAMA_8B, StepContents(sequences=3, context_tokens=700 + step)) for step in range(5)
    )
    together = attention_flops(LLAMA_8B, StepContents(sequences=3, context_tokens=700, new_tokens=5))
    assert together == pytest.approx(one_by_one, rel=1e-12)
    assert step_load(LLAMA_8B, StepContents(sequences=3, context_tokens=700, new_tokens=5)).tokens == 15


def test_selected_and_window_layers_read_no_more_than_they_attend_to():
    sparse = MachineInputs(model="deepseek-v3.2")
    most = next(
        g.selected_entries for g in hardware_db.models()["deepseek-v3.2"].attention_groups if g.selected_entries
    )
    read = [step_load(sparse, StepContents(sequences=1, context_tokens=n)).kv_bytes for n in (most, 10 * most)]
    assert read[0] == read[1]


def test_the_state_of_linear_layers_is_read_by_each_sequence_and_divided_over_the_ranks():
    inputs = MachineInputs(model="qwen3-next-80b-a3b", tp=2)
    model = hardware_db.models()[inputs.model]
    load = step_load(inputs, StepContents(sequences=10, context_tokens=1000))
    rank = 10 * (2 * model.kv_elements_per_rank(1000, 2) + 4 * model.state_elements_per_sequence / 2)
    assert load.kv_bytes / load.kv_shards == pytest.approx(rank)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(list(hardware_db.models())),
    st.integers(1, 500),
    st.integers(1, 50_000),
    st.integers(0, 5000),
)
def test_more_of_anything_takes_no_less_time(model, sequences, context, prompt):
    inputs = MachineInputs(model=model)
    base = {"sequences": sequences, "context_tokens": context, "prompt_tokens": prompt}
    time = step_ms(inputs, **base)
    for name in base:
        assert step_ms(inputs, **base | {name: 2 * base[name] + 1}) >= time * (1 - 1e-12)
    many = step_ms(inputs, **base | {"sequences": np.array([sequences, sequences + 1])})
    assert many[0] == pytest.approx(time, rel=1e-12)
