"""Real traffic through the ttft calculator: reference values, every combination, flags, and traces."""

import itertools
import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calculators import outputs
from calculators.__main__ import main
from calculators.fleet import fewest_servers
from calculators.inputs import InputsError, declared, linked
from calculators.links import encode
from calculators.outputs import rows_of
from calculators.service_time import prefill_times_ms
from calculators.traces import read_trace
from calculators.ttft import traffic_figures, traffic_wording, wording
from calculators.ttft.check import TtftCheck, check
from calculators.ttft.compute import compute
from calculators.ttft.curves import curves_of
from calculators.ttft.effects import NOT_ASKED, effects, has_slow_rows, needs
from calculators.ttft.explanation import queue_formulas
from calculators.ttft.gains import gains
from calculators.ttft.inputs import TtftInputs
from calculators.ttft.lengths import law_of
from calculators.ttft.methods import queue_of
from calculators.ttft.replay import replay
from calculators.ttft.sensitivity import sensitivities
from calculators.ttft.trace import fill_from_trace, summarise
from calculators.ttft.trace_statistics import on_trace, statistics_of
from calculators.ttft.traffic import RealTraffic
from calculators.ttft.whatif import alternatives
from formulas.closed_form import DomainError
from formulas.queueing import mg1
from formulas.queueing.order import shortest_first_mean_wait

UNIT = {"service_ms": 1000.0, "ttft_slo_ms": 1e6}
"""Times in seconds are in units of the service time, as the references are."""

SMALL = {"customers": 20_000}


def at(utilization, **changes):
    servers = changes.get("servers", 1)
    return TtftInputs(rate=utilization * servers, **UNIT, **SMALL, **changes)


REFERENCES = [
    # queueing references of 15 to 34 digits (Crommelin 1932 for M/D/c; Pollaczek-Khinchine; Spitzer for gamma arrivals)
    (at(0.9), "p99_ttft_ms", 22898.237, 1e-7),
    (at(0.8, prompt_cv=1.0), "p99_ttft_ms", 24495.77047, 1e-8),
    (at(0.8, prompt_cv=1.0), "mean_wait_ms", 4000.0, 1e-9),
    (at(0.8, servers=8, routing="shared"), "p99_ttft_ms", 2169.5954587521224, 1e-9),
    (at(0.8, servers=8, routing="round_robin"), "p99_ttft_ms", 2169.5954587521224, 1e-9),
    (at(0.8, servers=8, routing="least_work"), "mean_wait_ms", 151.9538026, 1e-8),
    (at(0.5, servers=2, routing="shared"), "mean_wait_ms", 176.74105711283688, 1e-9),
    (at(0.8, servers=8), "p99_ttft_ms", 11355.88679, 1e-8),
    (at(0.8, arrival_scv=4.0), "p99_ttft_ms", 43329.04008, 1e-8),
    (at(0.8, arrival_scv=2.0), "mean_wait_ms", 4264.28477, 1e-8),
    (at(0.8, arrival_scv=2.0, prompt_cv=1.0), "mean_wait_ms", 6305.94834, 1e-7),
]


@pytest.mark.parametrize(("inputs", "key", "expected", "rel"), REFERENCES)
def test_reference_values_come_out_through_the_calculator(inputs, key, expected, rel):
    assert getattr(compute(inputs), key) == pytest.approx(expected, rel=rel)


def test_every_fourth_of_bursty_prompts_is_as_regular_as_poisson():
    turns = compute(at(0.8, servers=4, routing="shared", arrival_scv=4.0))
    assert turns.p99_ttft_ms == pytest.approx(compute(at(0.8)).p99_ttft_ms, rel=1e-9)
    assert "Gamma/D/1" in turns.method


def test_the_defaults_are_the_queue_of_the_start():
    result = compute(TtftInputs(rate=16, service_ms=50))
    assert (result.method, result.approximation_error, result.trace) == ("M/D/1: exact.", None, None)
    assert result.mean_ttft_ms == pytest.approx(150, rel=1e-12)
    assert isinstance(check(TtftInputs(rate=16, service_ms=50, **SMALL)), TtftCheck)


def test_what_makes_no_difference_with_one_instance_does_not():
    for routing in declared(RealTraffic)["routing"].options:
        same = compute(TtftInputs(rate=16, service_ms=50, routing=routing))
        assert same.p99_ttft_ms == compute(TtftInputs(rate=16, service_ms=50)).p99_ttft_ms
    equal = compute(TtftInputs(rate=16, service_ms=50, order="shortest"))
    assert equal.method == "M/D/1: exact."  # equal prompts keep the order of their arrival


