"""Pictures of the studio for the pages: `python tools/studio_pictures.py PHOTOS docs/images`, in Chromium.

PHOTOS is a folder of photos, of which the third is opened. It needs what `tools/screenshot.py` needs.
"""

from __future__ import annotations

import sys
import tempfile
import time
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

from scenegpi.files import whole_file
from screenshot import open_browser
from studio_server import running, until

OPENED, COLOURS = 2, 256
LOADED = "return [...document.images].every((image) => image.complete || !image.checkVisibility())"  # others wait
SIZES = {"try": (1280, 860), "browse": (1280, 720), "annotate": (1280, 860), "wide": (2560, 1300), "phone": (390, 844)}


def take(photos: Path, target: Path) -> None:
    """Writes studio-try.png, -browse, -annotate, and as a wide screen and a phone show it, -wide and -phone."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        fields = {"path": photos, "annotations": folder / "notes", "work": folder / "work"}
        with running(fields) as (url, _):
            browser = open_browser(folder / "profile")
            try:
                browser.get(f"{url}/#browse")
                until(lambda: _some(browser, ".run .button.strong"))[0].click()
                until(lambda: "indexed" in _some(browser, ".run-said")[0].text)
                walks = {"try": _try, "browse": _browse, "annotate": _annotate, "wide": _opened, "phone": _opened}
                for name, walk in walks.items():
                    wide, high = SIZES[name]
                    size = {"width": wide, "height": high, "deviceScaleFactor": 1, "mobile": wide < 500}
                    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
                    browser.get("about:blank")
                    walk(browser, url)
                    until(lambda: browser.execute_script(LOADED))
                    time.sleep(1.5)
                    browser.execute_script("document.activeElement.blur()")
                    shot = Image.open(BytesIO(browser.get_screenshot_as_png())).convert("RGB").quantize(COLOURS)
                    with whole_file(target / f"studio-{name}.png") as part:
                        shot.save(part, "PNG", optimize=True)
            finally:
                browser.quit()


def _try(browser: Any, url: str) -> None:
    browser.get(f"{url}/#try/{OPENED}")
    until(lambda: _some(browser, "#try-scene .attention:not([hidden])"))


def _browse(browser: Any, url: str) -> None:
    browser.get(f"{url}/#browse/*%20has%20*")
    until(lambda: _some(browser, ".hit rect.frame"))


def _opened(browser: Any, url: str) -> None:
    browser.get(f"{url}/#browse/?picture={OPENED}")
    until(lambda: _some(browser, "#viewer .node"))


def _annotate(browser: Any, url: str) -> None:
    """Two proposals are accepted, and the alternatives of the second are shown."""
    browser.get(f"{url}/#annotate/{OPENED}")
    for count in (1, 2):
        until(lambda: _some(browser, ".proposal"))[0].click()
        until(lambda count=count: len(_some(browser, "#annotate .remove")) == count)
    until(lambda: _some(browser, ".chance") and _some(browser, "#saved")[0].text == "Saved")


def _some(browser: Any, selector: str) -> list[Any]:
    found: list[Any] = browser.find_elements("css selector", selector)
    return found


if __name__ == "__main__":
    take(Path(sys.argv[1]), Path(sys.argv[2]))
