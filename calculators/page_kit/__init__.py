"""How every page is drawn: the sidebar, the head with its share link, the figures, the explanations.

The only code beside the ``page.py`` files and ``app.py`` that knows Streamlit.
"""

from calculators.page_kit.alone import draw_page
from calculators.page_kit.demand import kept, on_demand, stoppable, take_over, waiting
from calculators.page_kit.explain import data_table, formulas, show_sources
from calculators.page_kit.figures import show_figure
from calculators.page_kit.frame import Tabs, answer_or_refusal, headline, open_page, remember_link
from calculators.page_kit.server import settle, simulated
from calculators.page_kit.upload import uploaded_trace
from calculators.page_kit.widgets import draw_sidebar, rate_handle

__all__ = [
    "Tabs",
    "answer_or_refusal",
    "data_table",
    "draw_page",
    "draw_sidebar",
    "formulas",
    "headline",
    "kept",
    "on_demand",
    "open_page",
    "rate_handle",
    "remember_link",
    "settle",
    "show_figure",
    "show_sources",
    "simulated",
    "stoppable",
    "take_over",
    "uploaded_trace",
    "waiting",
]