def test_at_random_each_instance_is_the_one_alone():
    for changes in ({}, {"prompt_cv": 1.0}):
        one, four = compute(at(0.7, **changes)), compute(at(0.7, servers=4, **changes))
        assert four.p99_ttft_ms == pytest.approx(one.p99_ttft_ms, rel=1e-12)
        assert four.max_rate == pytest.approx(4 * one.max_rate, rel=1e-12)


def test_the_service_time_is_the_step_time_of_each_length_not_in_proportion():
    spread, typed = TtftInputs(prompt_cv=1.0), TtftInputs(prompt_cv=1.0, service_ms=14.0)
    assert queue_of(typed).law.scv == pytest.approx(1.0, rel=1e-6)
    assert queue_of(spread).law.scv < 0.9  # short prompts still read the weights
    assert compute(spread).service_ms > compute(TtftInputs()).service_ms


def test_the_distributions_have_the_mean_and_the_spread_asked_for():
    for distribution in ("lognormal", "gamma", "uniform", "two_point"):
        law = queue_of(TtftInputs(service_ms=100.0, prompt_cv=0.5, prompt_distribution=distribution)).law
        assert (law.mean, law.scv) == pytest.approx((0.1, 0.25), rel=1e-6), distribution


COMBINATIONS = list(
    itertools.product(
        (1, 4),
        declared(RealTraffic)["routing"].options,
        (0.0, 0.5),
        (0.0, 1.0, 4.0),
        (1, 3),
        declared(RealTraffic)["order"].options,
    )
)


@pytest.mark.parametrize("servers", [1, 4])
@pytest.mark.parametrize("typed", [None, 14.0])
def test_every_combination_has_a_method_or_a_sentence_that_names_an_input(servers, typed):
    for _, routing, cv, scv, batch, order in (each for each in COMBINATIONS if each[0] == servers):
        inputs = TtftInputs(
            servers=servers,
            routing=routing,
            prompt_cv=cv,
            arrival_scv=scv,
            batch_size=batch,
            order=order,
            service_ms=typed,
        )
        try:
            queue = queue_of(inputs)
        except InputsError as refused:
            (error,) = refused.errors
            assert error.name in ("batch_size", "order"), inputs
            assert "set" in error.sentence or "leave" in error.sentence
            continue
        assert queue.name.endswith(".")
        assert queue.kind in ("exact", "numerical", "approximation", "simulation")
        assert queue.capacity > 0


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"prompt_cv": 1.0}, "exact"),
        ({"arrival_scv": 0.0}, "exact"),
        ({"servers": 4, "routing": "shared"}, "exact"),
        ({"servers": 4, "routing": "round_robin", "prompt_cv": 1.0}, "numerical"),
        ({"servers": 4, "routing": "least_work", "prompt_cv": 1.0}, "approximation"),
        ({"servers": 4, "routing": "shortest_queue"}, "simulation"),
        ({"servers": 4, "arrival_scv": 4.0}, "simulation"),
        ({"arrival_scv": 4.0, "prompt_cv": 1.0}, "numerical"),
        ({"arrival_scv": 4.0, "prompt_cv": 1.0, "prompt_distribution": "two_point"}, "simulation"),
        ({"order": "short_first", "prompt_cv": 1.0}, "simulation"),
    ],
)
def test_the_answer_names_its_method_and_orders_its_percentiles(changes, kind):
    inputs = at(0.6, **changes)
    result = compute(inputs, thorough=False)
    assert queue_of(inputs).kind == kind
    assert result.method == queue_of(inputs).name
    if kind != "exact":
        assert result.approximation_error.endswith(".")
    times = [getattr(result, f"{key}_ttft_ms") for key in ("p50", "p90", "p95", "p99", "p999")]
    assert times == sorted(times)
    assert result.verdict == "meets"
    assert wording.answer(inputs, result)
    assert wording.metrics(inputs, result)
    assert wording.basis(inputs, result).startswith(("Poisson", "gamma"))
    assert all(np.isfinite(form.form(**form.values)) for form in queue_formulas(inputs, result))


