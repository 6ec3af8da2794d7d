"""Limits on the size of a data set: no real one reaches them, and a hostile one can exhaust neither memory nor time.

A limit is a fixed number, or for large files a number per byte (docs/safety.md).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from scenegpi.errors import DataError, GraphError, naming
from scenegpi.vocabulary import Vocabulary

MAX_BOXES, MAX_RELATIONS = 10_000, 100_000
"""Limits per image; an image with more is left out as a defect."""
MAX_NAMES = 100_000
"""Maximum number of labels, or of predicates, of one data set."""
FREE_IMAGES, BYTES_PER_IMAGE = 250_000, 200
"""A file may hold FREE_IMAGES images, or one for every BYTES_PER_IMAGE bytes, whichever is more."""


def check_images(path: str | Path, images: int, size: int, each: int = BYTES_PER_IMAGE) -> None:
    """DataError where a file of `size` bytes holds more images than is plausible, at `each` bytes per image."""
    allowed = max(FREE_IMAGES, size // each)
    if images > allowed:
        raise DataError(path, f"more than {allowed:,} images, the most this reader accepts in {size:,} bytes")


def check_names(path: str | Path, names: int, field: str) -> None:
    """DataError where a data set has implausibly many names."""
    if names > MAX_NAMES:
        raise DataError(path, f"{field}: more than {MAX_NAMES:,} different names")


def check_crowd(boxes: int, relations: int = 0, field: str = "relations") -> None:
    """GraphError where an image has more boxes or relations (of which `field` holds the list) than it may."""
    for name, count, most in (("boxes", boxes, MAX_BOXES), (field, relations, MAX_RELATIONS)):
        if count > most:
            raise GraphError(f"{name}: {count:,} in one image, more than the {most:,} this reader accepts")


def check_line(data: Any) -> None:
    """GraphError where the JSON form of a graph holds more boxes or relations than an image may have."""
    lists = [data.get(name) if isinstance(data, dict) else None for name in ("objects", "relations")]
    boxes, relations = (len(rows) if isinstance(rows, list) else 0 for rows in lists)
    check_crowd(boxes, relations)


def file_vocabulary(
    path: str | Path, objects: Collection[str], predicates: Sequence[str] = (), name: str = ""
) -> Vocabulary:
    """The vocabulary of a file; DataError if a name is invalid or duplicated."""
    with naming(path, ValueError):
        return Vocabulary(tuple(objects), predicates, name)
