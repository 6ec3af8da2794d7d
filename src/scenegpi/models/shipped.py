"""The models that ship in the package: one folder each, beside this file."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def shipped_models() -> dict[str, Path]:
    """Name -> folder, in alphabetical order."""
    folder = Path(str(files("scenegpi.models"))) / "shipped"
    if not folder.is_dir():
        return {}
    return {path.name: path for path in sorted(folder.iterdir()) if (path / "config.json").is_file()}
