"""The ONNX file of a model given by name or folder: exported when first needed, then kept.

Files are kept in `$SCENEGPI_CACHE`, by default `scenegpi` in the user's cache folder, under a hash of the model's own
files: another model, or another version of this package, gets another file.
"""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path

from scenegpi import __version__
from scenegpi.errors import DataError
from scenegpi.files import read_bytes, whole_file, writing
from scenegpi.models.shipped import find_model, shipped_models, vision_settings
from scenegpi.onnx.session import FORMS, MAX_FILE, Form

PARTS = ("config.json", "vocabulary.json", "model.safetensors")


def exported_file(source: str | Path, form: Form = "layout") -> Path:
    """The file of a model; the first call exports it, which takes a few seconds."""
    path = kept_file(source, form)
    if not _is_whole(path):
        from scenegpi.onnx.export import export_model

        export_model(source, path, form, overwrite=True)
        with whole_file(path.with_suffix(".digest")) as part:
            part.write_text(_digest(path))
    return path


def forms(source: str | Path) -> tuple[Form, ...]:
    """The files that a `Predictor` needs for a model: the layout, and one that reads photos."""
    backbone = _backbone(find_model(source))
    if not backbone:
        return ("layout",)
    return ("layout", "find" if backbone.startswith(("photo", "hf:")) else "photo")  # a photo network of its own


def missing_forms(source: str | Path) -> list[Form]:
    """The files of a model that are still to be exported; an ONNX file needs nothing more."""
    if Path(source).suffix == ".onnx":
        return []
    return [form for form in forms(source) if not _is_whole(kept_file(source, form))]


def kept_file(source: str | Path, form: Form = "layout") -> Path:
    """The path of a model's file, whether it exists or not."""
    folder = find_model(source)
    digest = blake2b(f"{FORMS[form]} {__version__}".encode(), digest_size=12)
    lender = shipped_models().get(_backbone(folder))  # the model whose photo network it uses
    for part in (*(folder / name for name in PARTS), *([lender / PARTS[-1]] if lender else [])):
        digest.update(read_bytes(part, MAX_FILE))
    path = _cache() / f"{folder.name}-{form}-{digest.hexdigest()}.onnx"
    with writing(path.parent):
        path.exists()  # a name that is too long
    return path


def _is_whole(path: Path) -> bool:
    """Whether a kept file is unchanged."""
    try:
        return path.with_suffix(".digest").read_text() == _digest(path)
    except (OSError, ValueError, DataError):
        return False


def _digest(path: Path) -> str:
    return blake2b(read_bytes(path, MAX_FILE), digest_size=16).hexdigest()


def _backbone(folder: Path) -> str:
    """The backbone of a model; empty if it uses only boxes and labels."""
    features = vision_settings(folder).get("features")
    return str(features.get("backbone")) if isinstance(features, dict) else ""


def _cache() -> Path:
    if "SCENEGPI_CACHE" in os.environ:
        return Path(os.environ["SCENEGPI_CACHE"])
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return Path(base or Path.home() / ".cache") / "scenegpi"