@pytest.mark.parametrize(
    "changes",
    [
        {"prompt_cv": 1.0},
        {"arrival_scv": 4.0},
        {"servers": 4, "routing": "shared"},
        {"servers": 4, "routing": "round_robin", "prompt_cv": 1.0},
        {"servers": 4, "routing": "shared", "prompt_cv": 0.5},
    ],
)
def test_at_the_highest_rate_the_target_is_just_met(changes):
    inputs = replace(at(0.5, **changes), ttft_slo_ms=4000.0)
    limit = compute(inputs, thorough=False).max_rate
    assert queue_of(inputs).value_ms(0.9, limit) == pytest.approx(4000.0, rel=1e-3)
    assert compute(replace(inputs, rate=limit * 1.01), thorough=False).verdict == "misses"
    mean = replace(inputs, slo_statistic="mean")
    limit = compute(mean, thorough=False).max_rate
    assert queue_of(mean).mean_ttft_ms(limit) == pytest.approx(4000.0, rel=1e-3)


def test_the_instances_needed_are_the_fewest_that_keep_the_target():
    inputs = TtftInputs(rate=400.0, ttft_slo_ms=50.0, percentile=99, servers=8, routing="shared")
    found = compute(inputs)
    assert compute(replace(inputs, servers=found.instances)).verdict == "meets"
    assert compute(replace(inputs, servers=found.instances - 1)).verdict in ("misses", "unstable")
    at_random = compute(replace(inputs, routing="random"))
    assert found.instances < at_random.instances


@given(st.integers(1, 256), st.integers(1, 256))
def test_the_search_finds_the_fewest(needed, stable):
    assert fewest_servers(lambda count: count >= needed, stable) == max(needed, stable)


@settings(max_examples=20, deadline=None)
@given(
    st.floats(0.05, 0.95), st.sampled_from([0.0, 0.3]), st.sampled_from([0.0, 0.5, 3.0]), st.sampled_from(["shared", "random"])
)  # fmt: skip
def test_no_number_is_infinite_nan_or_negative(load, cv, scv, routing):
    inputs = at(load, prompt_cv=cv, arrival_scv=scv, servers=1, routing=routing)
    for value in outputs.as_dict(compute(replace(inputs, customers=10_000), thorough=False)).values():
        assert not isinstance(value, float) or (np.isfinite(value) and value >= 0)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"batch_size": 4, "prompt_cv": 1.0}, "batch_size"),
        ({"batch_size": 4, "service_ms": 50.0}, "batch_size"),
        ({"batch_size": 4, "servers": 2, "routing": "shared"}, "batch_size"),
        ({"order": "shortest", "servers": 2, "routing": "shared", "prompt_cv": 1.0}, "order"),
        ({"prompt_distribution": "uniform", "prompt_cv": 1.0}, "prompt_cv"),
        ({"arrival_scv": 0.001}, "arrival_scv"),
    ],
)
def test_what_has_no_method_is_refused_by_name(changes, named):
    with pytest.raises(InputsError) as caught:
        compute(TtftInputs(**changes))
    assert [error.name for error in caught.value.errors] == [named]


def test_unstable_pools_say_so():
    inputs = TtftInputs(rate=500.0, servers=4, routing="shared")
    result = compute(inputs)
    assert (result.verdict, result.stable, result.p99_ttft_ms) == ("unstable", False, None)
    assert result.instances > 4
    assert "4 instances serve less than" in result.warnings[0]
    assert f"**{result.instances} instances** meet" in wording.sentence(inputs, result)


def test_shortest_first_helps_the_mean_and_batches_help_short_prompts():
    fcfs, shortest = compute(at(0.8, prompt_cv=1.0)), compute(at(0.8, prompt_cv=1.0, order="shortest"))
    assert shortest.mean_wait_ms == pytest.approx(1922.91, rel=1e-5)  # Phipps 1956, and 4000 first come first served
    assert shortest.mean_wait_ms < fcfs.mean_wait_ms
    alone = TtftInputs(rate=100.0, prompt_tokens=64, **SMALL)
    assert compute(alone).utilization > compute(replace(alone, batch_size=4)).utilization
    assert compute(replace(alone, batch_size=4)).mean_ttft_ms < compute(alone).mean_ttft_ms


