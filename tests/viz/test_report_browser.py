"""The report in a real browser, as a reader meets it: pointing, clicking, keys, themes, paper; nothing leaves the page."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest

from scenegpi.viz.report.screenshot import CHROMIUM, DRIVER, open_browser, screenshot
from viz.report_cases import ATTACK, make_report

if not (shutil.which(CHROMIUM) and shutil.which(DRIVER)):
    pytest.skip("needs Debian's chromium and chromium-driver, which are not here", allow_module_level=True)
pytest.importorskip("selenium")
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys


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
    emulate(browser, "light")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": [scheme("light")]})
    browser.get(page.as_uri())
    browser.execute_script("try { localStorage.clear() } catch (e) {}")
    browser.refresh()
    browser.get_log("performance")
    yield browser
    assert browser.get_log("browser") == []
    sent = {url.partition("#")[0] for url in requests(browser) if not url.startswith("data:")}
    assert sent <= {page.as_uri()}


def scheme(name):
    return {"name": "prefers-color-scheme", "value": name}


def emulate(browser, name, media=""):
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": [scheme(name)]})


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


def test_opening_asks_nobody_and_says_nothing(browser, page):
    browser.get_log("browser"), browser.get_log("performance")
    browser.get(page.as_uri())
    time.sleep(0.3)
    assert browser.get_log("browser") == []
    assert {url for url in requests(browser) if not url.startswith("data:")} <= {page.as_uri()}


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


def test_pointing_at_a_node_lights_its_box_and_triplets(view):
    node = some(view, ".node:not(.lone)")[0]
    box = node.get_attribute("data-box")
    point(view, node)
    assert box in lit(view, ".box")
    assert box in lit(view, ".tag")
    assert box in lit(view, ".node")
    links = json.loads(view.execute_script("return document.getElementById('data').textContent"))["scenes"][0]["links"]
    expected = {str(k) for k, ends in enumerate(links) if int(box) in ends}
    assert lit(view, ".triplet") == expected
    dim = some(view, ".edge:not(.on)")
    assert dim
    assert all(float(e.value_of_css_property("opacity")) < 0.5 for e in dim)
    away(view)
    assert lit(view, ".box") == lit(view, ".triplet") == set()


def test_pointing_at_a_triplet_lights_both_boxes(view):
    triplet = some(view, "button.triplet")[1]
    point(view, triplet)
    assert len(lit(view, ".box")) == len(lit(view, ".node")) == 2
    assert lit(view, ".triplet") >= {triplet.get_attribute("data-link")}
    dim = some(view, ".box:not(.on)")
    assert all(float(e.value_of_css_property("opacity")) < 0.5 for e in dim)
    pills = some(view, ".pill.on")
    assert len(pills) == 1
    assert triplet.get_attribute("data-link") in pills[0].get_attribute("data-link").split()


def test_a_click_shows_attention_and_escape_lets_go(view):
    node = some(view, ".node")[0]
    point(view, node)
    node.click()
    n = len(some(view, ".box"))
    assert len(some(view, ".rays line")) == n - 1
    name = node.get_attribute("aria-label").removeprefix("object ")
    rows = some(view, ".weights li")
    assert some(view, ".weights p")[0].text == f"{' '.join(name.split())} attends to"
    shares = [int(row.find_element(By.CLASS_NAME, "number").text.rstrip("%")) for row in rows]
    assert shares == sorted(shares, reverse=True)
    if n <= 7:
        assert abs(sum(shares) - 100) <= len(shares)
    assert len(some(view, ".box.pinned")) == 1
    away(view)
    assert some(view, ".rays line")  # it stays until it is let go
    press(view, Keys.ESCAPE)
    node.send_keys(Keys.ESCAPE)
    assert not some(view, ".rays line")
    assert not some(view, ".box.pinned")


def test_attention_of_the_whole_picture(view):
    whole = some(view, ".whole")[0]
    whole.click()
    assert whole.get_attribute("aria-pressed") == "true"
    assert some(view, ".weights p")[0].text == "The graph vector attends to"
    fills = [float(e.value_of_css_property("fill-opacity")) for e in some(view, ".heat")]
    assert max(fills) > 0.2
    whole.click()
    assert whole.get_attribute("aria-pressed") == "false"


def test_the_strip_by_keyboard(view):
    thumbs = view.find_elements(By.CSS_SELECTOR, ".thumb")
    view.execute_script("arguments[0].focus()", thumbs[0])
    press(view, Keys.ARROW_RIGHT)
    assert focused(view) == thumbs[1]
    assert thumbs[1].get_attribute("aria-selected") == "true"
    assert view.find_element(By.CSS_SELECTOR, ".scene.current").get_attribute("id") == "scene-1"
    press(view, Keys.END)
    assert focused(view) == thumbs[-1]
    press(view, Keys.ARROW_RIGHT)
    assert focused(view) == thumbs[0]
    assert sum(t.get_attribute("tabindex") == "0" for t in thumbs) == 1


def test_everything_is_reached_by_tab_and_shows_it(view):
    """From the open thumbnail: boxes, graph, triplets, attention; one stop each, each with a visible mark."""
    view.execute_script("document.querySelector('.thumb[aria-selected=true]').focus()")
    stops = []
    for _ in range(4):
        press(view, Keys.TAB)
        stops.append(focused(view).get_attribute("class").split()[0])
    assert stops == ["box", "node", "triplet", "whole"]
    ActionChains(view).key_down(Keys.SHIFT).send_keys(Keys.TAB).key_up(Keys.SHIFT).perform()
    assert focused(view).value_of_css_property("outline-style") == "solid"
    press(view, Keys.ARROW_DOWN)
    assert focused(view).get_attribute("data-link") == "1"
    assert "1" in lit(view, ".triplet")


def test_boxes_by_keyboard(view):
    view.execute_script("document.querySelector('.thumb[aria-selected=true]').focus()")
    press(view, Keys.TAB)
    assert focused(view).get_attribute("data-box") == "0"
    halo = focused(view).find_element(By.CSS_SELECTOR, ".halo")
    assert float(halo.value_of_css_property("stroke-width").removesuffix("px")) >= 8
    press(view, Keys.ARROW_RIGHT)
    assert focused(view).get_attribute("data-box") == "1"
    assert "1" in lit(view, ".node")
    press(view, Keys.ENTER)
    assert some(view, ".box.pinned")[0].get_attribute("data-box") == "1"
    assert "attends to" in some(view, ".weights p")[0].text
    press(view, Keys.ESCAPE)
    assert not some(view, ".box.pinned")


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


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_words_stand_out_from_their_ground(view, theme):
    view.execute_script("document.documentElement.dataset.theme = arguments[0]", theme)
    for selector, ground in (
        ("h2", "body"), (".tile .meaning", ".tile"), (".protocol", "body"), (".triplet .words", ".scene.current"),
        (".scene.current .triplet .sign", ".scene.current"), (".badge", ".badge"), ("footer p", "body"),
    ):  # fmt: skip
        ratio = view.execute_script(CONTRAST, selector, ground)
        assert ratio >= 4.5, (selector, ratio)


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


def test_which_images_are_shown_can_be_chosen(view):
    view.find_element(By.CSS_SELECTOR, ".choices button[data-why=best]").click()
    shown = [t for t in view.find_elements(By.CSS_SELECTOR, ".thumb") if t.is_displayed()]
    assert shown
    assert {t.get_attribute("data-why") for t in shown} == {"best"}
    current = view.find_element(By.CSS_SELECTOR, ".scene.current .badge")
    assert current.text == "best"


def test_an_address_opens_an_image_and_an_object(view, page):
    view.get(f"{page.as_uri()}#scene-2-box-1")
    view.refresh()
    assert view.find_element(By.CSS_SELECTOR, ".scene.current").get_attribute("id") == "scene-2"
    assert some(view, ".box.pinned")[0].get_attribute("data-box") == "1"
    view.execute_script("location.hash = '#scene-9999'")  # no such image: nothing happens
    assert view.find_element(By.CSS_SELECTOR, ".scene.current").get_attribute("id") == "scene-2"


def test_curves_read_out_values(view):
    chart = view.find_element(By.ID, "chart-recall")
    view.execute_script("arguments[0].focus()", chart)
    readout = chart.find_element(By.CSS_SELECTOR, ".readout")
    assert readout.text == "Epoch 5: R@20 34, R@50 41, R@100 40.5, mR@50 9"
    press(view, Keys.ARROW_LEFT)
    assert readout.text.startswith("Epoch 4: R@20 33, R@50 40")
    point(view, chart.find_element(By.TAG_NAME, "svg"))
    assert "Epoch 3" in readout.text


def test_the_table_sorts_and_unfolds(view):
    def shown():
        return [r for r in view.find_elements(By.CSS_SELECTOR, ".bars tbody tr") if r.is_displayed()]

    assert len(shown()) == 16
    view.find_element(By.CSS_SELECTOR, ".more").click()
    assert len(shown()) == 24
    counts = [float(r.get_attribute("data-count")) for r in shown()]
    assert counts == sorted(counts, reverse=True)
    head = view.find_element(By.CSS_SELECTOR, "[data-sort=name]")
    head.click()
    names = [r.get_attribute("data-name") for r in shown()]
    assert names == sorted(names)
    head.click()
    assert [r.get_attribute("data-name") for r in shown()] == sorted(names, reverse=True)
    assert head.find_element(By.XPATH, "..").get_attribute("aria-sort") == "descending"


def test_published_figures_switch(view):
    button = view.find_element(By.CSS_SELECTOR, ".choices button[data-plot='ngR@50']")
    button.click()
    assert [p.get_attribute("data-plot") for p in view.find_elements(By.CSS_SELECTOR, ".plot") if p.is_displayed()] == [
        "ngR@50"
    ]
    assert button.get_attribute("aria-pressed") == "true"


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
