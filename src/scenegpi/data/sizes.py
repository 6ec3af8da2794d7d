"""Width and height of images whose boxes are given in fractions."""

from __future__ import annotations

from pathlib import Path

from scenegpi.data.images import ImageFolders, photo_size
from scenegpi.errors import DataError, Report
from scenegpi.files import read_object

NOMINAL = 1024


class Sizes:
    """Looks in a sizes file ({name: {"width", "height"}}) first, then at the photo, then settles for a square."""

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
        self.report.warning(name, "size", f"not known; boxes lie on a canvas of {NOMINAL} x {NOMINAL}")
        return NOMINAL, NOMINAL
