"""Annotating in a real browser: by keys, mouse and finger, and what goes wrong on the way."""

from __future__ import annotations

import json

import pytest
from PIL import Image

from annotate_keys import in_context
from scenegpi import SceneGraph, Vocabulary
from scenegpi.bulk.journal import Journal
from scenegpi.store import Store
from serve.page_cases import ActionChains, By, Keys, centre, drag, names, press, some, touch, until
from serve.serve_cases import call, no_space, running

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def said(view):
    return view.find_element(By.ID, "saved").text


def boxes(view):
    return len(some(view, "#annotate .box"))


def control(view, key):
    ActionChains(view).key_down(Keys.CONTROL).send_keys(key).key_up(Keys.CONTROL).perform()


def unrelated(graph):
    """Two pairs of boxes that nothing relates yet."""
    pairs = {(r["subject"], r["object"]) for r in graph["relations"]}
    n = len(graph["objects"])
    return [(i, j) for i in range(n) for j in range(n) if i != j and (i, j) not in pairs]


def test_two_keys_undo_and_reload(open_at, browser, studio):
    view = open_at("annotate/0")
    until(lambda: boxes(view))
    assert len(some(view, '#annotate .box[tabindex="0"]')) == 1  # one stop for the Tab key
    kept = lambda: call(f"{studio}/api/annotations/0")[1]  # noqa: E731
    until(lambda: some(view, ".proposal"))
    assert kept()["revision"] == 0  # looking is not annotating
    start = len(some(view, ".remove"))
    subject, other = unrelated(call(f"{studio}/api/images/0")[1]["graph"])[0]
    press(view, LETTERS[subject], LETTERS[other])
    until(lambda: len(some(view, ".remove")) == start + 1)
    until(lambda: said(view) == "Saved")
    last = kept()["graph"]["relations"][-1]
    assert (last["subject"], last["object"]) == (subject, other)
    assert len(some(view, "#annotate line, #annotate .arrow.chosen .line")) == 1  # on the photo, too
    until(lambda: len(some(view, ".chance")) == 9)
    assert f" {last['predicate']} " in names(view, ".chance")[0]
    press(view, "2")  # the second likeliest predicate
    until(lambda: kept()["graph"]["relations"][-1]["predicate"] != last["predicate"])
    press(view, Keys.ARROW_DOWN, Keys.ENTER)  # two keys for a proposal
    until(lambda: len(some(view, ".remove")) == start + 2)
    control(view, "z")
    until(lambda: len(some(view, ".remove")) == start + 1)
    control(view, "y")
    until(lambda: len(kept()["graph"]["relations"]) == start + 2)
    until(lambda: said(view) == "Saved")
    view.refresh()
    until(lambda: len(some(view, ".remove")) == start + 2)
    some(view, ".remove")[-1].click()
    until(lambda: len(kept()["graph"]["relations"]) == start + 1)
    control(view, Keys.ENTER)
    until(lambda: view.current_url.endswith("#annotate/1"))
    until(lambda: kept()["status"] == "done")
    assert some(view, ".thumb.done")
    exports = [link.get_attribute("href") for link in some(view, "#exports a")]
    assert [call(url)[0] for url in exports] == [200] * 4
    assert all(url.endswith("?status=done") for url in exports)


def test_relations_by_mouse_and_by_finger(open_at, browser, studio):
    view = open_at("annotate/1")
    until(lambda: some(view, ".proposal"))
    graph = call(f"{studio}/api/images/1")[1]["graph"]
    kept = lambda: (call(f"{studio}/api/annotations/1")[1]["graph"] or graph)["relations"]  # noqa: E731
    ends = lambda: [(r["subject"], r["object"]) for r in kept()]  # noqa: E731
    tag = lambda k: centre(view, f'#annotate .tag[data-box="{k}"]')  # noqa: E731
    pairs = unrelated(graph)
    some(view, '[data-tool="relate"]')[0].click()
    drag(view, tag(pairs[0][0]), tag(pairs[0][1]))
    until(lambda: ends()[-1] == pairs[0])
    until(lambda: len(some(view, ".chance")) > 2)
    second = names(view, ".chance")[1].split(" ", 1)[1].rsplit(" ", 1)[0]
    some(view, ".chance")[1].click()
    until(lambda: kept()[-1]["predicate"] == second.strip())
    # a finger: one box, then the other; and then along the way from box to box
    touch(view, [tag(pairs[1][0])])
    until(lambda: some(view, "#annotate .box.subject"))
    touch(view, [tag(pairs[1][1])])
    until(lambda: ends()[-1] == pairs[1])
    start, end = tag(pairs[2][0]), tag(pairs[2][1])
    touch(view, [start, [(start[0] + end[0]) / 2, (start[1] + end[1]) / 2], end])
    until(lambda: ends()[-1] == pairs[2])
    x, y = centre(view, "#annotate-canvas .photo")  # two fingers zoom
    touch(view, [[x - 20, y], [x - 60, y], [x - 120, y]], [[x + 20, y], [x + 60, y], [x + 120, y]])
    shown = lambda: float(some(view, "#annotate-canvas .photo svg")[0].get_dom_attribute("viewBox").split()[2])  # noqa: E731
    until(lambda: shown() < 300)
    press(view, "0")
    until(lambda: shown() == 600)


