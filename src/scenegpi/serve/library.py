"""The images that the studio shows: those of a store, of a data set, or a folder of photos. Each has a number.

A data set is put into a store in a temporary folder, so that it can be searched. Photos have a store once they are
predicted (`serve.running`); they are numbered by their order in the folder, not as in the store.
"""

from __future__ import annotations

import tempfile
import threading
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any

from scenegpi.data.images import SUFFIXES
from scenegpi.data.open import detect_format, open_dataset
from scenegpi.data.photo_files import photo_size
from scenegpi.errors import DataError
from scenegpi.graph import SceneGraph
from scenegpi.serve.schemas import ImageInfo
from scenegpi.store import Hit, Store
from scenegpi.store.folder import is_store
from scenegpi.store.runs import with_digests
from scenegpi.store.sql import Among
from scenegpi.store.store import NoImageError
from scenegpi.vision.photos import as_photo
from scenegpi.viz.canvas import jpeg
from scenegpi.vocabulary import Vocabulary

SIZES = {"thumb": 320, "full": 1600}
KEPT_THUMBS = 400


class Library:
    """Images by number.

    Args:
        path: a store, a data set, or a folder of photos; None for no images.
        photos: folder of the photos, if they are not next to the data.
        seconds: the time that a search may take.
        work: folder for the store of predicted photos, and for photos that were dropped on the page.
    """

    def __init__(
        self, path: Path | None, photos: Path | None = None, seconds: float | None = None, work: Path | None = None
    ) -> None:
        self.store: Store | None = None
        self._files: list[Path] = []
        self._places: dict[str, int] = {}
        self.root: Path | None = None
        self.work, self._seconds = work, seconds
        self._own: tempfile.TemporaryDirectory[str] | None = None
        self._thumb = lru_cache(KEPT_THUMBS)(lambda path, _: small_jpeg(path, SIZES["thumb"]))
        self._lock = threading.Lock()
        folders = [photos] if photos else []
        if path is None:
            self.kind = "nothing"
        elif is_store(path):
            self.kind, self.store = "store", Store(path, folders, seconds)
        elif path.is_dir() and (found := _photo_files(path)) and not _is_dataset(path):
            self.kind, self.root = "photos", path.resolve()
            self._add(found)
        else:
            dataset = open_dataset(path, images=photos)
            self._own = tempfile.TemporaryDirectory(prefix="scenegpi-")
            self.kind, self.store = "data", Store(Path(self._own.name) / "store", dataset.images.folders, seconds)
            self.store.add(with_digests(dataset))  # without reading the photos
        self.name = "" if path is None else path.name or path.resolve().name
        if self.dropped is not None and self.dropped.is_dir():
            self._add(_photo_files(self.dropped))
        self.reopen()

    def close(self) -> None:
        """Removes the temporary store of a data set."""
        if self._own is not None:
            self._own.cleanup()

    def __len__(self) -> int:
        return len(self._files) if self._stored is None else len(self._stored)

    @property
    def _stored(self) -> Store | None:
        """The store that gives images their numbers; None for a list of files."""
        return None if self.by_place else self.store

    @property
    def by_place(self) -> bool:
        """Whether its images are a list of files."""
        return self.kind in ("nothing", "photos")

    @property
    def dropped(self) -> Path | None:
        """The folder of photos that were dropped on the page."""
        return self.work / "dropped" if self.work is not None and self.by_place else None

    def reopen(self) -> None:
        """Opens the store of photos, once they are predicted."""
        if self.by_place and self.work is not None and is_store(self.work / "store"):
            self.store = Store(self.work / "store", filter(None, (self.root, self.work)), self._seconds)

    def add(self, path: Path) -> int:
        """Adds a photo, unless it is already there; returns its number."""
        with self._lock:
            self._add([path])
        return self._places[self.file_key(path)]

    def _add(self, files: list[Path]) -> None:
        for path in files:
            key = self.file_key(path)
            if key not in self._places:
                self._places[key] = len(self._files)
                self._files.append(path)

    def files(self, folder: str = "") -> list[Path]:
        """The photos in a folder and below, all by default."""
        start = f"{folder}/" if folder else ""
        return [path for path in self._files if self.file_key(path).startswith(start)]

    def folders(self) -> dict[str, int]:
        """Folders with photos, and the number of photos in each and below."""
        found: Counter[str] = Counter()
        for path in self._files:
            found.update(str(parent) for parent in PurePosixPath(self.file_key(path)).parents if parent.name)
        return dict(sorted(found.items()))

    def file_key(self, path: Path) -> str:
        """The key of a photo: its path below the folder."""
        if self.root is not None and path.is_relative_to(self.root):
            return path.relative_to(self.root).as_posix()
        return f"dropped/{path.name}"

    def number(self, hit: Hit) -> int | None:
        """The number of an image in the store; None if the photo is gone."""
        return self._places.get(hit.key) if self.by_place else hit.image

    def called(self) -> list[tuple[int, str, str | None]]:
        """Number, key and file of every image."""
        if self._stored is None:
            return [(number, key, key) for key, number in self._places.items()]
        return [(hit.image, hit.key, hit.file) for hit in self._stored.images(2**53)]

    def about(self, keys: Mapping[int, str]) -> dict[str, dict[str, Any]]:
        """The id and file to write for annotations of some images, by key; `keys` maps numbers to keys."""
        graphs = {} if self._stored is None else self._stored.graphs(keys)
        found: dict[str, dict[str, Any]] = {key: {"image_id": key, "file": key} for key in keys.values()}
        for image, graph in graphs.items():
            key = keys[image]
            found[key] = {"image_id": key if graph.image_id is None else graph.image_id, "file": graph.file}
        return found

    def sizes(self, images: Collection[int]) -> dict[int, tuple[int | None, int | None]]:
        """Width and height of some images by number: of their graph, or else their photo; None where neither tells."""
        graphs = {} if self._stored is None else self._stored.graphs(images)
        found: dict[int, tuple[int | None, int | None]] = {}
        for image in images:
            graph = graphs.get(image)
            found[image] = (None, None) if graph is None else (graph.width, graph.height)
            photo = None if None not in found[image] else self.photo(image, graph)
            if photo is not None:
                with suppress(DataError):
                    found[image] = photo_size(photo)
        return found

    @property
    def vocabulary(self) -> Vocabulary | None:
        """The labels and predicates of a store or data set; None for photos."""
        return None if self._stored is None else self._stored.vocabulary

    def images(
        self, limit: int, offset: int, among: Iterable[Among] = (), uncertain: bool = False
    ) -> tuple[list[ImageInfo], int]:
        """Some images, in order or the most uncertain first; and the number of all that are `among` these."""
        some, store = tuple(among), self.store if uncertain else self._stored
        if store is None:
            keys = [key for key in self._places if all((key in each.keys) == each.inside for each in some)]
            places = [(self._places[key], key) for key in keys[offset : offset + limit]]
            return [ImageInfo(image=place, key=key, file=key, photo=True) for place, key in places], len(keys)
        with store.snapshot():
            hits = [(self.number(hit), hit) for hit in store.images(limit, offset, some, uncertain)]
            chosen = [
                ImageInfo(image=n, key=hit.key, file=hit.file, photo=self.by_place or store.photo(hit) is not None)
                for n, hit in hits
                if n is not None
            ]
            return chosen, store.count(some)

    def graph(self, image: int) -> SceneGraph | None:
        """The graph of an image, None before it is predicted and once its photo has changed; NoImageError for an
        unknown number."""
        graph, changed = self.stored(image)
        return None if changed else graph

    def stored(self, image: int) -> tuple[SceneGraph | None, bool]:
        """The graph of an image, None before it is predicted; whether its photo has changed since."""
        number: int | None = image
        if self._stored is None:
            key = self.key(image)
            number = None if self.store is None else self.store.number(key)
        if self.store is None or number is None:
            return None, False
        graph = self.store.graph(number)
        return graph, bool(self.store.changed({number: self.photo(image, graph)}))

    def key(self, image: int) -> str:
        """The key of an image; NoImageError for an unknown number."""
        return self.file_key(self._file(image)) if self._stored is None else self._stored.key(image)

    def around(self, image: int) -> tuple[int, int | None, int | None]:
        """The position of an image, and the numbers of the previous and the next one."""
        if self._stored is not None:
            return self._stored.around(image)
        return image, image - 1 if image else None, image + 1 if image + 1 < len(self._files) else None

    def photo(self, image: int, graph: SceneGraph | None = None) -> Path | None:
        """The photo of an image, or None; given its `graph`, the store is not read again."""
        if self._stored is None:
            return self._file(image)
        return self._stored.photo(self._stored.graph(image) if graph is None else graph)

    def tag(self, path: Path) -> str:
        """A digest of a photo's path, time and size, which changes with the file."""
        try:
            info = path.stat()
            said = f"{path}\0{(info.st_mtime_ns, info.st_size, info.st_ino)}"
        except OSError:
            said = str(path)
        return sha256(said.encode("utf-8", "surrogateescape")).hexdigest()[:24]

    def jpeg(self, path: Path, size: str) -> bytes:
        """A photo as a JPEG of one of SIZES; DataError if it can't be read."""
        return self._thumb(path, self.tag(path)) if size == "thumb" else small_jpeg(path, SIZES[size])

    def _file(self, image: int) -> Path:
        if not 0 <= image < len(self._files):
            raise NoImageError(self.name, f"no image {image}")
        return self._files[image]


def small_jpeg(path: Path, side: int) -> bytes:
    """A photo as a JPEG whose longer side is at most `side` pixels."""
    return jpeg(as_photo(path), side)


def _photo_files(path: Path) -> list[Path]:
    """Photos in a folder and below; links that lead out of it are left out."""
    root = path.resolve()
    files = (file for file in root.rglob("*") if file.suffix.lower() in SUFFIXES and file.is_file())
    return sorted(file for file in files if root in file.resolve().parents)


def _is_dataset(path: Path) -> bool:
    try:
        detect_format(path)
    except DataError:
        return False
    return True
