"""Untrusted picture files, opened but not yet unpacked: kind, size as seen, and a Pillow image that is safe to load.

A file of a few kilobytes can unpack to gigabytes, hold thousands of scans, or thousands of metadata entries that each
claim to be as long as the file. So the structure of each kind is checked first, in a few lines of our own, and Pillow
gets only what passed: a JPEG without metadata, one kind of decoder, a bounded number of pixels.
"""

from __future__ import annotations

import io
import re
import struct
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from scenegpi.errors import DataError, first_line, require
from scenegpi.files import open_file

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_BYTES, MAX_HELD_BYTES = 2**27, 2**26
"""Largest file; the second is for files held in memory while decoding (JPEG, WebP)."""
_PILLOW = ("Jpeg", "Png", "WebP", "Bmp", "Avif")
KINDS = {kind.upper(): f"PIL.{kind}ImagePlugin.{kind}ImageFile" for kind in _PILLOW}
KINDS["HEIC"] = "pillow_heif.as_plugin.HeifImageFile"
BRANDS = {
    brand: "AVIF" if brand.startswith(b"avi") else "HEIC" for brand in b"avif avis heic heix heim heis mif1".split()
}
MAX_PIXELS = dict.fromkeys(KINDS, 40_000_000) | {"JPEG": 200_000_000, "WEBP": 16_000_000}
"""Pixels that may be unpacked: a JPEG is scaled while decoding; WebP's decoder takes four times the usual memory."""
MAX_SCANS, MAX_SCANNED = 500, 2_000_000_000
"""Maximum scans of one JPEG, and maximum pixels in all its scans together."""
MAX_HELD = 160_000_000
"""Bytes that a decoder may hold besides the pixels: the coefficients of a JPEG with several scans."""
MAX_PIECES = 50_000
MAX_EXIF = 2**16
FILL = re.compile(rb"\xff+")
CODECS = {"raw", "jpeg", "zip"}  # others are slow
WHOLE = {1: "B", 3: "H", 4: "I"}
"""EXIF types that are whole numbers. The orientation should be of type 3, but some programs write others."""


@dataclass
class PhotoFile:
    """An opened picture.

    `size` is width and height as displayed, `turn` the EXIF orientation still to be applied, `scans` the number of
    passes over its pixels, `held` the bytes that its decoder holds besides the pixels.
    """

    kind: str
    image: Image
    size: tuple[int, int]
    turn: int = 1
    scans: int = 1
    held: int = 0


class _BrokenError(Exception):
    """What is wrong with a picture, in a few words."""


def _handle(path: str | Path | bytes) -> BinaryIO:
    if not isinstance(path, bytes):
        return open_file(path, MAX_BYTES)
    if not 0 < len(path) <= MAX_BYTES:
        raise DataError("image", f"{len(path):,} bytes, expected 1 to {MAX_BYTES:,}")
    return io.BytesIO(path)


@contextmanager
def opened_photo(path: str | Path | bytes, unpack: bool = True) -> Iterator[PhotoFile]:
    """A picture whose pixels can be loaded; DataError with one line for any other file, or one that is too large.

    `path` may be the content of a file. Without `unpack` only its size is read, and any size is accepted.
    """
    where = "image" if isinstance(path, bytes) else path
    with _handle(path) as handle, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow warns about damaged metadata, which is not used here
        try:
            photo = _opened(handle)
            with photo.image:
                if unpack:
                    _check_pixels(photo)
                yield photo
        except DataError:
            raise
        except ModuleNotFoundError:
            require(str(where), "heic", "pillow_heif")
            raise
        except Exception as error:  # decoders fail in many ways on a broken file
            raise DataError(where, f"cannot be read as an image ({first_line(error)})") from None


def photo_size(path: str | Path) -> tuple[int, int]:
    """Width and height of a picture as displayed, without unpacking its pixels; DataError for any other file."""
    with opened_photo(path, unpack=False) as photo:
        return photo.size


def _check_pixels(photo: PhotoFile) -> None:
    width, height = photo.size
    _check_size(photo.kind, width, height)
    if photo.scans > MAX_SCANS or photo.scans * width * height > MAX_SCANNED:
        raise _BrokenError(f"{photo.scans:,} scans of {width:,} x {height:,} pixels, more than this reader accepts")
    if photo.held > MAX_HELD:
        raise _BrokenError(f"{width:,} x {height:,} pixels in several scans, more than this reader accepts")
    codecs = {tile[0] for tile in getattr(photo.image, "tile", ())}
    if not codecs <= CODECS:
        raise _BrokenError(f"unsupported compression {min(codecs - CODECS)}")


def _check_size(kind: str, width: int, height: int) -> None:
    if width * height > MAX_PIXELS[kind]:
        most = f"{MAX_PIXELS[kind]:,} this reader accepts for {kind}"
        raise _BrokenError(f"{width:,} x {height:,} pixels, more than the {most}")


def _opened(handle: BinaryIO) -> PhotoFile:
    head = handle.read(32)
    handle.seek(0)
    if head.startswith(b"\xff\xd8"):
        return _jpeg(handle)
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return _finished("PNG", handle, _png_turn(handle))
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        _check_webp(head)
        return _finished("WEBP", io.BytesIO(_whole(handle)), None)
    if head.startswith(b"BM"):
        return _finished("BMP", handle)
    if head[4:8] == b"ftyp" and (kind := _brand(head)) is not None:
        return _finished(kind, io.BytesIO(_whole(handle)), None if kind == "AVIF" else 1)  # HEIC comes out upright
    raise _BrokenError(f"not one of {', '.join(KINDS)}")


