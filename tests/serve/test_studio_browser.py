"""A person's whole way through the studio in a real browser: Try, Browse and search, Annotate."""

from __future__ import annotations

import time

import networkx
import pytest
from PIL import Image
from selenium.common.exceptions import StaleElementReferenceException

from scenegpi import SceneGraph
from scenegpi.viz.report.screenshot import open_browser
from serve.serve_cases import call, running
from viz.browser_cases import ActionChains, By, Keys, press, requests


@pytest.fixture(scope="module")
def studio(data, tmp_path_factory):
    fields = {"path": data, "annotations": tmp_path_factory.mktemp("notes"), "model": "rendered"}
    with running(fields) as (url, _):
        yield url


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    driver = open_browser(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()


@pytest.fixture
def open_at(browser, studio):
    """Opens a part of the studio; afterwards nothing was said on the console, and nobody else was asked."""

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


def some(view, selector):
    return view.find_elements(By.CSS_SELECTOR, selector)


def until(check, seconds=300):
    """Waits for a page that waits for a server; the result of the check."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            found = check()
        except (StaleElementReferenceException, IndexError):  # the page was just drawn anew
            found = None
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError("the page did not get there")


def names(view, selector):
    return view.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)", selector
    )


def test_try_a_picture(open_at, browser):
    view = open_at("try")
    until(lambda: some(view, "#try-strip .thumb"))[0].click()
    until(lambda: some(view, "#try-scene .graph .node"))
    boxes = len(some(view, "#try-scene .box"))
    assert boxes == len(some(view, "#try-scene .node")) > 1
    until(lambda: some(view, "#try-scene .attention:not([hidden])"))
    node = some(view, "#try-scene .node")[0]
    view.execute_script("arguments[0].scrollIntoView({block: 'center'})", node)
    node.click()
    until(lambda: len(some(view, "#try-scene .rays line")) == boxes - 1)
    press(view, Keys.ESCAPE)

    # every relation has its probability and its alternatives
    triplet = until(lambda: some(view, "#try-scene button.triplet"))[0]
    view.execute_script("arguments[0].scrollIntoView({block: 'center'})", triplet)
    triplet.click()
    assert 0 < float(triplet.find_element(By.CLASS_NAME, "score").text) <= 1
    assert len(some(view, "#try-scene .alternatives li")) == 5

    # a box is named, moved, deleted and added by keyboard; the graph follows
    box = some(view, "#try-scene .box")[0]
    number = box.get_attribute("data-box")
    view.execute_script("arguments[0].focus()", box)
    press(view, "e")
    press(view, "ball", Keys.ENTER)
    until(lambda: any(text.startswith("ball") for text in names(view, f'#try-scene .tag[data-box="{number}"] text')))
    until(lambda: any("ball" in text for text in names(view, "#try-scene .node text")))
    before = some(view, f'#try-scene .box[data-box="{number}"] .line')[0].get_attribute("x")
    view.execute_script("arguments[0].focus()", some(view, f'#try-scene .box[data-box="{number}"]')[0])
    ActionChains(view).key_down(Keys.SHIFT).send_keys(Keys.ARROW_RIGHT).key_up(Keys.SHIFT).perform()
    until(lambda: some(view, f'#try-scene .box[data-box="{number}"] .line')[0].get_attribute("x") != before)
    press(view, Keys.DELETE)
    until(lambda: len(some(view, "#try-scene .box")) == boxes - 1 == len(some(view, "#try-scene .node")))
    assert view.switch_to.active_element.get_attribute("class") == "box"  # the next one: no keyboard user is lost
    some(view, "#try-scene .tools button")[0].click()
    until(lambda: len(some(view, "#try-scene .box")) == boxes == len(some(view, "#try-scene .node")))

    # the dial changes what is said
    said = names(view, "#try-scene button.triplet")
    view.execute_script(
        "const r = document.getElementById('informative'); r.value = 1; r.dispatchEvent(new Event('input'))"
    )
    until(lambda: names(view, "#try-scene button.triplet") != said)
    assert view.find_element(By.ID, "status").text == ""


def test_draw_a_box_with_the_pointer(open_at, browser):
    view = open_at("try")
    until(lambda: some(view, "#try-strip .thumb"))[1].click()
    until(lambda: some(view, "#try-scene .graph .node"))
    boxes = len(some(view, "#try-scene .box"))
    photo = some(view, "#try-scene .photo svg")[0]
    view.execute_script("arguments[0].scrollIntoView({block: 'center'})", photo)
    view.execute_script(
        "document.querySelectorAll('#try-scene .box, #try-scene .tag').forEach((b) => { b.style.pointerEvents = 'none'; b.querySelectorAll('*').forEach((c) => { c.style.pointerEvents = 'none'; }); })"
    )
    ActionChains(view).move_to_element(photo).click_and_hold().move_by_offset(60, 50).release().perform()
    until(lambda: len(some(view, "#try-scene .box")) == boxes + 1)
    assert view.switch_to.active_element.get_attribute("aria-label") == "Name of the chosen box"
    until(lambda: len(some(view, "#try-scene .node")) == boxes + 1)


def test_a_photo_from_disk(open_at, browser, data):
    """Its boxes are found, and one more can be drawn; nothing has to be installed."""
    view = open_at("try")
    until(lambda: some(view, "#try-strip .thumb"))  # the page is ready
    view.find_element(By.ID, "file").send_keys(str(data / "images" / "1.jpg"))
    found = until(lambda: len(some(view, "#try-scene .node")))
    assert view.find_element(By.ID, "status").text == ""
    some(view, "#try-scene .tools button")[0].click()
    until(lambda: len(some(view, "#try-scene .node")) == found + 1)
    assert view.find_element(By.ID, "status").text == ""


def test_downloads_hold_what_is_shown(open_at, browser, tmp_path):
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    view = open_at("try")
    until(lambda: some(view, "#try-strip .thumb"))[2].click()
    shown = len(until(lambda: some(view, "#try-scene .node")))
    said = len(some(view, "#try-scene button.triplet"))
    buttons = {button.text: button for button in some(view, "#try-scene .downloads button")}
    assert list(buttons) == ["JSON", "PNG", "GraphML"]
    files = [tmp_path / f"3.{ending}" for ending in ("json", "png", "graphml")]
    for button, file in zip(buttons.values(), files, strict=True):  # a browser allows one file for each click
        view.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
        button.click()
        until(lambda file=file: file.is_file() and not list(tmp_path.glob("*.crdownload")))
    graph = SceneGraph.from_json(files[0].read_text())
    assert (graph.file, len(graph), len(graph.relations)) == ("3.jpg", shown, said)
    with Image.open(files[1]) as picture:
        assert (picture.format, min(picture.size) > 200) == ("PNG", True)
    assert len(networkx.read_graphml(files[2])) == shown


def test_browse_and_search(open_at, browser, studio):
    view = open_at("browse")
    total = call(f"{studio}/api/images")[1]["total"]
    until(lambda: len(some(view, ".hit")) == total)
    box = view.find_element(By.ID, "query")
    box.send_keys("pers")
    until(lambda: some(view, "#suggestions option"))
    offered = some(view, "#suggestions option")[0].get_attribute("value")
    box.clear()
    box.send_keys("person on *", Keys.ENTER)
    wanted = call(f"{studio}/api/search?q=person%20on%20*")[1]
    assert wanted["total"]
    assert offered
    until(lambda: len(some(view, ".hit")) == wanted["total"])
    assert some(view, ".hit svg rect.frame")
    assert view.find_element(By.ID, "count").text.startswith("person on *")
    some(view, ".hit")[0].click()
    until(lambda: some(view, "#browse-scene .node"))
    find = some(view, "#browse-scene .find")[0]
    triplet = find.get_attribute("aria-label").removeprefix("All pictures with ")
    view.execute_script("arguments[0].scrollIntoView({block: 'center'})", find)
    find.click()
    until(lambda: view.find_element(By.ID, "query").get_attribute("value") == triplet)
    until(lambda: some(view, ".hit"))
    view.back()
    until(lambda: view.find_element(By.ID, "query").get_attribute("value") == "person on *")


def test_annotate_with_two_keys_undo_and_reload(open_at, browser, studio):
    view = open_at("annotate/0")
    until(lambda: some(view, "#annotate-scene .box"))
    assert len(some(view, '#annotate-scene .box[tabindex="0"]')) == 1  # one stop for the Tab key
    start = len(some(view, ".relation"))
    kept = lambda: call(f"{studio}/api/annotations/0")[1]  # noqa: E731
    pairs = {(r["subject"], r["object"]) for r in call(f"{studio}/api/images/0")[1]["graph"]["relations"]}
    n = len(some(view, "#annotate-scene .box"))
    subject, other = next((i, j) for i in range(n) for j in range(n) if i != j and (i, j) not in pairs)
    letters = "abcdefghijklmnopqrstuvwxyz"
    press(view, letters[subject], letters[other])  # two keys, maybe before the model has answered
    until(lambda: len(some(view, ".relation")) == start + 1)
    until(lambda: view.find_element(By.ID, "saved").text == "Saved")
    saved = kept()["graph"]["relations"]
    assert (saved[-1]["subject"], saved[-1]["object"]) == (subject, other)
    first = saved[-1]["predicate"]
    shares = [float(text.rstrip("%")) for text in names(view, "#annotate-scene .alternatives .number")]
    assert first in names(view, "#annotate-scene .alternatives .name")[0]
    assert 40 < sum(shares) <= 101  # the best five of twelve predicates, for a pair that is related
    press(view, "2")  # the second likeliest predicate
    until(lambda: kept()["graph"]["relations"][-1]["predicate"] != first)
    press(view, Keys.ARROW_DOWN, Keys.ENTER)  # two keys for a proposal
    until(lambda: len(some(view, ".relation")) == start + 2)
    ActionChains(view).key_down(Keys.CONTROL).send_keys("z").key_up(Keys.CONTROL).perform()
    until(lambda: len(some(view, ".relation")) == start + 1)
    ActionChains(view).key_down(Keys.CONTROL).send_keys("y").key_up(Keys.CONTROL).perform()
    until(lambda: len(some(view, ".relation")) == start + 2)
    until(lambda: len(kept()["graph"]["relations"]) == start + 2)
    view.refresh()
    until(lambda: len(some(view, ".relation")) == start + 2)
    until(lambda: some(view, ".proposal"))
    some(view, ".relation")[-1].click()
    press(view, Keys.DELETE)
    until(lambda: len(kept()["graph"]["relations"]) == start + 1)
    ActionChains(view).key_down(Keys.CONTROL).send_keys(Keys.ENTER).key_up(Keys.CONTROL).perform()
    until(lambda: view.current_url.endswith("#annotate/1"))
    until(lambda: kept()["done"])
    assert some(view, ".thumb.done")
    exports = [link.get_attribute("href") for link in some(view, "#exports a")]
    assert len(exports) == 4
    assert all(call(url)[0] == 200 for url in exports)


def test_what_the_server_did_not_get_is_sent_when_it_is_back(open_at, browser, studio):
    view = open_at("annotate/2")
    until(lambda: some(view, ".proposal"))
    start = len(some(view, ".relation"))
    view.set_network_conditions(offline=True, latency=0, throughput=0)
    try:
        some(view, ".proposal")[0].click()
        until(lambda: "Not saved yet" in view.find_element(By.ID, "saved").text)
        assert call(f"{studio}/api/annotations/2")[1]["revision"] == 0
    finally:
        view.delete_network_conditions()
    until(lambda: len((call(f"{studio}/api/annotations/2")[1]["graph"] or {"relations": []})["relations"]) == start + 1)
    until(lambda: view.find_element(By.ID, "saved").text == "Saved")
    browser.get_log("browser")  # Chromium logs requests that were lost on purpose


@pytest.mark.parametrize("part", ["try", "browse", "annotate/0"])
@pytest.mark.parametrize("width", [390, 1280])
def test_every_part_fits_the_screen_and_has_names(open_at, browser, part, width):
    browser.set_window_size(width, 900)
    view = open_at(part)
    until(lambda: some(view, "main section:not([hidden]) h1"))
    until(lambda: some(view, "#try-strip .thumb" if part == "try" else ".hit" if part == "browse" else ".proposal"))
    wide = view.execute_script("return [document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert wide[0] <= wide[1] + 1
    nameless = view.execute_script(
        "return [...document.querySelectorAll('button, input, select, a')].filter((e) => e.offsetParent && !e.textContent.trim() "
        "&& !e.getAttribute('aria-label') && !e.labels?.length).map((e) => e.outerHTML.slice(0, 80))"
    )
    assert nameless == []
    view.find_element(By.ID, "theme").click()
    assert view.execute_script("return document.documentElement.dataset.theme") in ("dark", "light")
    browser.set_window_size(1280, 1000)


def test_the_page_of_the_interface(open_at, browser, studio):
    open_at("try")
    browser.get(f"{studio}/docs")
    until(lambda: len(some(browser, ".api")) >= 10)
    assert any("/api/predict" in text for text in names(browser, ".api h2"))
