"""The report and a browser to meet it in; one of each for the tests of a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from screenshot import open_browser
from viz.report_cases import make_report


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    return make_report(tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    driver = open_browser(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()


@pytest.fixture
def view(browser, page):
    """The page, freshly opened in a light system; afterwards it must have been quiet."""
    from viz.browser_cases import emulate, requests

    emulate(browser, "light")
    browser.get(page.as_uri())
    browser.execute_script("try { localStorage.clear() } catch (e) {}")
    browser.refresh()
    browser.get_log("performance")
    yield browser
    assert browser.get_log("browser") == []
    sent = {url.partition("#")[0] for url in requests(browser) if not url.startswith("data:")}
    assert sent <= {page.as_uri()}
