"""The speculative calculator: course figures, published tables, rounds on real chips, measured acceptance, extremes."""

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hardware_db
from calculators import outputs
from calculators.__main__ import main
from calculators.inputs import InputsError, build, parse
from calculators.speculative import curves, explanation, wording
from calculators.speculative.check import check
from calculators.speculative.compute import SpeculativeInputs, compare_chips, compute
from calculators.speculative.costs import pair_of
from calculators.speculative.machines import OVERHEAD_MS, placement, spill_of
from formulas import speculative as forms

TYPED = SpeculativeInputs(acceptance=0.8, draft_tokens=4, draft_cost=0.1, verify_cost=1)
LECTURE = SpeculativeInputs(target="gpt-oss-120b", draft_size_b=1.6, batch=1, acceptance=0.93)  # lecture 8.3

some = st.builds(
    SpeculativeInputs,
    acceptance=st.floats(0, 1),
    draft_tokens=st.integers(1, 256),
    draft_cost=st.one_of(st.none(), st.floats(0, 10)),
    verify_cost=st.one_of(st.none(), st.floats(0.01, 1000)),
    batch=st.sampled_from([1, 3, 64, 5000, 100_000]),
    context_tokens=st.sampled_from([None, 1, 8192, 1_000_000]),
    target=st.sampled_from(["llama-3.1-8b", "gpt-oss-20b", "deepseek-v3", "qwen3-next-80b-a3b"]),
    target_accelerator=st.sampled_from(["h100-sxm", "mi300x", "l40s", "cerebras-wse3"]),
    draft=st.sampled_from(["llama-3.2-1b", "gemma-3-1b", "gpt-oss-20b"]),
    draft_accelerator=st.sampled_from([None, "l4", "dmatrix-corsair", "groq-lpu1", "sambanova-sn40l"]),
)


def hands_on(flops, read_bytes, overhead_s):
    """A step on one H100 with the course's assumptions, written out."""
    return max(flops / (0.6 * 989e12), read_bytes / (0.8 * 3.35e12)) + overhead_s


def test_exercise_of_the_course():
    """Lecture 13, exercise 5."""
    result = compute(TYPED)
    assert result.accepted_tokens == pytest.approx(2.3616)
    assert result.tokens_per_round == pytest.approx(3.3616)
    assert result.speedup == pytest.approx(2.401142857)
    assert (result.optimal_draft_tokens, result.verdict) == (6, "pays")
    assert result.optimal_speedup == pytest.approx(2.46964)
    assert result.target_step_ms is None


@pytest.mark.parametrize(
    ("acceptance", "draft_tokens", "speedup"),
    [(0.6, 2, 1.96), (0.7, 3, 2.53), (0.8, 2, 2.44), (0.8, 5, 3.69), (0.9, 2, 2.71), (0.9, 10, 6.86)],
)
def test_published_table(acceptance, draft_tokens, speedup):
    """Leviathan et al. (arXiv 2211.17192), table 1: drafts that cost nothing; a longer one is always better."""
    inputs = SpeculativeInputs(acceptance=acceptance, draft_tokens=draft_tokens, draft_cost=0, verify_cost=1)
    result = compute(inputs)
    assert result.speedup == pytest.approx(speedup, abs=0.0051)
    assert result.optimal_draft_tokens == 256
    assert any("Longer is never worse" in warning for warning in result.warnings)


