"""The pages of the next tokens and of interference, in the real app and a real browser."""

import json
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

ROOT = Path(__file__).parents[2]


def quiet(app):
    return [problem for problem in app.problems if "404" not in problem]


def command_line(link):
    command = [sys.executable, "-m", "calculators", link, "--json"]
    return json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)["results"]


def test_the_pool_answers_and_follows_the_rate(app, new_app):
    app.open("decode?rate=200")
    assert "within the target of 15 ms" in app.headline
    results = command_line(app.share_link)
    assert app.metrics["P90 TPOT"] == f"{results['p90_tpot_ms']:.4g} ms"
    assert app.metrics["Mean batch"] == f"{results['mean_batch']:.4g}"
    app.set("Arrival rate (requests/s)", 400)
    assert "over the target of 15 ms: use 2 instances" in app.headline
    assert parse_qs(urlsplit(app.page.url).query)["rate"] == ["400"]
    other = new_app()
    other.open(app.share_link.removeprefix(app.address + "/"))
    assert other.headline == app.headline
    assert other.metrics == app.metrics


def test_the_pool_is_simulated_beside_the_formulas(app):
    app.open("decode?rate=200&customers=20000")
    app.tab("Check by simulation")
    main = app.page.get_by_test_id("stMain").inner_text()
    off = re.search(r"at most ([\d.]+) % from the simulation", main)
    assert off
    assert float(off[1]) < 3


def test_three_ways_to_serve_stand_side_by_side(app):
    app.open("interference?rate=40&batch=32&context_tokens=700")
    assert "1.935 times as long" in app.headline
    assert "chunked prefill serves most" in app.headline
    results = command_line(app.share_link)
    assert app.metrics["P90 TPOT, prefill first"] == f"{results['prefill_first_p90_tpot_ms']:.4g} ms"
    assert app.metrics["P90 TPOT, disaggregated"] == f"{results['disaggregated_p90_tpot_ms']:.4g} ms"
    assert app.metrics["Rides for free"] == "231 tokens"
    app.set("Prompt length (tokens)", 128)
    assert "rides for free" in app.headline
    app.tab("Same accelerators")
    assert "split in proportion" in app.page.get_by_test_id("stMain").inner_text()


@pytest.mark.parametrize(
    "link",
    [
        "decode?rate=440&output_cv=1",
        "decode?model=deepseek-v3&accelerator=h200-sxm&tp=8&weight_dtype=fp8",
        "interference?rate=20",
        "interference?model=llama-3.1-70b",
        "interference?rate=1000",
    ],
)
def test_every_tab_opens_for_every_kind_of_answer(app, link):
    app.open(f"{link}{'&' if '?' in link else '?'}customers=10000")
    for tab in app.page.get_by_role("tab").all_inner_texts():
        app.tab(tab)
        assert app.page.get_by_test_id("stException").count() == 0
        shown = app.page.get_by_test_id("stMain").inner_text()
        assert not re.search(r"\b(nan|inf|None)\b", shown, re.IGNORECASE)
    assert quiet(app) == []
