"""YOLO txt: one file an image with lines `class xc yc w h [confidence]`, in fractions of the image."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from scenegpi.data.builder import ColumnsBuilder
from scenegpi.data.class_names import NAME_FILES, Names, read_names_file, vocabulary_of
from scenegpi.data.columns import NO_SPLIT, SPLITS, Columns
from scenegpi.data.images import ImageFolders
from scenegpi.data.sizes import Sizes
from scenegpi.errors import DataError, Report
from scenegpi.files import check_file, reason

SPLIT_FOLDERS = {"train": SPLITS["train"], "val": SPLITS["val"], "valid": SPLITS["val"], "test": SPLITS["test"]}
NO_LABELS = ("readme", "license", "requirements")
MAX_BYTES = 2**26


def label_folders(path: Path) -> list[tuple[Path, int]]:
    """Where txt files lie, with their split: the folder itself, `labels`, `train/labels` or `labels/train`."""
    found = [(path, NO_SPLIT), (path / "labels", NO_SPLIT)]
    for name, split in SPLIT_FOLDERS.items():
        found += [(path / name / "labels", split), (path / "labels" / name, split)]
    return [(folder, split) for folder, split in found if folder.is_dir() and next(_label_files(folder), None)]


def read_yolo(
    path: Path, report: Report, images: ImageFolders, names: Names | None = None, sizes: Path | None = None
) -> Columns:
    """A folder of txt files, the root of a data set with splits, or one txt file."""
    if not path.is_dir():
        if not path.is_file():
            raise DataError(path, "is not a regular file")
        files = [(path, NO_SPLIT)]
    else:
        files = [(file, split) for folder, split in label_folders(path) for file in sorted(_label_files(folder))]
    if not files:
        raise DataError(path, "there is no txt file with labels")
    folder = path if path.is_dir() else path.parent
    if names is None:
        near = (place / name for place in (folder, *list(folder.resolve().parents)[:2]) for name in NAME_FILES)
        names = next((read_names_file(file) for file in near if file.is_file()), None)
    beside = {file.parent.parent / "images" for file, _ in files} | {
        file.parent.parent.parent / "images" / file.parent.name for file, _ in files
    }
    images = ImageFolders([*images.folders, *sorted(place for place in beside if place.is_dir())])
    found = {file: _yolo_file(file, report) for file, _ in files}
    ids = sorted({int(row[0]) for rows in found.values() for row in rows or ()})
    vocabulary, label_of = vocabulary_of(path, ids, names)
    builder = ColumnsBuilder(vocabulary, report)
    lookup = Sizes(images, sizes, report)
    for file, split in files:
        rows = found[file]
        if rows is None:
            report.skipped += 1
            continue
        report.file = str(file)
        width, height = lookup.of(file.stem)
        photo = images.find(file.stem)
        builder.add(
            split,
            image_id=file.stem,
            file=photo.name if photo else None,
            width=width,
            height=height,
            boxes=[_from_fractions(row, width, height) for row in rows],
            labels=[label_of[int(row[0])] for row in rows],
            scores=[row[5] if len(row) == 6 else 1.0 for row in rows] if any(len(r) == 6 for r in rows) else None,
        )
    return builder.build()


def _label_files(folder: Path) -> Iterator[Path]:
    """The txt files of a folder that are not names, read-me files and the like."""
    for file in folder.glob("*.txt"):
        if file.is_file() and file.name not in NAME_FILES and not file.name.lower().startswith(NO_LABELS):
            yield file


def _from_fractions(row: list[float], width: int, height: int) -> list[float]:
    _, xc, yc, w, h = row[:5]
    return [(xc - w / 2) * width, (yc - h / 2) * height, (xc + w / 2) * width, (yc + h / 2) * height]


def _yolo_file(path: Path, report: Report) -> list[list[float]] | None:
    """Rows of class, xc, yc, w, h and maybe confidence; None where a line makes no sense."""
    try:
        if path.stat().st_size:
            check_file(path, MAX_BYTES)
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except DataError as error:
        report.error(path.stem, "file", error.message, str(path))
        return None
    except (OSError, UnicodeDecodeError) as error:
        text = reason(error) if isinstance(error, OSError) else "not text"
        report.error(path.stem, "file", f"cannot be read ({text})", str(path))
        return None
    rows = []
    good = True
    for number, line in enumerate(lines, 1):
        parts = line.split()
        if not parts:
            continue
        try:
            row = [float(part) for part in parts]
        except ValueError:
            row = []
        if len(row) not in (5, 6) or not 0 <= row[0] < 2**31 or row[0] != int(row[0]):
            report.error(
                path.stem, f"line {number}", f"expected 'class xc yc w h [confidence]', found {line!r:.60}", str(path)
            )
            good = False
        rows.append(row)
    return rows if good else None
