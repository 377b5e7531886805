"""What a user does, in the real app and a real browser."""

import csv
import io
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from calculators import catalog
from calculators.inputs import linked

ROOT = Path(__file__).parents[2]


def quiet(app):
    """Return what the console complained of, without Streamlit's own look for its server under the page's path."""
    return [problem for problem in app.problems if "404" not in problem]


@pytest.mark.parametrize("room", catalog.ROOMS, ids=lambda room: room.name)
@pytest.mark.parametrize(
    "screen",
    [
        {"color_scheme": "light"},
        {"color_scheme": "dark"},
        {"color_scheme": "light", "viewport": {"width": 420, "height": 900}},
    ],
    ids=["light", "dark", "narrow"],
)
def test_every_page_loads_without_a_complaint(new_app, room, screen):
    app = new_app(**screen)
    app.page.goto(f"{app.address}/{room.path}")
    app.page.get_by_role("heading", level=1, name=room.title).wait_for()
    app.settle()
    assert app.page.get_by_test_id("stException").count() == 0
    assert quiet(app) == []


@pytest.mark.parametrize("width", [1400, 1000])
def test_every_page_is_at_most_one_drop_down_away(new_app, width):
    app = new_app(viewport={"width": width, "height": 900})
    app.open()
    bar = app.page.get_by_test_id("stTopNav")
    assert bar.get_by_test_id("stTopNavSection").all_inner_texts() == [name for name in catalog.SECTIONS if name]
    assert bar.get_by_role("link").count() == len(catalog.SECTIONS[""])
    for room in catalog.ROOMS[::-1]:
        app.go(room.title)
        assert urlsplit(app.page.url).path == f"/{room.path}"


def test_on_a_phone_the_pages_stand_in_the_sidebar_under_their_sections(new_app):
    app = new_app(viewport={"width": 420, "height": 900})
    app.page.goto(app.address)
    app.page.get_by_role("heading", level=1).wait_for()
    app.settle()
    app.page.get_by_test_id("stExpandSidebarButton").click()
    sidebar = app.page.get_by_test_id("stSidebarNav")
    assert sidebar.get_by_role("link").count() == len(catalog.ROOMS)


def test_only_this_server_is_asked_for_anything(app):
    asked = set()
    app.page.on("request", lambda request: asked.add(urlsplit(request.url).hostname))
    app.open("ttft")
    app.tab("Check by simulation")
    assert asked - {"127.0.0.1", None, ""} == set()


def test_a_changed_number_moves_the_answer_and_the_address(app):
    app.open("ttft")
    before = app.metrics
    app.set("Arrival rate (requests/s)", 30)
    assert app.metrics["P90 TTFT"] != before["P90 TTFT"]
    assert "within the target of 100 ms" in app.headline
    assert "At 30 requests/s" in app.headline
    assert parse_qs(urlsplit(app.page.url).query)["rate"] == ["30"]


def test_the_slider_moves_the_answer_the_sidebar_and_the_address(app):
    app.open("ttft")
    before = app.metrics
    handle = app.page.get_by_test_id("stMain").get_by_role("slider")
    handle.focus()
    with app.rerun():
        for _ in range(40):
            handle.press("ArrowRight")
    app.page.wait_for_timeout(1000)
    app.settle()
    assert app.metrics["Utilization"] > before["Utilization"]
    rate = app.field("Arrival rate (requests/s)").input_value()
    assert float(rate) > 50
    assert parse_qs(urlsplit(app.page.url).query)["rate"] == [rate]


def test_the_page_gives_the_numbers_of_the_command_line(app):
    app.open("ttft?rate=16&service_ms=50")
    assert app.metrics["Utilization"] == "0.8"
    app.tab("Data")
    command = [sys.executable, "-m", "calculators", app.share_link, "--json"]
    report = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)
    assert report["results"]["mean_ttft_ms"] == pytest.approx(150)
    assert app.metrics["P90 TTFT"] == f"{report['results']['p90_ttft_ms']:.4g} ms"


