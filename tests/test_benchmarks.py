"""The benchmark's numeric rows and its reports; no wall-clock limit, no server, no browser."""

import json
import math

import pytest

import benchmarks.__main__ as command
from benchmarks import browser, numerics, report, timed_streamlit
from benchmarks.report import Benchmark, Figure, Goal, NotMeasured, Row

FAST = Row("sweep", Goal("a sweep", "ms", 3), Figure(1.5, "median of 7"))
MANY = Row("simulation", Goal("ciw over ours", "times", 400, at_least=True), Figure(300.0))
UNKNOWN = Row("start", Goal("first page", "s", 3), Figure(None, "not measured: no Chromium was found"))
EXTRA = Row("script", Goal("garbage collection", "ms"), Figure(0.25))


def test_ratio_is_measured_over_target_and_the_direction_decides():
    assert [row.ratio for row in (FAST, MANY, UNKNOWN, EXTRA)] == [0.5, 0.75, None, None]
    assert [row.met for row in (FAST, MANY, UNKNOWN, EXTRA)] == [True, False, None, None]


def test_table_shows_every_row_and_no_ratio_for_what_was_not_measured():
    lines = report.table([FAST, MANY, UNKNOWN, EXTRA]).splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    assert cells == [
        ["what", "measured", "target", "measured/target"],
        ["a sweep", "1.5 ms", "≤ 3 ms", "0.50"],
        ["ciw over ours", "300 times", "≥ 400 times", "0.75 (missed)"],
        ["first page", "not measured", "≤ 3 s", ""],
        ["garbage collection", "0.25 ms", "", ""],
    ]
    assert "- first page: not measured: no Chromium was found." in lines


def test_json_carries_rows_and_machine():
    found = json.loads(report.as_json([FAST, UNKNOWN], {"cores": "2"}))
    assert found["machine"] == {"cores": "2"}
    assert [(row["benchmark"], row["figure"]["value"], row["ratio"]) for row in found["rows"]] == [
        ("sweep", 1.5, 0.5),
        ("start", None, None),
    ]


def test_what_cannot_be_measured_says_why_in_every_row():
    def fail(quick):
        raise NotMeasured("no Chromium was found")

    rows = report.run(Benchmark("move", (Goal("a", "ms", 1), Goal("b", "ms", 2)), fail), quick=True)
    assert [row.figure for row in rows] == [Figure(None, "not measured: no Chromium was found")] * 2


@pytest.mark.parametrize(("share", "value"), [(0.5, 10), (0.95, 19), (1.0, 20)])
def test_quantile_is_a_measured_value(share, value):
    assert report.quantile(list(range(20, 0, -1)), share) == value


def test_machine_names_no_host():
    found = report.machine(None)
    assert found["chromium"] == "none found"
    assert set(found) >= {"date", "cores", "python", "streamlit"}


def test_numeric_rows_run(monkeypatch):
    monkeypatch.setattr(numerics, "CUSTOMERS", 50_000)
    monkeypatch.setattr(numerics, "CIW_CUSTOMERS", 400)
    (sweep,) = numerics.measure_sweep(quick=True)
    assert sweep.value > 0
    simulation, over_ciw = numerics.measure_simulation(quick=True)
    assert simulation.value > 0
    assert over_ciw.value > 0


def test_without_ciw_the_comparison_is_not_measured(monkeypatch):
    monkeypatch.setattr(numerics, "CUSTOMERS", 50_000)
    monkeypatch.setattr(numerics, "_ciw_us_per_customer", lambda *_: None)
    assert numerics.measure_simulation(quick=True)[1].value is None


def test_without_a_browser_the_command_succeeds_and_says_so(monkeypatch, capsys):
    monkeypatch.setattr(command, "find_browser", lambda: None)
    monkeypatch.setattr(browser, "find_browser", lambda: None)
    assert command.main(["--only", "move", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert {row["figure"]["remark"] for row in rows} == {
        "not measured: no Chromium was found; set CHROMIUM to its path"
    }


def test_the_clock_returns_what_the_script_returns_and_records_a_run(tmp_path):
    records = []
    run = timed_streamlit.clocked(lambda again: (1, True, again, False, None), lambda *record: records.append(record))
    assert run("another run") == (1, True, "another run", False, None)
    run(None)
    assert [kind for kind, _, _ in records] == ["part", "script"]
    assert all(math.isfinite(wall) and processor >= 0 for _, wall, processor in records)
    file = tmp_path / "timings"
    file.write_text("collection 0.5\nscript 12.5 9.0\npart 1.5 1.0\ncollection 0.25\nscript 8.0 7.0\n")
    assert timed_streamlit.read(file) == ([(12.5, 9.0), (9.5, 8.0)], [0.5, 0.25])
