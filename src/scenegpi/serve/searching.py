"""Searches: few at a time, in threads of their own so that saving never waits for them, ended if the client leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from fastapi import HTTPException, Request

from scenegpi.store.store import Stop

Found = TypeVar("Found")
THREADS = 2
LISTENING = 0.25
"""Seconds between checks that the client is still there."""


class Searches:
    """At most `most` that run or wait; the next is refused with 429."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._pool = ThreadPoolExecutor(THREADS, "search")
        self._running: set[Stop] = set()

    async def run(self, find: Callable[[Stop], Found], request: Request) -> Found:
        """The result of `find`, which is stopped if the client leaves."""
        if len(self._running) >= self.most:
            raise HTTPException(429, "too many searches wait; try again", {"Retry-After": "2"})
        stop = Stop()
        self._running.add(stop)
        future = self._pool.submit(find, stop)
        future.add_done_callback(lambda _: self._running.discard(stop))
        asked = asyncio.wrap_future(future)
        try:
            while not (await asyncio.wait({asked}, timeout=LISTENING))[0]:
                if await request.is_disconnected():
                    future.cancel()
                    stop()
                    raise HTTPException(408, "the client has left")
            return asked.result()
        except asyncio.CancelledError:
            stop()
            raise

    def close(self) -> None:
        """Ends all searches."""
        for stop in list(self._running):
            stop()
        self._pool.shutdown(cancel_futures=True)
