"""Every page through Streamlit's own test harness: no browser, so no look and no address bar."""

import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from calculators import catalog, page_kit
from calculators.hardware.tables import TABLES
from calculators.inputs import declared
from calculators.page_kit.widgets import COLLAPSED
from calculators.scenario import Scenario
from calculators.ttft.compute import compute
from calculators.ttft.inputs import TtftInputs

APP = Path(__file__).parents[2] / "app.py"


@pytest.fixture
def open_page():
    def open_page(room="ttft", **query):
        app = AppTest.from_file(APP, default_timeout=60)
        app.query_params.update(query)
        app.run()
        if room != catalog.ROOMS[0].name:
            app.switch_page(f"calculators/{room}/page.py").run()
        assert not app.exception
        return app

    return open_page


def metrics(app):
    return {metric.label: metric.value for metric in app.metric}


@pytest.mark.parametrize("room", [room.name for room in catalog.ROOMS])
def test_every_page_runs(open_page, room):
    assert open_page(room).title[0].value


def test_the_answer_is_that_of_the_calculation(open_page):
    app = open_page(rate="16", service_ms="50")
    result = compute(TtftInputs(rate=16, service_ms=50))
    assert metrics(app) == {
        "P90 TTFT": f"{result.p90_ttft_ms:.4g} ms",
        "Utilization": "0.8",
        "Highest rate in target": f"{result.max_rate:.4g} /s",
        "Instances needed": "3",
    }


def test_a_changed_input_changes_the_answer(open_page):
    app = open_page()
    before = metrics(app)
    app.number_input("rate").set_value(20.0).run()
    assert metrics(app)["Utilization"] != before["Utilization"]


@pytest.mark.parametrize(("room", "around"), [("ttft", 0), ("plan", 1)])
def test_a_changed_input_has_nothing_drawn_around_a_page_that_cannot_be_stopped(open_page, monkeypatch, room, around):
    app = open_page(room)
    drawn = []
    draw_sidebar = page_kit.draw_sidebar
    monkeypatch.setattr(page_kit, "draw_sidebar", lambda room: (drawn.append(room), draw_sidebar(room)))
    app.number_input("rate").set_value(20.0).run()
    assert len(drawn) == around
    assert "20 requests/s" in app.markdown[0].value + app.markdown[1].value


def test_the_figure_carries_titles_with_units_the_target_and_the_point(open_page):
    app = open_page(rate="16", service_ms="50")
    figure = json.loads(app.get("plotly_chart")[0].proto.spec)
    assert figure["layout"]["xaxis"]["title"]["text"] == "Arrival rate (requests/s)"
    assert figure["layout"]["yaxis"]["title"]["text"] == "Time to first token (ms)"
    assert [trace["name"] for trace in figure["data"]] == ["Mean", "P50", "P90", "P99", "You: P90 TTFT"]
    assert any("target 100 ms" in note["text"] for note in figure["layout"]["annotations"])
    assert any(shape["type"] == "rect" for shape in figure["layout"]["shapes"])
    assert figure["data"][-1]["x"] == [16.0]


@pytest.mark.parametrize("room", catalog.ROOMS, ids=lambda room: room.name)
def test_the_shared_inputs_of_a_page_and_no_others_have_a_widget_with_its_help(open_page, room):
    app = open_page(room.name)
    for heading in COLLAPSED:
        app.session_state[f"group {heading}"] = True
    app.run()
    sidebar = app.sidebar
    widgets = {each.key: each for each in (*sidebar.number_input, *sidebar.selectbox, *sidebar.text_input) if each.key}
    used = {name: each for name, each in declared(Scenario).items() if name in declared(room.inputs)}
    assert widgets.keys() & declared(Scenario).keys() == used.keys()
    for name, declaration in used.items():
        assert widgets[name].help == declaration.help
        assert widgets[name].value == declaration.default


def test_a_folded_group_is_drawn_once_one_of_its_inputs_is_not_its_default(open_page):
    assert "seed" not in {each.key for each in open_page().sidebar.number_input}
    app = open_page(seed="7")
    assert {"seed", "customers"} <= {each.key for each in app.sidebar.number_input}
    assert app.number_input("seed").value == 7


@pytest.mark.parametrize("table", ["accelerators", "workloads"])
def test_a_table_of_the_database_has_its_records_on_the_page(open_page, table):
    app = open_page("hardware", table=table)
    assert len(app.dataframe[0].value) == len(TABLES[table]())
    assert any(f"{len(TABLES[table]())} of {len(TABLES[table]())} {table}" in each.value for each in app.markdown)


def test_an_input_that_a_page_does_not_use_is_kept(open_page):
    app = open_page(rate="16", service_ms="50")
    app.switch_page("calculators/hardware/page.py").run()
    app.switch_page("calculators/ttft/page.py").run()
    assert app.number_input("service_ms").value == 50


@pytest.mark.parametrize("room", catalog.ROOMS, ids=lambda room: room.name)
def test_a_page_has_no_input_under_a_shared_name_but_another_meaning(room):
    shared = declared(Scenario)
    own = declared(room.inputs)
    assert all(own[name] == declaration for name, declaration in shared.items() if name in own)


def test_no_two_pages_give_one_name_two_meanings():
    seen = {}
    for room in catalog.ROOMS:
        for name, declaration in declared(room.inputs).items():
            assert seen.setdefault(name, declaration) == declaration


@pytest.mark.parametrize("room", catalog.ROOMS, ids=lambda room: room.name)
def test_a_page_with_a_button_that_stops_says_so(room):
    assert ("page_kit.stoppable(" in (APP.parent / room.page).read_text(encoding="utf-8")) == room.is_stoppable


def test_the_first_room_is_the_front_page():
    assert [room.is_front for room in catalog.ROOMS] == [True] + [False] * (len(catalog.ROOMS) - 1)
