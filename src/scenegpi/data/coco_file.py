"""The three long lists of a COCO file, kept as text and grouped by image, and its other keys as they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scenegpi.checks import is_identifier
from scenegpi.data.json_stream import JsonStream, RowStore
from scenegpi.data.limits import check_images
from scenegpi.errors import DataError, Report

LISTS = ("images", "annotations", "rel_annotations")
KEPT = ("categories", "rel_categories", "info")
Row = tuple[int, dict[str, Any]]  # its number in the file, and the row


@dataclass
class CocoFile:
    """`images` in the order of the file, `annotations` and `rel_annotations` by image, in `data` all that is short."""

    path: Path
    images: RowStore = field(default_factory=RowStore)
    annotations: RowStore = field(default_factory=RowStore)
    rel_annotations: RowStore = field(default_factory=RowStore)
    data: dict[str, Any] = field(default_factory=dict)

    def rows(self, name: str, image_id: int | str) -> list[Row]:
        """The annotations, or the relations, of an image; each can be taken once."""
        store: RowStore = getattr(self, name)
        return store.take(image_id, "image_id")

    def drop(self, image_id: int | str) -> None:
        """All rows of an image count as taken."""
        self.annotations.drop(image_id)
        self.rel_annotations.drop(image_id)

    def orphans(self, name: str) -> Iterator[int | str]:
        """Images that have rows which nobody took."""
        store: RowStore = getattr(self, name)
        return store.left("image_id")


def read_coco_file(path: Path, report: Report) -> CocoFile:
    """The whole file; a row that names no image is reported and left out."""
    found = CocoFile(path)
    with JsonStream(path) as stream:
        if stream.peek() != "{":
            raise DataError(path, "expected a JSON object")
        for key in stream.entries():
            if key in LISTS:
                setattr(found, key, _store(stream, key, path, report))
            elif key in KEPT:
                found.data[key] = stream.value()
            else:
                stream.skip()
            found.data.setdefault(key, None)
        stream.end()
    return found


def _store(stream: JsonStream, key: str, path: Path, report: Report) -> RowStore:
    if stream.peek() != "[":
        raise DataError(path, f"{key}: expected a list")
    store = RowStore()
    for number, (text, row) in enumerate(stream.rows()):
        if key == "images":
            check_images(path, number, stream.size)
            store.add(0, number, text)
            continue
        image_id = row.get("image_id") if isinstance(row, dict) else None
        if is_identifier(image_id):
            store.add(image_id, number, text)
        else:
            report.error(None, f"{key}[{number}].image_id", "expected a number or a string")
    return store