def test_a_shared_link_gives_the_same_page_in_a_fresh_browser_and_after_a_reload(app, new_app):
    app.open("ttft")
    app.set("Arrival rate (requests/s)", "33.123456789")
    app.set("Prompt length (tokens)", 777)
    app.set("TTFT target (ms)", "98.7654321")
    link = app.share_link
    query = parse_qs(urlsplit(link).query, keep_blank_values=True)
    assert query["v"] == ["1"]
    assert set(query) == {"v", *linked(catalog.CALCULATORS["ttft"].inputs)}
    assert query["rate"] == ["33.123456789"]
    other = new_app()
    other.open(link.removeprefix(app.address + "/"))
    assert other.metrics == app.metrics
    assert other.share_link == link
    assert other.page.get_by_test_id("stMain").get_by_text("could not be used").count() == 0
    other.page.reload()
    other.page.locator('[data-testid="stMetricValue"]').first.wait_for()
    other.settle()
    assert other.metrics == app.metrics
    assert other.share_link == link
    assert quiet(other) == []


def test_pages_keep_the_shared_scenario(app):
    app.open("ttft?rate=21&model=llama-3.1-70b&tp=4&service_ms=12.5")
    before = app.metrics
    app.go("Hardware and models")
    assert app.field("Arrival rate (requests/s)").count() == 0
    assert app.field("Model").input_value() == "llama-3.1-70b"
    assert set(parse_qs(urlsplit(app.page.url).query)) <= {"model"}
    app.go("Plan")
    assert app.field("Arrival rate (requests/s)").input_value() == "21"
    app.go("Time to first token")
    assert app.field("Tensor parallel").input_value() == "4"
    assert app.metrics == before


def test_a_damaged_link_opens_with_each_parameter_named_and_no_markup_run(app):
    bad = "rate=abc&model=<b>evil</b>&tp=3.7&rat=5&percentile=95&service_ms=**x**&v=7&seed=9&seed=8"
    app.open(f"ttft?{bad}")
    notice = app.page.locator(".st-key-link-notices")
    text = notice.inner_text()
    for name in ("rate", "model", "tp", '"rat"', "service_ms", "v = ", "seed"):
        assert name in text, name
    assert "percentile" not in text
    assert "<b>evil</b>" in text
    assert "**x**" in text
    assert notice.locator("b, em").count() == 0
    assert "In use: 50 requests/s." in text
    assert "P95 TTFT" in app.metrics
    app.click("Dismiss")
    assert notice.count() == 0
    assert quiet(app) == []


def test_an_unknown_page_leads_home_without_a_traceback(app):
    app.open("nowhere?rate=9")
    assert app.page.get_by_test_id("stException").count() == 0


def test_what_a_chip_cannot_do_is_said_and_the_scenario_kept(app):
    app.open("ttft?accelerator=a100-80-sxm&weight_dtype=fp8&rate=12")
    refusal = app.page.locator(".st-key-refusal")
    assert "A100" in refusal.inner_text()
    assert "fp8" in refusal.inner_text()
    assert app.field("Arrival rate (requests/s)").input_value() == "12"
    app.go("Hardware and models")
    app.go("Plan")
    assert app.field("Arrival rate (requests/s)").input_value() == "12"


def test_three_kinds_of_no_stay_apart(app):
    app.open("ttft?rate=200")
    assert "its queue grows without end" in app.headline
    assert app.metrics["P90 TTFT"] == "–"
    app.open("ttft?service_ms=200")
    assert "no number of instances meets it" in app.headline
    app.open("ttft?model=llama-3.1-70b")
    assert "do not fit in memory" in app.headline


def test_reset_sets_every_input_back(app):
    app.open("ttft?rate=12&percentile=99&service_ms=3")
    app.click("Reset")
    assert app.field("Arrival rate (requests/s)").input_value() == "50"
    assert app.field("Service time (ms)").input_value() == ""
    assert urlsplit(app.page.url).query == ""


