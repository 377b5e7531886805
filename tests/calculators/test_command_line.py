"""The command line as scripts use it: JSON, tables, links, and mistakes in one line with exit status 2."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import hardware_db
from calculators import catalog
from calculators.__main__ import TABLES, main
from calculators.hardware import tables

ROOT = Path(__file__).parents[2]
TIMES = ["mean_wait_ms", "mean_ttft_ms"] + [f"{p}_ttft_ms" for p in ("p50", "p90", "p95", "p99", "p999")]
RESULTS = ["service_ms", "utilization", "stable", *TIMES, "max_rate", "instances"]


@pytest.fixture
def run(capsys):
    def run(*words):
        status = main(words)
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run


@pytest.fixture
def answer(run):
    def answer(*words):
        status, out, err = run(*words, "--json")
        assert (status, err) == (0, "")
        return json.loads(out)

    return answer


def test_one_json_object_with_inputs_results_warnings_and_link(answer):
    report = answer("ttft", "--rate", "16", "--service-ms", "50")
    assert list(report) == ["calculator", "inputs", "results", "warnings", "link"]
    assert report["calculator"] == "ttft"
    assert report["inputs"]["rate"] == 16
    assert report["inputs"]["service_ms"] == 50
    assert set(report["inputs"]) == set(catalog.CALCULATORS["ttft"].inputs.__dataclass_fields__)
    assert set(RESULTS) <= set(report["results"])
    assert report["results"]["mean_ttft_ms"] == pytest.approx(150, rel=1e-9)
    assert report["warnings"] == []
    assert report["link"].startswith("ttft?v=1&rate=16&service_ms=50&")


def test_the_link_gives_the_same_answer_again(answer):
    first = answer("ttft", "--rate", "33.123456789012345", "--prompt-tokens", "777", "--tp", "2")
    again = answer(first["link"])
    assert again == first
    assert answer("http://example.test:8501/" + first["link"]) == first
    assert answer("http://example.test:8501/ttft/?" + first["link"].split("?")[1]) == first


def test_flags_go_before_the_link(answer):
    link = answer("ttft", "--rate", "16", "--service-ms", "50")["link"]
    assert answer(link, "--rate", "8")["inputs"]["rate"] == 8


def test_check_adds_the_simulation(answer):
    report = answer("ttft", "--rate", "10", "--service-ms", "50", "--customers", "50000", "--check")
    rows = report["check"]["rows"]
    assert rows[0]["label"] == "mean"
    assert report["check"]["customers"] == 50_000
    assert all(row["low_ms"] <= row["simulated_ms"] <= row["high_ms"] for row in rows)


def test_check_of_an_unstable_instance_says_that_there_is_nothing_to_simulate(answer, run):
    report = answer("ttft", "--rate", "30", "--service-ms", "50", "--check")
    assert report["check"] is None
    assert any("no steady state to simulate" in warning for warning in report["warnings"])
    assert run("ttft", "--rate", "30", "--service-ms", "50", "--check")[0] == 0


def test_unstable_is_an_answer(answer):
    report = answer("ttft", "--rate", "25", "--service-ms", "50")
    results = report["results"]
    assert results["stable"] is False
    assert results["utilization"] == pytest.approx(1.25)
    assert all(results[key] is None for key in TIMES)
    assert results["max_rate"] < 20
    assert results["instances"] * results["max_rate"] >= 25
    assert "no steady state" in report["warnings"][0]


def test_without_json_a_table_for_people(run):
    status, out, err = run("ttft", "--rate", "16", "--service-ms", "50")
    assert (status, err) == (0, "")
    assert "Mean TTFT" in out
    assert "150 ms" in out
    assert out.rstrip().splitlines()[-1].startswith("ttft?v=1&")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ttft", "--rate", "-5"], 'rate = "-5": out of range; allowed: a number from 0.001'),
        (["ttft", "--rate", "nan"], "not a finite number"),
        (["ttft", "--rate", "-inf"], "not a finite number"),
        (["ttft", "--rate=inf"], "not a finite number"),
        (["ttft", "--rate", "fast"], 'rate = "fast": not a finite number'),
        (["ttft", "--rate", ""], "a value is needed"),
        (["ttft", "--rate"], "a value is needed; allowed"),
        (["ttft", "--model", "lama-3.1-8b"], "did you mean llama-3.1-8b"),
        (["ttft", "--accelerator", "H100"], "did you mean h100"),
        (["ttft", "--prompt-token", "5"], "did you mean --prompt-tokens"),
        (["ttft", "5"], '"5" is not an input of ttft'),
        (["ttft", "--tp", "2.5"], "not a whole number"),
        (["ttft", "--accelerator", "a100-80-sxm", "--weight-dtype", "fp8"], "A100"),
        (["tftt"], "did you mean ttft"),
        (["hardware", "--xml"], "allowed: --json"),
        (["ttft?v=9&rate=1"], "links of version 1"),
        (["ttft?v=1&rat=1"], "did you mean rate"),
        (["ttft?v=1&rate=abc"], "not a finite number"),
        (["ttft?v=1&rate=16&rate=17"], "rate is given 2 times"),
        (["ttft", "--rate", "16", "--rate", "17"], "rate is given 2 times"),
        (["http://[/ttft?v=1"], "is no link"),
        (["ttft", "--rate", "1_0"], 'rate = "1_0"'),
        (["ttft", "--rate", "1e400"], 'rate = "1e400"'),
        (["ttft", "--seed", "2147483648"], 'seed = "2147483648"'),
        (["ttft", "--servicems", "5"], "did you mean --service-ms"),
    ],
)
def test_a_wrong_input_is_named_in_one_line(run, words, said):
    status, out, err = run(*words, *(["--json"] if words[0].startswith("ttft") and "=" not in words[0] else []))
    assert status == 2
    assert out == ""
    assert len(err.splitlines()) == 1
    assert said in err


def test_without_words_it_lists_the_calculators_and_the_tables(run):
    status, out, err = run()
    assert (status, err) == (0, "")
    for name in (*catalog.CALCULATORS, *TABLES):
        assert f"  {name} " in out


@pytest.mark.parametrize("table", TABLES)
def test_the_database_is_printed(answer, run, table):
    records = answer(table)
    assert len(records) == len(tables.TABLES[TABLES[table]]())
    assert all(record["sources"] for record in records)
    status, out, _ = run(table)
    assert status == 0
    assert len(out.splitlines()) == len(records) + 1


@pytest.mark.parametrize("table", tables.TABLES)
def test_every_table_of_the_database_has_columns_and_says_how_they_are_meant(table):
    records = list(tables.TABLES[table]().values())
    found = tables.columns(table, records)
    assert found["Id"] == [record.id for record in records]
    assert {len(column) for column in found.values()} == {len(records)}
    assert tables.NOTES[table]


def test_a_workload_names_its_targets_its_sources_and_what_is_not_verified():
    chat = hardware_db.workloads()["chat-sharegpt"]
    row = {title: values[0] for title, values in tables.columns("workloads", [chat]).items()}
    assert row["Prompt (tokens)"] == 755.5
    assert row["Targets (TTFT, TPOT)"].split("; ")[1] == "opt-66b 2,500 ms, 150 ms"
    assert row["Not verified"] == "prompt_tokens, output_tokens"
    assert row["Sources"] == "distserve: table 1, figure 7"
    full = dict(zip(*tables.fields_of(chat).values(), strict=True))
    assert full["prompt_tokens"] == "755.5  (not verified)"
    assert full["slos"].startswith("model opt-13b, ttft_s 0.25, tpot_s 0.1; ")


def test_the_module_runs_as_a_program():
    command = [sys.executable, "-m", "calculators", "ttft", "--rate", "16", "--service-ms", "50", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["results"]["utilization"] == pytest.approx(0.8)
    wrong = subprocess.run([*command[:3], "ttft", "--rate", "x"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("calculators: rate =")


def test_a_reader_that_has_seen_enough_is_no_error():
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = f"{shlex.quote(sys.executable)} -m calculators models --json | head -c 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False, env=environment
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_terminal_without_dashes_is_no_error():
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "calculators", "ttft", "--rate", "100"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
