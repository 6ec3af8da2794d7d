"""Where the photo of an image is, and how large it is."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from scenegpi.data.photo_files import photo_size
from scenegpi.errors import DataError, Report
from scenegpi.files import MANIFEST, MANIFEST_BEGINS, read_bytes, read_object
from scenegpi.graph import SceneGraph

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".avif", ".heic", ".heif")
_WRITTEN = (*SUFFIXES, *map(str.upper, SUFFIXES))  # cameras write .JPG
NOMINAL = 1024
"""Width and height of an image of unknown size."""


class ImageFolders:
    """Finds photos by name in one or more folders; another suffix is accepted, but no picture that `predict` drew."""

    def __init__(self, folders: Iterable[Path | str] = ()) -> None:
        self.folders = tuple(Path(folder) for folder in folders)

    @classmethod
    def beside(cls, root: Path, given: Path | str | None = None) -> ImageFolders:
        """The folder that the user gives, or the usual ones in a data set's folder."""
        if given is not None:
            inner = (Path(given) / name for name in ("VG_100K", "VG_100K_2"))
            return cls([given, *filter(os.path.isdir, inner)])
        names = ("images", "VG_100K", "VG_100K_2", "train2017", "val2017", ".")
        return cls(filter(os.path.isdir, (root / name for name in names)))

    def find(self, name: str | None) -> Path | None:
        """The photo called `name`, or None. A name that points outside the folders finds nothing."""
        if not name or not self.folders or "\0" in name or Path(name).is_absolute() or ".." in Path(name).parts:
            return None
        for folder in self.folders:
            exact = folder / name
            appended = (folder / f"{name}{suffix}" for suffix in _WRITTEN)
            known = exact.suffix.lower() in SUFFIXES
            others = (exact.with_suffix(suffix) for suffix in _WRITTEN) if known else ()
            for path in (exact, *appended, *others):
                if os.path.isfile(path) and not _is_drawing(path):  # unlike Path.is_file it never raises
                    return path
        return None

    def photo(self, graph: SceneGraph) -> Path | None:
        """The photo of a graph, by its file or else by its id; or None."""
        return self.find(graph.file) or self.find(None if graph.image_id is None else str(graph.image_id))

    def find_moved(self, path: Path) -> Path | None:
        """The photo that was at an absolute path, by the longest end of it that is here; or None."""
        if os.path.isfile(path) and any(path.is_relative_to(os.path.abspath(folder)) for folder in self.folders):
            return path
        return next(filter(None, (self.find("/".join(path.parts[k:])) for k in range(1, len(path.parts)))), None)


def _is_drawing(path: Path) -> bool:
    """Whether a run drew this picture, by the list of files that it wrote; drawings have the names of their photos."""
    try:
        info = os.stat(path.parent / MANIFEST)
        listed = _listed(path.parent / MANIFEST, info.st_mtime_ns, info.st_size)
    except (OSError, DataError):
        return False
    return json.dumps(path.name, ensure_ascii=False).encode(errors="backslashreplace") in listed


@lru_cache(maxsize=8)
def _listed(manifest: Path, *_: int) -> bytes:
    """The content of a manifest, which may be another program's: then nothing."""
    listed = read_bytes(manifest)
    return listed if listed.startswith(MANIFEST_BEGINS) else b""


class Sizes:
    """Looks in a sizes file ({name: {"width", "height"}}) first, then at the photo, else assumes a square."""

    def __init__(self, images: ImageFolders, file: Path | None, report: Report) -> None:
        self.images = images
        self.report = report
        self.table = read_object(file) if file else {}
        self.file = file

    def of(self, name: str) -> tuple[int, int]:
        """Width and height of the image called `name` (with or without suffix)."""
        row = self.table.get(name, self.table.get(Path(name).stem))
        if row is not None:
            pair = (row.get("width"), row.get("height")) if isinstance(row, dict) else (None, None)
            if not all(isinstance(side, int) and not isinstance(side, bool) and 0 < side < 2**31 for side in pair):
                raise DataError(self.file or name, f"{name}: expected a positive width and height")
            return int(pair[0] or 0), int(pair[1] or 0)
        photo = self.images.find(name)
        if photo is not None:
            try:
                return photo_size(photo)
            except DataError as error:
                self.report.warning(name, "size", f"photo {photo.name}: {error.message}")
        self.report.warning(name, "size", f"unknown, assumed to be {NOMINAL} x {NOMINAL}")
        return NOMINAL, NOMINAL
