"""A studio in a thread of its own, for tests, benchmarks and the pictures of the pages; and waiting for its page."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from scenegpi.serve.app import Studio, create_app
from scenegpi.serve.guard import server_config
from scenegpi.serve.settings import Access


@contextmanager
def running(
    studio_fields: dict[str, Any],
    host: str = "127.0.0.1",
    token: str | None = None,
    public: str | None = None,
    port: int = 0,
) -> Iterator[tuple[str, Any]]:
    """`(url, app)` of a server that is started and stopped."""
    listening = socket.socket(proto=socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", port))
    listening.listen(128)
    port = listening.getsockname()[1]
    app = create_app(Studio(**studio_fields, access=Access.of(host, port, token, public)))
    server = uvicorn.Server(server_config(app))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port}", app
    finally:
        server.should_exit = True
        thread.join()


def until(check: Callable[[], Any], seconds: float = 300) -> Any:
    """Waits for a page that waits for a server; the result of the check."""
    from selenium.common.exceptions import StaleElementReferenceException

    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            found = check()
        except (StaleElementReferenceException, IndexError):  # the page was just drawn anew
            found = None
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError("the page did not get there")
