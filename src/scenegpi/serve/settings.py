"""Bounds of the server, and who may talk to it."""

from __future__ import annotations

import ipaddress
import secrets
import socket
from dataclasses import dataclass, field

LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Bounds:
    """What one request may ask for, and how many may wait.

    `body` bytes of a request; `boxes` of an image; `pixels` of a photo; `queue` predictions that wait, beyond which
    the answer is 429; `seconds` that one may take; `batch` predictions that are made at a time.
    """

    body: int = 24 * 2**20
    boxes: int = 100
    pixels: int = 40_000_000
    queue: int = 128
    seconds: float = 60.0
    batch: int = 32


@dataclass(frozen=True)
class Access:
    """Where the server listens, and the token that requests must carry; None on loopback.

    Any other address needs a token: one is made where none is given.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = None
    names: frozenset[str] = field(default_factory=frozenset)

    @classmethod
    def of(cls, host: str, port: int, token: str | None = None) -> Access:
        """With a token where the address needs one, and the names by which this machine may be called."""
        if host in LOOPBACK:
            return cls(host, port, token, frozenset(LOOPBACK))
        names = {host, socket.gethostname().lower(), *LOOPBACK}
        return cls(host, port, token or secrets.token_urlsafe(24), frozenset(names))

    def knows(self, host: str) -> bool:
        """Whether a Host header names this server; a name of somebody else's that leads here (DNS rebinding) does not.

        Beyond loopback an address in numbers will do, too: no name was resolved then.
        """
        name, port = split_host(host)
        if port is not None and port != self.port:
            return False
        return name in self.names or (self.host not in LOOPBACK and _is_address(name))

    @property
    def url(self) -> str:
        """What to open in a browser."""
        host = f"[{self.host}]" if ":" in self.host else "127.0.0.1" if self.host == "0.0.0.0" else self.host
        return f"http://{host}:{self.port}/" + (f"?token={self.token}" if self.token else "")


def split_host(value: str) -> tuple[str, int | None]:
    """Name and port of a Host header or of an origin's authority; a port that is no number is -1."""
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
