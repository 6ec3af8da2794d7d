"""What tests of the studio's page look for, wait for, and do by mouse and finger."""

from __future__ import annotations

import time

from studio_server import until
from viz.browser_cases import ActionChains, By, Keys, press

TRIES = 60
"""How often a tap's click is looked for before the next tap."""
__all__ = ["ActionChains", "By", "Keys", "centre", "drag", "names", "press", "some", "tap", "touch", "until"]


def some(view, selector):
    return view.find_elements(By.CSS_SELECTOR, selector)


def names(view, selector):
    return view.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)", selector
    )


def centre(view, selector):
    """Where a pointer meets the first such element, in pixels of the window, once it is shown and at rest.

    A part of the page that was just asked for may still be hidden, or move as pictures arrive.
    """
    return until(lambda: _at_rest(view, selector))


def _at_rest(view, selector, on_top=False):
    """Where it is if it is shown and does not move; `on_top`: and nothing lies over it, so that a tap gets there."""
    script = (
        "const e = document.querySelector(arguments[0]); if (!e) return null;"
        "e.scrollIntoView({block: 'nearest'}); const r = e.getBoundingClientRect();"
        "if (!r.width || !r.height) return null;"
        "const [x, y] = [r.x + r.width / 2, r.y + r.height / 2];"
        "return !arguments[1] || e.contains(document.elementFromPoint(x, y)) ? [x, y] : null"
    )
    before = view.execute_script(script, selector, on_top)
    time.sleep(0.05)
    return before if view.execute_script(script, selector, on_top) == before else None


def _mouse(view, kind, x, y, buttons=1):
    event = {"type": kind, "x": x, "y": y, "button": "left", "buttons": buttons, "clickCount": 1}
    view.execute_cdp_cmd("Input.dispatchMouseEvent", event)


def drag(view, start, end):
    _mouse(view, "mousePressed", *start)
    for share in (0.3, 0.7, 1):
        _mouse(view, "mouseMoved", *(a + share * (b - a) for a, b in zip(start, end, strict=True)))
    _mouse(view, "mouseReleased", *end, buttons=0)


def touch(view, *paths):
    """Fingers that go along their paths at the same time: a path is a list of points."""
    send = lambda kind, points: view.execute_cdp_cmd(  # noqa: E731
        "Input.dispatchTouchEvent",
        {"type": kind, "touchPoints": [{"x": x, "y": y, "id": k} for k, (x, y) in enumerate(points)]},
    )
    send("touchStart", [path[0] for path in paths])
    for step in zip(*(path[1:] for path in paths), strict=True):
        send("touchMove", step)
    send("touchEnd", [])


def tap(view, selector):
    """A finger's tap, done once the page has had the click: what follows may depend on it.

    A page that moves between touch and click, as an answer arrives, loses it: like a person, it is tapped again.
    """
    view.execute_script(
        "window.clicked = false; document.addEventListener('click', (event) => {"
        "if (event.target.closest(arguments[0])) window.clicked = true; }, { capture: true })",
        selector,
    )

    def tapped():
        place = None if clicked() else _at_rest(view, selector, on_top=True)
        if place:
            touch(view, [place])
        for _ in range(TRIES):
            if clicked():
                return True
            time.sleep(0.05)
        return False

    def clicked():
        return view.execute_script("return window.clicked")

    until(tapped)