@pytest.mark.parametrize(
    "link",
    [
        "ttft",
        "ttft?rate=3",
        "ttft?rate=500",
        "ttft?service_ms=20&slo_statistic=mean",
        "ttft?model=llama-3.1-70b",
        "parallelism?model=llama-3.1-70b&gpus=4&rate=8&stages=layers&prompt_cv=1",
        "parallelism?service_ms=100&speedup=1.6&rate=500",
        "kv_cache?model=gpt-oss-120b&prompt_tokens=4000",
        "kv_cache?link=eth-10g&rate=5000",
    ],
)
def test_every_tab_opens_for_every_kind_of_answer(app, link):
    app.open(link)
    for tab in app.page.get_by_role("tab").all_inner_texts():
        app.tab(tab)
        assert app.page.get_by_test_id("stException").count() == 0
        shown = app.page.get_by_test_id("stMain").inner_text()
        assert not re.search(r"\b(nan|inf|None)\b", shown, re.IGNORECASE)
        assert quiet(app) == []


def test_the_simulation_states_whether_it_agrees(app):
    app.open("ttft?rate=16&service_ms=50")
    app.tab("Check by simulation")
    assert app.page.get_by_text("Every exact figure lies inside its interval.").count() == 1


def test_derivations_open(app):
    app.open("ttft?rate=16&service_ms=50")
    app.tab("Formula")
    with app.rerun():
        app.page.get_by_text("Derivation").first.click()
    app.page.get_by_text("moments D, D² and D³").wait_for()


def test_a_figure_is_exported_in_every_format(app):
    app.open("ttft")
    window = app.export()
    name, png = window.save("PNG")
    assert name == "ttft-against-rate.png"
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    assert int.from_bytes(png[16:20]) == 2000
    _, svg = window.save("SVG")
    assert ET.fromstring(svg).tag.endswith("svg")  # noqa: S314 - our own file
    assert b"Time to first token (ms)" in svg
    _, html = window.save("HTML")
    assert b'"showSendToCloud": false' in html
    assert not re.search(rb'<(script|link)[^>]+(src|href)="?http', html)
    _, table = window.save("CSV")
    rows = list(csv.reader(io.StringIO(table.decode())))
    assert rows[0][:3] == ["Arrival rate (requests/s)", "Utilization", "Mean TTFT (ms)"]
    assert len(rows) == 201
    assert all(float(cell) >= 0 for row in rows[1:] for cell in row)
    _, pdf = window.save("PDF")
    assert pdf.startswith(b"%PDF-")
    assert b"%%EOF" in pdf[-64:]
    assert quiet(app) == []


def test_exported_html_has_no_button_that_uploads_the_figure(app, new_app, tmp_path):
    app.open("ttft")
    (tmp_path / "figure.html").write_bytes(app.export().save("HTML")[1])
    page = new_app().page
    page.goto((tmp_path / "figure.html").as_uri())
    page.locator(".modebar-btn").first.wait_for(state="attached")
    titles = page.locator(".modebar-btn").evaluate_all("all => all.map(one => one.dataset.title)")
    assert any("Download" in title for title in titles)
    assert not any(re.search("cloud|share|studio", title, re.IGNORECASE) for title in titles)


def test_the_database_is_searched_and_a_record_opened(app):
    app.open("hardware?find=hopper&table=accelerators")
    assert app.page.get_by_text("0 of 63 accelerators").count() == 1
    app.open("hardware?find=h100&record=llama-3.1-8b")
    assert app.page.get_by_text("3 of 63 accelerators").count() == 1
    assert app.page.get_by_role("heading", name="Record: llama-3.1-8b").count() == 1
    app.open("hardware?find=<img src=x onerror=alert(1)>")
    assert app.page.locator("img[src=x]").count() == 0
    assert quiet(app) == []


def test_tensor_and_pipeline_change_places_at_the_crossover(app):
    app.open("parallelism?service_ms=100&speedup=1.6&rate=8&slo_statistic=mean")
    assert "tensor parallel: mean TTFT 93.75 ms" in app.headline
    assert "116.7 ms as the pipeline" in app.headline
    assert app.metrics["Crossover by mean"] == "10.95 /s"
    app.set("Arrival rate (requests/s)", 14)
    assert "the pipeline: mean TTFT 158.3 ms" in app.headline


