"""The step-time model on real figures: against measurements, and over every model and chip."""

import tomllib
from pathlib import Path
from statistics import median

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hardware_db
from calculators.inputs import InputsError
from calculators.service_time import PrefillInputs, prefill_time, prefill_times_ms

MEASURED = tomllib.loads((Path(__file__).parent / "fixtures" / "measured_prefill_a100.toml").read_text())
NOT_FITTED = ("256", "1024", "4096")


def errors(tokens):
    fitted = {"model": "llama-2-70b", "accelerator": "a100-80-sxm", "assumptions": "vllm-2023-a100"}
    return {
        (tp, prompt): prefill_time(PrefillInputs(prompt_tokens=int(prompt), tp=int(tp), **fitted)).service_ms / ms - 1
        for tp, times in MEASURED.items()
        for prompt, ms in times.items()
        if prompt in tokens
    }


def test_the_fitted_set_is_as_good_as_it_says_on_prompts_that_were_not_fitted():
    off = [abs(error) for error in errors(NOT_FITTED).values()]
    said = hardware_db.assumptions()["vllm-2023-a100"].accuracy
    assert f"median error is {100 * median(off):.1f} %" in said
    assert f"worst {100 * max(off):.0f} %" in said
    assert median(off) <= 0.07


def test_and_as_bad_as_it_says_on_the_longest_prompts():
    off = list(errors(("8192",)).values())
    assert all(-0.295 < error < -0.05 for error in off)


def test_many_lengths_at_once_are_the_single_ones():
    inputs = PrefillInputs(model="gpt-oss-120b", tp=2)
    tokens = np.array([1, 7, 128, 4096])
    single = [prefill_time(PrefillInputs(model="gpt-oss-120b", tp=2, prompt_tokens=int(n))).service_ms for n in tokens]
    assert prefill_times_ms(inputs, tokens) == pytest.approx(single, rel=1e-12)
    assert prefill_times_ms(PrefillInputs(service_ms=3), tokens).tolist() == [3.0] * 4


def time_or_sentences(**inputs):
    try:
        return prefill_time(PrefillInputs(**inputs))
    except InputsError as refused:
        return [str(error) for error in refused.errors]


@settings(max_examples=60)
@given(
    st.sampled_from(list(hardware_db.models())),
    st.sampled_from(list(hardware_db.accelerators())),
    st.sampled_from(list(hardware_db.FORMATS)),
    st.sampled_from([1, 2, 4, 8]),
    st.integers(1, 50_000),
)
def test_every_pairing_has_a_time_or_a_sentence(model, accelerator, weight_dtype, tp, tokens):
    inputs = {"model": model, "accelerator": accelerator, "weight_dtype": weight_dtype, "tp": tp}
    short = time_or_sentences(prompt_tokens=tokens, **inputs)
    if isinstance(short, list):
        assert all(sentence.endswith((".", "tp = 1", "tp_link")) for sentence in short)
        return
    longer = prefill_time(PrefillInputs(prompt_tokens=2 * tokens, **inputs))
    assert 0 < short.service_ms <= longer.service_ms
    parts = short.parts
    total = max(parts.compute_ms, parts.memory_ms) + parts.collectives_ms + parts.overhead_ms
    assert short.service_ms == pytest.approx(total)
