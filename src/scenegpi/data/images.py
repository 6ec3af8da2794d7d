"""Where the photo of an image lies, and how large it is."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from scenegpi.data.photo_files import photo_size

__all__ = ["SUFFIXES", "ImageFolders", "photo_size"]

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".avif", ".heic", ".heif")


class ImageFolders:
    """Finds photos by name in one or more folders; the same name with another suffix will do."""

    def __init__(self, folders: Iterable[Path | str] = ()) -> None:
        self.folders = tuple(Path(folder) for folder in folders)

    @classmethod
    def beside(cls, root: Path, given: Path | str | None = None) -> ImageFolders:
        """The folder the user names, or the usual ones in a data set's folder."""
        if given is not None:
            inner = [Path(given) / name for name in ("VG_100K", "VG_100K_2") if _is_dir(Path(given) / name)]
            return cls([given, *inner])
        names = ("images", "VG_100K", "VG_100K_2", "train2017", "val2017", ".")
        return cls(root / name for name in names if _is_dir(root / name))

    def find(self, name: str | None) -> Path | None:
        """The photo called `name`, or None. A name that leads out of the folders finds nothing."""
        if not name or "\0" in name or Path(name).is_absolute() or ".." in Path(name).parts:
            return None
        for folder in self.folders:
            exact = folder / name
            appended = (folder / f"{name}{suffix}" for suffix in SUFFIXES)
            known = exact.suffix.lower() in SUFFIXES
            others = (exact.with_suffix(suffix) for suffix in SUFFIXES) if known else ()
            for path in (exact, *appended, *others):
                try:
                    if path.is_file():
                        return path
                except OSError:
                    continue
        return None


def _is_dir(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False
