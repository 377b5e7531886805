"""The page of speculative decoding in the real app."""

import re
from urllib.parse import urlsplit

import pytest

PATH = "speculative"


def test_typed_costs_answer_and_travel_in_the_link(app, new_app):
    app.open(PATH)
    main = app.page.get_by_test_id("stMain")
    for label, value in (("Draft cost (plain steps)", "0.1"), ("Verify cost (plain steps)", "1")):
        with app.rerun():
            main.get_by_label(label, exact=True).fill(value)
            main.get_by_label(label, exact=True).press("Enter")
    assert app.metrics["Speedup"] == "2.401×"
    assert app.metrics["Best draft"].startswith("6")
    link = urlsplit(app.share_link)
    other = new_app().open(f"{PATH}?{link.query}")
    assert other.metrics == app.metrics
    assert other.headline == app.headline


@pytest.mark.parametrize(
    "screen",
    [{"color_scheme": "dark"}, {"color_scheme": "light", "viewport": {"width": 420, "height": 900}}],
    ids=["dark", "narrow"],
)
def test_every_tab_of_a_draft_on_another_chip_is_drawn(new_app, screen):
    app = new_app(**screen)
    app.page.goto(
        f"{app.address}/{PATH}?target=gpt-oss-120b&draft_size_b=1.6&draft_accelerator=dmatrix-corsair&batch=1"
        "&acceptance_curve=1:1.78,8:3.74&customers=20000"
    )
    app.page.get_by_role("heading", level=1).wait_for()
    app.settle()
    for name in app.page.get_by_role("tab").all_inner_texts():
        app.tab(name)
        panel = app.page.get_by_role("tabpanel").locator("visible=true")
        assert re.search(r"\w", panel.inner_text()) or panel.locator("canvas, .js-plotly-plot").count(), name
    assert app.page.get_by_test_id("stException").count() == 0
    assert [problem for problem in app.problems if "404" not in problem] == []
    assert app.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert "By measured acceptance" in app.page.get_by_test_id("stMain").inner_text()


def test_a_blank_list_in_a_link_is_an_empty_one(app):
    app.open(PATH)
    plain = app.metrics
    app.open(f"{PATH}?acceptance_rates=%20&acceptance_curve=%20")
    assert app.metrics == plain
    assert app.page.locator(".st-key-refusal").count() == 0
    assert "acceptance_rates=&" in app.share_link


def test_what_is_measured_and_cannot_be_is_refused_by_name(app):
    app.open(f"{PATH}?acceptance_rates=0.5,0.6&rates_of=all-rounds")
    refusal = app.page.locator(".st-key-refusal").inner_text()
    assert "acceptance_rates" in refusal
    assert "cannot rise" in refusal
