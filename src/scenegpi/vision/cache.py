"""Box features on disk: heads are trained again and again, while each photo goes through the backbone once.

One file per photo, named by the hash of the photo's bytes, its boxes and everything that the features depend on; in
half precision, written whole. A file that is damaged, or holds something else, is computed again.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from scenegpi.files import open_file, whole_file
from scenegpi.graph import SceneGraph
from scenegpi.vision.box_features import BoxFeatureExtractor
from scenegpi.vision.photos import MOST_BYTES, pixels_and_boxes

NAME = "features"
LARGEST = 60_000.0  # half precision ends at 65,504


def cached_box_features(
    extractor: BoxFeatureExtractor,
    photo: Any,
    graph: SceneGraph,
    cache: str | Path | None = None,
    key: str | None = None,
) -> Tensor:
    """The features of a graph's boxes in a photo, ``(N, d)`` in half precision; kept in the folder `cache`, if given.

    Only features of a photo file are kept. DataError with one line if it cannot be read. `key` is `extractor.key()`,
    computed once for many photos.
    """
    if cache is None or not isinstance(photo, str | Path):
        return _fresh(extractor, photo, graph)
    path = Path(photo)
    name = cache_key(extractor, path, graph, key)
    file = Path(cache) / name[:2] / f"{name}.safetensors"
    found = read_features(file, (len(graph), extractor.width))
    if found is None:
        found = _fresh(extractor, path, graph)
        write_features(file, found)
    return found


def cache_key(extractor: BoxFeatureExtractor, path: Path, graph: SceneGraph, key: str | None = None) -> str:
    """The hash of everything that the features depend on."""
    with open_file(path, MOST_BYTES) as file:
        photo = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
    parts = f"{photo} {graph.width} {graph.height} {key or extractor.key()} {graph.boxes.shape} ".encode()
    return hashlib.sha256(parts + graph.boxes.tobytes()).hexdigest()


def read_features(file: Path, shape: tuple[int, int]) -> Tensor | None:
    """The features in a file; None if it is missing, damaged, or of another shape."""
    from safetensors import SafetensorError, safe_open

    try:
        if not file.is_file() or file.stat().st_size > 2 * shape[0] * shape[1] + 4096:
            return None
        with safe_open(file, framework="pt") as opened:
            features = opened.get_tensor(NAME)
            digest = (opened.metadata() or {}).get("sha256")
    except (SafetensorError, OSError, ValueError, KeyError):
        return None
    whole = tuple(features.shape) == shape and features.dtype == torch.half and digest == _digest(features)
    return features if whole else None


def write_features(file: Path, features: Tensor) -> None:
    """Writes the file, whole or not at all."""
    from safetensors.torch import save_file

    with whole_file(file) as part:
        save_file({NAME: features.contiguous()}, part, {"sha256": _digest(features)})


def _digest(features: Tensor) -> str:
    return hashlib.sha256(features.contiguous().numpy().tobytes()).hexdigest()


def _fresh(extractor: BoxFeatureExtractor, photo: Any, graph: SceneGraph) -> Tensor:
    return extractor(*pixels_and_boxes(photo, graph)).clamp(-LARGEST, LARGEST).half()
