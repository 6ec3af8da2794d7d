"""The images that the studio shows: those of a store, of a data set, or a folder of photos. Each has a number.

A data set is put into a store of its own, in a temporary folder, so that it can be searched. Photos have a store once
they were predicted (`serve.running`); their numbers are their places in the folder, whatever those in the store are.
"""

from __future__ import annotations

import tempfile
import threading
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any

from scenegpi.data import open_dataset
from scenegpi.data.images import SUFFIXES
from scenegpi.errors import DataError
from scenegpi.graph import SceneGraph
from scenegpi.serve.schemas import ImageInfo
from scenegpi.store import Hit, Store
from scenegpi.store.folder import is_store
from scenegpi.store.sql import Among
from scenegpi.store.store import NoImageError
from scenegpi.viz.canvas import jpeg
from scenegpi.vocabulary import Vocabulary

SIZES = {"thumb": 320, "full": 1600}
KEPT_THUMBS = 400


class Library:
    """Images by number.

    Args:
        path: a store, a data set, or a folder of photos; None for no images.
        photos: where photos are, if not where the data says.
        seconds: that a search may take.
        work: where the store of photos is, once there is one, and photos that were dropped on the page.
    """

    def __init__(
        self, path: Path | None, photos: Path | None = None, seconds: float | None = None, work: Path | None = None
    ) -> None:
        self.store: Store | None = None
        self._files: list[Path] = []
        self._places: dict[str, int] = {}
        self.root: Path | None = None
        self.work = work
        self._own: tempfile.TemporaryDirectory[str] | None = None
        self._thumb = lru_cache(KEPT_THUMBS)(lambda path, _: small_jpeg(path, SIZES["thumb"]))
        self._lock = threading.Lock()
        folders = [photos] if photos else []
        self._seconds = seconds
        if path is None:
            self.kind = "nothing"
        elif is_store(path):
            self.kind, self.store = "store", Store(path, folders, seconds)
        elif path.is_dir() and (found := _photo_files(path)) and not _is_dataset(path):
            self.kind, self.root = "photos", path.resolve()
            self._list(found)
        else:
            dataset = open_dataset(path, images=photos)
            self._own = tempfile.TemporaryDirectory(prefix="scenegpi-")
            self.kind, self.store = "data", Store(Path(self._own.name) / "store", folders, seconds)
            self.store.add(dataset, dataset.images.folders)
        self.name = "" if path is None else path.name or path.resolve().name
        if self.dropped is not None and self.dropped.is_dir():
            self._list(_photo_files(self.dropped))
        self.reopen()

    def close(self) -> None:
        """Removes what was made for it."""
        if self._own is not None:
            self._own.cleanup()

    def __len__(self) -> int:
        return len(self._files) if self._stored is None else len(self._stored)

    @property
    def _stored(self) -> Store | None:
        """The store, where images have their numbers from it."""
        return None if self.by_place else self.store

    @property
    def by_place(self) -> bool:
        """Whether its images are files in a list."""
        return self.kind in ("nothing", "photos")

    @property
    def dropped(self) -> Path | None:
        """The folder of photos that were dropped on the page."""
        return self.work / "dropped" if self.work is not None and self.by_place else None

    def reopen(self) -> None:
        """Opens the store of photos, if they have one by now."""
        if self.by_place and self.work is not None and is_store(self.work / "store"):
            self.store = Store(self.work / "store", (), self._seconds)

    def add(self, path: Path) -> int:
        """A photo that is there now; its number."""
        with self._lock:
            self._list([path])
        return self._places[self.file_key(path)]

    def _list(self, files: list[Path]) -> None:
        for path in files:
            key = self.file_key(path)
            if key not in self._places:
                self._places[key] = len(self._files)
                self._files.append(path)

    def files(self, folder: str = "") -> list[Path]:
        """The photos in a folder and below, by its name here; all for \"\"."""
        start = f"{folder}/" if folder else ""
        return [path for path in self._files if self.file_key(path).startswith(start)]

    def folders(self) -> dict[str, int]:
        """Folders with photos in or below them, and how many."""
        found: Counter[str] = Counter()
        for path in self._files:
            found.update(str(parent) for parent in PurePosixPath(self.file_key(path)).parents if parent.name)
        return dict(sorted(found.items()))

    def file_key(self, path: Path) -> str:
        """What a photo is called: its path below the folder."""
        if self.root is not None and path.is_relative_to(self.root):
            return path.relative_to(self.root).as_posix()
        return f"dropped/{path.name}"

    def number(self, hit: Hit) -> int | None:
        """Of an image that the store has found; None for a photo that is gone."""
        return self._places.get(hit.key) if self.by_place else hit.image

    def called(self) -> list[tuple[int, str, str | None]]:
        """Number, key and file of every image."""
        if self._stored is None:
            return [(number, key, key) for key, number in self._places.items()]
        return [(hit.image, hit.key, hit.file) for hit in self._stored.images(2**53)]

    def about(self, numbers: dict[int, str]) -> dict[str, dict[str, Any]]:
        """Id and file of images that have some, by key; `numbers` are theirs, with their keys."""
        graphs = {} if self._stored is None else self._stored.graphs(numbers)
        known = {numbers[image]: graph for image, graph in graphs.items() if graph.image_id is not None}
        return {key: {"image_id": graph.image_id, "file": graph.file} for key, graph in known.items()}

    @property
    def vocabulary(self) -> Vocabulary | None:
        """The labels and predicates of its graphs; None where it has none."""
        return None if self._stored is None else self._stored.vocabulary

    def images(
        self, limit: int, offset: int, among: Iterable[Among] = (), uncertain: bool = False
    ) -> tuple[list[ImageInfo], int]:
        """Some images, in order or those first of which the model is least sure; and how many there are of these."""
        some, store = tuple(among), self.store if uncertain else self._stored
        chosen: list[tuple[int, str, str | None, bool]]
        if store is None:
            keys = [key for key in self._places if all((key in each.keys) == each.inside for each in some)]
            chosen = [(self._places[key], key, key, True) for key in keys[offset : offset + limit]]
            total = len(keys)
        else:
            with store.snapshot():
                found = store.images(limit, offset, some, uncertain)
                chosen = [
                    (number, hit.key, hit.file, self.by_place or store.photo(hit) is not None)
                    for hit in found
                    if (number := self.number(hit)) is not None
                ]
                total = store.count(some)
        return [ImageInfo(image=n, key=key, file=file, photo=photo) for n, key, file, photo in chosen], total

    def graph(self, image: int) -> SceneGraph | None:
        """What is known of an image; None for a photo of which nothing is. NoImageError where there is no such one."""
        if self._stored is not None:
            return self._stored.graph(image)
        key = self.key(image)
        number = None if self.store is None else self.store.number(key)
        return None if self.store is None or number is None else self.store.graph(number)

    def key(self, image: int) -> str:
        """What an image is called; NoImageError where there is no such one."""
        return self.file_key(self._file(image)) if self._stored is None else self._stored.key(image)

    def around(self, image: int) -> tuple[int, int | None, int | None]:
        """The place of an image in their order, and the numbers of the previous and the next one."""
        if self._stored is not None:
            return self._stored.around(image)
        return image, image - 1 if image else None, image + 1 if image + 1 < len(self._files) else None

    def photo(self, image: int, graph: SceneGraph | None = None) -> Path | None:
        """The photo of an image, or None; `graph` is what is known of it, where that was asked for already."""
        if self._stored is None:
            return self._file(image)
        return self._stored.photo(self._stored.graph(image) if graph is None else graph)

    def tag(self, path: Path | None) -> str:
        """Of the file of a photo as it is now: another file has another one."""
        try:
            info = None if path is None else path.stat()
        except OSError:
            info = None
        said = f"{path}\0{'' if info is None else (info.st_mtime_ns, info.st_size, info.st_ino)}"
        return sha256(said.encode("utf-8", "surrogateescape")).hexdigest()[:24]

    def jpeg(self, path: Path, size: str) -> bytes:
        """A photo as a JPEG of one of SIZES. DataError where it can't be read."""
        return self._thumb(path, self.tag(path)) if size == "thumb" else small_jpeg(path, SIZES[size])

    def _file(self, image: int) -> Path:
        if not 0 <= image < len(self._files):
            raise NoImageError(self.name, f"no image {image}")
        return self._files[image]


def small_jpeg(path: Path, side: int) -> bytes:
    """A photo as a JPEG whose longer side is at most `side` pixels."""
    from scenegpi.vision.photos import as_photo

    return jpeg(as_photo(path), side)


def _photo_files(path: Path) -> list[Path]:
    """Photos in a folder and below, none of which a link leads out of it."""
    root = path.resolve()
    files = (file for file in root.rglob("*") if file.suffix.lower() in SUFFIXES and file.is_file())
    return sorted(file for file in files if root in file.resolve().parents)


def _is_dataset(path: Path) -> bool:
    from scenegpi.data.open import detect_format

    try:
        detect_format(path)
    except DataError:
        return False
    return True
