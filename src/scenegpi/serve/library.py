"""The images that the studio shows: those of a store, of a data set, or a folder of photos. Each has a number.

A data set is put into a store of its own, in a temporary folder, so that it can be searched. Photos have a store once
they were predicted (`serve.running`); their numbers are their places in the folder, whatever those in the store are.
"""

from __future__ import annotations

import io
import tempfile
import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any

from scenegpi.data import open_dataset
from scenegpi.data.images import SUFFIXES
from scenegpi.errors import DataError
from scenegpi.graph import SceneGraph
from scenegpi.store import Hit, Store
from scenegpi.store.folder import is_store
from scenegpi.store.sql import Among
from scenegpi.vocabulary import Vocabulary

SIZES = {"thumb": 320, "full": 1600}
KEPT_THUMBS = 400


@dataclass(frozen=True)
class Listed:
    """An image in a list."""

    image: int
    key: str
    file: str | None
    photo: bool


class Library:
    """Images by number.

    Args:
        path: a store, a data set, or a folder of photos; None for no images.
        photos: where photos are, if not where the data says.
        seconds: that a search may take.
        work: where the store of photos is, once there is one, and photos that were dropped on the page.
    """

    def __init__(
        self,
        path: Path | None = None,
        photos: Path | None = None,
        seconds: float | None = None,
        work: Path | None = None,
    ) -> None:
        self.store: Store | None = None
        self._files: list[Path] = []
        self._places: dict[str, int] = {}
        self.root: Path | None = None
        self.work = work
        self._own: tempfile.TemporaryDirectory[str] | None = None
        self._thumbs: OrderedDict[tuple[int, str], bytes] = OrderedDict()
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
        return len(self._files) if self.by_place or self.store is None else len(self.store)

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
        if self.by_place:
            return [(number, key, key) for key, number in self._places.items()]
        return [(hit.image, hit.key, hit.file) for hit in self.store.images(2**53)] if self.store is not None else []

    def about(self, numbers: dict[int, str]) -> dict[str, dict[str, Any]]:
        """Id and file of images that have some, by key; `numbers` are theirs, with their keys."""
        graphs = {} if self.by_place or self.store is None else self.store.graphs(numbers)
        known = {numbers[image]: graph for image, graph in graphs.items() if graph.image_id is not None}
        return {key: {"image_id": graph.image_id, "file": graph.file} for key, graph in known.items()}

    @property
    def vocabulary(self) -> Vocabulary | None:
        """The labels and predicates of its graphs; None where it has none."""
        return None if self.store is None or self.by_place else self.store.vocabulary

    def images(
        self, limit: int, offset: int, among: Iterable[Among] = (), uncertain: bool = False
    ) -> tuple[list[Listed], int]:
        """Some images, in order or those first of which the model is least sure; and how many there are of these."""
        some = tuple(among)
        store = self.store
        if store is not None and (uncertain or not self.by_place):
            with store.snapshot():
                found = [(self.number(hit), hit) for hit in store.images(limit, offset, some, uncertain)]
                has = [self.by_place or store.photo(hit) is not None for _, hit in found]
                total = store.count(some)
            listed = [(n, hit, photo) for (n, hit), photo in zip(found, has, strict=True) if n is not None]
            return [Listed(n, hit.key, hit.file, photo) for n, hit, photo in listed], total
        keys = [key for key in self._places if all((key in each.keys) == each.inside for each in some)]
        return [Listed(self._places[key], key, key, True) for key in keys[offset : offset + limit]], len(keys)

    def graph(self, image: int) -> SceneGraph | None:
        """What is known of an image; None for a photo of which nothing is. DataError where there is no such image."""
        if not self.by_place and self.store is not None:
            return self.store.graph(image)
        number = None if self.store is None else self.store.number(self.file_key(self._file(image)))
        return None if number is None or self.store is None else self.store.graph(number)

    def key(self, image: int) -> str:
        """What an image is called."""
        if not self.by_place and self.store is not None:
            return self.store.key(image)
        return self.file_key(self._file(image))

    def around(self, image: int) -> tuple[int, int | None, int | None]:
        """The place of an image in their order, and the numbers of the previous and the next one."""
        if not self.by_place and self.store is not None:
            return self.store.around(image)
        return image, image - 1 if image else None, image + 1 if image + 1 < len(self._files) else None

    def photo(self, image: int, graph: SceneGraph | None = None) -> Path | None:
        """The photo of an image, or None; `graph` is what is known of it, where that was asked for already."""
        if self.by_place or self.store is None:
            return self._file(image)
        return self.store.photo(self.store.graph(image) if graph is None else graph)

    def tag(self, image: int) -> str:
        """Of the file of a photo as it is now: another file has another one."""
        path = self.photo(image)
        try:
            info = None if path is None else path.stat()
        except OSError:
            info = None
        said = f"{path}\0{'' if info is None else (info.st_mtime_ns, info.st_size, info.st_ino)}"
        return sha256(said.encode("utf-8", "surrogateescape")).hexdigest()[:24]

    def jpeg(self, image: int, size: str) -> bytes | None:
        """The photo as a JPEG of one of SIZES; None where there is none. DataError where it can't be read."""
        with self._lock:
            if (image, size) in self._thumbs:
                self._thumbs.move_to_end((image, size))
                return self._thumbs[image, size]
        path = self.photo(image)
        if path is None:
            return None
        data = small_jpeg(path, SIZES[size])
        if size == "thumb":
            with self._lock:
                self._thumbs[image, size] = data
                while len(self._thumbs) > KEPT_THUMBS:
                    self._thumbs.popitem(last=False)
        return data

    def _file(self, image: int) -> Path:
        if not 0 <= image < len(self._files):
            raise DataError(self.name, f"no image with number {image}")
        return self._files[image]


def small_jpeg(path: Path, side: int) -> bytes:
    """A photo as a JPEG whose longer side is at most `side` pixels."""
    from PIL import Image

    from scenegpi.vision.photos import as_photo

    image = Image.fromarray(as_photo(path))
    image.thumbnail((side, side))
    out = io.BytesIO()
    image.save(out, "JPEG", quality=85)
    return out.getvalue()


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
