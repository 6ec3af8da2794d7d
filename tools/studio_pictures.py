"""Pictures of the studio for the pages: `python tools/studio_pictures.py SCENES docs/images`, in Chromium.

SCENES is a folder of rendered scenes (`scenegpi data render`). It needs what `tools/screenshot.py` needs.
"""

from __future__ import annotations

import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvicorn

from scenegpi.files import whole_file
from scenegpi.serve.app import Studio, create_app
from scenegpi.serve.settings import Access
from screenshot import open_browser

SECONDS = 120.0


def take(scenes: Path, target: Path) -> None:
    """Writes studio-try.png, studio-browse.png and studio-annotate.png."""
    listening = socket.create_server(("127.0.0.1", 0))
    access = Access.of("127.0.0.1", listening.getsockname()[1])
    with tempfile.TemporaryDirectory() as place:
        studio = Studio(scenes, annotations=Path(place) / "notes", model="vg150-photo", access=access)
        server = uvicorn.Server(uvicorn.Config(create_app(studio), log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        browser = open_browser(Path(place) / "profile", 1280, 1120)
        try:
            for part_of_page, walk in (("try", _try), ("browse", _browse), ("annotate/9", _annotate)):
                browser.get("about:blank")
                browser.get(f"{access.url}#{part_of_page}")
                walk(browser)
                with whole_file(target / f"studio-{part_of_page.split('/')[0]}.png") as part:
                    part.write_bytes(browser.get_screenshot_as_png())
        finally:
            browser.quit()
            server.should_exit = True
            thread.join()


def _try(browser: Any) -> None:
    """A picture, the alternatives of its best relation, and what the subject of that attends to."""
    _until(lambda: _some(browser, "#try-strip .thumb"))[6].click()
    _until(lambda: _some(browser, "#try-scene .attention:not([hidden])"))
    triplet = _some(browser, "#try-scene button.triplet")[0]
    nodes = {str(node.get_attribute("aria-label")).removeprefix("object "): node for node in _some(browser, ".node")}
    subject = next(node for name, node in nodes.items() if str(triplet.text).startswith(name))
    browser.execute_script("arguments[0].click()", triplet)
    browser.execute_script("arguments[0].dispatchEvent(new MouseEvent('click'))", subject)
    _scroll(browser, "#try-scene .scene")


def _browse(browser: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    _until(lambda: _some(browser, ".hit"))  # the page is ready
    _some(browser, "#query")[0].send_keys("person ?a riding * and without ?a wearing hat", Keys.ENTER)
    _until(lambda: _some(browser, ".hit rect.frame"))
    _loaded(browser)


def _annotate(browser: Any) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    _until(lambda: _some(browser, ".proposal"))
    ActionChains(browser).send_keys(Keys.ARROW_DOWN, Keys.ENTER).perform()
    _until(lambda: _some(browser, '.relation[aria-current="true"]'))
    _until(lambda: browser.execute_script("return document.getElementById('saved').textContent") == "Saved")
    _loaded(browser)


def _some(browser: Any, selector: str) -> list[Any]:
    found: list[Any] = browser.find_elements("css selector", selector)
    return found


def _scroll(browser: Any, selector: str) -> None:
    browser.execute_script("document.querySelector(arguments[0]).scrollIntoView()", selector)
    _loaded(browser)


def _loaded(browser: Any) -> None:
    """Until the pictures in view are there."""
    whole = """
        const inView = ({ left, right }) => left < innerWidth && right > 0;
        const shown = [...document.images].filter((i) => i.offsetParent && inView(i.getBoundingClientRect()));
        return shown.every((i) => i.complete);
    """
    _until(lambda: browser.execute_script(whole))
    time.sleep(1.0)


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
