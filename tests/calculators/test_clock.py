"""The simulation's clock is the step-time model."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calculators.clock import clock_of
from calculators.machine import MachineInputs, machine_of
from calculators.step_load import StepContents, step_load
from formulas.step_time import step_time

INSTANCES = [
    MachineInputs(),
    MachineInputs(model="llama-3.1-70b", tp=4),
    MachineInputs(model="deepseek-v3", accelerator="h200-sxm", tp=8),
    MachineInputs(model="llama-2-70b", accelerator="a100-80-sxm", tp=4, assumptions="vllm-2023-a100"),
]


@pytest.mark.parametrize("inputs", INSTANCES, ids=lambda inputs: inputs.model)
@given(
    st.integers(0, 3000),
    st.integers(0, 3000),
    st.integers(0, 500),
    st.integers(512, 2048),
)
@settings(max_examples=25, deadline=None)
def test_a_step_takes_what_the_step_time_model_says(inputs, prompt, cached, sequences, context):
    if prompt + sequences == 0:
        return
    cached = cached if prompt else 0
    clock = clock_of(inputs, 4000, (512, 2048))
    contents = StepContents(prompt, cached, sequences, context)
    expected = step_time(step_load(inputs, contents), machine_of(inputs)).total_s
    assert clock(prompt, cached, sequences, sequences * context) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("inputs", INSTANCES, ids=lambda inputs: inputs.model)
def test_many_steps_at_once_are_those_steps_one_by_one(inputs):
    clock = clock_of(inputs, 4000, (512, 2048))
    for sequences in (1, 40, 700):
        done, total, context = 0, 0.0, sequences * 600
        while done < 1000:
            run = clock.decode_run(sequences, context, 1000 - done)
            total += run.duration()
            done += run.steps
            context += run.steps * sequences
        each = sum(clock(0, 0, sequences, sequences * (600 + k)) for k in range(1000))
        assert total == pytest.approx(each, rel=1e-9)


@pytest.mark.parametrize("inputs", INSTANCES, ids=lambda inputs: inputs.model)
def test_a_cached_prefix_is_attended_to_and_read(inputs):
    clock = clock_of(inputs, 4000, (512, 2048), cached_tokens=300)
    for prompt, sequences in ((512, 0), (512, 40), (0, 40)):
        contents = StepContents(prompt, 300 if prompt else 0, sequences, 900)
        expected = step_time(step_load(inputs, contents), machine_of(inputs)).total_s
        assert clock(prompt, 0, sequences, sequences * 600) == pytest.approx(expected, rel=1e-9)