def test_a_round_on_one_accelerator_by_hand():
    """Llama-3.1-8B in BF16 with Llama-3.2-1B in FP8, both on one H100; shapes from their config.json."""
    inputs = SpeculativeInputs(target="llama-3.1-8b", batch=32, context_tokens=1000, draft_tokens=4)
    result = compute(inputs)
    read = 2 * 7_504_658_432 + 32 * 1000 * 131_072
    pairs = {1: 32 * 1000, 5: 32 * (5 * 1000 + 5 * 4 / 2)}
    steps = {
        g: hands_on(2 * 7_504_658_432 * 32 * g + 4 * 32 * 128 * 32 * pairs[g], read, 1e-3) for g in (1, 5)
    }  # fmt: skip
    layer = 2 * 2048 * 2048 + 2 * 2048 * 512 + 3 * 2048 * 8192
    draft = hands_on(2 * (16 * layer + 128_256 * 2048) * 32 + 4 * 32 * 64 * 16 * 32 * 1000,
                     16 * layer + 2 * 128_256 * 2048 + 32 * 1000 * 32_768, 0.3e-3)  # fmt: skip
    assert result.target_step_ms == pytest.approx(1e3 * steps[1], rel=1e-9)
    assert result.verify_step_ms == pytest.approx(1e3 * steps[5], rel=1e-9)
    assert result.draft_step_ms == pytest.approx(1e3 * draft, rel=1e-9)
    assert result.round_ms == pytest.approx(1e3 * (4 * draft + steps[5]), rel=1e-9)
    assert result.tokens_per_second_per_user == pytest.approx(3.3616 / (4 * draft + steps[5]), rel=1e-9)
    assert result.speedup == pytest.approx(3.3616 * steps[1] / (4 * draft + steps[5]), rel=1e-9)
    assert result.tokens_per_second_per_chip == pytest.approx(32 * result.tokens_per_second_per_user)
    assert result.tokens_per_second_per_kw == pytest.approx(32 * result.tokens_per_second_per_user / 0.7)
    assert (result.target_chips, result.draft_chips) == (1, 0)


def test_on_a_gpu_the_draft_costs_a_third_of_a_step_and_stays_short():
    """Lecture 8.3: 0.90 ms for a draft of 1.6 billion parameters, a third of the step of gpt-oss-120b."""
    result = compute(LECTURE)
    assert result.draft_step_ms == pytest.approx(0.90, abs=0.01)
    assert 0.3 < result.draft_cost < 0.36
    assert 2 <= result.optimal_draft_tokens <= 5


def test_on_a_machine_of_on_chip_memory_it_is_nearly_free_and_grows():
    """Lecture 8.3: 0.057 ms at 150 TB/s."""
    gpu, sram = compute(LECTURE), compute(replace(LECTURE, draft_accelerator="dmatrix-corsair"))
    assert sram.draft_step_ms == pytest.approx(0.057, abs=0.002)
    assert sram.draft_cost < 0.03
    assert sram.optimal_draft_tokens > 2 * gpu.optimal_draft_tokens
    assert sram.optimal_speedup > 1.5 * gpu.optimal_speedup
    assert sram.link_ms == pytest.approx(0.006)


def test_a_mixture_of_experts_wants_shorter_drafts():
    cheap = {"draft_cost": 0.02, "batch": 1, "acceptance": 0.93}
    experts = compute(SpeculativeInputs(target="gpt-oss-120b", **cheap))
    dense = compute(SpeculativeInputs(target="llama-3.1-70b", **cheap))
    assert experts.optimal_draft_tokens < 0.5 * dense.optimal_draft_tokens
    assert experts.optimal_speedup < 0.5 * dense.optimal_speedup
    assert experts.verify_cost > 1.8 > 1.05 > dense.verify_cost
    large = compute(SpeculativeInputs(target="gpt-oss-120b", **cheap | {"batch": 128}))
    assert large.verify_cost < 1.05  # all experts are touched anyway
    assert "4 of the 128 experts" in wording.on_experts(LECTURE, pair_of(LECTURE))


def test_it_stops_paying_at_the_batch_named():
    inputs = SpeculativeInputs(target="llama-3.1-8b")
    stops = compute(inputs).break_even_batch
    assert 100 < stops < 2000
    before, at = (compute(replace(inputs, batch=batch)) for batch in (stops - 1, stops))
    assert before.optimal_speedup > 1
    assert (at.optimal_draft_tokens, at.optimal_speedup, at.verdict) == (0, 1, "plain_is_faster")
    assert "No draft pays here" in wording.answer(replace(inputs, batch=stops), at)
    assert compute(replace(inputs, context_tokens=32_768)).break_even_batch is None  # the cache's reading, not compute
    assert compute(replace(inputs, acceptance=0)).break_even_batch == 1


