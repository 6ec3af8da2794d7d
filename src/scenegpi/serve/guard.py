"""The checks of every request: Host and Origin, the token, the size of the body; and the headers of every response.

- Host must name this server, so that a foreign name that resolves to 127.0.0.1 is refused (DNS rebinding).
- Origin, if a browser sends it, must be this server's own, so that no other page reads or writes here.
- The token is compared in constant time; a link with it sets a cookie, so that the page's own requests carry it.
- Headers must arrive in time, or the connection ends; uvicorn itself waits for them forever.
"""

from __future__ import annotations

import asyncio
import hmac
import time
from typing import Any

import h11
from fastapi.responses import JSONResponse
from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol

from scenegpi.serve.settings import Access, Bounds

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
"""Paths that need no token."""
LINKED = ("/", "/docs")
"""Pages that other sites may link to; everything else is refused, even by GET: a search is expensive."""


class Guard:
    """ASGI middleware; a body has at most `body` bytes, and each chunk of it must arrive within `seconds`."""

    def __init__(self, app: ASGIApp, access: Access, body: int, seconds: float = 20.0) -> None:
        self.app, self.access, self.body, self.seconds = app, access, body, seconds
        self.cookie = f"scenegpi-{access.port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuses a request, or forwards it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] == "websocket":  # the studio uses none
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        request = HTTPConnection(scope)
        refused = self._refused(request)
        if refused is not None:
            await _answer(*refused)(scope, receive, send)
            return
        left, whole = self.body, False
        problem: tuple[int, str] | None = None
        ends = time.monotonic() + 6 * self.seconds

        async def bounded() -> Message:
            nonlocal left, problem, whole
            if whole:  # the next message, at any time, is that the client disconnects
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), min(self.seconds, max(ends - time.monotonic(), 0)))
            except TimeoutError:
                problem, whole = (408, "the request did not arrive in time"), True
                return {"type": "http.disconnect"}
            whole = not message.get("more_body", False)
            left -= len(message.get("body", b""))
            if left < 0:
                problem = (413, f"a body may have {self.body:,} bytes")
                return {"type": "http.request", "body": b"", "more_body": False}
            return message

        replaced = False

        async def dressed(message: Message) -> None:
            nonlocal replaced
            if message["type"] == "http.response.start":
                if problem is not None:
                    replaced = True
                    await _answer(*problem)(scope, receive, send)
                else:
                    self._dress(MutableHeaders(scope=message), request)
            if not replaced:
                await send(message)

        await self.app(scope, bounded, dressed)

    def _dress(self, headers: MutableHeaders, request: HTTPConnection) -> None:
        """Adds the common headers to a response, unless it has its own."""
        for name, value in HEADERS.items():
            headers.setdefault(name, value)
        if not request.scope["path"].startswith("/static/"):
            headers.setdefault("cache-control", "no-store")
        if self.access.token and self._given(request):
            safe = "; Secure" if (self.access.public or "").startswith("https:") else ""
            value = f"{self.cookie}={self.access.token}; HttpOnly; SameSite=Strict; Path=/{safe}"
            headers.setdefault("set-cookie", value)

    def _refused(self, request: HTTPConnection) -> tuple[int, str] | None:
        """Status and reason, or None."""
        headers, path = request.headers, request.scope["path"]
        if not self.access.knows(headers.get("host", "")):
            return 421, "the Host header does not name this server"
        origin = headers.get("origin")
        if origin is not None and not self.access.owns(origin, headers["host"]):
            return 403, "requests from other sites are not answered"
        foreign = headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
        if foreign and (request.scope["method"] != "GET" or path not in LINKED):
            return 403, "requests from other sites are not answered"
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()) or int(length[:18]) > self.body:
            return 413, f"a body may have {self.body:,} bytes"
        if self.access.token and path not in OPEN and not self._token(request):
            return 401, "this server needs its token: Authorization: Bearer TOKEN, or the link that it printed"
        return None

    def _token(self, request: HTTPConnection) -> bool:
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        kept = request.cookies.get(self.cookie, "")
        return (scheme.lower() == "bearer" and self._same(bearer.strip())) or self._same(kept) or self._given(request)

    def _given(self, request: HTTPConnection) -> bool:
        """Whether the request is the printed link."""
        return request.scope["path"] == "/" and self._same(request.query_params.get("token", ""))

    def _same(self, token: str) -> bool:
        return bool(self.access.token) and hmac.compare_digest(token.encode(), (self.access.token or "").encode())


def _answer(status: int, reason: str) -> JSONResponse:
    return JSONResponse({"detail": reason}, status, HEADERS)


class PromptProtocol(H11Protocol):
    """HTTP/1.1 that closes a connection if a request's headers take more than `seconds`."""

    seconds = Bounds.arriving
    _due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Waits for the headers, and again once the next request has begun."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop()
        elif self._due is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._due = self.loop.call_later(self.seconds, self.transport.close)

    def _stop(self) -> None:
        if self._due is not None:
            self._due.cancel()
        self._due = None

    def _unsupported_upgrade_warning(self) -> None:
        """A client that asks for a websocket gets an ordinary response, without a warning in the log."""


def server_config(app: Any) -> Config:
    """The settings of uvicorn for the studio."""
    return Config(
        app,
        http=PromptProtocol,
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=3,
    )
