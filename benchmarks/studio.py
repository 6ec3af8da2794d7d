"""How fast the studio is, in Chromium: `python benchmarks/studio.py`.

Twelve boxes on a photo: one is moved by a key, until the graph is drawn anew. A picture with 1,000 boxes and 999
relations: from its address to the frame with its last box. 2,100 pictures: how many can be reached. The page's CPU time
is that of its main thread, with what it paints in the second after; both CPU times hold on a busy machine, too.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from scenegpi import SceneGraph, Vocabulary
from scenegpi.store import Store

sys.path.append(str(Path(__file__).resolve().parents[1] / "tools"))
from screenshot import open_browser
from studio_server import running, until

BOXES, PICTURES = 1000, 2100
WORDS = Vocabulary(["man", "horse", "hat", "tree"], ["on", "near"])
# Milliseconds from an act to the frame after a condition holds.
TIMED = """const [act, holds, done] = arguments; const ready = new Function(`return ${holds}`);
const start = performance.now(); new Function(act)();
const shown = () => requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
const look = () => (ready() ? shown() : setTimeout(look, 2)); look();"""
NODES = "document.querySelectorAll('#try-scene .node').length === 12 && !document.querySelector('.waiting')"
MOVE = """window.before = document.querySelector('#try-scene .graph');
window.way = window.way === 'ArrowRight' ? 'ArrowLeft' : 'ArrowRight';
const box = document.querySelector('#try-scene .box'); box.focus();
box.dispatchEvent(new KeyboardEvent('keydown', { key: window.way, shiftKey: true, bubbles: true }));"""
THUMBS = "return [...document.querySelectorAll('#annotate-strip .thumb')].map((thumb) => thumb.ariaLabel)"


def boxes_of(count: int, number: int) -> SceneGraph:
    """Boxes in rows, each related to the next one."""
    row = int(np.ceil(np.sqrt(count)))
    corners = [(950 * (k % row) / row, 750 * (k // row) / row) for k in range(count)]
    names = [WORDS.objects[k % 4] for k in range(count)]
    links = [(k, k + 1, "near") for k in range(count - 1)]
    boxes = [[x, y, x + 40, y + 40] for x, y in corners]
    return SceneGraph(boxes, names, WORDS, links, image_id=number, file="photo.jpg", width=1000, height=800)


def timed(browser: Any, act: str, holds: str) -> tuple[float, float, float]:
    """Milliseconds on the clock, of the page's CPU, and of the server's, which is in this process."""

    def used() -> float:
        found = browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
        return 1000 * next(float(each["value"]) for each in found if each["name"] == "TaskDuration")

    browser.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    page, server = used(), time.process_time()
    clock = browser.execute_async_script(TIMED, act, holds)
    own = 1000 * (time.process_time() - server)
    time.sleep(1)
    return clock, used() - page, own


def say(what: str, times: list[tuple[float, float, float]]) -> None:
    clock, page, server = (statistics.median(some) for some in zip(*times, strict=True))
    least = min(each[0] for each in times)
    print(f"{what}: {clock:.0f} ms (least {least:.0f}); CPU of the page {page:.0f} ms, of the server {server:.0f} ms")


def moved(browser: Any, url: str) -> None:
    browser.get(f"{url}/#try/0")
    until(lambda: browser.execute_script(f"return {NODES}"))
    anew = f"document.querySelector('#try-scene .graph') !== window.before && {NODES}"
    say("12 boxes, one moved, to the graph", [timed(browser, MOVE, anew) for _ in range(13)][3:])


def many_boxes(browser: Any, url: str) -> None:
    for part, first, address in (("#viewer", "browse", "browse/?picture=1"), ("#annotate", "annotate/0", "annotate/1")):
        times = []
        for _ in range(5):
            browser.get("about:blank")
            browser.get(f"{url}/#{first}")
            until(lambda: browser.find_elements("css selector", ".hit, .proposal"))
            all_there = f"document.querySelectorAll('{part} .box').length === {BOXES}"
            times.append(timed(browser, f"location.hash = '{address}'", all_there))
        say(f"{BOXES:,} boxes, {address}", times)


def many_pictures(browser: Any, url: str) -> None:
    browser.get(f"{url}/#browse")
    start, count = time.monotonic(), 0
    while count < PICTURES and time.monotonic() < start + 120:
        browser.execute_script("scrollTo(0, document.body.scrollHeight)")
        count = browser.execute_script("return document.querySelectorAll('.hit').length")
    print(f"Browse: {count:,} of {PICTURES:,} pictures by scrolling, {time.monotonic() - start:.1f} s")
    browser.get(f"{url}/#annotate/0")
    names: set[str] = set()
    start = time.monotonic()
    while True:
        some = until(lambda: browser.execute_script(THUMBS))
        names.update(some)
        after = browser.find_element("id", "strip-after")
        if not after.is_enabled():
            break
        after.click()
        until(lambda some=some: browser.execute_script(THUMBS) not in ([], some))
    print(f"Annotate: {len(names):,} of {PICTURES:,} pictures in the strip, {time.monotonic() - start:.1f} s")


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        folder, many = Path(place), Path(place) / "many"
        many.mkdir()
        noise = np.random.default_rng(0).integers(0, 256, (100, 125, 3), dtype=np.uint8)
        Image.fromarray(noise).resize((1000, 800), Image.Resampling.BICUBIC).save(folder / "photo.jpg", quality=90)
        Store(folder / "store").add([boxes_of(12, 0), boxes_of(BOXES, 1)], [folder])
        for k in range(PICTURES):
            Image.new("RGB", (64, 48), (k % 256, k // 256, 99)).save(many / f"{k:04d}.jpg")
        browser = open_browser(folder / "profile", 1280, 900)
        browser.set_script_timeout(120)
        try:
            with running({"path": folder / "store", "annotations": folder / "notes"}) as (url, _):
                moved(browser, url)
                many_boxes(browser, url)
            with running({"path": many, "annotations": folder / "more"}) as (url, _):
                many_pictures(browser, url)
        finally:
            browser.quit()


if __name__ == "__main__":
    main()
