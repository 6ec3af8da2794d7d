"""The report in a real browser as a whole: it makes no network requests, no name breaks out, themes, paper, narrow screens, no scripts."""

from __future__ import annotations

import time

import pytest

from screenshot import screenshot
from viz.browser_cases import By, emulate, point, requests, some
from viz.report_cases import ATTACK


def test_opening_asks_nobody_and_says_nothing(browser, page):
    browser.get_log("browser"), browser.get_log("performance")
    browser.get(page.as_uri())
    time.sleep(0.3)
    assert browser.get_log("browser") == []
    assert {url for url in requests(browser) if not url.startswith(("data:", "chrome:"))} <= {page.as_uri()}


def test_names_can_not_break_out(view):
    assert view.execute_script("return window.broken") is None
    assert view.find_elements(By.CSS_SELECTOR, "img, b, iframe, [onmouseover], [onerror]") == []
    assert len(view.find_elements(By.CSS_SELECTOR, "script")) == 2
    assert view.find_element(By.TAG_NAME, "h1").text == f"run {ATTACK}"
    assert f"a note {ATTACK}" in view.find_element(By.TAG_NAME, "main").text


def test_even_a_script_that_gets_in_does_not_run(browser, page):
    browser.get(page.as_uri())
    browser.execute_script(
        "const s = document.createElement('script'); s.text = 'window.ran = 1'; document.body.append(s)"
    )
    assert browser.execute_script("return window.ran") is None
    sent = browser.execute_async_script(
        "const done = arguments[0]; fetch('http://127.0.0.1:9/x').then(() => done('sent'), () => done('refused'))"
    )
    assert sent == "refused"
    refusals = [entry["message"] for entry in browser.get_log("browser")]
    assert any("Content Security Policy" in text for text in refusals)
    browser.get_log("performance")


def test_everything_that_acts_has_a_name(view):
    nameless = view.execute_script(
        "return [...document.querySelectorAll('button, a, [role=button], [role=tab], [role=group], svg[role]')]"
        ".filter((e) => !(e.getAttribute('aria-label') || e.textContent.trim())).length"
    )
    assert nameless == 0


def test_the_theme_follows_the_system_and_the_reader(view):
    def paper():
        return view.execute_script("return getComputedStyle(document.body).backgroundColor")

    light = paper()
    toggle = view.find_element(By.ID, "theme")
    toggle.click()
    dark = paper()
    assert dark != light
    assert toggle.get_attribute("aria-pressed") == "true"
    view.refresh()
    assert paper() == dark  # remembered
    view.find_element(By.ID, "theme").click()
    assert paper() == light
    view.execute_script("localStorage.clear()")
    emulate(view, "dark")
    view.refresh()
    assert paper() == dark
    assert view.find_element(By.ID, "theme").get_attribute("aria-pressed") == "true"


CONTRAST = """
const part = (v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
const light = (text) => {
  const [r, g, b] = text.match(/[\\d.]+/g).slice(0, 3).map((v) => part(v / 255));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const [a, b] = [getComputedStyle(document.querySelector(arguments[0])).color,
                getComputedStyle(document.querySelector(arguments[1])).backgroundColor].map(light);
return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_words_stand_out_from_their_ground(view, theme):
    view.execute_script("document.documentElement.dataset.theme = arguments[0]", theme)
    for selector, ground in (
        ("h2", "body"), (".tile .meaning", ".tile"), (".protocol", "body"), (".triplet .words", ".scene.current"),
        (".scene.current .triplet .sign", ".scene.current"), (".badge", ".badge"), ("footer p", "body"),
    ):  # fmt: skip
        ratio = view.execute_script(CONTRAST, selector, ground)
        assert ratio >= 4.5, (selector, ratio)


def test_on_paper_all_scenes_and_rows_are_there(view):
    emulate(view, "dark", "print")
    assert all(e.is_displayed() for e in view.find_elements(By.CSS_SELECTOR, ".scene"))
    assert all(e.is_displayed() for e in view.find_elements(By.CSS_SELECTOR, ".bars tbody tr"))
    assert not view.find_element(By.CSS_SELECTOR, ".strip").is_displayed()


def test_a_narrow_screen_does_not_scroll_sideways(view):
    view.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 375, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    )
    try:
        assert view.execute_script("return document.documentElement.scrollWidth") <= 375
        point(view, some(view, ".box")[0])
        assert some(view, ".tag.on")
    finally:
        view.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_without_scripts_everything_can_be_read(browser, page):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(page.as_uri())
        assert all(e.is_displayed() for e in browser.find_elements(By.CSS_SELECTOR, ".scene h3"))
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    browser.get_log("browser"), browser.get_log("performance")


def test_a_screenshot_is_a_picture_of_the_window(page, tmp_path):
    from PIL import Image

    with Image.open(screenshot(f"{page}#scene-1-box-0", tmp_path / "x.png", 1000, 700)) as image:
        assert image.width == 1000
        assert len(image.convert("RGB").getcolors(1 << 24)) > 100
