"""npz files from anywhere: no pickles, and no array larger than its file makes believable."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Collection
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scenegpi.errors import DataError
from scenegpi.files import check_file, reason

FREE_BYTES = 2**30
MAX_RATIO = 50
"""The arrays may take FREE_BYTES in memory, or MAX_RATIO times the size of their file, whichever is more."""


def load_npz(path: Path, known: Collection[str]) -> dict[str, NDArray[Any]]:
    """The arrays of these names that the file holds; DataError with one line if anything about it is wrong."""
    check_file(path)
    try:
        with zipfile.ZipFile(path) as archive:
            declared = sum(_declared_bytes(archive, member, path) for member in archive.namelist())
        allowed = max(FREE_BYTES, MAX_RATIO * path.stat().st_size)
        if declared > allowed:
            raise DataError(path, f"declares {declared:,} bytes of arrays, more than the {allowed:,} this reader takes")
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files if name in known}
    except zipfile.BadZipFile:
        raise DataError(path, "not an npz file, or a truncated one") from None
    except OSError as error:
        raise DataError(path, f"cannot be read ({reason(error)})") from None
    except (ValueError, EOFError, KeyError, MemoryError, RuntimeError, NotImplementedError, zlib.error) as error:
        raise DataError(path, f"cannot be read ({error})") from None


def _declared_bytes(archive: zipfile.ZipFile, member: str, path: Path) -> int:
    """What an array will take in memory by its own header, or its stored size if that is more."""
    info = archive.getinfo(member)
    with archive.open(info) as stream:
        try:
            version = np.lib.format.read_magic(stream)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = read(stream)
        except ValueError:
            raise DataError(path, f"{member}: not an array") from None
    if dtype.hasobject:
        raise DataError(path, f"{member.removesuffix('.npy')}: holds Python objects, expected numbers or names")
    return max(prod(shape) * dtype.itemsize, info.file_size)
