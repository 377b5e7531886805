"""What a person sees, in a headless Chromium: a number moved, and the first page after the start."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Iterator
from typing import Any

from benchmarks.report import Benchmark, Figure, Goal, NotMeasured, quantile
from benchmarks.server import compiled, serve
from benchmarks.sessions import PAGE, rates
from run import find_browser

FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
IDLE = '[data-testid="stApp"][data-test-script-state="notRunning"]'
VIEW: Any = {"width": 1400, "height": 1000}
THINK_MS = 300

WATCH = """() => {
    const point = figure => figure?.data?.find(trace => trace.mode === 'markers')?.x[0];
    const now = () => {
        const figure = document.querySelector('.js-plotly-plot');
        return figure?.querySelector('.scatterlayer .points path') ? point(figure) : undefined;
    };
    let pressed = 0, before = now();
    document.addEventListener('keydown', event => {
        if (event.key === 'Enter' || event.key.startsWith('Arrow')) {
            pressed = performance.now(); before = now(); window.move = null;
        }
    }, true);
    new MutationObserver(() => {
        const rate = now();
        if (!pressed || rate === undefined || rate === before) return;
        const move = {drawn: performance.now() - pressed, rate: rate}, from = pressed;
        pressed = 0;
        requestAnimationFrame(() => setTimeout(() => {
            move.painted = performance.now() - from; window.move = move;
        }));
    }).observe(document.body, {childList: true, subtree: true, attributes: true, attributeFilter: ['d', 'transform']});
}"""
"""Times a move in the page itself: from the key to the figure with the point elsewhere, and to the next frame.

It watches the document, because Streamlit puts a new figure in the place of the old one.
"""


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """Yield a headless Chromium.

    Raises
    ------
    NotMeasured
        If there is none, or if it fails while it is used.
    """
    path = find_browser()
    if path is None:
        raise NotMeasured("no Chromium was found; set CHROMIUM to its path")
    from playwright.sync_api import Error, sync_playwright

    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
            try:
                yield browser
            finally:
                browser.close()
    except Error as error:
        raise NotMeasured(f"the browser said: {str(error).splitlines()[0]}") from None


def measure_moves(quick: bool) -> list[Figure]:
    """Time moves of the arrival rate: typed in the sidebar, and by a key on the slider below the figure."""
    moves = 8 if quick else 40
    with serve() as address, chromium() as browser:
        page = browser.new_page(viewport=VIEW)
        page.goto(f"http://{address}/{PAGE}")
        page.locator(".js-plotly-plot").first.wait_for()
        _settle(page)
        page.evaluate(WATCH)
        field = page.get_by_test_id("stSidebar").get_by_label("Arrival rate (requests/s)", exact=True)
        typed = [_typed(page, field, rate) for rate, _ in zip(rates(), range(moves + 3), strict=False)][3:]
        slider = page.get_by_test_id("stMain").get_by_role("slider", name="Arrival rate (requests/s)")
        slid = [_slid(page, slider) for _ in range(moves + 3)][3:]
    drawn, slid_drawn = ([move["drawn"] for move in each] for each in (typed, slid))
    remark = (
        f"median of {moves} rates typed in the sidebar, from Enter to the figure drawn with the point there; "
        f"the frame that shows it: {statistics.median(move['painted'] for move in typed):.3g} ms"
    )
    return [
        Figure(statistics.median(drawn), remark),
        Figure(quantile(drawn, 0.95), f"of the same {moves} moves"),
        Figure(
            statistics.median(slid_drawn),
            f"median of {moves} arrow keys on the slider below the figure, from the key to the figure drawn; "
            f"P95 {quantile(slid_drawn, 0.95):.3g} ms",
        ),
    ]


def _settle(page: Any) -> None:
    page.wait_for_timeout(THINK_MS)
    page.locator(IDLE).wait_for()


def _typed(page: Any, field: Any, rate: float) -> dict[str, float]:
    field.fill(f"{rate:g}")
    field.press("Enter")
    move = _move(page)
    if move["rate"] != rate:
        raise NotMeasured(f"the figure shows {move['rate']:g} requests/s after {rate:g} were typed")
    return move


def _slid(page: Any, slider: Any) -> dict[str, float]:
    slider.press("ArrowRight")
    return _move(page)


def _move(page: Any) -> dict[str, float]:
    move: dict[str, float] = page.wait_for_function("() => window.move", timeout=10_000).json_value()
    _settle(page)
    return move


def measure_start(quick: bool) -> list[Figure]:
    """Time starts of the server, each with an empty browser, to the first number; then a second visit."""
    starts = 2 if quick else 7
    compiled()  # before the clock starts
    taken, answering, later = [], [], []
    with chromium() as browser:
        for _ in range(starts):
            start = time.perf_counter()
            with serve() as address:
                answering.append(time.perf_counter() - start)
                _visit(browser, address)
                taken.append(time.perf_counter() - start)
                start = time.perf_counter()
                _visit(browser, address)
                later.append(time.perf_counter() - start)
    remark = (
        f"median of {starts} starts, slowest {max(taken):.3g} s; the server answers after "
        f"{statistics.median(answering):.3g} s. Each time a new process and an empty browser cache, with the browser "
        "already open and the files in the system's cache"
    )
    return [
        Figure(statistics.median(taken), remark),
        Figure(
            statistics.median(later),
            "again with an empty browser cache: what is left is loading Streamlit and Plotly in the browser",
        ),
    ]


def _visit(browser: Any, address: str) -> None:
    """Open the page with an empty cache and wait for its first number."""
    context = browser.new_context(viewport=VIEW)
    page = context.new_page()
    page.goto(f"http://{address}/{PAGE}", wait_until="commit")
    page.get_by_test_id("stMetricValue").first.wait_for()
    context.close()


MOVE = Benchmark(
    "move",
    (
        Goal("arrival rate typed to figure redrawn, in the browser: median", "ms", 120),
        Goal("the same: P95", "ms", 120),
        Goal("slider moved by one key to figure redrawn: median", "ms", 120),
    ),
    measure_moves,
)
START = Benchmark(
    "start",
    (
        Goal("streamlit run to the first number of the ttft page, in the browser", "s", 3),
        Goal("the second visitor: page asked for to first number", "s"),
    ),
    measure_start,
)
