"""What every request passes: Host and Origin, the token, the size of the body; and what every answer carries.

- Host must name this server, so that a foreign name that leads to 127.0.0.1 gets nothing (DNS rebinding).
- Origin, where a browser sends one, must be this server's own, so that no other page reads or writes here.
- The token is compared in constant time; a link with it sets a cookie, so that the page's own requests carry it.
"""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from scenegpi.serve.settings import Access

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
OPEN = ("/health",)
"""Paths that need no token: whether the server is there is no secret to who can reach it."""

LINKED = ("/", "/docs")
"""Pages that others may link to; nothing else is for other sites, not even by GET: a search is work."""


class Guard:
    """ASGI middleware.

    Args:
        app: what is behind it.
        access: whom it lets through.
        body: bytes that a request may have.
        seconds: that the next piece of a body may take to arrive.
    """

    def __init__(self, app: App, access: Access, body: int, seconds: float = 20.0) -> None:
        self.app, self.access, self.body, self.seconds = app, access, body, seconds
        self.cookie = f"scenegpi-{access.port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers what may not pass, and hands on the rest."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] == "websocket":  # there are none here
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refused = self._refused(scope, headers)
        if refused is not None:
            await _answer(send, *refused)
            return
        left, full, late, whole = self.body, False, False, False
        ends = time.monotonic() + 6 * self.seconds

        async def bounded() -> MutableMapping[str, Any]:
            nonlocal left, full, late, whole
            if whole:  # what comes now is that the client leaves, which may take as long as it likes
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), min(self.seconds, max(ends - time.monotonic(), 0)))
            except TimeoutError:
                late = whole = True
                return {"type": "http.disconnect"}
            whole = not message.get("more_body", False)
            left -= len(message.get("body", b""))
            if left < 0:
                full = True
                return {"type": "http.request", "body": b"", "more_body": False}
            return message

        started = False

        async def dressed(message: MutableMapping[str, Any]) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                if full or late:
                    said = f"a body may have {self.body:,} bytes" if full else "the request did not arrive in time"
                    await _answer(send, 413 if full else 408, said)
                    started = True
                    return
                extra = dict(HEADERS)
                if not scope["path"].startswith("/static/"):
                    extra["cache-control"] = "no-store"
                if self._given(scope) and self.access.token:
                    safe = "; Secure" if (self.access.public or "").startswith("https:") else ""
                    extra["set-cookie"] = f"{self.cookie}={self.access.token}; HttpOnly; SameSite=Strict; Path=/{safe}"
                have = {name for name, _ in message["headers"]}
                added = [(k.encode(), v.encode()) for k, v in extra.items() if k.encode() not in have]
                message = {**message, "headers": [*message["headers"], *added]}
            elif started:
                return  # the body of an answer that was replaced
            await send(message)

        await self.app(scope, bounded, dressed)

    def _refused(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        """Status and reason, or None."""
        if not self.access.knows(headers.get("host", "")):
            return 421, "this name is not one of this server's"
        origin = headers.get("origin")
        if origin is not None and not self.access.owns(origin, headers["host"]):
            return 403, "requests from other sites are not answered"
        foreign = headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
        if foreign and (scope["method"] != "GET" or scope["path"] not in LINKED):
            return 403, "requests from other sites are not answered"
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()) or int(length[:18]) > self.body:
            return 413, f"a body may have {self.body:,} bytes"
        if self.access.token and scope["path"] not in OPEN and not self._token(scope, headers):
            return 401, "this server needs its token: Authorization: Bearer TOKEN, or the link that it printed"
        return None

    def _token(self, scope: Scope, headers: dict[str, str]) -> bool:
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        cookies: SimpleCookie = SimpleCookie()
        try:
            cookies.load(headers.get("cookie", ""))
        except CookieError:
            cookies.clear()
        kept = cookies[self.cookie].value if self.cookie in cookies else ""
        return (scheme.lower() == "bearer" and self._same(bearer.strip())) or self._same(kept) or self._given(scope)

    def _given(self, scope: Scope) -> bool:
        """Whether the link that was printed is followed."""
        if scope["path"] != "/":
            return False
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])
        return self._same(given[0])

    def _same(self, token: str) -> bool:
        return bool(self.access.token) and hmac.compare_digest(token.encode(), (self.access.token or "").encode())


async def _answer(send: Send, status: int, reason: str) -> None:
    body = f'{{"detail": "{reason}"}}'.encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(name.encode(), value.encode()) for name, value in HEADERS.items()]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
