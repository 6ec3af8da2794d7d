"""A change of a store: graphs are added as a part, replacing images with the same key, whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from typing import Any

from scenegpi.bulk.digests import photo_digest, photo_part
from scenegpi.data.images import ImageFolders
from scenegpi.errors import DataError
from scenegpi.files import PART, reason, tidy, writing
from scenegpi.graph import SceneGraph
from scenegpi.locks import folder_lock
from scenegpi.store.folder import (
    MANIFEST,
    MOST,
    TABLES,
    Manifest,
    connect,
    in_use,
    is_store,
    open_views,
    parquet,
    part_path,
    run,
)

ROWS = 61_440
"""Rows per group, which a query reads or skips as a whole."""
ORDER = {"images": "image", "objects": "image, object", "relations": "predicate, subject_label, image, subject, object"}
ORDER |= {"attributes": "image, object", "photos": "image"}
"""The order of a table's rows. Relations are sorted so that a query skips most groups by their first and last row."""


Indexed = SceneGraph | tuple[SceneGraph, str | None]
"""A graph; or a graph and the digest of the photo that it was predicted from, None if it is unknown."""


def add_part(folder: Path, graphs: Iterable[Indexed], photos: Iterable[Path] = ()) -> tuple[int, int]:
    """Adds graphs as a part, replacing images with the same key; returns the numbers of images added and replaced."""
    change = _Change(folder)
    parquet(folder / MANIFEST)  # refuses a name that DuckDB cannot open, before anything is written
    with writing(folder), folder_lock(folder):
        tidy(folder, below=False)
        is_new = not is_store(folder)
        before = Manifest() if is_new else Manifest.read(folder)
        change.check(before)
        numbers = _free_numbers(folder, before)
        begun = replace(before, unused=(*before.unused, *numbers), next_part=numbers[-1] + 1)
        begun.write(folder)
        try:
            folders = tuple(dict.fromkeys((*before.photos, *(str(path.resolve()) for path in photos))))
            after, added, replaced = change.write(begun, numbers, _with_digests(graphs, ImageFolders(folders)))
            after = replace(after, photos=folders)
            after.write(folder)
        except BaseException:
            _remove_parts(folder, numbers)
            (folder / MANIFEST).unlink() if is_new else before.write(folder)
            raise
        with in_use(folder, alone=True) as alone:
            if alone:
                _remove_parts(folder, after.unused)
                replace(after, unused=()).write(folder)
    return added, replaced


def _with_digests(graphs: Iterable[Indexed], folders: ImageFolders) -> Iterator[tuple[SceneGraph, str | None]]:
    """Each graph with the digest of its photo; of one that comes alone, the digest of the photo as it is now."""
    for each in graphs:
        yield each if isinstance(each, tuple) else (each, photo_part(photo_digest(folders.photo(each))))


def _part_files(folder: Path, part: int) -> list[Path]:
    """Every file that a part may have: its tables, and the relations that are being sorted."""
    return [*(part_path(folder, table, part) for table in TABLES), _sorting_path(folder, part)]


def _sorting_path(folder: Path, part: int) -> Path:
    """The file of a part's relations until they are sorted."""
    return folder / f".relations-{part:06}.parquet{PART}"


def _remove_parts(folder: Path, parts: Iterable[int]) -> None:
    for path in (file for part in parts for file in _part_files(folder, part)):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise DataError(path, f"cannot be removed ({reason(error)})") from None


def _free_numbers(folder: Path, manifest: Manifest) -> list[int]:
    """Unused part numbers: for the new part, and for each part that may be rewritten."""
    free = (
        number
        for number in count(manifest.next_part)
        if not any(path.is_symlink() or path.exists() for path in _part_files(folder, number))
    )
    return list(islice(free, len(manifest.parts) + 1))


class _Change:
    """SQL statements on one store."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.connection = folder, connect()

    def check(self, manifest: Manifest) -> None:
        """DataError if the parts do not match the manifest."""
        open_views(self.connection, self.folder, manifest)
        last = int(self._run("SELECT coalesce(max(image), -1) FROM images")[0][0])
        if not last < manifest.next_image < MOST - 2**32:
            raise DataError(self.folder / MANIFEST, f"next_image: {manifest.next_image}, but the last image is {last}")

    def write(
        self, begun: Manifest, numbers: list[int], rows: Iterable[tuple[SceneGraph, str | None]]
    ) -> tuple[Manifest, int, int]:
        """Writes the new part, rewrites those that lose images; new manifest, numbers of images added and replaced."""
        from scenegpi.store.tables import write_part

        part, *again = numbers
        paths = {table: part_path(self.folder, table, part) for table in TABLES}
        paths["relations"] = _sorting_path(self.folder, part)
        next_image, vocabularies = write_part(paths, rows, begun.next_image)
        if next_image == begun.next_image:
            raise DataError(self.folder, "no images to add")
        new = parquet(paths["images"])
        for (key,) in self._run(f"SELECT key FROM {new} GROUP BY key HAVING count(*) > 1 ORDER BY key LIMIT 1"):
            raise DataError(self.folder, f"image {json.dumps(key)} is duplicated among the new images")
        self._copy("relations", parquet(paths["relations"]), part)
        paths["relations"].unlink()
        self._summarize(part)
        kept, replaced = [], 0
        for old, number in zip(begun.parts, again, strict=True):
            images = parquet(part_path(self.folder, "images", old))
            counts = f"SELECT count(*), count(*) FILTER (key IN (SELECT key FROM {new})) FROM {images}"
            ((every, gone),) = self._run(counts)
            replaced += gone
            if not gone:
                kept.append(old)
            elif gone < every:
                self._without(old, number, new)
                kept.append(number)
        parts = (*kept, part)
        after = replace(
            begun,
            parts=parts,
            unused=tuple(number for number in (*begun.parts, *begun.unused) if number not in parts),
            next_image=next_image,
            vocabularies=begun.vocabularies | {key: each.to_dict() for key, each in vocabularies.items()},
        )
        return after, next_image - begun.next_image, replaced

    def _run(self, text: str) -> list[tuple[Any, ...]]:
        return run(self.connection, self.folder, text)

    def _copy(self, table: str, source: str, part: int) -> None:
        target = str(part_path(self.folder, table, part)).replace("'", "''")
        order = f" ORDER BY {ORDER[table]}" if table in ORDER else ""
        options = f"FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {ROWS}"
        self._run(f"COPY (SELECT * FROM {source}{order}) TO '{target}' ({options})")

    def _summarize(self, part: int) -> None:
        from scenegpi.store.tables import SUMMARIES

        for name, (table, columns) in SUMMARIES.items():
            source = part_path(self.folder, table, part)
            if source.exists():  # parts of earlier versions lack some tables
                rows = f"SELECT {columns}, count(*) AS count FROM {parquet(source)} GROUP BY ALL"
                self._copy(name, f"({rows})", part)

    def _without(self, old: int, new: int, added: str) -> None:
        """Writes part `old` again as `new`, without the images whose keys are in `added`."""
        images = parquet(part_path(self.folder, "images", old))
        kept = f"SELECT image FROM {images} WHERE key NOT IN (SELECT key FROM {added})"
        for table in ORDER:
            source = part_path(self.folder, table, old)
            if source.exists():
                self._copy(table, f"{parquet(source)} WHERE image IN ({kept})", new)
        self._summarize(new)
