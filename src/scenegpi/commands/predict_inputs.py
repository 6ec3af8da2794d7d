"""What `scenegpi predict` works on: photos (files, folders, patterns), boxes from a file, and which belong together."""

from __future__ import annotations

import glob
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scenegpi.data import DataError, Dataset, open_dataset
from scenegpi.data.coco_names import COCO_IDS, COCO_PLACES
from scenegpi.data.images import SUFFIXES
from scenegpi.data.open import detect_format
from scenegpi.graph import SceneGraph
from scenegpi.models.bulk import Item, photo_size

PHOTOS = (*SUFFIXES, ".gif", ".tif", ".tiff", ".ppm", ".pgm")
SIMPLE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,79}")


@dataclass(frozen=True)
class Task:
    """An item with the name that its files get."""

    item: Item
    name: str


class Inputs:
    """The images of one call, in order, each time the same.

    Args:
        photos: files, in order.
        boxes: where boxes come from; None leaves them to a detector.
    """

    def __init__(self, photos: Sequence[Path], boxes: Dataset | None) -> None:
        self.photos, self.boxes = photos, boxes

    def __len__(self) -> int:
        return len(self.photos) if self.photos or self.boxes is None else len(self.boxes)

    def __iter__(self) -> Iterator[Task]:
        used: set[str] = set()
        for item in self._items():
            yield Task(item, _free_name(item, used))

    def _items(self) -> Iterator[Item]:
        if self.boxes is None:
            yield from (Item(path.as_posix(), path) for path in self.photos)
        elif self.photos:
            yield from self._together(self.boxes)
        else:
            for i, graph in enumerate(self.boxes):
                shown = graph.image_id if graph.image_id is not None else graph.file
                yield Item(str(i if shown is None else shown), self.boxes.photo_path(graph), graph)

    def _together(self, boxes: Dataset) -> Iterator[Item]:
        """Photos with the boxes of the same name: file name, else its stem as a name or an id, else the id's number."""
        places: dict[str, int] = {}
        for i, graph in enumerate(boxes):
            for name in _names(graph):
                places.setdefault(name, i)
        for path in self.photos:
            at = next((places[name] for name in _wanted(path) if name in places), None)
            found = None if at is None else boxes[at]
            scaled = found is not None and boxes.format == "yolo"
            yield Item(path.as_posix(), path, _on_photo(found, path) if scaled and found is not None else found)


def find_photos(paths: Sequence[str], out: Path) -> list[Path]:
    """Files as they are, the photos of folders (and folders in them) by name, and patterns such as 'in/*.jpg'.

    Pictures in the folder `out` were written by an earlier run: they count only where they are named.
    """
    found: dict[Path, None] = {}
    ours = out.resolve()
    for text in paths:
        path = Path(text)
        if path.is_dir():
            files = (file for file in path.rglob("*") if file.suffix.lower() in PHOTOS and file.is_file())
            inside = sorted(file for file in files if path.resolve() == ours or ours not in file.resolve().parents)
            if not inside:
                raise DataError(path, "the folder holds no photo")
            found |= dict.fromkeys(inside)
        elif path.exists():
            found[path] = None
        elif glob.has_magic(text):
            matches = [Path(match) for match in sorted(glob.glob(text, recursive=True))]
            if not matches:
                raise DataError(path, "no file matches this pattern")
            found |= dict.fromkeys(match for match in matches if match.is_file())
        else:
            raise DataError(path, "no such file or folder")
    return list(found)


def open_boxes(
    path: Path, photos: Sequence[Path], format: str | None, names: str | None, images: Path | None, sizes: Path | None
) -> Dataset:
    """Boxes of any format. `names` is a file, or "coco" for COCO's 80 names by the numbers of that format."""
    format = format or detect_format(path)
    table: str | Mapping[int, str] | None = names
    if names == "coco" and not Path(names).exists():
        table = COCO_PLACES if format == "yolo" else COCO_IDS
    folders = {photo.parent for photo in photos}
    beside = images or (folders.pop() if len(folders) == 1 else None)
    return open_dataset(path, format=format, names=table, images=beside, sizes=sizes)


def _names(graph: SceneGraph) -> Iterator[str]:
    """What the boxes of an image may be called by, the surest first."""
    if graph.file:
        yield graph.file
        yield Path(graph.file).name
        yield Path(graph.file).stem
    if graph.image_id is not None:
        yield str(graph.image_id)


def _wanted(path: Path) -> Iterator[str]:
    yield path.as_posix()
    yield path.name
    yield path.stem
    number = re.search(r"\d+$", path.stem)  # COCO_val2014_000000000042.jpg is image 42
    if number and len(number[0]) >= 6:
        yield str(int(number[0]))


def _on_photo(graph: SceneGraph, photo: Path) -> SceneGraph:
    """Boxes that were fractions, in pixels of the photo; a photo that can't be read is reported later."""
    try:
        width, height = photo_size(photo)
    except DataError:
        return graph
    scale = [width / (graph.width or width), height / (graph.height or height)] * 2
    return graph.replace(boxes=graph.boxes * scale, width=width, height=height)


def _free_name(item: Item, used: set[str]) -> str:
    """A short file name, safe whatever the image is called, and used once."""
    text = item.photo.stem if item.photo is not None else Path(item.key).stem if item.graph is None else item.key
    if item.graph is not None and item.photo is None and item.graph.file:
        text = Path(item.graph.file).stem
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", text)[:60].lstrip(".-_") or "image"
    if not SIMPLE.fullmatch(text) or name.lower() in used:
        digest = hashlib.sha256(f"{item.key} {len(used)}".encode(errors="replace")).hexdigest()[:8]
        name = f"{name}-{digest}"
    used.add(name.lower())
    return name
