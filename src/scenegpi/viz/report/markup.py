"""HTML and SVG from Python, escaped by construction: a plain string is text, only `Html` is markup."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from html import escape
from math import isfinite
from typing import Any


class Html(str):
    """Markup, which is not escaped again."""


def h(name: str, *children: object, **attributes: object) -> Html:
    """An element. Children that are not `Html` are escaped; None is left out.

    Attributes: `class_` is class, `data_box` is data-box; None and False leave one out, True gives it no value.
    Numbers are written with at most two decimals.
    """
    parts = [name]
    for key, value in attributes.items():
        key = "viewBox" if key == "viewBox" else key.rstrip("_").replace("_", "-")
        if value is True:
            parts.append(key)
        elif value is not None and value is not False:
            parts.append(f'{key}="{escape(number(value), quote=True)}"')
    inner = join(*children)
    void = name in ("input", "br", "hr", "meta", "img")
    return Html(f"<{' '.join(parts)}>" if void else f"<{' '.join(parts)}>{inner}</{name}>")


def join(*children: object) -> Html:
    """Children concatenated; lists are flattened."""
    out: list[str] = []
    for child in children:
        if child is None:
            continue
        if isinstance(child, Html):
            out.append(child)
        elif isinstance(child, list | tuple):
            out.append(join(*child))
        else:
            out.append(escape(clean(number(child)), quote=False))
    return Html("".join(out))


def table(heads: Iterable[object], rows: Iterable[Html], class_: str = "numbers") -> Html:
    """A table that scrolls if it is too wide; plain headings become column headings."""
    first = [each if isinstance(each, Html) else h("th", each, scope="col") for each in heads]
    whole = h("table", h("thead", h("tr", first)), h("tbody", *rows), class_=class_)
    return h("div", whole, class_="scroll")


def number(value: object) -> str:
    """A number with at most two decimals, anything else as text."""
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".") if isfinite(value) else "0"
    return str(value)


def clean(text: str) -> str:
    """Without characters that HTML does not allow."""
    return "".join(c if c.isprintable() or c in "\n\t " else "�" for c in text)


def data_block(identity: str, value: Any) -> Html:
    """JSON for a script of the page. It has no `<`, so it cannot end the element."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Html(f'<script type="application/json" id="{escape(identity, quote=True)}">{text}</script>')


def source_hash(text: str) -> str:
    """The name of an inline script or style in a content security policy."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
