"""Tags of a store's images: words that people give them, in a journal next to the tables.

Tags belong to keys, so that an image keeps them when it is indexed again.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from scenegpi.bulk.journal import Journal, read_rows
from scenegpi.locks import folder_lock

TAGS = "tags.jsonl"


class Tags:
    """The tags in the folder of a store."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / TAGS
        self._seen: tuple[int, int, int] | None = None
        self._all: dict[str, tuple[str, ...]] = {}

    def all(self) -> dict[str, tuple[str, ...]]:
        """Key -> tags; read again if the file has changed."""
        if not self.path.is_file():
            return {}
        info = self.path.stat()
        seen = info.st_ino, info.st_mtime_ns, info.st_size
        if seen != self._seen:
            rows = (row for _, row in read_rows(self.path))
            newest = {str(row.get("key")): tuple(map(str, row.get("tags") or ())) for row in rows}
            self._all, self._seen = {key: tags for key, tags in newest.items() if tags}, seen
        return self._all

    def set(self, key: str, tags: Iterable[str]) -> tuple[str, ...]:
        """Replaces the tags of an image, on the disk when this returns; DataError if another process has the lock."""
        kept = tuple(sorted({tag.strip() for tag in tags} - {""}))
        with folder_lock(self.folder), Journal(self.path) as journal:
            journal.append([{"key": key, "tags": kept}])
        return kept
