"""The page of the placement as a planner uses it."""

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[2]
SMALL = "placement?nodes=2&node_gpus=4"


def quiet(app):
    """Return what the console complained of, without Streamlit's own look for its server under the page's path."""
    return [problem for problem in app.problems if "404" not in problem]


def test_the_answer_the_drawing_and_the_command_line_agree(app):
    app.open(SMALL)
    link = app.share_link
    report = json.loads(
        subprocess.run(
            [sys.executable, "-m", "calculators", link, "--json"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
    )
    results = report["results"]
    assert f"{results['prefill']['instances']} × TP {results['prefill']['tp']}" in app.headline
    assert app.metrics["Accelerators"] == str(results["gpus"])
    boxes = app.page.get_by_test_id("stPlotlyChart").first.locator(".bartext")
    boxes.first.wait_for()
    words = boxes.all_text_contents()
    assert len(words) == results["gpus"]
    assert {"P1.1", "D1.1"} <= set(words)
    assert quiet(app) == []


def test_every_tab_draws_on_both_networks(app):
    app.open(f"{SMALL}&network=slow")
    for tab in (
        "Joint choices",
        "KV traffic",
        "DistServe's choices",
        "Formula",
        "Check by simulation",
        "Data",
        "Sources",
    ):
        app.tab(tab)
        assert app.page.get_by_test_id("stException").count() == 0, tab
    app.tab("Configurations")
    assert "configurations are allowed" in app.page.get_by_test_id("stMain").inner_text()
    assert quiet(app) == []


def test_on_a_narrow_screen_the_boxes_stand_apart(new_app):
    app = new_app(viewport={"width": 420, "height": 900})
    app.page.goto(f"{app.address}/placement?nodes=2&node_gpus=8")
    drawing = app.page.get_by_test_id("stPlotlyChart").first
    drawing.locator(".bartext").first.wait_for()
    boxes = [each.bounding_box() for each in drawing.locator(".bars path").all()]
    highest = min(box["y"] for box in boxes)
    first_row = sorted((box["x"], box["x"] + box["width"]) for box in boxes if box["y"] < highest + 5)
    assert len(boxes) == 16
    assert len(first_row) == 8
    assert all(right <= left for (_, right), (left, _) in pairwise(first_row))
