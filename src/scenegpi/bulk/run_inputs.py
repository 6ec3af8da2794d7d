"""The inputs of a run: photos (files, folders, patterns), boxes from a file, and a source and a name for each image."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from scenegpi.bulk.manifest import written_by_us
from scenegpi.bulk.pairing import called, pair
from scenegpi.data import DataError, Dataset, open_dataset
from scenegpi.data.coco_names import COCO_IDS, COCO_PLACES
from scenegpi.data.images import SUFFIXES, photo_size
from scenegpi.data.open import detect_format
from scenegpi.errors import RowError
from scenegpi.files import MANIFEST, missing, reason
from scenegpi.graph import SceneGraph
from scenegpi.prediction import Item, Prediction
from scenegpi.prediction.inputs import resized

PHOTOS = (*SUFFIXES, ".gif", ".tif", ".tiff", ".ppm", ".pgm")
UNSAFE = re.compile(r'[\x00-\x1f\x7f-\x9f\ud800-\udfff/\\:*?"<>|]+')
LONGEST_NAME = 120
"""Maximum bytes of a file name, without its suffix and the number that makes it unique."""


@dataclass(frozen=True)
class Entry:
    """One image of a run: what to predict, or why not; and the result.

    Args:
        item: its photo and boxes; its key is its name in messages.
        source: identifies it in the run (see `run_folder.Row`).
        name: the name of its files, without suffix.
        problem: why it can't be predicted.
        digest: of photo, boxes and settings.
        known: an earlier answer to the same input, of which only files are missing.
        prediction: the answer.
    """

    item: Item
    source: str
    name: str
    problem: str = ""
    digest: str = ""
    known: SceneGraph | None = None
    prediction: Prediction | None = None


class Names:
    """File names, unique within a run even where case is ignored.

    Args:
        before: by source, the names that images had in an earlier run, which they keep.
        taken: names of other files.
    """

    def __init__(self, before: Mapping[str, str] | None = None, taken: Iterable[str] = ()) -> None:
        self._of = dict(before or {})
        self._used = {name.casefold() for name in (*self._of.values(), *taken)}

    def __call__(self, source: str, wanted: str) -> str:
        if source not in self._of:
            self._of[source] = _free(wanted, self._used, fold=True)
        return self._of[source]


class Inputs:
    """The images of one call, in a reproducible order: photos, boxes, or both. A finder finds missing boxes."""

    def __init__(self, photos: Sequence[Path], boxes: Dataset | None) -> None:
        self.photos, self.boxes = photos, boxes
        self.matches = pair(photos, boxes) if photos and boxes is not None else []

    def __len__(self) -> int:
        return len(self.photos) if self.photos or self.boxes is None else len(self.boxes)

    def __iter__(self) -> Iterator[Entry]:
        return self.part(0, len(self))

    @property
    def files(self) -> list[Path]:
        """The files that are read, as far as they are known before the images are."""
        return [*self.photos, *([] if self.boxes is None else [Path(self.boxes.path)])]

    def photos_of_boxes(self) -> Iterator[Path]:
        """Photos that are named only by the boxes."""
        if not self.photos and self.boxes is not None:
            yield from (photo for photo, _, _ in self._images(slice(None)) if isinstance(photo, Path))

    def part(self, start: int, stop: int, names: Names | None = None) -> Iterator[Entry]:
        """The images from one place to another; no two of them share a source or a name."""
        sources: set[str] = set()
        names = names or Names()
        boxed = self.boxes is not None and self.boxes.boxed
        for photo, graph, problem in self._images(slice(start, stop)):
            file = photo if isinstance(photo, Path) and self.photos else None
            place = start + len(sources)
            shown = file.as_posix() if file is not None else called(graph, place)
            nameless = file is None and (graph is None or graph.key is None)
            given = shown if file is None else os.path.abspath(file)
            if nameless and self.boxes is not None:  # other files have an image at this place, too
                given = f"{os.path.abspath(self.boxes.path)}, image {place}"
            source = _free(given.encode(errors="backslashreplace").decode(), sources)
            key = shown if self.photos or nameless else source
            name = names(source, _file_name(photo, graph, shown))
            if graph is None and boxed:
                problem = problem or f"{key}: no boxes were given for it"
            yield Entry(Item(photo, graph if boxed else None, key), source, name, problem)

    def _images(self, part: slice) -> Iterator[tuple[Path | bytes | None, SceneGraph | None, str]]:
        """Photo (a file, or its content), boxes, and what is wrong with them."""
        if self.boxes is None:
            yield from ((path, None, "") for path in self.photos[part])
        elif self.photos:
            for path, at in zip(self.photos[part], self.matches[part], strict=True):
                graph = None if at is None else self.boxes[at]
                if graph is not None and self.boxes.format == "yolo":
                    graph = _on_photo(graph, path)
                yield path, graph, ""
        else:
            for i in range(*part.indices(len(self.boxes))):
                try:
                    graph = self.boxes[i]
                except RowError as error:  # a table that is read while predicting
                    yield None, None, str(error)
                else:
                    yield self.boxes.photo_bytes(i) or self.boxes.photo_path(graph), graph, ""


@dataclass
class Found:
    """Photos, in order; files in folders left out because of their names; folders that may not be listed."""

    photos: list[Path] = field(default_factory=list)
    left_out: list[Path] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def find_photos(paths: Sequence[str]) -> Found:
    """Files as they are, the photos of folders (and folders in them) by name, and patterns such as 'in/*.jpg'.

    What a run wrote, by the manifest of its folder, is left out unless it is named.
    """
    found = Found()
    for text in paths:
        path = Path(text)
        if not text:  # such as a shell's variable that is not set; as a path it is the current folder
            raise DataError("predict", "the name of a photo or folder is empty")
        if path.is_dir():
            photos = sorted(_photos_below(path, found))
            if not photos and not found.problems:
                raise DataError(path, "this folder contains no photos")
            found.photos += photos
        elif path.exists():
            found.photos.append(path)
        elif glob.has_magic(text):
            matches = sorted(file for file in _matches(text) if not file.is_dir())
            if not matches:
                raise DataError(path, "no file matches this pattern")
            found.photos += matches
        else:
            raise missing(text)
    once: dict[str, Path] = {}
    for photo in found.photos:
        once.setdefault(os.path.abspath(photo), photo)
    found.photos = list(once.values())
    if not found.photos and found.problems:
        raise DataError(*found.problems[0].split(": ", 1))
    return found


def _photos_below(folder: Path, found: Found) -> Iterator[Path]:
    """Photos in a folder and in folders below it; links to folders are not followed."""

    def unlisted(error: OSError) -> None:
        found.problems.append(f"{error.filename}: this folder cannot be listed ({reason(error)})")

    for place, folders, files in os.walk(folder, onerror=unlisted):
        ours = written_by_us(Path(place)) if MANIFEST in files else set()
        folders[:] = sorted(name for name in folders if name not in ours)
        for path in (Path(place, name) for name in sorted(files) if name not in ours):
            if path.suffix.lower() in PHOTOS and path.is_file():
                yield path
            elif not path.name.startswith("."):
                found.left_out.append(path)


def _matches(pattern: str) -> Iterator[Path]:
    """Files that match; `**` does not follow links, which may lead back, and * does not match hidden files."""
    path = Path(pattern)
    shown = {part for part in path.parts if part.startswith(".")}
    parts = path.parts[1:] if path.anchor else path.parts
    if parts[-1:] == ("**",):
        parts = (*parts, "*")
    for match in Path(path.anchor).glob("/".join(parts)):
        if not any(part.startswith(".") and part not in shown for part in match.parts if part != ".."):
            yield match


def open_boxes(
    path: Path, photos: Sequence[Path], format: str | None, names: str | None, folder: Path | None, sizes: Path | None
) -> Dataset:
    """Boxes of any format; DataError if no image is usable, or if classes have no names.

    `names` is a file, or "coco" for COCO's 80 names by the numbers of that format; `folder` holds the photos.
    """
    format = format or detect_format(path)
    table: str | Mapping[int, str] | None = names
    if names == "coco" and not Path(names).exists():
        table = COCO_PLACES if format == "yolo" else COCO_IDS
    folders = {photo.parent for photo in photos}
    beside = folder or (folders.pop() if len(folders) == 1 else None)
    dataset = open_dataset(path, format=format, names=table, images=beside, sizes=sizes)
    if not len(dataset):
        first = f" ({dataset.report.first_error})" if dataset.report.first_error else ""
        raise DataError(path, f"contains no usable image{first}")
    objects = dataset.vocabulary.objects
    if objects and all(name.startswith("class ") for name in objects):
        hint = "add --names FILE, or --names coco for the 80 names of COCO"
        raise DataError(path, f"its classes have numbers but no names, which a model needs: {hint}")
    return dataset


def _on_photo(graph: SceneGraph, photo: Path) -> SceneGraph:
    """Boxes in fractions, scaled to pixels of the photo; a photo that can't be read is reported later."""
    try:
        return resized(graph, *photo_size(photo))
    except DataError:
        return graph


def _file_name(photo: Path | bytes | None, graph: SceneGraph | None, shown: str) -> str:
    """A readable and safe file name for any image name."""
    text = photo.stem if isinstance(photo, Path) else shown
    if not isinstance(photo, Path) and graph is not None and graph.file:
        text = PurePosixPath(graph.file).stem
    short = UNSAFE.sub("_", text).encode()[:LONGEST_NAME].decode(errors="ignore")
    return short.strip(" .") or "image"


def _free(text: str, used: set[str], fold: bool = False) -> str:
    """The text, made unique by a number (with `fold`, case is ignored), and from now on taken."""
    free, k = text, 1
    while (free.casefold() if fold else free) in used:
        k += 1
        free = f"{text} ({k})"
    used.add(free.casefold() if fold else free)
    return free