def test_boxes_are_cleared_drawn_named_and_never_lost_silently(open_at, browser, studio):
    view = open_at("annotate/2")
    until(lambda: some(view, ".proposal"))
    kept = lambda: call(f"{studio}/api/annotations/2")[1]  # noqa: E731
    for left in range(boxes(view) - 1, -1, -1):
        view.execute_script("document.querySelector('#annotate .box').focus()")
        press(view, Keys.DELETE)
        until(lambda left=left: boxes(view) == left)
    until(lambda: said(view) == "Saved" and kept()["graph"]["objects"] == [])
    view.refresh()
    until(lambda: some(view, "#find-boxes:not([hidden])"))
    assert boxes(view) == 0  # and not the finder's again
    x, y = centre(view, "#annotate-canvas .photo")
    drag(view, [x - 90, y - 90], [x - 20, y - 20])
    press(view, Keys.ESCAPE)
    until(lambda: said(view) == "Not saved: box a has no name.")
    drag(view, [x + 20, y + 20], [x + 90, y + 90])
    press(view, "dragon", Keys.ENTER)  # a name that is not in the vocabulary yet
    until(lambda: view.switch_to.active_element.text == "Add it")
    press(view, Keys.ENTER)
    until(lambda: [each["label"] for each in kept()["graph"]["objects"]] == ["dragon"])
    until(lambda: said(view) == "Not saved: box a has no name.")
    assert boxes(view) == 2
    view.execute_script("document.querySelector('#annotate .box[data-box=\"0\"]').focus()")
    press(view, Keys.F2)
    press(view, "dragon", Keys.ENTER)
    until(lambda: said(view) == "Saved")
    assert len(kept()["graph"]["objects"]) == 2


def test_two_windows_on_one_picture(open_at, browser, studio):
    view = open_at("annotate/3")
    until(lambda: some(view, ".proposal"))
    start = len(some(view, ".remove"))
    graph = call(f"{studio}/api/images/3")[1]["graph"]
    kept = lambda: call(f"{studio}/api/annotations/3")[1]  # noqa: E731
    other = {"graph": graph | {"relations": []}, "by": "Ada"}
    assert call(f"{studio}/api/annotations/3", other, "PUT")[0] == 200  # another window
    some(view, ".proposal")[0].click()
    until(lambda: some(view, ".conflict"))
    assert said(view).startswith("Not saved: changed elsewhere")
    assert "by Ada" in names(view, ".conflict")[0]
    assert kept()["graph"]["relations"] == []
    some(view, ".conflict button")[0].click()  # this one
    until(lambda: len(kept()["graph"]["relations"]) == start + 1)
    until(lambda: said(view) == "Saved")
    assert call(f"{studio}/api/annotations/3", other | {"based_on": kept()["revision"]}, "PUT")[0] == 200
    some(view, ".proposal")[0].click()
    until(lambda: some(view, ".conflict"))
    some(view, ".conflict button")[1].click()  # that one
    until(lambda: not some(view, ".remove") and said(view) == "Saved")
    assert kept()["graph"]["relations"] == []
    browser.get_log("browser")  # Chromium logs each 409


def test_a_server_that_is_killed_a_full_disk_and_a_broken_photo(browser, data, tmp_path, monkeypatch):
    photos = tmp_path / "photos"
    photos.mkdir()
    for name in ("a.jpg", "c.jpg"):
        Image.open(next((data / "images").iterdir())).save(photos / name)
    (photos / "b.jpg").write_bytes(b"")
    (photos / "names.json").write_text("{}")
    fields = {"path": photos, "annotations": tmp_path / "notes", "model": None}
    browser.get("about:blank")
    with running(fields) as (url, _):
        port = int(url.rsplit(":", 1)[1])
        browser.get(f"{url}/#annotate/0")
        until(lambda: browser.find_element(By.ID, "done").is_enabled())
        until(lambda: "Asking" not in browser.find_element(By.ID, "annotate-panel").text)
        found = boxes(browser)
        browser.get(f"{url}/#annotate/1")  # cannot be read: nothing of picture 0 is left to be changed
        until(lambda: "empty" in browser.find_element(By.ID, "annotate-why").text)
        press(browser, "a", "b")
        control(browser, Keys.ENTER)
        assert boxes(browser) == 0
        browser.get(f"{url}/#annotate/0")
        until(lambda: browser.find_element(By.ID, "done").is_enabled())
        until(lambda: boxes(browser) == found)
        assert call(f"{url}/api/annotations")[1]["images"] == 0

        with monkeypatch.context() as patch:
            patch.setattr(Journal, "append", no_space)
            control(browser, Keys.ENTER)
            until(lambda: "No space left" in said(browser))
        until(lambda: call(f"{url}/api/annotations/0")[1]["status"] == "done")
        browser.get(f"{url}/#annotate/0")
        until(lambda: said(browser) == "Saved")
    browser.execute_script("location.hash = 'annotate/2'")  # the server is gone
    until(lambda: "does not answer" in browser.find_element(By.ID, "annotate-why").text)
    with running(fields, port=port) as (url, _):
        press(browser, "a", "b")
        control(browser, Keys.ENTER)
        some(browser, "#annotate-why button")[0].click()
        until(lambda: browser.find_element(By.ID, "done").is_enabled())
        assert call(f"{url}/api/annotations")[1]["statuses"] == {"a.jpg": "done"}
        control(browser, Keys.ENTER)
        until(lambda: call(f"{url}/api/annotations/2")[1]["status"] == "done")
    browser.get("about:blank")
    browser.get_log("browser")


