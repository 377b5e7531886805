"""The closed loop on real figures, and the sets of assumptions that are fitted with it to measured token times."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hardware_db
from calculators.closed_loop import ClosedLoopInputs, closed_loop_of, steps_of
from calculators.decode_step import step_of
from calculators.inputs import InputsError
from calculators.machine import MachineInputs, machine_of
from calculators.service_time import PrefillInputs, prefill_time
from calculators.step_load import StepContents
from formulas.closed_form import DomainError

FIXTURE = Path(__file__).parent / "fixtures" / "measured_tpot.csv"
WHOLE = ("tp", "prompt_tokens", "output_tokens", "in_flight")


def measured():
    """Return by set what was measured and not fitted: inputs, TPOT and TTFT in ms."""
    rows = {}
    for fields in csv.DictReader(line for line in FIXTURE.read_text().splitlines() if not line.startswith("#")):
        name, tpot, ttft = fields.pop("set"), float(fields.pop("tpot_ms")), float(fields.pop("ttft_ms"))
        given = {key: int(text) if key in WHOLE else text or None for key, text in fields.items()}
        rows.setdefault(name, []).append((ClosedLoopInputs(assumptions=name, **given), tpot, ttft))
    return rows


MEASURED = measured()


def errors(name):
    return np.array([1e3 * closed_loop_of(inputs).mean_tpot / tpot - 1 for inputs, tpot, _ in MEASURED[name]])


@pytest.mark.parametrize("name", MEASURED)
def test_a_fitted_set_is_as_good_as_it_says_on_configurations_that_were_not_fitted(name):
    off, said = np.abs(errors(name)), hardware_db.assumptions()[name].accuracy
    assert f"on {off.size} rows of configurations that were not fitted" in said
    assert f"the median error is {100 * np.median(off):.1f} %" in said
    assert f"nine in ten are within {100 * np.quantile(off, 0.9):.0f} %" in said
    assert f"the worst is {100 * off.max():.0f} %" in said
    late = np.median([ttft / (1e3 * closed_loop_of(inputs).mean_ttft) for inputs, _, ttft in MEASURED[name]])
    assert f"measured {late:.1f} times as long" in said
    assert np.median(off) <= 0.15


@pytest.mark.parametrize("name", MEASURED)
def test_a_fitted_set_names_what_it_was_held_against(name):
    said, rows = hardware_db.assumptions()[name].accuracy, [inputs for inputs, _, _ in MEASURED[name]]
    assert all(f"{inputs.model} in {inputs.weight_dtype}" in said for inputs in rows)
    flights = [inputs.in_flight for inputs in rows]
    assert f"with {min(flights)} to {max(flights)} requests in flight" in said
    assert f"TP {', '.join(str(tp) for tp in sorted({inputs.tp for inputs in rows}))} with" in said


def test_all_sets_together_are_within_the_target():
    off = np.abs(np.concatenate([errors(name) for name in MEASURED]))
    assert np.median(off) <= 0.07


def test_every_set_that_is_fitted_to_token_times_has_rows_here():
    fitted = {name for name, each in hardware_db.assumptions().items() if each.accuracy.startswith("Token time of")}
    assert fitted == set(MEASURED)


LOOP = {"model": "llama-3.1-70b", "accelerator": "h200-sxm", "weight_dtype": "fp8", "kv_dtype": "fp8", "tp": 4}


def test_alone_it_is_the_decode_step_and_the_prefill():
    loop = closed_loop_of(ClosedLoopInputs(in_flight=1, prompt_tokens=1000, output_tokens=101, **LOOP))
    step = step_of(MachineInputs(**LOOP), StepContents(sequences=1, context_tokens=1050.5))
    assert 1e3 * loop.mean_tpot == pytest.approx(step.step_ms)
    prefill = prefill_time(PrefillInputs(prompt_tokens=1000, **LOOP))
    assert 1e3 * loop.mean_ttft == pytest.approx(prefill.service_ms)


def test_prompts_in_one_step_attend_each_to_its_own():
    inputs = ClosedLoopInputs(in_flight=8, prompt_tokens=1000, output_tokens=21, **LOOP)
    alone, more = steps_of(replace(inputs, in_flight=1)), np.diff(steps_of(inputs).prefilling.flops)
    each = alone.prefilling.flops[0] - alone.decoding.flops[0]  # one more prompt, one sequence fewer
    assert more == pytest.approx(np.full(more.size, each))


def test_steps_and_machine_may_be_known_from_before():
    inputs = ClosedLoopInputs(in_flight=16, prompt_tokens=1000, output_tokens=100, **LOOP)
    known = closed_loop_of(inputs, machine_of(inputs), steps_of(inputs))
    assert known == closed_loop_of(inputs)
    slower = replace(machine_of(inputs), overhead_s=machine_of(inputs).overhead_s + 1e-3)
    assert closed_loop_of(inputs, slower).mean_tpot == pytest.approx(known.mean_tpot + 1e-3)


def test_a_prompt_longer_than_a_step_comes_in_chunks():
    whole, chunked = (
        closed_loop_of(ClosedLoopInputs(in_flight=4, prompt_tokens=4000, chunk_tokens=budget, **LOOP))
        for budget in (8192, 1024)
    )
    assert (whole.chunks, chunked.chunks) == (1, 4)
    assert chunked.mean_ttft > whole.mean_ttft


@pytest.mark.parametrize(
    "given", [{"output_tokens": 1}, {"in_flight": 9000}, {"prompt_tokens": 8000, "in_flight": 500}]
)
def test_outside_there_is_a_sentence(given):
    with pytest.raises(DomainError, match=r"\.$"):
        closed_loop_of(ClosedLoopInputs(**given))


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(list(hardware_db.models())),
    st.sampled_from(list(hardware_db.accelerators())),
    st.sampled_from([1, 2, 8]),
    st.integers(1, 20_000),
    st.integers(2, 4000),
    st.integers(1, 300),
)
def test_every_pairing_has_times_or_a_sentence(model, accelerator, tp, prompt, output, in_flight):
    inputs = ClosedLoopInputs(
        model=model, accelerator=accelerator, tp=tp, prompt_tokens=prompt, output_tokens=output, in_flight=in_flight
    )
    try:
        loop = closed_loop_of(inputs)
    except (InputsError, DomainError):
        return
    alone = closed_loop_of(replace(inputs, in_flight=1))
    assert 0 < alone.mean_tpot <= loop.mean_tpot * (1 + 1e-9)
    assert 0 < loop.throughput < np.inf
    assert loop.throughput * (loop.mean_ttft + (output - 1) * loop.mean_tpot) == pytest.approx(in_flight)
