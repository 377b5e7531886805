"""Real traffic on the page of the time to first token, in the real app."""

import re
from urllib.parse import urlsplit

import pytest

TRACE = "timestamp,input_length,output_length\n" + "".join(
    f"{40 * n + 35 * (n % 3)},{200 + 37 * (n % 11)},{20 + n % 5}\n" for n in range(400)
)


def main(app):
    return app.page.get_by_test_id("stMain")


def test_the_effects_stand_on_one_screen_and_the_needs_on_demand(app):
    app.open("ttft?servers=4&routing=shared&rate=150&ttft_slo_ms=60&percentile=99&customers=10000")
    assert "on 4 instances (one shared queue)" in app.headline
    app.tab("Traffic")
    text = main(app).inner_text()
    assert re.search(r"spread alone makes it [\d.]+ times as long", text)
    assert re.search(r"router alone makes it 0\.\d+ times as long", text)
    app.click("Find the instances that each router needs")
    assert app.page.get_by_role("button", name="Find the instances that each router needs").count() == 0
    assert app.page.get_by_test_id("stException").count() == 0
    assert [problem for problem in app.problems if "404" not in problem] == []


def test_what_has_no_formula_is_simulated_when_asked_and_travels_in_the_link(app, new_app):
    app.open("ttft?order=shortest&prompt_cv=1&customers=20000")
    assert "simulate them" in app.headline
    app.click("Simulate this traffic")
    assert "P90 TTFT" in app.headline
    link = urlsplit(app.share_link)
    assert "order=shortest" in link.query
    other = new_app().open(f"ttft?{link.query}")
    assert "simulate them" in other.headline
    assert other.click("Simulate this traffic").metrics == app.metrics


def test_what_has_no_method_is_refused_by_name(app):
    app.open("ttft?batch_size=4&prompt_cv=1")
    refusal = app.page.locator(".st-key-refusal").inner_text()
    assert "batch_size" in refusal
    assert "set prompt_cv to 0" in refusal


def test_a_trace_is_read_taken_over_and_replayed(app):
    app.open("ttft")
    app.tab("Trace")
    with app.rerun():
        app.page.locator("input[type=file]").set_input_files(
            {"name": "requests.csv", "mimeType": "text/csv", "buffer": (TRACE + "oops,1,1\n").encode()}
        )
    main(app).get_by_text("Mooncake trace").first.wait_for()
    assert "1 row could not be used" in main(app).inner_text()
    app.click("Replay the trace")
    main(app).get_by_text("The replay has a P99").wait_for()
    app.click("Use this traffic in the scenario")
    assert float(app.field("Arrival rate (requests/s)").input_value()) == pytest.approx(25, rel=0.01)
    assert "trace" not in urlsplit(app.share_link).query


def test_a_link_cannot_name_a_file(app):
    app.open("ttft?trace=/etc/passwd")
    assert "trace" in app.page.locator(".st-key-link-notices").inner_text()


@pytest.mark.parametrize(
    "screen",
    [{"color_scheme": "dark"}, {"color_scheme": "light", "viewport": {"width": 420, "height": 900}}],
    ids=["dark", "narrow"],
)
def test_every_tab_of_spread_traffic_is_drawn(new_app, screen):
    app = new_app(**screen)
    app.page.goto(f"{app.address}/ttft?prompt_cv=1&customers=20000")
    app.page.get_by_role("heading", level=1).wait_for()
    app.settle()
    for name in app.page.get_by_role("tab").all_inner_texts():
        app.tab(name)
        panel = app.page.get_by_role("tabpanel").locator("visible=true")
        assert re.search(r"\w", panel.inner_text()) or panel.locator("canvas, .js-plotly-plot").count(), name
    assert app.page.get_by_test_id("stException").count() == 0
    assert [problem for problem in app.problems if "404" not in problem] == []
    assert app.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_bursts_convoys_and_batches_are_told_with_their_numbers(app):
    app.open("ttft?arrivals=batches&burst=8&prompt_tokens=64&long_tokens=8192")
    assert "P90 TTFT" in app.headline
    assert "M[X]/D/1" in main(app).inner_text()
    app.tab("Bursts and convoys")
    panel = app.page.get_by_role("tabpanel").locator("visible=true")
    text = panel.inner_text()
    assert re.search(r"The same utilization, [\d.]+, gives up to [\d.]+ times the P99", text)
    assert "8 prompts at once on one idle instance" in text
    assert re.search(r"A prompt of 8,192 tokens takes [\d.]+ ms and delays about \d+ others", text)
    assert panel.locator(".js-plotly-plot").count() == 3
    app.tab("Batching")
    assert re.search(r"the saturation length\. Prompts of 64 tokens are shorter: \d+ of them", main(app).inner_text())
    link = urlsplit(app.share_link)
    assert {"arrivals=batches", "burst=8", "long_tokens=8192"} <= set(link.query.split("&"))
    assert app.page.get_by_test_id("stException").count() == 0
    assert [problem for problem in app.problems if "404" not in problem] == []
