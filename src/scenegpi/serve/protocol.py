"""Requests must arrive in time, or the connection ends; uvicorn itself waits for their headers forever."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol

from scenegpi.serve.settings import Bounds


class PromptProtocol(H11Protocol):
    """HTTP/1.1 whose connections end if the headers of a request take more than `seconds`."""

    seconds = Bounds.arriving
    _due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Waits until the headers are there, and again once the next request has begun."""
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
        """A client that asks for a websocket gets an ordinary answer, without a warning in the log."""


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
