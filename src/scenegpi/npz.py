"""npz files from anywhere: no pickles, and no array implausibly large for its file."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Collection
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from scenegpi.errors import DataError, GraphError
from scenegpi.files import open_file, reading

FREE_BYTES, MAX_RATIO = 2**27, 8
"""The arrays may take FREE_BYTES in memory, or MAX_RATIO times the size of their file, whichever is more."""
MAX_MEMBERS = 1000
BLOCK = 2**20


def load_npz(path: Path, known: Collection[str]) -> dict[str, NDArray[Any]]:
    """The arrays of these names that the file holds; DataError if anything about the file is wrong."""
    with reading(path), open_file(path) as handle:
        try:
            _check_members(path, handle)
            with zipfile.ZipFile(handle) as archive:
                names = [name for name in archive.namelist() if name.removesuffix(".npy") in known]
                declared = sum(_declared_bytes(archive, name, path) for name in names)
                allowed = max(FREE_BYTES, MAX_RATIO * path.stat().st_size)
                if declared > allowed:
                    said = f"declares {declared:,} bytes of arrays, more than the {allowed:,} this reader accepts"
                    raise DataError(path, said)
                return {name.removesuffix(".npy"): _array(archive, name) for name in names}
        except zipfile.BadZipFile:
            raise DataError(path, "not an npz file, or a truncated one") from None
        except _BROKEN as error:
            raise DataError(path, f"cannot be read ({error or type(error).__name__})") from None


_BROKEN = (ValueError, TypeError, EOFError, KeyError, MemoryError, RuntimeError, OverflowError, SyntaxError, zlib.error)


def offsets(array: NDArray[Any], name: str, images: int | None, rows: int | None) -> NDArray[np.int64]:
    """Where the rows of each image start in an array that is flat over images, (images + 1,); None: any number.

    GraphError unless they run from 0 to `rows` and never decrease.
    """
    whole = array.dtype.kind in "iu" and array.ndim == 1 and len(array) and images in (None, len(array) - 1)
    if not whole or int(array[0]) != 0 or (array[1:] < array[:-1]).any():
        count = "" if images is None else f"{images + 1} "
        raise GraphError(f"{name}: expected {count}offsets that start at 0 and never decrease")
    if int(array[-1]) >= 2**31 or rows not in (None, int(array[-1])):
        raise GraphError(f"{name}: ends at {int(array[-1])}, but there are {rows or 0} rows")
    return array.astype(np.int64)


def check_local(rows: NDArray[Any], pointer: NDArray[np.int64], box_ptr: NDArray[np.int64], name: str) -> None:
    """GraphError unless the (R, k) `rows` are indices of boxes of the image that owns the row."""
    boxes = np.repeat(np.diff(box_ptr), np.diff(pointer))[:, None]
    bad = ((rows < 0) | (rows >= boxes)).any(axis=1)
    if bad.any():
        row = int(bad.argmax())
        image = int(np.searchsorted(pointer, row, side="right")) - 1
        raise GraphError(f"{name}[{row}]: image {image} has {int(boxes[row, 0])} boxes, found {rows[row].tolist()}")


def _check_members(path: Path, handle: BinaryIO) -> None:
    """Counts the entries of the archive's directory before Python creates an object for each."""
    members, tail = 0, b""
    while block := handle.read(BLOCK):
        members += (tail + block).count(b"PK\x01\x02")
        tail = block[-3:]
        if members > MAX_MEMBERS:
            raise DataError(path, f"more than {MAX_MEMBERS:,} arrays")
    handle.seek(0)


def _declared_bytes(archive: zipfile.ZipFile, member: str, path: Path) -> int:
    """Memory that an array will take according to its header, or its stored size if larger."""
    name, info = member.removesuffix(".npy"), archive.getinfo(member)
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DataError(path, f"{name}: compressed by a method that npz files do not use")
    with archive.open(info) as stream:
        try:
            version = np.lib.format.read_magic(stream)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = read(stream)
        except ValueError:
            raise DataError(path, f"{name}: not an array") from None
    if dtype.hasobject:
        raise DataError(path, f"{name}: holds Python objects, expected numbers or names")
    count: int = prod(shape)
    if dtype.kind not in "biufU" or (count and not dtype.itemsize):
        raise DataError(path, f"{name}: {dtype}, expected numbers or names")
    if any(side < 0 for side in shape):
        raise DataError(path, f"{name}: shape {shape} is negative")
    if count * dtype.itemsize > info.file_size:
        raise DataError(
            path, f"{name}: shape {shape} and {dtype}, but the file holds only {info.file_size:,} bytes of it"
        )
    # Checking widens every number to eight bytes, except in distributions, which stay float32.
    return count * max(dtype.itemsize, 4 if dtype.kind == "f" else 8)


def _array(archive: zipfile.ZipFile, member: str) -> NDArray[Any]:
    with archive.open(member) as stream:
        return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))
