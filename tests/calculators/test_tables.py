"""Tables of a page: which digits are shown, and how wide columns are, in the one place that draws them."""

import math

import pytest

from calculators.page_kit.explain import TABLE_WIDTH, _shown, _widths

LONG = {f"Goodput of an accelerator in the way {k} (requests/s)": [1.23456, None] for k in range(8)}


def test_columns_that_fit_are_left_alone():
    assert _widths({"Rate": [1.0], "Time (ms)": [2.0]}, 4) == [None, None]


def test_long_titles_give_way_before_a_column_is_pushed_out():
    widths = _widths({"Model": ["llama-3.1-70b", "opt-13b"], **LONG}, 4)
    assert sum(widths) <= TABLE_WIDTH
    assert widths[0] >= 6 * len("llama-3.1-70b")


def test_cells_are_not_cut_even_where_the_table_has_to_be_scrolled():
    widths = _widths({f"{k}": ["x" * 40] for k in range(8)}, 4)
    assert min(widths) >= 6 * 40


def test_figures_that_are_none_have_a_width_too():
    assert len(_widths({**LONG, "Time (ms)": [math.nan, math.inf, None]}, 4)) == 9
    assert _widths({}, 4) == []


@pytest.mark.parametrize(
    ("values", "shown"),
    [([0.123456, None], "%.4g"), ([8192.0, 12_345_678.0], "%.15g"), ([1.0, 2.5], "%.4g")],
)
def test_whole_figures_have_all_their_digits_and_others_four(values, shown):
    assert _shown(values, 4) == shown