@pytest.mark.parametrize(
    "changes",
    [
        {"prompt_cv": 0.5},
        {"arrival_scv": 2.0},
        {"arrival_scv": 2.0, "prompt_cv": 1.0},
        {"servers": 4, "routing": "shared"},
        {"servers": 4, "routing": "round_robin", "prompt_cv": 0.5},
        {"servers": 2},
        {"prompt_cv": 1.0, "order": "short_first"},
    ],
)
def test_the_simulation_of_the_very_traffic_agrees(changes):
    checked = check(replace(at(0.6, **changes), customers=200_000))
    assert checked.agrees, [(row.label, row.exact_ms, row.low_ms, row.high_ms) for row in checked.rows]
    assert traffic_wording.agreement(checked)


def test_an_approximation_is_compared_and_a_simulation_is_repeated_with_another_seed():
    approximate = check(replace(at(0.8, servers=4, routing="shared", prompt_cv=0.5), customers=200_000))
    assert (approximate.rows, approximate.agrees) == ((), None)
    assert max(abs(row.off_percent) for row in approximate.compared) < 10
    assert "formulas are at most" in traffic_wording.agreement(approximate)
    again = check(at(0.6, servers=4, routing="shortest_queue"))
    assert again.seed == 2
    assert "Formula (ms)" in rows_of(approximate.compared)
    assert [*rows_of(again.compared)][1:3] == ["Answer, simulated (ms)", "Another seed (ms)"]  # no formula is spoken of
    assert "another seed" in traffic_wording.agreement(again)
    with pytest.raises(DomainError, match="no steady state"):
        check(at(1.5, servers=4, routing="shared"))


def test_a_steady_beat_keeps_the_target_at_any_rate_below_capacity():
    steady = TtftInputs(service_ms=1000.0, rate=0.5, ttft_slo_ms=2000.0, arrival_scv=0.0)
    said = {label: value for label, value, _ in wording.metrics(steady, compute(steady))}
    assert said["Highest rate in target"] == "below 1 /s"
    bursty = replace(steady, arrival_scv=1.0)
    assert "below" not in wording.highest_rate(bursty, compute(bursty))


def test_an_hour_is_said_in_seconds():
    hours = TtftInputs(service_ms=3_600_000.0, rate=0.001, ttft_slo_ms=10_000_000.0)
    assert "the target of 10,000 s" in wording.sentence(hours, compute(hours))
    slow = replace(hours, ttft_slo_ms=1_000_000.0)
    assert "is **3,600 s**, and the target is 1,000 s" in wording.sentence(slow, compute(slow))


def test_the_effects_are_those_of_the_calculation():
    inputs = TtftInputs(rate=400.0, servers=8, routing="shared", prompt_cv=1.0, **SMALL)
    rows = {row.traffic.split(":")[0]: row for row in effects(inputs, slow=False)}
    assert rows["plain"].p99_ttft_ms == compute(TtftInputs(rate=400.0, servers=8)).p99_ttft_ms
    assert rows["plain"].times_plain == 1
    assert rows["spread alone"].times_plain > 1
    assert rows["router alone"].times_plain < 1
    assert has_slow_rows(inputs)
    together = next(row for name, row in rows.items() if "together" in name)
    assert together.method.startswith("G/G/c")
    held_up = {row.traffic: row for row in effects(replace(inputs, routing="shortest_queue"), slow=False)}
    assert held_up["router alone: shortest queue"].p99_ttft_ms is None  # too slow to be simulated unasked
    assert held_up["router alone: shortest queue"].method == NOT_ASKED
    assert held_up["bursts alone: gamma arrivals, scv 4"].times_plain > 1
    simulated = {row.traffic: row for row in effects(inputs, slow=True)}
    assert (
        next(row for name, row in simulated.items() if "together" in name).p99_ttft_ms
        > simulated["as set in the sidebar"].p99_ttft_ms
    )
    assert "spread alone" in traffic_wording.on_effects(inputs, list(simulated.values()))
    assert len(traffic_figures.effect_bars(inputs, list(simulated.values())).data[0]["x"]) == len(simulated)
    assert all(row.method == "Unstable at this rate." for row in effects(TtftInputs(rate=900.0), slow=False))


def test_each_router_has_its_need():
    inputs = TtftInputs(rate=150.0, percentile=99, ttft_slo_ms=60.0, customers=10_000)
    found = {row.router: row for row in needs(inputs)}
    assert found["one shared queue"].instances == found["round robin"].instances == found["least work"].instances
    assert found["one shared queue"].instances <= found["shortest queue"].instances <= found["at random"].instances
    assert all(row.reached_ms <= 60 for row in found.values())
    assert all(row.instances is None for row in needs(replace(inputs, ttft_slo_ms=1.0)))


