"""A lock on a folder: one process at a time works in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from scenegpi.errors import DataError
from scenegpi.files import LOCK, writing

__all__ = ["LOCK", "folder_lock"]


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Only one process at a time works in a folder: DataError that names the process that holds the lock.

    The system holds the lock, so it ends with its process, however that ends. On a system without locks, nothing is
    locked.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / LOCK
        while True:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_NOFOLLOW, 0o666)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.read(handle, 20).decode("ascii", "replace").strip()
                os.close(handle)
                raise DataError(folder, f"in use by process {holder or 'unknown'}") from None
            try:  # the previous holder may have removed the file since it was opened
                if path.stat().st_ino == os.fstat(handle).st_ino:
                    break
            except FileNotFoundError:
                pass
            os.close(handle)
    try:
        with suppress(OSError):  # on a full disk, the lock does not name its process
            os.ftruncate(handle, 0)
            os.write(handle, f"{os.getpid()}\n".encode())
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)
