"""Rendered scenes for a studio, and requests to it."""

from __future__ import annotations

import base64
import json
import resource
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

from scenegpi.errors import DataError
from scenegpi.paper.rendered import render_folder
from studio_server import running

__all__ = ["BOXES", "NAMES", "call", "encoded", "no_space", "running", "scenes", "small_files"]
BOXES = [[10, 10, 60, 90], [20, 50, 95, 99], [30, 2, 50, 14]]
NAMES = ["man", "horse", "hat"]


def scenes(folder: Path, count: int = 6) -> Path:
    render_folder(folder, count, seed=3)
    return folder


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
