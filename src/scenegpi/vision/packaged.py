"""Weight files from other packages: found without importing the package, and checked by their sha256."""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

from scenegpi.errors import DataError, require
from scenegpi.files import check_file

MOST_BYTES = 1 << 28


def packaged_file(package: str, file: str, sha256: str, install: str) -> Path:
    """The path of a `file` in a package; DataError that says what to `install` if it is missing, or that it differs."""
    require(package, "", package, install=install)
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise DataError(package, "is not the package that contains weights")
    path = Path(spec.submodule_search_locations[0]) / file
    check_file(path, MOST_BYTES)
    with path.open("rb") as handle:
        found = hashlib.file_digest(handle, "sha256").hexdigest()
    if found != sha256:
        raise DataError(path, f"not the expected file (sha256 {found[:12]}..., expected {sha256[:12]}...)")
    return path