def test_a_draft_too_large_for_the_fast_memory_reads_from_the_slow_one():
    fast = replace(LECTURE, draft_accelerator="dmatrix-corsair")
    slow = replace(fast, draft_size_b=2.5)
    assert placement(pair_of(fast).draft, np.array([1.0])).weights == "SRAM"
    place = placement(pair_of(slow).draft, np.array([1.0]))
    assert (place.weights, place.cache) == ("LPDDR5", "SRAM")
    result = compute(slow)
    assert result.draft_step_ms == pytest.approx(1e3 * 2.5e9 / (0.8 * 400e9) + OVERHEAD_MS["on-chip"], rel=0.01)
    assert result.optimal_draft_tokens == 0
    assert any("LPDDR5" in warning for warning in result.warnings)


def test_the_cache_leaves_the_fast_memory_at_the_batch_named():
    inputs = replace(LECTURE, draft_accelerator="dmatrix-corsair")
    spill = spill_of(pair_of(inputs).draft)
    assert (spill.tier, spill.beyond) == ("SRAM", "LPDDR5")
    here, beyond = (compute(replace(inputs, batch=spill.batch + more)).draft_step_ms for more in (0, 1))
    assert beyond > 5 * here
    assert spill_of(pair_of(LECTURE).draft) is None


def test_typed_costs_win_over_hardware():
    both = compute(replace(TYPED, target="gpt-oss-120b", draft_accelerator="dmatrix-corsair"))
    assert both.speedup == compute(TYPED).speedup
    one = compute(replace(LECTURE, draft_cost=0.5))
    assert one.draft_cost == 0.5
    assert one.draft_step_ms == pytest.approx(0.5 * one.target_step_ms)
    assert one.verify_cost == compute(LECTURE).verify_cost
    other = compute(replace(LECTURE, verify_cost=1.0))
    assert (other.verify_cost, other.link_ms) == (1.0, 0.0)
    assert other.break_even_batch is None


def test_the_link_is_crossed_once_a_round():
    near = replace(LECTURE, draft_accelerator="h100-sxm", draft_round_trip_us=0)
    far = replace(near, draft_round_trip_us=1000)
    assert compute(far).round_ms == pytest.approx(compute(near).round_ms + 1)
    assert compute(replace(LECTURE, draft_round_trip_us=1000)).link_ms == 0  # on the target's own chips
    assert compute(near).draft_chips == 1


def test_chips_are_as_few_as_hold_the_weights():
    assert compute(SpeculativeInputs(target="gpt-oss-120b")).target_chips == 1
    assert compute(SpeculativeInputs(target="llama-3.1-70b")).target_chips == 4
    assert compute(SpeculativeInputs(target="llama-3.1-70b", target_dtype="fp8")).target_chips == 2
    assert compute(replace(LECTURE, draft_accelerator="groq-lpu1")).draft_chips == 16  # 8 would leave under a tenth


def test_every_chip_that_holds_the_draft_is_compared():
    rows = compare_chips(LECTURE)
    assert rows[0].chip == "the target's own"
    assert rows[0].speedup == pytest.approx(compute(LECTURE).optimal_speedup)
    by_chip = {row.chip: row for row in rows}
    assert by_chip["dmatrix-corsair"].length > 2 * by_chip["h100-sxm"].length
    assert by_chip["cerebras-wse3"].draft_ms < 0.05
    assert [row.speedup for row in rows[1:]] == sorted((row.speedup for row in rows[1:]), reverse=True)
    assert "rtx-4090" in by_chip


POSITIONS = "0.71, 0.50, 0.36, 0.26, 0.18"  # EAGLE on SpecBench, vLLM pull request 26498; of all rounds
CURVE = "1:1.93, 2:2.76, 3:3.47, 4:4.10, 5:4.52, 6:4.87, 7:4.94, 8:4.94"  # DeepSeek-V4-Pro, InferenceX


