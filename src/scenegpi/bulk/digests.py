"""Digests of all that an answer depends on: photo, boxes, weights, options. It is reused only if all are equal."""

from __future__ import annotations

import hashlib
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

from scenegpi.bulk.journal import line_of
from scenegpi.errors import DataError
from scenegpi.files import open_file, reading
from scenegpi.graph import SceneGraph
from scenegpi.models.shipped import find_model

BYTES = 12
DECIDING = ("scenegpi", "model", "weights", "finder", "options", "floors")
NONE = "-"
"""Used in place of a digest if there is no photo, there are no boxes, or the file can't be read."""
WEIGHTS = (".safetensors", ".json", ".onnx", ".bin", ".pt", ".cfg", ".txt", ".names")


def image_digest(photo: Path | bytes | None, boxes: SceneGraph | None, settings: str) -> str:
    """The digest of one image in three parts: its photo's bytes, its given boxes, the settings of the run."""
    return f"{photo_digest(photo)}.{boxes_digest(boxes)}.{settings}"


def photo_digest(photo: Path | bytes | None) -> str:
    if isinstance(photo, bytes):
        return blake2b(photo, digest_size=BYTES).hexdigest()
    try:
        return NONE if photo is None else file_digest(photo)
    except DataError:
        return NONE


def photo_part(digest: Any) -> str | None:
    """The digest of the photo in a line's `digest`; None if the line has none."""
    found = digest.partition(".")[0] if isinstance(digest, str) else NONE
    return None if found == NONE else found


def boxes_digest(graph: SceneGraph | None) -> str:
    """The digest of all that an answer uses or repeats, whatever the file; relations don't count."""
    if graph is None:
        return NONE
    digest = blake2b(digest_size=BYTES)
    for values in (graph.boxes, graph.scores, graph.label_dist, graph.pairs, graph.pair_dist):
        digest.update(b"-" if values is None else f"{values.shape}".encode() + values.astype("<f8").tobytes())
    columns = None if graph.label_dist is None and graph.pair_dist is None else graph.vocabulary.reference
    image = (graph.image_id, graph.file, graph.width, graph.height, graph.names, graph.attributes, columns)
    digest.update(repr(image).encode(errors="backslashreplace"))
    return digest.hexdigest()


def settings_digest(settings: dict[str, Any]) -> str:
    """The digest of all settings that affect answers; the engine does not, as all engines write the same lines."""
    deciding = {key: value for key, value in settings.items() if key in DECIDING}
    return blake2b(line_of(deciding), digest_size=8).hexdigest()


def weights_digest(*sources: str | None) -> str:
    """The digest of the files of models and detectors: shipped names, folders, files; other names have no files."""
    digest = blake2b(digest_size=BYTES)
    for source in filter(None, sources):
        place = Path(source.partition(":")[2] if source.startswith("hf:") else source)
        if not place.exists():
            try:
                place = find_model(source)
            except DataError:
                continue
        files = [place]
        if place.is_dir():
            files = sorted(file for file in place.iterdir() if file.suffix.lower() in WEIGHTS and file.is_file())
        for file in files:
            digest.update(f"{file.name} {file_digest(file)}\n".encode(errors="backslashreplace"))
    return digest.hexdigest()


def file_digest(path: Path) -> str:
    """The digest of a file's bytes; DataError if it can't be read."""
    with reading(path), open_file(path, empty=True) as handle:
        return hashlib.file_digest(handle, partial(blake2b, digest_size=BYTES)).hexdigest()  # type: ignore[arg-type]
