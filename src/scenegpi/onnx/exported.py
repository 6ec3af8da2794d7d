"""The ONNX file of a model that is given by name or folder: exported when it is first needed, then kept.

Files are kept in `$SCENEGPI_CACHE`, by default `scenegpi` in the user's cache folder, under a hash of the model's own
files: another model, or another version of this package, gets another file.
"""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path

from scenegpi import __version__
from scenegpi.files import read_bytes
from scenegpi.models.shipped import find_model
from scenegpi.onnx.format import LAYOUT

PARTS = ("config.json", "vocabulary.json", "model.safetensors")
MAX_PART = 1 << 30


def exported_file(source: str | Path) -> Path:
    """The file of a model; exporting it takes some seconds, once."""
    path = kept_file(source)
    if not path.exists():
        from scenegpi.onnx.export import export_model

        export_model(source, path, overwrite=True)
    return path


def is_exported(source: str | Path) -> bool:
    """Whether there is nothing to export: an ONNX file, or a model whose file is kept."""
    return Path(source).suffix == ".onnx" or kept_file(source).exists()


def kept_file(source: str | Path) -> Path:
    """Where the file of a model is, or will be."""
    folder = find_model(source)
    digest = blake2b(f"{LAYOUT} {__version__}".encode(), digest_size=12)
    for part in PARTS:
        digest.update(read_bytes(folder / part, MAX_PART))
    return _cache() / f"{folder.name}-{digest.hexdigest()}.onnx"


def _cache() -> Path:
    if "SCENEGPI_CACHE" in os.environ:
        return Path(os.environ["SCENEGPI_CACHE"])
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return Path(base or Path.home() / ".cache") / "scenegpi"