@pytest.mark.parametrize(
    "changes", [{"prompt_cv": 1.0}, {"arrival_scv": 4.0}, {"servers": 8, "routing": "shared"}, {"servers": 3}]
)
def test_the_curve_passes_through_the_users_point(changes):
    inputs = at(0.77, **changes)
    curves = curves_of(inputs)
    there = np.interp(inputs.rate, curves.rate, curves.own_ttft_ms)
    assert there == pytest.approx(compute(inputs, thorough=False).target_ttft_ms, rel=0.01)


def test_elasticities_follow_the_method():
    by_name = {row.name: row.elasticity for row in sensitivities(at(0.8, prompt_cv=1.0, arrival_scv=1.0))}
    assert by_name["prompt_cv"] > 0
    assert by_name["service_ms"] - by_name["rate"] == pytest.approx(1, abs=1e-3)
    assert "arrival_scv" in {row.name for row in sensitivities(at(0.8, arrival_scv=2.0))}
    assert sensitivities(at(0.8, servers=2, routing="shortest_queue")) == ()


def test_what_if_follows_the_method():
    inputs = TtftInputs(rate=200.0, servers=8, routing="shared")
    rows = {row.change: row for row in alternatives(inputs)}
    assert rows["twice the rate"].target_ttft_ms == compute(replace(inputs, rate=400.0)).target_ttft_ms
    spread = {row.change: row for row in alternatives(replace(inputs, servers=1, rate=40.0, prompt_cv=1.0))}
    assert spread["half the prompt"].target_ttft_ms < spread["as it is"].target_ttft_ms


# The command line


@pytest.fixture
def run(capsys):
    def run(*words):
        status = main(words)
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run


def test_the_flags_and_the_keys(run):
    words = ["--servers", "8", "--routing", "shared", "--rate", "400", "--prompt-cv", "0", "--arrival-scv", "1"]
    status, out, _ = run("ttft", *words, "--batch-size", "1", "--order", "fcfs", "--json")
    report = json.loads(out)
    assert status == 0
    assert report["inputs"]["servers"] == 8
    assert "M/D/c" in report["results"]["method"]
    assert report["results"]["approximation_error"] is None
    assert "trace" not in report["link"]
    assert "routing=shared" in report["link"]


def test_no_method_is_one_line_and_status_2(run):
    status, out, err = run("ttft", "--batch-size", "4", "--prompt-cv", "1")
    assert (status, out) == (2, "")
    assert err.startswith("calculators: batch_size = 4:")


@pytest.fixture
def trace_file(tmp_path):
    generator = np.random.default_rng(1)
    times = np.cumsum(generator.gamma(0.5, 2 / 20.0, 2000))
    prompts = np.maximum(generator.lognormal(6.0, 0.7, 2000).astype(int), 1)
    lines = ["timestamp,input_length,output_length"]
    lines += [f"{1e3 * t:.3f},{p},{100 + n % 7}" for n, (t, p) in enumerate(zip(times, prompts, strict=True))]
    lines.insert(5, "oops,12,1")
    path = tmp_path / "requests.csv"
    path.write_text("\n".join(lines))
    return path


def test_a_trace_fills_what_was_not_given(run, trace_file):
    status, out, _ = run("ttft", "--trace", str(trace_file), "--json", "--customers", "20000")
    report = json.loads(out)
    assert status == 0
    summary = report["results"]["trace"]
    assert (summary["format"], summary["requests"], summary["broken_rows"]) == ("Mooncake trace", 2000, 1)
    assert summary["broken"][0].startswith("line 6: timestamp is oops")
    assert report["inputs"]["rate"] == pytest.approx(20, rel=0.1)
    assert report["inputs"]["arrival_scv"] == pytest.approx(2, rel=0.15)
    assert report["inputs"]["prompt_tokens"] == round(summary["prompt_tokens"])
    _, out, _ = run("ttft", "--trace", str(trace_file), "--json", "--rate", "5", "--arrival-scv", "1", "--check")
    report = json.loads(out)
    assert (report["inputs"]["rate"], report["inputs"]["arrival_scv"]) == (5, 1)
    assert report["inputs"]["prompt_cv"] == summary["prompt_cv"]
    assert "M/G/1" in report["results"]["method"]
    assert report["check"]["replay"]["requests"] == 2000


