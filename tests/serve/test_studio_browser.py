"""A person's way through the studio in a real browser: Try, Browse and search; Annotate has a file of its own."""

from __future__ import annotations

import networkx
import pytest
from PIL import Image

from scenegpi import SceneGraph
from serve.page_cases import ActionChains, By, Keys, names, press, some, until
from serve.serve_cases import call


def test_try_a_picture(open_at, browser):
    view = open_at("try")
    until(lambda: some(view, "#try-strip .thumb"))[1].click()  # people on a bench, a drawing that the model can read
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
    press(view, "hat", Keys.ENTER)
    until(lambda: any(text.startswith("hat") for text in names(view, f'#try-scene .tag[data-box="{number}"] text')))
    until(lambda: any("hat" in text for text in names(view, "#try-scene .node text")))
    before = some(view, f'#try-scene .box[data-box="{number}"] .line')[0].get_attribute("x")
    view.execute_script("arguments[0].focus()", some(view, f'#try-scene .box[data-box="{number}"]')[0])
    ActionChains(view).key_down(Keys.SHIFT).send_keys(Keys.ARROW_RIGHT).key_up(Keys.SHIFT).perform()
    until(lambda: some(view, f'#try-scene .box[data-box="{number}"] .line')[0].get_attribute("x") != before)
    press(view, Keys.DELETE)
    until(lambda: len(some(view, "#try-scene .box")) == boxes - 1 == len(some(view, "#try-scene .node")))
    assert view.switch_to.active_element.get_attribute("class") == "box"  # the next one: no keyboard user is lost
    some(view, "#try-scene .tools .add")[0].click()
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
    some(view, "#try-scene .tools .add")[0].click()
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
