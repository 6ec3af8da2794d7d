"""A person's way through the studio in a real browser: Try, Browse and search; Annotate has a file of its own."""

from __future__ import annotations

from importlib.resources import files
from urllib.parse import quote

import networkx
import pytest
from PIL import Image

from scenegpi import SceneGraph, Vocabulary
from scenegpi.store import Store
from serve.page_cases import ActionChains, By, Keys, centre, names, press, some, tap, touch, until
from serve.serve_cases import call, running


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
    box.send_keys("person * *", Keys.ENTER)
    wanted = call(f"{studio}/api/search?q=person%20*%20*")[1]
    assert wanted["total"]
    assert offered
    until(lambda: len(some(view, ".hit")) == wanted["total"])
    assert some(view, ".hit svg rect.frame")
    assert view.find_element(By.ID, "count").text.startswith("person * *")
    some(view, ".hit")[0].click()
    until(lambda: some(view, "#viewer .node"))
    first = view.current_url
    assert "picture=" in first
    press(view, Keys.ARROW_RIGHT)  # the next one of those that were found
    until(lambda: view.current_url != first)
    shown = wanted["hits"][1]
    until(lambda: view.find_element(By.ID, "viewer-title").text == (shown["file"] or shown["key"]))
    view.execute_script(
        "const r = document.getElementById('viewer-least'); r.value = 1; r.dispatchEvent(new Event('input'))"
    )
    graph = call(f"{studio}/api/images/{shown['image']}")[1]["graph"]
    below = [each for each in graph["relations"] if each.get("score", 1) < 1]
    assert len(some(view, "#viewer .said li.below")) == len(below)
    view.back()
    until(lambda: view.find_element(By.ID, "viewer-title").text == wanted["hits"][0]["file"])
    find = until(lambda: some(view, "#viewer .find"))[0]
    triplet = find.get_attribute("aria-label").removeprefix("find all pictures with ")
    view.execute_script("arguments[0].scrollIntoView({block: 'center'})", find)
    find.click()
    until(lambda: view.find_element(By.ID, "query").get_attribute("value") == triplet)
    until(lambda: some(view, ".hit") and not some(view, "#viewer[open]"))
    view.get(f"{studio}/#browse/{quote('person * *')}?picture={shown['image']}")  # an address of all of it
    until(lambda: view.find_element(By.ID, "viewer-title").text == (shown["file"] or shown["key"]))
    press(view, Keys.ESCAPE)
    until(lambda: not some(view, "#viewer[open]"))
    assert view.find_element(By.ID, "query").get_attribute("value") == "person * *"
    some(view, ".chip")[0].click()  # what it is called is added to the query
    until(lambda: " and " in view.find_element(By.ID, "query").get_attribute("value"))
    some(view, '.chip[aria-pressed="true"]')[0].click()
    until(lambda: view.find_element(By.ID, "query").get_attribute("value") == "person * *")
    view.find_element(By.ID, "browse-api").click()
    code = until(lambda: names(view, "#api-use[open] code"))
    assert f"/api/search?q={quote('person * *', safe='*')}" in code[-1]
    answer: dict = {}
    exec(code[-1], answer)  # the Python that is offered asks this server
    assert answer["answer"]["total"] == wanted["total"]


