"""Weight files that other packages bring: found without importing the package, refused if they are other ones."""

from __future__ import annotations

import hashlib
from importlib.util import find_spec
from pathlib import Path

from scenegpi.errors import DataError
from scenegpi.files import check_file

MOST_BYTES = 1 << 28


def packaged_file(package: str, place: str, sha256: str, install: str) -> Path:
    """The file at `place` in a package; DataError that says what to `install`, or that it is another file."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise DataError(package, f"not installed: pip install {install}")
    path = Path(spec.submodule_search_locations[0]) / place
    check_file(path, MOST_BYTES)
    with path.open("rb") as handle:
        found = hashlib.file_digest(handle, "sha256").hexdigest()
    if found != sha256:
        raise DataError(path, f"not the file that is known (sha256 {found[:12]}..., expected {sha256[:12]}...)")
    return path
