"""One server for the tests of a file, one browser for all."""

from __future__ import annotations

import pytest

from serve.serve_cases import running, scenes


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    return scenes(tmp_path_factory.mktemp("scenes") / "scenes")


@pytest.fixture(scope="module")
def server(data, tmp_path_factory):
    fields = {"path": data, "annotations": tmp_path_factory.mktemp("annotations"), "model": None}
    with running(fields) as (url, _):
        yield url


@pytest.fixture(scope="module")
def studio(data, tmp_path_factory):
    fields = {"path": data, "annotations": tmp_path_factory.mktemp("notes"), "model": "vg150-photo"}
    with running(fields) as (url, _):
        yield url


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    from screenshot import open_browser

    driver = open_browser(tmp_path_factory.mktemp("profile"), 1280, 1000)
    yield driver
    driver.quit()


@pytest.fixture
def open_at(browser, studio):
    """Opens a part of the studio; afterwards nothing was said on the console, and nobody else was asked."""
    from viz.browser_cases import requests

    def go(part):
        browser.get("about:blank")
        browser.get(f"{studio}/#{part}")
        return browser

    browser.get_log("performance")
    yield go
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
    sent = [url for url in requests(browser) if url.startswith("http")]
    assert sent
    assert all(url.startswith(studio) for url in sent)
