"""The sample scenes that ship in the package."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def sample_path() -> Path:
    """Three hand-made scenes (boxes, labels, relations; no photos) as JSON lines."""
    return Path(str(files("scenegpi.data") / "sample.jsonl"))