@pytest.fixture
def unknown_trace(tmp_path):
    path = tmp_path / "own.csv"
    rows = "".join(f"{200 * n},{400 + 37 * n % 900},{n % 50 + 1}\n" for n in range(300))
    path.write_text("arrived,prompt,answer\n" + rows)
    return str(path)


def test_the_columns_of_an_unknown_trace_are_named_on_the_command_line(run, unknown_trace):
    status, _, err = run("ttft", "--trace", unknown_trace)
    assert (status, "no format known" in err) == (2, True)
    columns = "time=arrived, input=prompt, output=answer, unit=ms"
    status, out, _ = run("ttft", "--trace", unknown_trace, "--trace-columns", columns, "--json")
    report = json.loads(out)
    assert (status, report["results"]["trace"]["requests"]) == (0, 300)
    assert report["inputs"]["rate"] == pytest.approx(5, rel=0.01)
    assert report["inputs"]["prompt_histogram"]
    assert "trace" not in report["link"]


@pytest.mark.parametrize(
    "columns",
    ["arrived", "time=arrived", "time=arrived,input=prompt,output=answer,unit=days", "time=,input=a,output=b"],
)
def test_columns_that_are_not_named_as_they_should_be(run, unknown_trace, columns):
    status, _, err = run("ttft", "--trace", unknown_trace, "--trace-columns", columns)
    assert status == 2
    assert err.startswith("calculators: trace_columns = ")
    assert "time=arrived,input=prompt,output=answer,unit=ms" in err


def test_a_replay_is_printed_as_a_table(run, trace_file):
    status, out, _ = run("ttft", "--trace", str(trace_file), "--rate", "5", "--check", "--customers", "20000")
    assert status == 0
    assert "{'" not in out
    assert re.search(r"\n +label +replayed_ms +formula_ms\n +mean ", out)


def test_the_command_line_finds_the_instances_by_simulation(run):
    status, out, _ = run(
        "ttft", "--service-ms", "50", "--rate", "60", "--servers", "4", "--routing", "shortest_queue", "--prompt-cv", "1",
        "--ttft-slo-ms", "300", "--customers", "20000", "--json",
    )  # fmt: skip
    report = json.loads(out)
    assert status == 0
    assert 4 <= report["results"]["instances"] <= 6
    assert "one more or less" in " ".join(report["warnings"])


def test_bursts_of_spread_prompts_behind_one_queue_have_a_formula(run):
    asked = [
        "ttft",
        "--service-ms",
        "50",
        "--rate",
        "60",
        "--servers",
        "4",
        "--prompt-cv",
        "1",
        "--arrival-scv",
        "4",
        "--ttft-slo-ms",
        "300",
        "--json",
    ]
    _, out, _ = run(*asked, "--routing", "shared", "--check", "--customers", "100000")
    report = json.loads(out)
    assert report["results"]["method"].startswith("G/G/c")
    assert report["results"]["instances"] is not None
    (p99,) = (row for row in report["check"]["compared"] if row["label"] == "P99")
    assert abs(p99["off_percent"]) < 20


@pytest.mark.parametrize(
    ("text", "said"), [(None, "cannot be read"), ("", "empty"), ("a,b\n1,2\n", "no format known"), ("%PDF-1.4", "PDF")]
)
def test_a_file_that_is_no_trace_is_one_line(run, tmp_path, text, said):
    path = tmp_path / "file"
    if text is not None:
        path.write_text(text)
    status, out, err = run("ttft", "--trace", str(path))
    assert (status, out, len(err.splitlines())) == (2, "", 1)
    assert err.startswith("calculators: trace = ")
    assert said in err


def test_a_link_carries_no_file(run, trace_file):
    inputs = fill_from_trace(TtftInputs(trace=str(trace_file)), frozenset())
    assert "trace" not in encode("ttft", inputs)
    assert "trace" not in linked(TtftInputs)
    status, _, err = run("ttft?v=1&trace=/etc/passwd")
    assert status == 2
    assert "trace" in err