def test_rates_by_position_replace_the_acceptance():
    result = compute(replace(TYPED, acceptance_rates=POSITIONS, rates_of="all-rounds"))
    assert result.accepted_tokens == pytest.approx(0.71 + 0.50 + 0.36 + 0.26)
    assert result.tokens_per_round == pytest.approx(2.83)
    assert result.independent_acceptance == pytest.approx(0.71, abs=0.01)
    assert result.fit_rms_tokens < 0.01
    assert result.speedup_low is None
    same = compute(replace(TYPED, acceptance_rates="0.8 0.8;0.8\t0.8"))
    assert same.speedup == pytest.approx(compute(TYPED).speedup)


def test_a_measured_curve_is_fitted_and_its_misfit_shown():
    inputs = replace(TYPED, acceptance_curve=CURVE, draft_tokens=8)
    result = compute(inputs)
    assert result.tokens_per_round == pytest.approx(4.94)
    assert result.independent_acceptance == pytest.approx(0.8617, abs=1e-4)
    assert (result.fit_worst_at, result.fit_worst) == (8, pytest.approx(0.080, abs=0.001))
    assert result.independent_tokens_per_round == pytest.approx(forms.tokens_per_round(0.8617, 8), rel=1e-3)
    assert result.independent_speedup > result.speedup
    assert "8.0" in wording.on_acceptance(result, "curve")
    without = replace(inputs, acceptance_curve="1=0.93, 8 : 3.94", lengths_count="accepted-only")
    assert compute(without).tokens_per_round == pytest.approx(4.94)


def test_one_acceptance_overrates_a_long_draft():
    """Accepted 79 % of the time at first, 2.58 tokens for a draft of eight where 0.79 predicts 4.19."""
    measured = compute(replace(TYPED, acceptance_curve="1:1.79, 8:2.58", draft_tokens=8))
    assumed = compute(replace(TYPED, acceptance=0.79, draft_tokens=8))
    assert measured.tokens_per_round == pytest.approx(2.58)
    assert assumed.tokens_per_round == pytest.approx(4.19, abs=0.005)
    assert measured.optimal_draft_tokens < assumed.optimal_draft_tokens
    assert abs(measured.fit_worst) > 0.09


def test_beyond_what_was_measured_the_last_rate_goes_on():
    result = compute(replace(TYPED, acceptance_rates="0.9, 0.5"))
    assert result.accepted_tokens == pytest.approx(0.9 * (1 + 0.5 + 0.25 + 0.125))
    assert result.optimal_draft_tokens == 2
    assert any("known for 2 positions" in warning for warning in result.warnings)


def test_a_curve_that_no_round_gives_is_remarked_on():
    result = compute(replace(TYPED, acceptance_curve="1:1.84, 2:2.52, 3:2.93, 4:3.41, 5:3.59, 6:3.57"))
    assert any("No round gives these lengths exactly" in warning for warning in result.warnings)


@pytest.mark.parametrize(("changes", "name", "sentence"), [
    ({"acceptance_rates": "0.8, high"}, "acceptance_rates", "high is not a number"),
    ({"acceptance_rates": "0.8, nan"}, "acceptance_rates", "nan is not a number"),
    ({"acceptance_rates": "0.8, 1.2"}, "acceptance_rates", "lies between 0 and 1"),
    ({"acceptance_rates": "0.5, 0.6", "rates_of": "all-rounds"}, "acceptance_rates", "cannot rise"),
    ({"acceptance_rates": " , "}, "acceptance_rates", "0 positions"),
    ({"acceptance_rates": "0.5 " * 300}, "acceptance_rates", "300 positions"),
    ({"acceptance_curve": "1.8, 2.4"}, "acceptance_curve", "1.8 is no pair"),
    ({"acceptance_curve": "1:1.8, 1:1.9"}, "acceptance_curve", "each given once"),
    ({"acceptance_curve": "4:0.5"}, "acceptance_curve", "between 1 and 5 tokens with the bonus token"),
    ({"acceptance_curve": "4:4.5", "lengths_count": "accepted-only"}, "acceptance_curve", "without the bonus token"),
    ({"acceptance_curve": "1:1.8", "acceptance_rates": "0.8"}, "acceptance_curve", "clear one of the two"),
    ({"draft_accelerator": "dmatrix-corsair", "draft_dtype": "fp32"}, "draft_dtype", "computes in int8, int4"),
    ({"target_accelerator": "groq-3-lp30"}, "target_dtype", "computes in fp8"),
    ({"draft_tp": 64}, "draft_tp", "at most so many"),
])  # fmt: skip
def test_wrong_inputs_are_named(changes, name, sentence):
    with pytest.raises(InputsError) as refused:
        compute(replace(SpeculativeInputs(), **changes))
    assert [error.name for error in refused.value.errors] == [name]
    assert sentence in str(refused.value)


