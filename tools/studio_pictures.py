"""Pictures of the studio for the pages: `python tools/studio_pictures.py PHOTOS docs/images`, in Chromium.

PHOTOS is a folder of photos. It needs what `tools/screenshot.py` needs.
"""

from __future__ import annotations

import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import uvicorn
from PIL import Image

from scenegpi.files import whole_file
from scenegpi.serve.app import Studio, create_app
from scenegpi.serve.settings import Access
from screenshot import open_browser

SECONDS = 240.0
SIZES = {
    "try": (1280, 1000),
    "browse": (1280, 900),
    "annotate": (1280, 900),
    "wide": (2560, 1300),
    "phone": (390, 900),
}


def take(photos: Path, target: Path) -> None:
    """Writes studio-try.png, -browse, -annotate, and as a wide screen and a phone show it, -wide and -phone."""
    listening = socket.create_server(("127.0.0.1", 0))
    access = Access.of("127.0.0.1", listening.getsockname()[1])
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        studio = Studio(photos, annotations=folder / "notes", work=folder / "work", access=access)
        server = uvicorn.Server(uvicorn.Config(create_app(studio), log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        browser = open_browser(folder / "profile", 1280, 1000)
        try:
            browser.get(f"{access.url}#browse")
            _until(lambda: _some(browser, ".run .button.strong"))[0].click()
            _until(lambda: "indexed" in _some(browser, ".run-said")[0].text)
            walks = {"try": _try, "browse": _browse, "annotate": _annotate, "wide": _wide, "phone": _wide}
            for name, walk in walks.items():
                browser.set_window_size(*SIZES[name])
                browser.get("about:blank")
                walk(browser, access.url)
                _loaded(browser)
                shot = Image.open(BytesIO(browser.get_screenshot_as_png())).convert("RGB").quantize(256)
                with whole_file(target / f"studio-{name}.png") as part:
                    shot.save(part, "PNG", optimize=True)
        finally:
            browser.quit()
            server.should_exit = True
            thread.join()


def _try(browser: Any, url: str) -> None:
    """A picture, the alternatives of its best relation, and what the subject of that attends to."""
    browser.get(f"{url}#try/1")
    _until(lambda: _some(browser, "#try-scene .attention:not([hidden])"))
    triplet, node = _some(browser, "#try-scene button.triplet")[0], _some(browser, "#try-scene .node")[0]
    browser.execute_script("arguments[0].click()", triplet)
    browser.execute_script("arguments[0].dispatchEvent(new MouseEvent('click'))", node)


def _browse(browser: Any, url: str) -> None:
    browser.get(f"{url}#browse/*%20has%20*")
    _until(lambda: _some(browser, ".hit rect.frame"))


def _wide(browser: Any, url: str) -> None:
    browser.get(f"{url}#browse/?picture=1")
    _until(lambda: _some(browser, "#viewer .node"))


def _annotate(browser: Any, url: str) -> None:
    browser.get(f"{url}#annotate/0")
    _until(lambda: _some(browser, ".proposal"))
    browser.execute_script("arguments[0].click()", _some(browser, ".proposal")[0])
    _until(lambda: browser.execute_script("return document.getElementById('saved').textContent") == "Saved")
    browser.execute_script("document.activeElement.blur(); scrollTo(0, 0)")


def _some(browser: Any, selector: str) -> list[Any]:
    found: list[Any] = browser.find_elements("css selector", selector)
    return found


def _loaded(browser: Any) -> None:
    """Until the pictures in view are there."""
    _until(lambda: browser.execute_script("return [...document.images].every((i) => i.complete)"))
    time.sleep(1.5)


def _until(check: Callable[[], Any]) -> Any:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        found = check()
        if found:
            return found
        time.sleep(0.1)
    raise SystemExit("the page did not get there")


if __name__ == "__main__":
    take(Path(sys.argv[1]), Path(sys.argv[2]))