def test_attributes_are_seen_kept_and_changed(browser, tmp_path):
    words = Vocabulary(["cup", "saucer"], ["on"])
    boxes = [[10, 10, 60, 60], [5, 40, 90, 90]]
    said = [{"white": 0.5, "round": 1.0}, ["red"]]
    graph = SceneGraph(
        boxes, ["cup", "saucer"], words, [(0, 1, "on")], attributes=said, image_id=1, width=100, height=100
    )
    Store(tmp_path / "store").add([graph])
    browser.get("about:blank")
    with running({"path": tmp_path / "store", "annotations": tmp_path / "notes", "model": "vg150-layout"}) as (url, _):
        browser.get(f"{url}/#browse/?picture=0")
        until(lambda: names(browser, "#viewer .things small") == ["white, round", "red"])
        browser.find_element(By.CSS_SELECTOR, "#viewer .things .find").click()
        until(lambda: names(browser, "#count") == ['"white" "round" "cup": 1 picture'])
        browser.get(f"{url}/#annotate/0")
        until(lambda: names(browser, "#annotate-panel small") == ["white, round", "red"])
        browser.execute_script("document.querySelector('#annotate .box[data-box=\"1\"]').focus()")
        press(browser, Keys.F2)
        field = browser.find_element(By.CSS_SELECTOR, '[aria-label^="Attributes of the chosen box"]')
        assert field.get_attribute("value") == "red"
        field.send_keys(", old, red", Keys.ENTER)
        until(lambda: said_of(url) == [{"white": 0.5, "round": 1.0}, ["red", "old"]])
        browser.refresh()
        until(lambda: names(browser, "#annotate-panel small") == ["white, round", "red, old"])
        lines = call(f"{url}/api/export/jsonl?status=all")[1].decode().splitlines()
        assert json.loads(lines[-1])["objects"][1]["attributes"] == ["red", "old"]
    browser.get("about:blank")


def said_of(url):
    graph = call(f"{url}/api/annotations/0")[1]["graph"]
    return graph and [each.get("attributes") for each in graph["objects"]]


def test_what_was_said_of_a_picture_ranks_its_other_pairs(browser):
    """The page and the benchmark that counts keys agree."""
    names = ["man", "hat", "man", "hat", "dog"]
    said = [(0, 1, "in"), (0, 4, "near"), (2, 4, "near")]
    ranked = [("on", 0.4), ("wearing", 0.3), ("in", 0.2), ("near", 0.1)]
    browser.get("about:blank")
    with running({}) as (url, _):
        browser.get(url)
        for pair in ((2, 3), (4, 0), (0, 1)):
            found = browser.execute_async_script(
                "const [ranked, [subject, object], said, names, done] = arguments;"
                "import('/static/proposals.js').then(({ inContext }) => done(inContext(ranked, { subject, object },"
                "said.map(([subject, object, predicate]) => ({ subject, object, predicate })), (k) => names[k])))",
                ranked,
                pair,
                said,
                names,
            )
            assert [name for name, _ in found] == in_context(ranked, said, pair, names)
            assert sum(share for _, share in found) == pytest.approx(1)
    assert in_context(ranked, said, (2, 3), names)[0] == "in"


@pytest.mark.parametrize("count", [40, 70])
def test_letters_name_each_box(browser, count):
    """One letter up to 52 boxes, two beyond: no box has none, and no name is the beginning of another."""
    browser.get("about:blank")
    with running({}) as (url, _):
        browser.get(url)
        found = browser.execute_async_script(
            "const [count, done] = arguments; import('/static/boxes.js').then(({ letterOf, boxOf }) => done("
            "[...Array(count).keys()].map((k) => [letterOf(k, count), boxOf(letterOf(k, count), count)])))",
            count,
        )
    assert [k for _, k in found] == list(range(count))
    assert len({name for name, _ in found}) == count
    assert len({len(name) for name, _ in found}) == 1