def test_the_command_line_has_the_keys_of_the_issue(capsys):
    words = "speculative --acceptance 0.8 --draft-tokens 4 --draft-cost 0.1 --verify-cost 1 --json"
    assert main(words.split()) == 0
    results = json.loads(capsys.readouterr().out)["results"]
    assert results["speedup"] == pytest.approx(2.401142857)
    assert results["operations_ratio"] == pytest.approx(0.2 * (4 * 0.1 + 5) / (1 - 0.8**5))
    hardware = (
        "speculative --target llama-3.1-70b --draft llama-3.2-1b --target-accelerator h100-sxm --draft-accelerator "
        "dmatrix-corsair --batch 8 --context-tokens 4096 --json"
    )
    assert main(hardware.split()) == 0
    results = json.loads(capsys.readouterr().out)["results"]
    for key in ("target_step_ms", "draft_step_ms", "verify_step_ms", "round_ms", "tokens_per_second_per_user"):
        assert results[key] > 0
    assert results["break_even_batch"] is None or results["break_even_batch"] >= 1
    whole = 4 * results["draft_step_ms"] + results["verify_step_ms"] + results["link_ms"]
    assert results["round_ms"] == pytest.approx(whole, rel=1e-12)


def test_a_wrong_flag_ends_with_one_line(capsys):
    assert main(["speculative", "--acceptance", "1.2"]) == 2
    assert capsys.readouterr().err.startswith("calculators: acceptance = ")


@settings(max_examples=60)
@given(some)
def test_no_number_is_infinite_nan_or_negative(inputs):
    try:
        result = compute(inputs)
    except InputsError:  # of a chip that cannot: test_wrong_inputs_are_named
        return
    for name, value in outputs.as_dict(result).items():
        if isinstance(value, float | int) and name != "fit_worst":
            assert math.isfinite(value), name
            assert value >= 0, name
    assert result.optimal_speedup >= max(1, result.speedup * (1 - 1e-12))
    assert (result.verdict == "pays") == (result.speedup > 1)
    assert wording.answer(inputs, result)
    assert all(value for _, value, _ in wording.metrics(inputs, result))


def test_a_mixture_on_which_no_draft_pays_yet_says_from_where_one_does():
    inputs = SpeculativeInputs(target="mixtral-8x7b", acceptance=0.3, batch=1)
    result = compute(inputs)
    start = result.next_paying_batch
    assert result.verdict == "plain_is_faster"
    assert 1 < start < result.break_even_batch
    assert [compute(replace(inputs, batch=n)).optimal_draft_tokens > 0 for n in (start - 1, start)] == [False, True]
    assert "No draft pays at this batch" in wording.answer(inputs, result)
    assert f"a batch of **{start}** to {result.break_even_batch - 1} some do" in wording.answer(inputs, result)
    assert wording.metrics(inputs, result)[-1][:2] == ("Pays from", f"batch {start}, below {result.break_even_batch}")
    pays = compute(replace(inputs, batch=start))
    assert pays.next_paying_batch is None
    assert wording.metrics(inputs, pays)[-1][:2] == ("Stops paying at", f"batch {result.break_even_batch}")
    beyond = compute(replace(inputs, batch=result.break_even_batch))
    assert beyond.next_paying_batch is None
    assert "No draft pays here" in wording.answer(inputs, beyond)


