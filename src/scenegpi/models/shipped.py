"""The models that ship in the package: one folder each, next to this file."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

from scenegpi.errors import DataError, naming
from scenegpi.files import read_object
from scenegpi.vocabulary import Vocabulary
from scenegpi.words.everyday import everyday_names

SMALL = 1 << 22
"""Maximum bytes of a file of settings or names."""
PHOTO = "vg150-photo"
"""The shipped model that finds boxes itself."""


def shipped_models() -> dict[str, Path]:
    """Name -> folder, in alphabetical order."""
    folder = Path(str(files("scenegpi.models"))) / "shipped"
    if not folder.is_dir():
        return {}
    return {path.name: path for path in sorted(folder.iterdir()) if (path / "config.json").is_file()}


def find_model(source: str | Path) -> Path:
    """The folder of a model, by path or by the name of a shipped one."""
    folder, shipped = Path(source), shipped_models()
    if not folder.is_dir() and str(source) in shipped:
        return shipped[str(source)]
    if not folder.is_dir():
        names = f"; shipped models: {', '.join(shipped)}" if shipped else ""
        raise DataError(folder, f"no such model folder{names}")
    return folder


def model_vocabulary(source: str | Path) -> Vocabulary:
    """The vocabulary of a model, without loading it; by path or by the name of a shipped one."""
    folder = find_model(source)
    labels = read_labels(folder)
    everyday = vision_settings(folder).get("everyday") is True
    return Vocabulary((*labels.objects, *everyday_names(labels.objects)), labels.predicates) if everyday else labels


def read_labels(folder: Path) -> Vocabulary:
    """The labels and predicates that the model of a folder was trained for."""
    path = folder / "vocabulary.json"
    with naming(path, ValueError):
        return Vocabulary.from_dict(read_object(path, SMALL))


def vision_settings(source: str | Path) -> dict[str, Any]:
    """The vision settings in a model's configuration, unchecked; empty if it uses only boxes and labels."""
    model = read_object(find_model(source) / "config.json").get("model")
    vision = model.get("vision") if isinstance(model, dict) else None
    return vision if isinstance(vision, dict) else {}