def test_a_trace_is_shown_and_replayed(trace_file):
    found = read_trace(trace_file)
    summary, shown = summarise(found), statistics_of(found)
    assert shown.rate.rate.mean() == pytest.approx(summary.rate, rel=0.05)
    by = {(row.lengths, row.fit): row for row in shown.fits}
    assert by["prompts", "by the logarithms"].ks_percent < 3
    assert by["prompts", "by mean and spread"].mean == pytest.approx(summary.prompt_tokens)
    assert abs(shown.correlation) < 0.1
    assert "2" in on_trace(shown, summary.arrival_scv)
    for figure in (
        traffic_figures.rate_over_time(shown, summary.rate),
        traffic_figures.bursts(shown.bursts, summary.arrival_scv),
        traffic_figures.lengths(shown.inputs, "prompts"),
    ):
        assert figure.data


def test_the_page_takes_a_file_of_200_mb_however_that_is_counted():
    config = tomllib.loads((Path(__file__).parents[2] / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    assert config["server"]["maxUploadSize"] >= 210  # in MB; 200 MiB are 209.7


def test_the_replay_by_events_is_lindleys_recursion(trace_file):
    found = read_trace(trace_file)
    inputs = TtftInputs(customers=20_000)
    one = replay(inputs, found)
    routed = replay(replace(inputs, servers=2, routing="shared"), found)
    services = prefill_times_ms(inputs, found.input_tokens) / 1e3
    by_hand, free = [], 0.0
    for arrival, service in zip(found.arrivals, services, strict=True):
        free = max(free, arrival) + service
        by_hand.append(free - arrival)
    assert one.rows[0].replayed_ms == pytest.approx(1e3 * np.mean(by_hand), rel=1e-6)
    assert routed.rows[0].replayed_ms < one.rows[0].replayed_ms
    assert one.rows[0].formula_ms == pytest.approx(one.rows[0].replayed_ms, rel=0.25)


def test_who_gains_and_who_pays_where_short_prompts_go_first():
    inputs = TtftInputs(service_ms=1000, rate=0.8, prompt_cv=1, order="shortest")
    rows = {row.prompts: row for row in gains(inputs)}
    short, long, whole = rows["the shortest half"], rows["the longest tenth"], rows["all"]
    assert short.shortest_ms < short.short_first_ms < short.fcfs_ms
    assert long.shortest_ms > long.fcfs_ms
    law = law_of(inputs)
    assert whole.fcfs_ms == pytest.approx(1e3 * mg1.mean_ttft(0.8, law), rel=0.1)
    assert whole.shortest_ms == pytest.approx(1e3 * (shortest_first_mean_wait(0.8, law) + law.mean), rel=0.1)
    assert gains(replace(inputs, prompt_cv=0)) == ()


@pytest.mark.parametrize(
    "asked",
    [
        {"service_ms": 1000, "servers": 256, "routing": "shared", "prompt_cv": 3, "rate": 204.8, "ttft_slo_ms": 9000},
        {"service_ms": 1000, "servers": 64, "routing": "shared", "prompt_cv": 5, "rate": 32, "ttft_slo_ms": 9000},
    ],
)
def test_a_pool_too_spread_to_be_searched_still_has_its_percentiles(asked):
    result = compute(TtftInputs(**asked))
    assert result.p90_ttft_ms > 0
    assert result.stable


def test_a_pool_too_near_saturation_to_be_computed_is_refused_in_a_sentence(capsys):
    status = main(["ttft", "--rate", "542.98", "--servers", "8", "--routing", "shared", "--prompt-cv", "1"])
    assert status == 2
    said = capsys.readouterr().err
    assert said.startswith("calculators: no answer for these inputs: At a utilization of")
    assert "Traceback" not in said


def test_a_trace_of_a_steady_beat_fills_a_steady_beat(tmp_path):
    path = tmp_path / "steady.csv"
    rows = "".join(f"{100 * n},100,10\n" for n in range(500))  # in milliseconds
    path.write_text("timestamp,input_length,output_length\n" + rows)
    inputs = fill_from_trace(TtftInputs(trace=str(path)), frozenset({"trace"}))
    assert inputs.arrival_scv == 0
    assert compute(inputs).stable


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "measured: log-normal"),
        ({"prompt_distribution": "two_point"}, "lengths of this law"),
        ({"servers": 64}, "so many instances"),
    ],
)
def test_the_error_of_a_shared_queue_is_claimed_only_where_it_was_measured(changes, said):
    inputs = replace(TtftInputs(service_ms=1000, rate=4, servers=8, routing="shared", prompt_cv=1), **changes)
    assert said in queue_of(inputs).error
