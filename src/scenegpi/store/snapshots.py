"""A store at one moment: its tables, as `store.json` names them, and queries over them."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenegpi.errors import DataError
from scenegpi.files import reading
from scenegpi.store.folder import MANIFEST, Manifest, connect, in_use, is_store, open_views, run
from scenegpi.store.words import StoreWords

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True)
class _Opened:
    """The tables of a store at one moment; `seen` identifies the version of `store.json`."""

    connection: DuckDBPyConnection
    manifest: Manifest
    words: StoreWords
    seen: tuple[int, ...]


class Stop:
    """Ends the queries of a search when called from another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cursor: DuckDBPyConnection | None = None
        self._stopped = False

    def __call__(self) -> None:
        with self._lock:
            self._stopped = True
            if self._cursor is not None:
                self._cursor.interrupt()

    @contextmanager
    def watching(self, cursor: DuckDBPyConnection) -> Iterator[None]:
        """Lets `stop()` end the query inside, or prevents it if it was called before."""
        import duckdb

        with self._lock:
            if self._stopped:
                raise duckdb.InterruptException
            self._cursor = cursor
        try:
            yield
        finally:
            with self._lock:
                self._cursor = None


class Snapshots:
    """The tables of a folder, opened again when they have changed; a query may take `seconds`. Thread-safe."""

    def __init__(self, folder: str | Path, seconds: float | None = None) -> None:
        self.folder, self.seconds = Path(folder), seconds
        self._lock = threading.Lock()
        self._last: _Opened | None = None
        self._mine = threading.local()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Inside, all calls of this thread see the same images, even if other processes change the store."""
        if getattr(self._mine, "opened", None) is not None:
            yield
            return
        if not is_store(self.folder):
            Manifest.read(self.folder)
        with in_use(self.folder):
            with self._lock:
                self._mine.opened = self._open()
            try:
                yield
            finally:
                self._mine.opened = None

    @property
    def _opened(self) -> _Opened:
        """The rows of a statement on this thread's snapshot."""
        opened: _Opened = self._mine.opened
        return opened

    def _rows(self, text: str, values: Iterable[Any] = (), stop: Stop | None = None) -> list[tuple[Any, ...]]:
        with self.snapshot():
            import duckdb

            cursor = self._opened.connection.cursor()  # separate, so that a slow query blocks no other
            stop = stop or Stop()
            timer = threading.Timer(self.seconds or 0.0, stop)
            if self.seconds is not None:
                timer.start()
            try:
                with stop.watching(cursor):
                    return run(cursor, self.folder, text, values)
            except duckdb.InterruptException:
                raise DataError(self.folder, f"the query took more than {self.seconds or 0:g} s") from None
            finally:
                timer.cancel()
                cursor.close()

    def _open(self) -> _Opened:
        """The tables as they are now, opened again if `store.json` has changed."""
        with reading(self.folder / MANIFEST):
            info = (self.folder / MANIFEST).stat()
        seen = (info.st_ino, info.st_mtime_ns, info.st_size)
        last = self._last
        if last is None or seen != last.seen:
            manifest = Manifest.read(self.folder)
            if (
                last is not None and manifest.parts == last.manifest.parts
            ):  # a change has only begun, or been cleaned up after
                last = replace(last, manifest=manifest, seen=seen)
            else:
                connection = connect()
                open_views(connection, self.folder, manifest)
                last = _Opened(connection, manifest, _words(connection, self.folder), seen)
            self._last = last
        return last


def _words(connection: DuckDBPyConnection, folder: Path) -> StoreWords:
    def counts(table: str, columns: str) -> dict[Any, int]:
        rows = run(connection, folder, f"SELECT {columns}, sum(count) FROM {table} GROUP BY ALL")
        return {tuple(names) if len(names) > 1 else names[0]: int(count) for *names, count in rows}

    triplets = counts("triplets", "subject_label, predicate, object_label")
    return StoreWords(counts("labels", "label"), triplets, counts("attribute_names", "attribute"))