def test_the_best_length_is_called_the_best_of_those_measured():
    inputs = SpeculativeInputs(acceptance_rates="0.5,0.5,0.5", draft_tokens=8)
    assert "The best of the measured lengths is **2**" in wording.answer(inputs, compute(inputs))
    assert "among the measured ones" in wording.metrics(inputs, compute(inputs))[2][2]
    inputs = SpeculativeInputs(acceptance_rates="0.9,0.9,0.9", draft_tokens=3)
    assert "No other measured length is better" in wording.answer(inputs, compute(inputs))
    assert "measured" not in wording.answer(SpeculativeInputs(), compute(SpeculativeInputs()))


@pytest.mark.parametrize("name", ["acceptance_rates", "acceptance_curve"])
@pytest.mark.parametrize("blank", ["", " ", "  \t"])
def test_a_blank_list_is_an_empty_one_from_a_link_and_from_a_widget(name, blank):
    assert parse(SpeculativeInputs, {name: blank}) == SpeculativeInputs()
    assert build(SpeculativeInputs, {name: blank}) == SpeculativeInputs()


def test_a_list_of_nothing_but_commas_is_refused_with_a_sentence():
    with pytest.raises(InputsError, match="it speaks of 0 positions; allowed: 1 to 256"):
        compute(SpeculativeInputs(acceptance_rates=" , "))


@settings(max_examples=40)
@given(some)
def test_bars_of_the_timeline_fill_the_round(inputs):
    try:
        result = compute(inputs)
    except InputsError:
        return
    bars = curves.timeline(inputs)
    ends = {
        lane: max(bar.start + bar.length for bar in bars if bar.lane == lane) for lane in ("Target", "Plain decoding")
    }
    last = max(bar.start + bar.length for bar in bars)
    assert ends["Plain decoding"] == pytest.approx(last, rel=1e-9)
    assert last == pytest.approx(result.round_cost, rel=1e-9)
    assert sum(bar.steps for bar in bars if bar.lane == "Draft") == inputs.draft_tokens
    assert len(bars) <= 2 * curves.MOST_STEPS + 3


def test_the_middle_of_a_long_run_is_one_bar_that_says_so():
    short_run, long_run = (replace(TYPED, draft_tokens=n, draft_cost=1.0) for n in (curves.MOST_STEPS, 256))
    drafts = [bar for bar in curves.timeline(short_run) if bar.lane == "Draft"]
    assert [bar.what for bar in drafts] == [f"draft {k}" for k in range(1, curves.MOST_STEPS + 1)]
    assert wording.on_bars(drafts) == ""
    drafts = [bar for bar in curves.timeline(long_run) if bar.lane == "Draft"]
    middle = drafts[curves.ENDS]
    assert (middle.what, middle.steps, middle.start, middle.length) == (
        "drafts 9 to 248, 240 steps in one bar",
        240,
        8,
        240,
    )
    assert "one bar for all between" in wording.on_bars(drafts)
    for before, after in itertools.pairwise(drafts):
        assert before.start + before.length == pytest.approx(after.start)


@pytest.mark.parametrize("inputs", [
    TYPED, LECTURE, SpeculativeInputs(), replace(LECTURE, draft_accelerator="dmatrix-corsair"),
    replace(TYPED, acceptance=1), replace(TYPED, acceptance=0), replace(TYPED, acceptance_curve=CURVE),
    replace(TYPED, draft_cost=0),
])  # fmt: skip
def test_every_shown_formula_gives_the_answers_own_number(inputs):
    result, pair = compute(inputs), pair_of(inputs)
    shown = {each.form: each for each in explanation.formulas(inputs, result, pair)}
    if result.fit_rms_tokens is None:
        expected = {
            forms.ACCEPTED_TOKENS: result.accepted_tokens,
            forms.TOKENS_PER_ROUND: result.tokens_per_round,
            forms.CERTAIN_TOKENS_PER_ROUND: result.tokens_per_round,
            forms.SPEEDUP: result.speedup,
            forms.CERTAIN_SPEEDUP: result.speedup,
            forms.OPERATIONS_RATIO: result.operations_ratio,
        }
    else:
        expected = {
            forms.TOKENS_PER_ROUND: result.independent_tokens_per_round,
            forms.SPEEDUP: result.independent_speedup,
        }
    found = [form for form in expected if form in shown]
    assert len(found) >= 2
    for form in found:
        assert form(**shown[form].values) == pytest.approx(expected[form], rel=1e-9, abs=1e-12)
    steps = [each for each in explanation.formulas(inputs, result, pair) if each.form.name == "time of a step"]
    times = [] if pair is None else [result.target_step_ms, result.verify_step_ms, result.draft_step_ms]
    assert [1e3 * each.form(**each.values) for each in steps] == pytest.approx(times, rel=1e-9)


