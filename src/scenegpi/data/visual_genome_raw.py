"""Visual Genome as it is published: scene_graphs.json, or objects.json, relationships.json and attributes.json.

    [{"image_id", "objects": [{"object_id", "x", "y", "w", "h", "names": [...], "attributes": [...]}],
      "relationships": [{"predicate", "subject_id", "object_id"}]}]

relationships.json has whole objects as `subject` and `object`; attributes.json lists objects with `attributes`. The
files are read side by side, image by image, and never held whole. Sizes come from image_data.json.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from scenegpi.data.graphs import Graphs
from scenegpi.data.named import Image, about, box, end, entries, key_of, list_rows, named_graphs, word, words
from scenegpi.errors import DataError, GraphError, Report

FILES = ("scene_graphs.json", "objects.json", "relationships.json", "attributes.json")


def read_visual_genome_raw(path: Path, report: Report) -> Graphs:
    """A folder, or one of its files."""
    folder = path if path.is_dir() else path.parent
    files = [folder / name for name in FILES if (folder / name).is_file()] if path.is_dir() else [path]
    if files and files[0].name == FILES[0]:  # it contains the objects and relationships of the other files
        files = [file for file in files if file.name in (FILES[0], FILES[3])]
    if not files:
        raise DataError(path, f"expected one of {', '.join(FILES)}")
    sizes = _sizes(folder / "image_data.json")
    return named_graphs(path, report, partial(_images, files), partial(_fields, sizes=sizes), name="visual-genome-raw")


def _sizes(path: Path) -> dict[int, dict[str, Any]]:
    if not path.is_file():
        return {}
    rows = (row for row in list_rows(path) if isinstance(row, dict))
    found = ((_key(row), {side: row.get(side) for side in ("width", "height")}) for row in rows)
    return {key: size for key, size in found if key is not None}


def _images(files: list[Path]) -> Iterator[Image]:
    """Images of all files at once, those with the same id together. All files list them in the same order."""
    streams = [list_rows(file) for file in files]
    heads: list[Any] = [next(stream, None) for stream in streams]
    while any(head is not None for head in heads):
        keys = [_key(head) for head in heads]
        numbers = [key for key in keys if isinstance(key, int)]
        key = min(numbers) if numbers else None  # where one file leaves out an image, the others have the smaller id
        rows = []
        for i, head in enumerate(heads):
            if head is not None and keys[i] == key:
                rows.append(head)
                heads[i] = next(streams[i], None)
        yield Image(key, rows)


def _key(row: Any) -> int | None:
    key = key_of(row, "image_id" if isinstance(row, dict) and "image_id" in row else "id")
    return key if isinstance(key, int) else None


def _fields(image: Image, sizes: dict[int, dict[str, Any]]) -> dict[str, Any]:
    if image.key is None:
        raise GraphError("image_id: expected a whole number")
    found = _Objects()
    relations = []
    for row in image.row:
        for i, each in enumerate(entries(row.get("objects", []), "objects")):
            found.add(each, f"objects[{i}]")
        for i, each in enumerate(entries(row.get("attributes", []), "attributes")):
            found.add(each.get("attribute", each), f"attributes[{i}]")
    for row in image.row:
        for i, each in enumerate(entries(row.get("relationships", []), "relationships")):
            field = f"relationships[{i}]"
            ends = [
                found.add(each[side], f"{field}.{side}")
                if isinstance(each.get(side), dict)
                else end(found.place, each.get(f"{side}_id"), f"{field}.{side}_id")
                for side in ("subject", "object")
            ]
            relations.append((*ends, word(each.get("predicate"), f"{field}.predicate")))
    return {
        "boxes": found.boxes,
        "labels": found.labels,
        "attributes": [list(dict.fromkeys(names)) for names in found.attributes],
        "relations": relations,
        **about(image.key, f"{image.key}.jpg", sizes.get(int(image.key), {})),
    }


class _Objects:
    """Objects of an image by their id; the same id may come from several files."""

    def __init__(self) -> None:
        self.place: dict[Any, int] = {}
        self.boxes: list[list[float]] = []
        self.labels: list[str] = []
        self.attributes: list[list[str]] = []

    def add(self, row: Any, field: str) -> int:
        """The object's number; attributes of a known object are added to it."""
        key = row.get("object_id", row.get("id")) if isinstance(row, dict) else None
        if isinstance(key, bool) or not isinstance(key, int | str):
            raise GraphError(f"{field}.object_id: expected a number, found {key!r:.60}")
        at = self.place.get(key)
        if at is None:
            names = row.get("names") or [row.get("name")]
            self.boxes.append(box(row, field))
            self.labels.append(word(names[0] if isinstance(names, list) else names, f"{field}.names"))
            self.attributes.append([])
            at = self.place[key] = len(self.labels) - 1
            for merged in row.get("merged_object_ids") or ():
                if isinstance(merged, int):
                    self.place.setdefault(merged, at)
        self.attributes[at] += words(row.get("attributes"), f"{field}.attributes")
        return at
