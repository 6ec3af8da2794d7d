"""A server in a thread of its own, over a few rendered scenes, and requests to it."""

from __future__ import annotations

import base64
import json
import resource
import socket
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from scenegpi.errors import DataError
from scenegpi.paper.rendered import render_folder
from scenegpi.serve.app import Studio, create_app
from scenegpi.serve.protocol import server_config
from scenegpi.serve.settings import Access

BOXES = [[10, 10, 60, 90], [20, 50, 95, 99], [30, 2, 50, 14]]
NAMES = ["man", "horse", "hat"]


def scenes(folder: Path, count: int = 6) -> Path:
    render_folder(folder, count, seed=3)
    return folder


@contextmanager
def running(
    studio_fields: dict, host: str = "127.0.0.1", token: str | None = None, public: str | None = None, port: int = 0
):
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


def call(url: str, body=None, method: str | None = None, headers: dict | None = None) -> tuple[int, object, dict]:
    """Status, JSON (or bytes), headers."""
    data = None if body is None else json.dumps(body).encode()
    given = {"content-type": "application/json"} if data is not None else {}
    request = urllib.request.Request(url, data, given | (headers or {}), method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            status, content, said = answer.status, answer.read(), answer.headers
    except urllib.error.HTTPError as error:
        status, content, said = error.code, error.read(), error.headers
    plain = json.loads(content) if said.get("content-type") == "application/json" else content
    return status, plain, {key.lower(): value for key, value in said.items()}


@contextmanager
def small_files(size: int):
    """Writes beyond `size` bytes of a file fail, as they do on a full disk."""
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


def no_space(journal, _):
    """In place of `Journal.append`."""
    raise DataError(journal.path, "cannot be written (No space left on device)")


def encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
