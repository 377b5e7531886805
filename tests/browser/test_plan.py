"""The main job in a real browser: from the front page to a plan, its simulation, its link and a figure for the report."""

import csv
import io
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_from_the_front_page_to_a_figure_for_the_report(app, new_app):
    app.open()
    assert app.page.get_by_role("heading", level=1).inner_text() == "Plan"
    app.choose("Model", "llama-3.1-70b")
    app.set("Arrival rate (requests/s)", 20)
    app.set("TTFT target (ms)", 1000)
    app.set("TPOT target (ms)", 50)
    app.set("Spread of prompt lengths", 1)
    app.set("Burstiness of arrivals", 2)
    said = app.headline
    assert re.search(r"Use \d+ × h100-sxm", said)
    assert "meet both targets" in said

    app.tab("Should I disaggregate?")
    assert app.page.get_by_test_id("stMain").get_by_text("Mixed lengths").count() == 1
    app.tab("Check this plan")
    app.page.get_by_text("The targets hold in the simulation").wait_for(timeout=120_000)
    app.tab("Launch")
    assert "vllm serve" in app.page.get_by_test_id("stCode").first.inner_text()

    link = app.share_link
    command = [sys.executable, "-m", "calculators", link, "--json"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    best = json.loads(printed)["results"]["recommendation"]
    assert f"Use {best['gpus']} × h100-sxm" in said
    other = new_app()
    other.open(link.removeprefix(app.address + "/"))
    assert other.headline == said
    assert other.metrics == app.metrics

    window = other.export()
    name, svg = window.save("SVG")
    assert name == "accelerators-against-rate.svg"
    assert ET.fromstring(svg).tag.endswith("svg")  # noqa: S314 - our own file
    assert b"Arrival rate (requests/s)" in svg
    _, table = window.save("CSV")
    rows = list(csv.reader(io.StringIO(table.decode())))
    assert rows[0][0] == "Arrival rate (requests/s)"
    assert max(float(row[0]) for row in rows[1:]) == 40
    assert [problem for each in (app, other) for problem in each.problems if "404" not in problem] == []


def test_the_simulation_of_a_plan_can_be_stopped_and_started_again(app):
    app.open("plan?rate=100&customers=60000&output_tokens=1024&seed=7")
    app.page.get_by_role("tab", name="Check this plan", exact=True).click()
    app.page.get_by_role("button", name="Stop", exact=True).click(timeout=60_000)
    app.page.get_by_text("The simulation was stopped").wait_for()
    app.settle()
    assert app.page.get_by_test_id("stException").count() == 0
    app.set("Output length (tokens)", 64)
    app.page.get_by_text("in the simulation").first.wait_for(timeout=120_000)


def test_each_side_has_its_own_accelerator(app):
    app.open("plan?rate=500&ttft_slo_ms=40&tpot_slo_ms=8&price_per_hour=3&decode_price_per_hour=1")
    app.choose("Accelerator of the decode side", "h200-sxm")
    assert "h200-sxm" in app.headline
    assert "cheapest wins" in app.page.get_by_test_id("stMain").inner_text()
