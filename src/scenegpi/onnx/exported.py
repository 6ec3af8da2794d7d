"""The ONNX file of a model that is given by name or folder: exported when it is first needed, then kept.

Files are kept in `$SCENEGPI_CACHE`, by default `scenegpi` in the user's cache folder, under a hash of the model's own
files: another model, or another version of this package, gets another file.
"""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path
from typing import Any

from scenegpi import __version__
from scenegpi.errors import DataError
from scenegpi.files import read_bytes, read_object, whole_file, writing
from scenegpi.models.shipped import find_model, shipped_models
from scenegpi.onnx.session import FORMS, Form

PARTS = ("config.json", "vocabulary.json", "model.safetensors")
MAX_PART = 1 << 30


def exported_file(source: str | Path, form: Form = "layout") -> Path:
    """The file of a model, or of a part of it; exporting it takes some seconds, once."""
    path = kept_file(source, form)
    if not _is_whole(path):
        from scenegpi.onnx.export import export_model

        export_model(source, path, form, overwrite=True)
        with whole_file(_seal(path)) as part:
            part.write_text(_digest(path))
    return path


def _seal(path: Path) -> Path:
    return path.with_suffix(".digest")


def _is_whole(path: Path) -> bool:
    """Whether a kept file is as it was written."""
    try:
        return _seal(path).is_file() and _seal(path).read_bytes() == _digest(path).encode()
    except (OSError, DataError):
        return False


def _digest(path: Path) -> str:
    return blake2b(read_bytes(path, MAX_PART), digest_size=16).hexdigest()


def forms(source: str | Path) -> tuple[Form, ...]:
    """The files that a `Predictor` needs of a model."""
    vision = _vision(find_model(source))
    if vision is None:
        return ("layout",)
    finds = str(vision.get("backbone")).startswith(("photo", "hf:"))  # a photo network of its own
    return ("layout", "vision", "finder") if finds else ("layout", "vision")


def is_exported(source: str | Path) -> bool:
    """Whether there is nothing to export: an ONNX file, or a model whose files are kept."""
    return Path(source).suffix == ".onnx" or all(_is_whole(kept_file(source, form)) for form in forms(source))


def kept_file(source: str | Path, form: Form = "layout") -> Path:
    """Where the file of a model is, or will be."""
    folder = find_model(source)
    digest = blake2b(f"{FORMS[form]} {__version__}".encode(), digest_size=12)
    for part in (*(folder / name for name in PARTS), *_borrowed(folder)):
        digest.update(read_bytes(part, MAX_PART))
    path = _cache() / f"{folder.name}-{form}-{digest.hexdigest()}.onnx"
    with writing(path.parent):
        path.exists()  # a name that is too long
    return path


def _borrowed(folder: Path) -> list[Path]:
    """Weights in another model's folder that this one reads photos with."""
    name = (_vision(folder) or {}).get("backbone")
    return [shipped_models()[name] / PARTS[-1]] if name in shipped_models() else []


def _vision(folder: Path) -> dict[str, Any] | None:
    """How a model reads photos; None where it reads none."""
    try:
        vision = read_object(folder / "config.json")["model"]["vision"]
        return None if vision is None else dict(vision["features"])
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(folder / "config.json", f"not a model's ({error})") from None


def _cache() -> Path:
    if "SCENEGPI_CACHE" in os.environ:
        return Path(os.environ["SCENEGPI_CACHE"])
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return Path(base or Path.home() / ".cache") / "scenegpi"
