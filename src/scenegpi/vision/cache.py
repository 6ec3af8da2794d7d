"""Looks on disk, so that heads are trained again and again while each photo goes through the backbone once.

A file for each photo, named by the hash of the photo's bytes, its boxes and everything that the extractor's numbers
depend on; half precision, written whole. A file that is damaged, or holds something else, is made anew.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import torch

from scenegpi.errors import DataError
from scenegpi.files import check_file, reason, whole_file
from scenegpi.graph import SceneGraph
from scenegpi.vision.looks import LookExtractor, Looks
from scenegpi.vision.photos import MOST_BYTES, as_photo, photo_boxes


def photo_looks(extractor: LookExtractor, photo: Any, graph: SceneGraph, cache: str | Path | None = None) -> Looks:
    """The looks of a graph's boxes in a photo; where it is a file, from the folder `cache` if they are there.

    DataError with one line where the photo can't be read.
    """
    if cache is None or not isinstance(photo, str | Path):
        return _fresh(extractor, photo, graph)
    path = Path(photo)
    name = look_key(extractor, path, graph)
    file = Path(cache) / name[:2] / f"{name}.safetensors"
    found = read_looks(file, len(graph), extractor)
    if found is None:
        found = _fresh(extractor, path, graph)
        write_looks(file, found)
    return found


def look_key(extractor: LookExtractor, path: Path, graph: SceneGraph) -> str:
    """The hash of all that the looks depend on."""
    check_file(path, MOST_BYTES)
    try:
        with path.open("rb") as file:
            photo = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(path, f"cannot be read ({reason(error)})") from None
    parts = f"{photo} {graph.width} {graph.height} {extractor.key()} {graph.boxes.shape} ".encode()
    return hashlib.sha256(parts + graph.boxes.tobytes()).hexdigest()


def read_looks(file: Path, boxes: int, extractor: LookExtractor) -> Looks | None:
    """The looks in a file; None where it is not there or not whole."""
    from safetensors import SafetensorError, safe_open

    wanted = {
        "nodes": (boxes, extractor.node_width),
        "pairs": (boxes * max(boxes - 1, 0), extractor.pair_width),
    }
    if not file.is_file():
        return None
    most = 2 * sum(rows * width for rows, width in wanted.values()) + 4096
    try:
        if file.stat().st_size > most:
            return None
        with safe_open(file, framework="pt") as opened:
            looks = Looks(*(opened.get_tensor(name) for name in wanted))
            digest = (opened.metadata() or {}).get("sha256")
    except (SafetensorError, OSError, ValueError, KeyError):
        return None
    shapes = [tuple(value.shape) for value in (looks.nodes, looks.pairs)]
    if shapes != list(wanted.values()) or {looks.nodes.dtype, looks.pairs.dtype} != {torch.half}:
        return None
    return looks if digest == _digest(looks) else None


def write_looks(file: Path, looks: Looks) -> None:
    """Writes the file whole."""
    from safetensors.torch import save_file

    with whole_file(file) as part:
        tensors = {"nodes": looks.nodes.contiguous(), "pairs": looks.pairs.contiguous()}
        save_file(tensors, part, {"sha256": _digest(looks)})


def _digest(looks: Looks) -> str:
    digest = hashlib.sha256()
    for value in (looks.nodes, looks.pairs):
        digest.update(value.contiguous().numpy().tobytes())
    return digest.hexdigest()


def _fresh(extractor: LookExtractor, photo: Any, graph: SceneGraph) -> Looks:
    pixels = as_photo(photo)
    return extractor(pixels, photo_boxes(graph, pixels))