def test_the_best_length_shown_is_the_formulas_for_costs_that_do_not_depend_on_it():
    for alpha, cost, verify in ((0.8, 0.1, 1.0), (0.95, 0.01, 1.3), (0.3, 0.5, 2.0)):
        result = compute(replace(TYPED, acceptance=alpha, draft_cost=cost, verify_cost=verify))
        assert result.optimal_draft_tokens == forms.optimal_draft_tokens(alpha, cost, verify)
        gains = forms.speedup(alpha, np.arange(1, 257), cost, verify)
        assert result.optimal_speedup == pytest.approx(max(1.0, gains.max()))


def test_facts_name_both_models_and_both_chips():
    inputs = replace(LECTURE, draft_accelerator="dmatrix-corsair")
    named = " ".join(fact.what for fact in explanation.facts(inputs, pair_of(inputs)))
    for part in ("gpt-oss-120b", "llama-3.2-1b", "h100-sxm", "dmatrix-corsair", "pcie5-x16", "course"):
        assert part in named
    assert explanation.facts(TYPED, None) == []


def test_curves_pass_through_the_answer():
    for inputs in (TYPED, LECTURE, SpeculativeInputs(), replace(TYPED, acceptance_curve=CURVE)):
        result = compute(inputs)
        mine = curves.length_curves(inputs)[-1]
        assert mine.speedup[inputs.draft_tokens] == pytest.approx(result.speedup)
        assert mine.best == result.optimal_draft_tokens
        found = curves.batch_curve(inputs)
        if found is not None:
            place = np.flatnonzero(found.batch == inputs.batch)[0]
            assert found.given[place] == pytest.approx(result.speedup)
            assert found.best[place] == pytest.approx(result.optimal_speedup)


def test_the_map_pays_where_its_edge_says():
    chart = curves.cost_map(replace(TYPED, verify_cost=1.4))
    pays = chart.speedup > 1
    below = chart.draft_cost[:, np.newaxis] < np.nan_to_num(chart.pays_below)
    np.testing.assert_array_equal(pays, below)


def test_both_simulations_agree():
    for inputs in (replace(TYPED, customers=200_000), replace(TYPED, acceptance_rates=POSITIONS, customers=100_000)):
        checked = check(inputs)
        assert checked.agrees
        assert checked.target_unchanged
        assert {row.verdict for row in checked.rows} == {"inside"}
        assert "Every exact figure" in wording.agreement(checked)
        assert "unchanged" in wording.on_sampling(checked)


def test_a_long_draft_is_simulated_with_fewer_rounds():
    checked = check(replace(TYPED, draft_tokens=256, customers=5_000_000, acceptance=0.99))
    assert checked.rounds == 78_125
    assert checked.agrees


def test_a_draft_of_another_vocabulary_is_remarked_on():
    other = compute(SpeculativeInputs(target="gpt-oss-120b"))
    assert any("vocabulary" in warning for warning in other.warnings)
    assert not any("vocabulary" in warning for warning in compute(SpeculativeInputs()).warnings)


def test_what_does_not_fit_is_said():
    batch = compute(SpeculativeInputs(batch=5000))
    assert batch.largest_batch < 5000
    assert any(warning.startswith("Does not fit: 5,000 sequences") for warning in batch.warnings)
    weights = compute(SpeculativeInputs(target_tp=1))
    assert weights.largest_batch is None
    assert any(warning.startswith("Does not fit: on each of 1 × h100-sxm") for warning in weights.warnings)


def test_defaults_answer():
    result = compute(SpeculativeInputs())
    assert result.verdict == "pays"
    assert result.warnings == ()
    assert set(hardware_db.models()) >= {SpeculativeInputs().target, SpeculativeInputs().draft}
