"""The tags of a TIFF, which are also EXIF notes: a few numbers, read without trust.

header    II or MM (byte order), 42, where the first directory lies
directory number of entries, then 12 bytes each: tag, type, count, and the value or where it lies
"""

from __future__ import annotations

import io
import struct
from typing import BinaryIO

ORIENTATION = 0x0112
DIRECTORIES = (34665, 34853, 40965)  # EXIF, GPS, interoperability: Pillow follows them
SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4}
OFFSETS = (273, 279, 324, 325)
MAX_OFFSETS = 2**16
SPARE = 2**20


def orientation(exif: bytes) -> int:
    """1 to 8: how the camera was held. Notes that can't be read, or say something else, mean upright (1)."""
    try:
        tags = tiff_tags(io.BytesIO(exif), follow=False)
    except (struct.error, ValueError, OverflowError):
        return 1
    return tags[ORIENTATION] if tags.get(ORIENTATION) in range(1, 9) else 1


def tiff_tags(stream: BinaryIO, follow: bool = True) -> dict[int, int]:
    """Tag -> value of the first directory's whole numbers (the first, where there are several).

    ValueError where the values of all tags together, those of the directories that it leads to included, claim more
    than the whole stream: a reader that makes a copy of each would be drowned.
    """
    size = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    head = stream.read(8)
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(head[:4])
    if order is None:
        raise ValueError("no TIFF header")
    (start,) = struct.unpack(f"{order}I", head[4:8])
    tags, claimed = _directory(stream, order, start)
    for pointer in (tags.get(tag) for tag in DIRECTORIES) if follow else ():
        if pointer is not None:
            claimed += _directory(stream, order, pointer)[1]
    if follow and claimed > size + SPARE:
        raise ValueError(f"tags of {claimed:,} bytes")
    return tags


def _directory(stream: BinaryIO, order: str, start: int) -> tuple[dict[int, int], int]:
    """Whole numbers by tag, and the bytes that all values claim."""
    stream.seek(start)
    (entries,) = struct.unpack(f"{order}H", stream.read(2))
    block = stream.read(12 * entries)
    tags, claimed = {}, 0
    for at in range(0, len(block) - 11, 12):
        tag, kind, count = struct.unpack_from(f"{order}HHI", block, at)
        length = count * SIZES.get(kind, 8)
        claimed += length
        if tag in OFFSETS and count > MAX_OFFSETS:
            raise ValueError(f"{count:,} strips")
        if kind not in (1, 3, 4) or not count:
            continue
        value = block[at + 8 : at + 12]
        if length > 4:
            stream.seek(struct.unpack(f"{order}I", value)[0])
            value = stream.read(SIZES[kind])
        tags[tag] = struct.unpack_from(f"{order}{' B HI'[kind]}", value)[0]
    return tags, claimed
