"""Datasets of numbers from untrusted HDF5 files: only data in the file itself, and no more than it can hold.

A dataset may claim any shape: rows that were never written are filled in when they are read, and a compressed chunk
can unpack to a thousand times its size. So all sizes are added up, and compared with what is stored, before a byte
is read.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from scenegpi.errors import DataError
from scenegpi.files import check_file, reason

FREE_BYTES, MAX_RATIO = 2**27, 16
"""The arrays may take FREE_BYTES in memory, or MAX_RATIO times what the file stores of them, whichever is more."""
MAX_CHUNK = 2**26
HARMLESS_CHUNK = 2**16  # stored bytes; even a thousand times as much is bearable
DEFLATE, SHUFFLE, FLETCHER32, LZF = 1, 2, 3, 32000
Shape = tuple[int, int]  # dimensions, columns (0: any number)


def read_hdf5(path: Path, wanted: Mapping[str, Shape], either: Sequence[str] = ()) -> dict[str, NDArray[Any]]:
    """The wanted datasets that the file holds, as arrays; DataError that names an invalid one.

    Of the names in `either` only the first that exists is read.
    """
    check_file(path)
    try:
        with h5py.File(path, "r") as file:
            spare = [name for name in either if name in file][1:]
            names = [name for name in wanted if name in file and name not in spare]
            found = {name: _dataset(path, file, name, *wanted[name]) for name in names}
            _check_sizes(path, found)
            return {name: _array(data, *wanted[name]) for name, data in found.items()}
    except OSError as error:
        raise DataError(path, f"not a readable HDF5 file ({reason(error).splitlines()[0]})") from None
    except (RuntimeError, ValueError, KeyError, TypeError, MemoryError, OverflowError, SystemError) as error:
        raise DataError(path, f"broken HDF5 file ({str(error)[:200]})") from None


def _dataset(path: Path, file: h5py.File, name: str, ndim: int, columns: int) -> Any:
    """The dataset, if it holds numbers of the right shape, stored in this file."""
    outside = isinstance(file.get(name, getlink=True), h5py.ExternalLink)
    data = None if outside else file[name]
    if data is None or data.file.filename != file.filename:  # a link to a link to elsewhere
        raise DataError(path, f"{name}: the data must be in this file")
    if not isinstance(data, h5py.Dataset) or data.dtype.kind not in "iufb":
        raise DataError(path, f"{name}: expected numbers")
    if data.shape is None or data.is_virtual or data.external:
        raise DataError(path, f"{name}: the data must be in this file")
    shape = data.shape
    flat = ndim == 1 and (len(shape) == 1 or (len(shape) == 2 and shape[1] == 1))
    table = ndim == 2 and ((len(shape) == 2 and columns in (0, shape[1])) or (columns and 0 in shape))
    if not flat and not table:
        raise DataError(path, f"{name}: unexpected shape {shape}")
    return data


def _check_sizes(path: Path, found: Mapping[str, Any]) -> None:
    # A number takes at least eight bytes once it is checked, however it is stored.
    sizes = {name: prod(data.shape) * max(data.dtype.itemsize, 8) for name, data in found.items()}
    stored = sum(data.id.get_storage_size() for data in found.values())
    allowed = max(FREE_BYTES, MAX_RATIO * min(stored, path.stat().st_size))
    if sum(sizes.values()) > allowed:
        name = max(sizes, key=lambda name: sizes[name])
        said = f"shape {found[name].shape}, and {sum(sizes.values()):,} bytes in all datasets"
        raise DataError(path, f"{name}: {said}, more than the {allowed:,} this reader accepts")
    for name, data in found.items():
        if data.chunks is not None:
            _check_chunks(path, name, data)


def _check_chunks(path: Path, name: str, data: Any) -> None:
    """Chunks are small, packed by filters that are known, and unpack to what they should."""
    size = prod(data.chunks) * data.dtype.itemsize
    if size > MAX_CHUNK:
        raise DataError(path, f"{name}: chunks of {size:,} bytes, more than the {MAX_CHUNK:,} this reader accepts")
    plan = data.id.get_create_plist()
    filters = [plan.get_filter(i)[0] for i in range(plan.get_nfilters())]
    if len(set(filters)) < len(filters) or not set(filters) <= {DEFLATE, SHUFFLE, FLETCHER32, LZF}:
        raise DataError(path, f"{name}: unsupported compression")
    suspects = []

    def look(chunk: Any) -> None:
        if filters and chunk.size > HARMLESS_CHUNK:
            suspects.append(chunk)

    data.id.chunk_iter(look)
    for chunk in suspects:
        _, packed = data.id.read_direct_chunk(chunk.chunk_offset)
        plain = len(packed) <= size + 64  # packing never adds much
        if plain and DEFLATE in filters and not chunk.filter_mask >> filters.index(DEFLATE) & 1:
            try:
                plain = len(zlib.decompressobj().decompress(packed, size + 65)) <= size + 64
            except zlib.error:
                plain = False
        if not plain:
            raise DataError(path, f"{name}: a chunk that unpacks to more than its {size:,} bytes")


def _array(data: Any, ndim: int, columns: int) -> NDArray[Any]:
    array = np.asarray(data[()])
    return array.reshape(-1) if ndim == 1 else array.reshape(0, columns) if columns and not array.size else array
