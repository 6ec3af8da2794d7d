"""Limits of the server, and access control."""

from __future__ import annotations

import ipaddress
import re
import secrets
import socket
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from scenegpi.data.photo_files import photo_size
from scenegpi.errors import DataError

TOKEN = re.compile(r"[A-Za-z0-9._~-]{1,200}")
LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Bounds:
    """Limits on requests, and on the number that may wait.

    `body` bytes per request; `boxes` per image that is predicted, `annotated` boxes per image that is annotated;
    `pixels` per photo; `queue` waiting predictions (the next gets 429), each answered within `seconds`; `batch`
    predictions at a time; `searches` running or waiting, each for at most `search_seconds`; `arriving` seconds for a
    request to arrive.
    """

    body: int = 24 * 2**20
    boxes: int = 100
    annotated: int = 2000
    pixels: int = 40_000_000
    queue: int = 128
    seconds: float = 60.0
    batch: int = 32
    searches: int = 8
    search_seconds: float = 15.0
    arriving: float = 20.0

    def check_photo(self, photo: Path) -> None:
        """DataError if a photo can't be read or has too many pixels."""
        width, height = photo_size(photo)
        if width * height > self.pixels:
            raise DataError(photo.name, f"{width:,} x {height:,} pixels, at most {self.pixels:,}")


@dataclass(frozen=True)
class Access:
    """Where the server listens, and the token that requests must carry; on loopback it needs none.

    `names` are the Host names of this machine, `public` the address of a proxy in front ("https://studio.example").
    """

    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = None
    names: frozenset[str] = field(default_factory=frozenset)
    public: str | None = None

    @classmethod
    def of(cls, host: str, port: int, token: str | None = None, public: str | None = None) -> Access:
        """Generates a token if none is given and the address is not loopback, or is `public`."""
        if token is not None and not TOKEN.fullmatch(token):
            raise DataError("--token", "expected at most 200 letters, digits and . _ ~ - (the token is part of a link)")
        if public is not None:
            parts = urlsplit(public)
            if parts.scheme not in ("http", "https") or not parts.netloc or parts.path.strip("/") or parts.query:
                raise DataError("--public", f"{public!r:.80}: expected an address such as https://studio.example")
            public = f"{parts.scheme}://{parts.netloc.lower()}"
        if host in LOOPBACK:
            token = token or (secrets.token_urlsafe(24) if public else None)
            return cls(host, port, token, frozenset(LOOPBACK), public)
        own = socket.gethostname().lower()
        names = {host.lower(), own, f"{own}.local", socket.getfqdn().lower(), *LOOPBACK}
        return cls(host, port, token or secrets.token_urlsafe(24), frozenset(names), public)

    def knows(self, host: str) -> bool:
        """Whether a Host header names this server; another name that resolves to it (DNS rebinding) does not.

        Beyond loopback, any IP address is accepted: no name was resolved.
        """
        if self.public is not None and split_host(host) == split_host(urlsplit(self.public).netloc):
            return True
        name, port = split_host(host)
        if port is not None and port != self.port:
            return False
        return name in self.names or (self.host not in LOOPBACK and _is_address(name))

    def owns(self, origin: str, host: str) -> bool:
        """Whether a page of this origin is this server's own."""
        if self.public is not None and origin.lower() == self.public:
            return True
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        return parts.scheme == "http" and split_host(parts.netloc) == split_host(host)

    @property
    def url(self) -> str:
        """The address to open in a browser."""
        host = f"[{self.host}]" if ":" in self.host else "127.0.0.1" if self.host == "0.0.0.0" else self.host
        base = self.public or f"http://{host}:{self.port}"
        return f"{base}/" + (f"?token={self.token}" if self.token else "")


def split_host(value: str) -> tuple[str, int | None]:
    """Name and port of a Host header or of an origin's authority; an invalid port is -1."""
    name, mark, port = value.rpartition(":")
    if not mark or value.endswith("]"):
        name, port = value, ""
    return name.strip("[]").lower(), (int(port) if port.isascii() and port.isdigit() else -1) if port else None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
