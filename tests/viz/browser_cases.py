"""Meeting the report in a real browser: what the tests point at and press, and what the page has asked for.

Where there is no browser, the tests that import this are skipped.
"""

from __future__ import annotations

import json
import shutil

import pytest

from screenshot import CHROMIUM, DRIVER

if not (shutil.which(CHROMIUM) and shutil.which(DRIVER)):
    pytest.skip("needs Debian's chromium and chromium-driver, which are not here", allow_module_level=True)
pytest.importorskip("selenium")
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

__all__ = ["ActionChains", "By", "Keys", "away", "emulate", "focused", "lit", "point", "press", "requests", "some"]


def emulate(browser, name, media=""):
    scheme = {"name": "prefers-color-scheme", "value": name}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": [scheme]})


def requests(browser):
    events = (json.loads(entry["message"])["message"] for entry in browser.get_log("performance"))
    return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]


def some(view, selector):
    return view.find_elements(By.CSS_SELECTOR, f".scene.current {selector}")


def point(view, element):
    view.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
    ActionChains(view).move_to_element(element).perform()


def away(view):
    ActionChains(view).move_to_element(view.find_element(By.CSS_SELECTOR, ".scene.current h3")).perform()


def lit(view, selector):
    return {e.get_attribute("data-box") or e.get_attribute("data-link") for e in some(view, f"{selector}.on")}


def press(view, *keys):
    ActionChains(view).send_keys(*keys).perform()


def focused(view):
    return view.switch_to.active_element
