"""Small data files for tests of the readers: JSON or text, and Visual Genome folders with any dataset changed."""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np

OBJECTS = ["man", "hat", "dog"]
PREDICATES = ["on", "wearing"]


def arrays() -> dict[str, np.ndarray]:
    """Three images: 2 boxes and 2 relations; nothing; 3 boxes and 1 relation."""
    return {
        "labels": np.array([[1], [2], [3], [1], [2]], dtype=np.int64),
        "boxes_1024": np.array(
            [[512, 384, 200, 100], [300, 300, 51, 50], [100, 100, 20, 20], [500, 700, 1000, 300], [10, 20, 8, 0]],
            dtype=np.int32,
        ),
        "boxes_512": np.zeros((5, 4), dtype=np.int32),
        "img_to_first_box": np.array([0, -1, 2], dtype=np.int32),
        "img_to_last_box": np.array([1, -1, 4], dtype=np.int32),
        "img_to_first_rel": np.array([0, -1, 2], dtype=np.int32),
        "img_to_last_rel": np.array([1, -1, 2], dtype=np.int32),
        "predicates": np.array([[2], [1], [1]], dtype=np.int64),
        "relationships": np.array([[0, 1], [1, 0], [4, 2]], dtype=np.int32),
        "split": np.array([0, 0, 2], dtype=np.int32),
    }


def dicts() -> dict[str, dict[str, object]]:
    """The dictionaries, without counts."""
    return {
        "label_to_idx": {name: i for i, name in enumerate(OBJECTS, 1)},
        "idx_to_label": {str(i): name for i, name in enumerate(OBJECTS, 1)},
        "predicate_to_idx": {name: i for i, name in enumerate(PREDICATES, 1)},
        "idx_to_predicate": {str(i): name for i, name in enumerate(PREDICATES, 1)},
    }


def image_data() -> list[dict[str, int]]:
    """Sizes of the three images."""
    return [{"image_id": i, "width": w, "height": h} for i, w, h in ((11, 800, 600), (12, 10, 10), (13, 512, 1024))]


def write(folder: Path, changes=None, dictionaries=None, images=None) -> Path:
    """Writes the folder; a change of None leaves a dataset out."""
    folder.mkdir(parents=True, exist_ok=True)
    with h5py.File(folder / "VG-SGG.h5", "w") as file:
        for name, value in {**arrays(), **(changes or {})}.items():
            if value is not None:
                file.create_dataset(name, data=value)
    (folder / "VG-SGG-dicts.json").write_text(json.dumps(dicts() if dictionaries is None else dictionaries))
    (folder / "image_data.json").write_text(json.dumps(image_data() if images is None else images))
    return folder


def dump(path: Path, value) -> Path:
    """Writes text as it is, anything else as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path
