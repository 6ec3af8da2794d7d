"""Screenshots of a report in headless Chromium: for tests and for the pictures of the pages.

`python tools/screenshot.py report.html#scene-3-box-0 report.png` takes what a window shows. It needs
selenium (in the dev extra) and Debian's chromium and chromium-driver.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from scenegpi.errors import DataError
from scenegpi.files import whole_file

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

CHROMIUM, DRIVER = "chromium", "chromedriver"
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-prefers-reduced-motion",
    "--hide-scrollbars",
)


def open_browser(profile: Path, width: int = 1280, height: int = 1000) -> Chrome:
    """A browser with an empty `profile`, which keeps what pages say and ask for; DataError where there is none."""
    from selenium import webdriver

    program, driver = shutil.which(CHROMIUM), shutil.which(DRIVER)
    if program is None or driver is None:
        raise DataError(CHROMIUM, "not installed (Debian: apt-get install chromium chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (*FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))


def screenshot(page: str, target: Path, width: int = 1280, height: int = 1000) -> Path:
    """Writes what a window shows of a page; `page` is a path, with an address within it after `#`."""
    path, mark, place = page.partition("#")
    with tempfile.TemporaryDirectory() as profile:
        browser = open_browser(Path(profile), width, height)
        try:
            browser.get(Path(path).resolve().as_uri() + mark + place)
            picture = browser.get_screenshot_as_png()
        finally:
            browser.quit()
    with whole_file(target) as part:
        part.write_bytes(picture)
    return target


if __name__ == "__main__":
    print(f"{screenshot(sys.argv[1], Path(sys.argv[2]))}: taken")