def test_the_pipeline_is_simulated_where_prompts_differ(app):
    app.open("parallelism?service_ms=100&speedup=1.6&rate=8&prompt_cv=1")
    app.tab("Check by simulation")
    main = app.page.get_by_test_id("stMain").inner_text()
    assert "exact means are" in main
    assert "there is no closed form" in main


def test_the_cache_of_a_prompt_and_its_transfer(app, new_app):
    app.open("kv_cache?prompt_tokens=2000&rate=20&link_gb_s=50&link_latency_us=5")
    assert "262.1 MB" in app.headline
    assert "5.248 ms" in app.headline
    assert app.metrics["Bandwidth needed"] == "5.243 GB/s"
    other = new_app()
    other.open(app.share_link.removeprefix(app.address + "/"))
    assert other.headline == app.headline
    assert other.metrics == app.metrics


def test_the_scenario_travels_from_page_to_page(app):
    app.open("ttft?model=llama-3.1-70b&tp=4&prompt_tokens=1500&rate=6")
    service = app.page.get_by_test_id("stCaptionContainer").filter(has_text="llama-3.1-70b on h100-sxm").count()
    assert service == 1
    app.go("KV cache")
    assert "A prompt of 1,500 tokens" in app.headline
    app.go("Tensor or pipeline")
    assert "keep up with 6 requests/s" in app.headline


@pytest.mark.parametrize("pause_ms", [0, 60, 150])
def test_quick_clicks_are_all_counted_and_the_page_survives(app, pause_ms):
    app.open("ttft?service_ms=50&rate=5")
    field = app.field("Arrival rate (requests/s)")
    field.focus()
    with app.rerun():
        for _ in range(20):
            field.press("ArrowUp")
            app.page.wait_for_timeout(pause_ms)
    app.page.get_by_role("heading", level=3).filter(has_text="25 requests/s").wait_for()
    assert field.input_value() == "25"
    assert parse_qs(urlsplit(app.page.url).query)["rate"] == ["25"]
    assert app.page.get_by_text("Connection error").count() == 0


def test_a_rate_beyond_the_slider_is_not_changed_by_other_inputs(app):
    app.open("ttft?service_ms=50&rate=500")
    for value in (51, 52, 53):
        app.set("Service time (ms)", value)
    assert app.field("Arrival rate (requests/s)").input_value() == "500"
    assert parse_qs(urlsplit(app.page.url).query)["rate"] == ["500"]


def test_the_scenario_of_a_link_survives_a_change_of_page_at_once(app):
    app.page.goto(f"{app.address}/ttft?v=1&service_ms=50&rate=5")
    app.page.get_by_test_id("stTopNav").wait_for()
    app.click_page("Hardware and models")
    app.page.get_by_role("heading", level=1, name="Hardware and models").wait_for()
    app.settle()
    app.go("Time to first token")
    assert app.field("Arrival rate (requests/s)").input_value() == "5"
    assert app.field("Service time (ms)").input_value() == "50"
    assert float(parse_qs(urlsplit(app.page.url).query)["rate"][0]) == 5


def test_back_brings_a_pages_own_inputs_back(app):
    app.open("ttft?rate=20")
    app.set("Instances in the pool", 3)
    app.go("Hardware and models")
    while urlsplit(app.page.url).path != "/ttft":
        app.page.go_back()
        app.settle()
    expect(app.field("Instances in the pool")).to_have_value("3")
    expect(app.field("Arrival rate (requests/s)")).to_have_value("20")
    expect(app.page).to_have_url(re.compile("servers=3"))
    assert "on 3 instances" in app.headline


def test_unknown_parameters_are_gone_from_the_address(app):
    app.open("ttft?rate=12&foo=1&v=9")
    assert "links of version 1" in app.page.locator(".st-key-link-notices").inner_text()
    app.page.wait_for_timeout(300)
    assert "foo" not in app.page.url