def test_by_finger_and_with_a_server_that_is_killed_in_the_middle(browser, data, tmp_path):
    fields = {"path": data, "model": "vg150-photo"}
    shown = lambda: names(browser, "#viewer-title")[0]  # noqa: E731
    message = lambda: browser.find_element(By.ID, "status").text  # noqa: E731
    left = lambda: some(browser, '#try-scene .box[data-box="0"] .line')[0].get_attribute("x")  # noqa: E731
    there = lambda: some(browser, "#try-scene .node") and not some(browser, "#try-scene .waiting")  # noqa: E731

    def push(far):
        """A finger moves the first box."""
        x, y = centre(browser, '#try-scene .tag[data-box="0"]')
        touch(browser, [[x, y], [x + far / 2, y], [x + far, y]])

    browser.get("about:blank")
    with running(fields) as (url, _):
        port = int(url.rsplit(":", 1)[1])
        browser.get(f"{url}/#browse")
        until(lambda: len(some(browser, ".hit")) == 6)
        tap(browser, ".hit")
        until(lambda: some(browser, "#viewer .node"))
        first = shown()
        tap(browser, "#viewer-after")
        until(lambda: shown() != first)
        x, y = centre(browser, "#viewer .photo")  # two fingers zoom, one moves what is seen
        view = lambda: some(browser, "#viewer .photo svg")[0].get_dom_attribute("viewBox")  # noqa: E731
        whole = view()
        touch(browser, [[x - 20, y], [x - 60, y], [x - 120, y]], [[x + 20, y], [x + 60, y], [x + 120, y]])
        near = until(lambda: view() != whole and view())
        tap(browser, "#viewer-try")
        until(there)
        browser.execute_script("history.back()")
        until(lambda: some(browser, "#viewer[open]"))
        assert near != whole
        tap(browser, "#viewer-close")
        until(lambda: not some(browser, "#viewer[open]"))
        tap(browser, 'nav a[href="#try"]')
        tap(browser, "#try-strip .thumb:nth-child(2)")
        until(lambda: browser.current_url.endswith("#try/1"))
        until(there)
        start = left()
        push(40)
        until(lambda: there() and left() != start)
        moved = left()
        count = len(some(browser, "#try-scene .box"))
        tap(browser, '#try-scene [data-tool="draw"]')
        x, y = centre(browser, "#try-scene .photo")
        touch(browser, [[x, y], [x + 40, y + 40], [x + 80, y + 80]])
        until(lambda: len(some(browser, "#try-scene .node")) == count + 1)
    push(-30)  # the server is gone
    until(lambda: "does not answer" in message())
    changed = left()
    browser.execute_script("location.hash = 'browse/?picture=2'")
    until(lambda: "does not answer" in browser.find_element(By.ID, "viewer-status").text)
    browser.execute_script("location.hash = 'browse/man?picture='")
    until(lambda: some(browser, "#more:not([hidden])") and "does not answer" in message())
    with running(fields, port=port) as (url, _):
        tap(browser, "#more")
        until(lambda: "pictures" in browser.find_element(By.ID, "count").text and message() == "")
        browser.execute_script("location.hash = 'browse/?picture=2'")
        until(lambda: some(browser, "#viewer .node"))
        browser.get(f"{url}/#try/1")  # what was changed is there again
        browser.refresh()
        until(lambda: there() and left() == changed)
        assert len(some(browser, "#try-scene .box")) == count + 1
        push(15)
        until(lambda: there() and left() != changed)
        some(browser, "#try-scene .tools button[title='Ctrl Z']")[0].click()
        until(lambda: there() and left() == changed)
        ActionChains(browser).key_down(Keys.CONTROL).send_keys("z").key_up(Keys.CONTROL).perform()  # as the data has it
        until(lambda: there() and len(some(browser, "#try-scene .box")) == count)
        assert left() == start != moved
    browser.get("about:blank")
    browser.get_log("browser")


def test_a_folder_is_predicted_in_the_page_and_then_searched(browser, data, tmp_path):
    photos = tmp_path / "photos"
    photos.mkdir()
    for file in sorted((data / "images").iterdir())[:2]:
        (photos / file.name).write_bytes(file.read_bytes())
    browser.get("about:blank")
    with running({"path": photos, "work": tmp_path / "work", "model": "vg150-photo"}) as (url, _):
        browser.get(f"{url}/#browse")
        until(lambda: len(some(browser, ".hit")) == 2)
        assert not some(browser, "#search:not([hidden])")
        browser.find_element(By.CSS_SELECTOR, ".run input[type=file]").send_keys(
            str(sorted((data / "images").iterdir())[2])
        )
        until(lambda: "predicted and indexed" in browser.find_element(By.CSS_SELECTOR, ".run-said").text)
        until(lambda: len(some(browser, ".hit")) == 3 and some(browser, "#search:not([hidden])"))
        until(lambda: browser.find_element(By.CSS_SELECTOR, ".run select").get_attribute("value") == "")
        some(browser, ".run .button")[0].click()  # the others, too
        until(
            lambda: call(f"{url}/api/runs")[1] == {"state": "done", "done": 3, "total": 3, "skipped": 0, "problem": ""}
        )
        until(lambda: "3 photos predicted" in browser.find_element(By.CSS_SELECTOR, ".run-said").text)
        browser.execute_script("location.hash = 'browse/?picture=0'")
        until(lambda: some(browser, "#viewer .node"))
        tags = browser.find_element(By.ID, "viewer-tags")
        tags.send_keys("night, blurred", Keys.ENTER)
        until(lambda: call(f"{url}/api/images/0")[1]["tags"] == ["blurred", "night"])
        browser.find_element(By.ID, "viewer-similar").click()
        until(lambda: "Similar to picture 1" in browser.find_element(By.ID, "count").text)
    browser.get("about:blank")
    browser.get_log("browser")


