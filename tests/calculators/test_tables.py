"""Tables of a page: which digits are shown, and how wide columns are, in the one place that draws them."""

import math

import pytest

from calculators.page_kit.explain import TABLE_WIDTH, Layout, _layout, _pixels, _shown, _text, _worded

FIGURES = {f"Goodput {k} (requests/s)": [1.23456, None] for k in range(4)}


def width_of(layout, columns):
    return sum(
        width or max(_pixels(head), *(_pixels(_text(value, 4)) for value in values))
        for head, width, values in zip(layout.heads, layout.widths, columns.values(), strict=True)
    )


def test_columns_that_fit_are_left_alone():
    assert _layout({"Rate (requests/s)": [1.0], "Time (ms)": [2.0]}, 4) == Layout(
        ["Rate (requests/s)", "Time (ms)"], [None, None], None
    )


def test_units_are_written_short_where_a_table_is_too_wide():
    columns = {f"Goodput of an instance {k} (requests/s)": [1.0] for k in range(4)}
    assert _layout(columns, 4).heads[0] == "Goodput of an instance 0 (requests/s)"
    wide = _layout(columns | {"Way": ["x" * 30]}, 4)
    assert wide.heads[0] == "Goodput of an instance 0 (/s)"
    assert wide.row_height is None
    assert width_of(wide, columns | {"Way": ["x" * 30]}) <= TABLE_WIDTH


def test_long_texts_go_over_lines_and_titles_and_figures_are_never_cut():
    columns = FIGURES | {"Method": ["words " * 30, "exact"], "Error": ["words " * 20, ""]}
    layout = _layout(columns, 4)
    assert layout.widths[:4] == [None] * 4
    assert all(width >= _pixels(head) for head, width in zip(layout.heads[4:], layout.widths[4:], strict=True))
    assert width_of(layout, columns) <= TABLE_WIDTH
    assert layout.row_height > 60  # lower rows are not wrapped by Streamlit
    lines = len("words " * 30) * 5.7 / (layout.widths[4] - 18)
    assert layout.row_height >= 19 * lines


def test_what_cannot_fit_is_scrolled_and_still_has_whole_titles():
    columns = {f"A title of thirty characters {k}": [1.5] for k in range(8)} | {"Why": ["words " * 50]}
    layout = _layout(columns, 4)
    assert layout.widths[:8] == [None] * 8
    assert layout.widths[8] == 150


def test_a_table_of_many_rows_keeps_a_line_for_each_as_long_as_texts_are_short():
    columns = {f"A title of thirty characters {k}": [1.5] * 40 for k in range(6)} | {"Why": ["words " * 9] * 40}
    assert _layout(columns, 4).row_height is None
    assert _layout({title: values[:5] for title, values in columns.items()}, 4).row_height > 60


def test_a_text_far_longer_than_the_others_has_a_width_of_its_own():
    assert _layout({"Stages": [1, 2, 3], "Notes": ["", "", "uneven: 2 stages of 11 layers"]}, 4).widths[1] is not None


def test_figures_that_are_none_have_a_width_too():
    assert len(_layout(FIGURES | {"Time (ms)": [math.nan, math.inf, None]}, 4).widths) == 5
    assert _layout({}, 4) == Layout([], [], None)


def test_several_words_in_a_cell_are_one_text():
    assert _worded(("uneven", "simulated")) == "uneven; simulated"
    assert _worded(()) == ""
    assert _worded(1.5) == 1.5


@pytest.mark.parametrize(
    ("values", "shown"),
    [([0.123456, None], "%.4g"), ([8192.0, 12_345_678.0], "%.15g"), ([1.0, 2.5], "%.4g")],
)
def test_whole_figures_have_all_their_digits_and_others_four(values, shown):
    assert _shown(values, 4) == shown
