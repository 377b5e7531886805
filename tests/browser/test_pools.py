"""The pages of pools and of the comparison, in the real app and a real browser."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def command_line(link):
    command = [sys.executable, "-m", "calculators", link, "--json"]
    return json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)["results"]


def test_the_exercise_on_the_page_and_a_rate_that_wastes_more(app):
    app.open("pools?target_rate=60&prefill_goodput=6&decode_goodput=20&colocated_goodput=3")
    assert "10 prefill instances + 3 decode instances" in app.headline
    assert "1.538 times" in app.headline
    assert app.metrics["Waste of rounding"] == "0 %"
    rate = app.page.get_by_test_id("stMain").get_by_label("Target rate (requests/s)", exact=True)
    with app.rerun():
        rate.fill("50")
        rate.press("Enter")
    assert "9 prefill instances + 3 decode instances" in app.headline
    assert app.metrics["Waste of rounding"] == "9.72 %"
    assert app.metrics["Goodput per accelerator"] == "4.167 /s"
    results = command_line(app.share_link)
    assert results["goodput_per_gpu"] == pytest.approx(4.166667, rel=1e-6)


@pytest.mark.parametrize("link", ["pools?customers=10000", "compare?rate=20&customers=10000"])
def test_every_tab_opens(app, link):
    app.open(link)
    for tab in app.page.get_by_role("tab").all_inner_texts():
        app.tab(tab)
        assert app.page.get_by_test_id("stException").count() == 0
        shown = app.page.get_by_test_id("stMain").inner_text()
        assert not re.search(r"\b(nan|inf|None)\b", shown, re.IGNORECASE)
    assert [problem for problem in app.problems if "404" not in problem] == []
