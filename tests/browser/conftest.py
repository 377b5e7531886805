"""The real app in a headless Chromium: one server for the session, a fresh browser context for each test."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from playwright.sync_api import TimeoutError as NothingHappened

from calculators import catalog

ROOT = Path(__file__).parents[2]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
IDLE = '[data-testid="stApp"][data-test-script-state="notRunning"]'


def chromium():
    """Return the browser to drive: the one named by CHROMIUM, or the first that is installed."""
    names = (
        os.environ.get("CHROMIUM"),
        "chromium",
        "chromium-browser",
        "google-chrome",
        "google-chrome-stable",
    )
    return next((found for name in names if name and (found := shutil.which(name))), None)


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)
            if chromium() is None:
                item.add_marker(pytest.mark.skip(reason="no Chromium or Chrome is installed; set CHROMIUM to its path"))


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args):
    return browser_type_launch_args | {"executable_path": chromium(), "args": FLAGS}


@pytest.fixture(scope="session")
def browser_context_args(browser_context_args):
    return browser_context_args | {"viewport": {"width": 1400, "height": 1000}, "accept_downloads": True}


@pytest.fixture(scope="session")
def base_url():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)]
    command += [
        "--server.address",
        "127.0.0.1",
        "--server.headless",
        "true",
        "--server.fileWatcherType",
        "none",
    ]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        address = f"http://127.0.0.1:{port}"
        try:
            _wait_until_healthy(server, address)
            yield address
        finally:
            server.terminate()


def _wait_until_healthy(server, address):
    for _ in range(600):
        assert server.poll() is None, "the server ended before it was healthy"
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health") as answer:  # noqa: S310 - our own server
                if answer.read() == b"ok":
                    return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the server did not become healthy")


COUNT_RUNS = """
window.scriptRuns = 0;
new MutationObserver(changes => {
  for (const change of changes)
    if (change.oldValue !== "notRunning" && change.target.dataset.testScriptState === "notRunning") window.scriptRuns++;
}).observe(document, {subtree: true, attributeFilter: ["data-test-script-state"], attributeOldValue: true});
"""


class App:
    """What a user does on a page, in the user's words."""

    def __init__(self, page, address):
        self.page = page
        self.address = address
        self.problems = []
        page.add_init_script(COUNT_RUNS)
        page.on("console", lambda message: message.type == "error" and self.problems.append(message.text))
        page.on("pageerror", lambda error: self.problems.append(str(error)))

    def open(self, path=""):
        self.page.goto(f"{self.address}/{path}")
        self.page.locator('[data-testid="stSidebar"] input').first.wait_for()
        self.page.get_by_role("heading", level=1).wait_for()
        return self.settle()

    def settle(self):
        """Wait until the script has run and stays idle."""
        self.page.locator(IDLE).wait_for()
        self.page.wait_for_timeout(150)
        self.page.locator(IDLE).wait_for()
        return self

    @contextlib.contextmanager
    def rerun(self):
        """Do something that makes the script run, and wait until it has."""
        before = self.page.evaluate("window.scriptRuns")
        yield
        # A run so short that the page never showed it has nothing to wait for, hence no error when the time is up.
        with contextlib.suppress(NothingHappened):
            self.page.wait_for_function(f"window.scriptRuns > {before}", timeout=3000)
        self.settle()

    def field(self, label):
        return self.page.get_by_test_id("stSidebar").get_by_label(label, exact=True)

    def unfold(self, label):
        """Open folded groups of the sidebar until a field is there: what is folded need not be drawn."""
        field = self.field(label)
        folded = self.page.get_by_test_id("stSidebar").locator("details:not([open]) > summary")
        for place in reversed(range(folded.count())):
            if field.is_visible():
                break
            with self.rerun():
                folded.nth(place).click()
        field.wait_for()
        return field

    def choose(self, label, option):
        field = self.unfold(label)
        item = self.page.get_by_test_id("stSelectboxVirtualDropdown").get_by_text(option, exact=True)
        for _ in range(3):  # a list that opens while its group still unfolds may close again
            self.settle()
            field.click()
            field.fill(option)
            with contextlib.suppress(NothingHappened):
                item.wait_for(timeout=5000)
                break
            self.page.keyboard.press("Escape")
        with self.rerun():
            item.click()
        return self

    def set(self, label, value):
        with self.rerun():
            self.field(label).fill(str(value))
            self.field(label).press("Enter")
        return self

    def click(self, button):
        with self.rerun():
            self.page.get_by_role("button", name=button, exact=True).click()
        return self

    def tab(self, name):
        with self.rerun():
            self.page.get_by_role("tab", name=name, exact=True).click()
        return self

    def click_page(self, title):
        """Click a page in the navigation, in the drop-down of its section if it has one."""
        bar = self.page.get_by_test_id("stTopNav")
        section = next(room.section for room in catalog.ROOMS if room.title == title)
        if not section:
            bar.get_by_role("link", name=title).click()
            return
        bar.get_by_test_id("stTopNavSection").filter(has_text=section).click()
        self.page.get_by_test_id("stTopNavDropdownLink").filter(has_text=title).click()

    def go(self, title):
        with self.rerun():
            self.click_page(title)
        self.page.get_by_role("heading", level=1, name=title).wait_for()
        return self.settle()

    def export(self):
        return Exported(self)

    @property
    def metrics(self):
        self.page.get_by_test_id("stMetricValue").first.wait_for()
        self.settle()
        # All at once: between two questions a busy machine may draw another card.
        cards = self.page.get_by_test_id("stMetric").filter(has=self.page.get_by_test_id("stMetricValue"))
        text_of = "part => card.querySelector(`[data-testid=${part}]`).innerText"
        return dict(
            cards.evaluate_all(f"cards => cards.map(card => ['stMetricLabel', 'stMetricValue'].map({text_of}))")
        )

    @property
    def headline(self):
        return self.page.get_by_role("heading", level=3).first.inner_text()

    @property
    def share_link(self):
        self.page.get_by_test_id("stMain").get_by_role("button", name="Share").click()
        code = self.page.get_by_test_id("stPopoverBody").get_by_test_id("stCode")
        link = code.inner_text().strip()
        self.page.keyboard.press("Escape")
        return link


class Exported:
    """The export window of a figure, and the files that come out of it."""

    def __init__(self, app):
        self.page = app.page
        app.page.get_by_role("button", name="Export").first.click()
        self.frame = app.page.frame_locator("iframe").first
        self.frame.get_by_role("button", name="Save PNG").wait_for()

    def save(self, kind):
        inside = kind in ("PNG", "SVG")
        button = (self.frame if inside else self.page).get_by_role("button", name=f"Save {kind}")
        with self.page.expect_download() as download:
            button.click()
        return download.value.suggested_filename, Path(download.value.path()).read_bytes()


@pytest.fixture
def app(page, base_url):
    return App(page, base_url)


@pytest.fixture
def new_app(browser, browser_context_args, base_url):
    """Return a function that opens the app in another fresh browser context."""
    contexts = []

    def new_app(**context):
        contexts.append(browser.new_context(**browser_context_args | context))
        return App(contexts[-1].new_page(), base_url)

    yield new_app
    for context in contexts:
        context.close()
