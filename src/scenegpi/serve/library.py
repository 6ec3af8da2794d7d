"""The images that the studio shows: those of a store, of a data set, or a folder of photos. Each has a number.

A data set is put into a store of its own, in a temporary folder, so that it can be searched.
"""

from __future__ import annotations

import io
import tempfile
import threading
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from scenegpi.data import open_dataset
from scenegpi.data.images import SUFFIXES
from scenegpi.errors import DataError
from scenegpi.graph import SceneGraph
from scenegpi.store import Store
from scenegpi.store.folder import is_store
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
    """

    def __init__(self, path: Path | None = None, photos: Path | None = None, seconds: float | None = None) -> None:
        self.store: Store | None = None
        self._files: list[Path] = []
        self._root: Path | None = None
        self._own: tempfile.TemporaryDirectory[str] | None = None
        self._thumbs: OrderedDict[tuple[int, str], bytes] = OrderedDict()
        self._lock = threading.Lock()
        folders = [photos] if photos else []
        if path is None:
            self.kind = "nothing"
        elif is_store(path):
            self.kind, self.store = "store", Store(path, folders, seconds)
        elif path.is_dir() and (found := _photo_files(path)) and not _is_dataset(path):
            self.kind, self._root, self._files = "photos", path.resolve(), found
        else:
            dataset = open_dataset(path, images=photos)
            self._own = tempfile.TemporaryDirectory(prefix="scenegpi-")
            self.kind, self.store = "data", Store(Path(self._own.name) / "store", folders, seconds)
            self.store.add(dataset, dataset.images.folders)
        self.name = "" if path is None else path.name or path.resolve().name

    def close(self) -> None:
        """Removes what was made for it."""
        if self._own is not None:
            self._own.cleanup()

    def __len__(self) -> int:
        return len(self._files) if self.store is None else len(self.store)

    @property
    def vocabulary(self) -> Vocabulary | None:
        """The labels and predicates of its graphs; None where it has none."""
        if self.store is None:
            return None
        return self.store.vocabulary

    def images(self, limit: int, offset: int) -> list[Listed]:
        """Some images, in order."""
        if self.store is not None:
            with self.store.snapshot():
                hits = self.store.images(limit, offset)
                return [Listed(hit.image, hit.key, hit.file, self.store.photo(hit) is not None) for hit in hits]
        some = self._files[offset : offset + limit]
        return [Listed(offset + k, self._name(path), self._name(path), True) for k, path in enumerate(some)]

    def graph(self, image: int) -> SceneGraph | None:
        """What is known of an image; None for a photo of which nothing is. DataError where there is no such image."""
        if self.store is not None:
            return self.store.graph(image)
        self._file(image)
        return None

    def key(self, image: int) -> str:
        """What an image is called."""
        if self.store is not None:
            return self.store.key(image)
        return self._name(self._file(image))

    def around(self, image: int) -> tuple[int, int | None, int | None]:
        """The place of an image in their order, and the numbers of the previous and the next one."""
        if self.store is not None:
            return self.store.around(image)
        return image, image - 1 if image else None, image + 1 if image + 1 < len(self._files) else None

    def photo(self, image: int) -> Path | None:
        """The photo of an image, or None."""
        return self._file(image) if self.store is None else self.store.photo(self.store.graph(image))

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

    def _name(self, path: Path) -> str:
        return path.relative_to(self._root).as_posix() if self._root else path.name


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
