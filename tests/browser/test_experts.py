"""The page of mixtures of experts as a planner uses it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABS = ["Bytes and time", "Every mixture", "Expert parallelism", "Formula", "Check by simulation", "Data", "Sources"]


def quiet(app):
    """Return what the console complained of, without Streamlit's own look for its server under the page's path."""
    return [problem for problem in app.problems if "404" not in problem]


def test_from_a_dense_model_to_a_mixture_and_to_more_tokens(app):
    app.open("experts")
    assert "llama-3.1-8b is dense" in app.headline
    app.open("experts?model=deepseek-v3&weight_dtype=fp8&accelerator=h200-sxm&tp=8")
    assert "touches 163.3 of 256 experts" in app.headline
    assert app.metrics["95 % of the experts"] == "95 tokens"
    app.set("Batch (sequences)", 64)
    assert "A step of 64 tokens touches 222.4 of 256 experts" in app.headline
    command = [sys.executable, "-m", "calculators", app.share_link, "--json"]
    report = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)
    assert report["results"]["distinct_experts"] == pytest.approx(222.4425, rel=1e-6)
    assert f"{report['results']['step_ms']:.4g} ms" in app.headline
    assert quiet(app) == []


@pytest.mark.parametrize(
    "query",
    [
        "experts=128&experts_per_token=4&tokens=21&zipf_exponent=1",
        "model=mixtral-8x7b&accelerator=h200-sxm&ep=4&batch=200",
        "model=llama-3.1-8b",
    ],
    ids=["typed", "group", "dense"],
)
def test_every_tab_draws(app, query):
    app.open(f"experts?{query}")
    for tab in TABS:
        app.tab(tab)
        assert app.page.get_by_test_id("stException").count() == 0, tab
    assert quiet(app) == []


def test_a_refusal_names_the_input_and_what_is_allowed(app):
    app.open("experts?model=deepseek-v3&ep=7")
    refusal = app.page.locator(".st-key-refusal").inner_text()
    assert "ep = 7" in refusal
    assert "allowed: 1, 2, 4, 8" in refusal
