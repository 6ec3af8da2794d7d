"""What tests of the studio's page look for, wait for, and do by mouse and finger."""

from __future__ import annotations

from studio_server import until
from viz.browser_cases import ActionChains, By, Keys, press

__all__ = ["ActionChains", "By", "Keys", "centre", "drag", "names", "press", "some", "tap", "touch", "until"]


def some(view, selector):
    return view.find_elements(By.CSS_SELECTOR, selector)


def names(view, selector):
    return view.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)", selector
    )


def centre(view, selector):
    """Where a pointer meets the first such element, in pixels of the window."""
    return view.execute_script(
        "const e = document.querySelector(arguments[0]); e.scrollIntoView({block: 'nearest'});"
        "const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]",
        selector,
    )


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
    touch(view, [centre(view, selector)])