def _brand(head: bytes) -> str | None:
    """AVIF or HEIC, by the file's brand and its compatible brands; the generic ones count last."""
    brands = [head[8:12], *(head[at : at + 4] for at in range(16, min(int.from_bytes(head[:4], "big"), len(head)), 4))]
    return next((BRANDS[brand] for brand in sorted(brands, key=b"mif1".count) if brand in BRANDS), None)


def _finished(kind: str, stream: Any, turn: int | None = 1) -> PhotoFile:
    """`turn` is None where Pillow finds the orientation."""
    stream.seek(0)
    module, _, name = KINDS[kind].rpartition(".")
    image: Image = getattr(import_module(module), name)(stream)
    turn = orientation(image.info.get("exif", b"").removeprefix(b"Exif\0\0")) if turn is None else turn
    width, height = image.size
    if width < 1 or height < 1:
        raise _BrokenError("no pixels")
    return PhotoFile(kind, image, (height, width) if turn >= 5 else (width, height), turn)


def _whole(handle: BinaryIO) -> bytes:
    size = handle.seek(0, io.SEEK_END)
    if size > MAX_HELD_BYTES:
        raise _BrokenError(f"{size:,} bytes, more than the {MAX_HELD_BYTES:,} this reader accepts for its kind")
    handle.seek(0)
    return handle.read()


def _jpeg(handle: BinaryIO) -> PhotoFile:
    """The JPEG without comments and application segments (EXIF, previews, colour profiles), which Pillow would read."""
    data = _whole(handle)
    stream, at, turn = io.BytesIO(), 2, 1
    stream.write(data[:2])
    for _ in range(MAX_PIECES):
        fill = FILL.match(data, at)
        at = fill.end() - 1 if fill else len(data)
        if len(data) < at + 4:
            raise _BrokenError("broken JPEG")
        mark, length = data[at + 1], int.from_bytes(data[at + 2 : at + 4], "big")
        if mark == 0xDA:
            break
        piece = data[at : at + 2 + length]
        if mark in (0xE0, 0xEE) or not (0xE0 <= mark <= 0xEF or mark == 0xFE):
            stream.write(piece)
        elif mark == 0xE1 and piece[4:10] == b"Exif\0\0" and turn == 1:
            turn = orientation(piece[10:])
        at += 2 + length
    else:
        raise _BrokenError("too many segments")
    scans, in_first = data.count(b"\xff\xda", at), data[at + 4] if len(data) > at + 4 else 0
    stream.write(memoryview(data)[at:])
    del data
    photo = _finished("JPEG", stream, turn)
    photo.scans = scans
    layers = photo.image.layer  # type: ignore[attr-defined]
    if scans > 1 or in_first < len(layers) or "progressive" in photo.image.info:
        areas = [across * down for _, across, down, _ in layers]
        width, height = photo.size
        photo.held = 2 * width * height * sum(areas) // max(*areas, 1)  # coefficients of two bytes
    return photo


def _png_turn(handle: BinaryIO) -> int:
    """The orientation, from the EXIF chunk; counts the chunks on the way."""
    handle.seek(8)
    for _ in range(MAX_PIECES):
        head = handle.read(8)
        if len(head) < 8:
            return 1  # the end is missing: Pillow will say so
        length, name = int.from_bytes(head[:4], "big"), head[4:]
        if name == b"eXIf":
            return orientation(handle.read(min(length, MAX_EXIF)))
        handle.seek(length + 4, io.SEEK_CUR)
    raise _BrokenError("too many chunks")


def _check_webp(head: bytes) -> None:
    """The size, before Pillow opens the file: its decoder allocates memory at once."""
    kind, size = head[12:16], (0, 0)
    if kind == b"VP8X":
        size = 1 + int.from_bytes(head[24:27], "little"), 1 + int.from_bytes(head[27:30], "little")
    elif kind == b"VP8L":
        bits = int.from_bytes(head[21:25], "little")
        size = 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    elif kind == b"VP8 ":
        size = int.from_bytes(head[26:28], "little") & 0x3FFF, int.from_bytes(head[28:30], "little") & 0x3FFF
    if not size[0] * size[1]:
        raise _BrokenError("broken WebP")
    _check_size("WEBP", *size)


def orientation(exif: bytes) -> int:
    """1 to 8: how the camera was held. EXIF data that is unreadable or says anything else means upright (1).

    EXIF data is a TIFF: byte order (II or MM), 42, the offset of a directory, which is a count and entries of 12 bytes:
    tag, type, count, value. Pillow would copy every value, and thousands of them may claim to be as long as the file.
    """
    order = "<" if exif.startswith(b"II*\0") else ">"
    try:
        (start,) = struct.unpack_from(f"{order}I", exif, 4)
        (entries,) = struct.unpack_from(f"{order}H", exif, start)
        for at in range(start + 2, start + 2 + 12 * entries, 12):
            tag, kind = struct.unpack_from(f"{order}HH", exif, at)
            if tag == 0x0112 and kind in WHOLE:
                (value,) = struct.unpack_from(f"{order}{WHOLE[kind]}", exif, at + 8)
                return value if value in range(1, 9) else 1
    except struct.error:
        pass
    return 1