def test_every_one_of_many_pictures_can_be_reached_and_no_address_is_a_dead_end(browser, tmp_path):
    words = Vocabulary(["man"], ["on"])
    graphs = [SceneGraph([[0, 0, 9, 9]], ["man"], words, image_id=k, width=10, height=10) for k in range(130)]
    Store(tmp_path / "store").add(graphs)
    browser.get("about:blank")
    with running({"path": tmp_path / "store", "annotations": tmp_path / "notes"}) as (url, _):
        browser.get(f"{url}/#browse/%E0%A4%A")
        until(lambda: some(browser, ".hit"))
        browser.execute_script("document.getElementById('skip').focus()")
        press(browser, Keys.ENTER)
        assert browser.switch_to.active_element.get_attribute("id") == "main"
        assert browser.current_url.endswith("#browse/%E0%A4%A")
        scroll = "scrollTo(0, document.body.scrollHeight)"
        until(lambda: browser.execute_script(scroll) or len(some(browser, ".hit")) == 130)
        browser.execute_script("location.hash = 'try/7'")  # it has no photo
        until(lambda: browser.find_element(By.ID, "status").text)
        browser.execute_script("location.hash = 'annotate/0'")
        strip = lambda: names(browser, "#annotate-strip .blank-name")  # noqa: E731
        found = until(strip)
        for _ in range(2):
            before = strip()
            browser.find_element(By.ID, "strip-after").click()
            found += until(lambda before=before: strip() != before and strip())
        assert found == [str(k) for k in range(130)]
        assert not browser.find_element(By.ID, "strip-after").is_enabled()
        field = browser.find_element(By.ID, "go-to")
        field.clear()
        field.send_keys("130", Keys.ENTER)
        until(lambda: browser.find_element(By.ID, "annotate-name").text == "129")
    browser.get("about:blank")
    browser.get_log("browser")


@pytest.mark.parametrize("width", [390, 1280, 2560])
def test_every_part_fits_the_screen_and_is_accessible(open_at, browser, studio, width):
    """No sideways scrolling, and nothing that axe finds, in both themes."""
    axe = (files("axe_core_python") / "axe.min.js").read_text()
    browser.set_window_size(width, 900)
    ready = {"try/1": "#try-scene .attention:not([hidden])", "browse": ".hit", "browse/?picture=1": "#viewer .node"}
    for part, there in (ready | {"annotate/0": ".proposal"}).items():
        view = open_at(part)
        until(lambda there=there: some(browser, there))
        root = "document.documentElement"
        assert view.execute_script(f"return {root}.scrollWidth - {root}.clientWidth") <= 1
        view.execute_cdp_cmd("Runtime.evaluate", {"expression": axe})
        for theme in ("light", "dark"):
            view.execute_script(
                f"{root}.dataset.theme = '{theme}'; document.getAnimations().forEach((a) => a.finish())"
            )
            found = view.execute_async_script(
                "axe.run(document).then(({ violations }) => arguments[0]("
                "violations.map(({ id, nodes }) => [id, ...nodes.map(({ html }) => html.slice(0, 120))])))"
            )
            assert found == [], (part, theme)
    browser.set_window_size(1280, 1000)


def test_the_page_of_the_interface(open_at, browser, studio):
    open_at("try")
    browser.get(f"{studio}/docs")
    until(lambda: len(some(browser, ".api")) >= 10)
    assert any("/api/predict" in text for text in names(browser, ".api h2"))
