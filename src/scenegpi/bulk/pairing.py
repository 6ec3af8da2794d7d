"""Which boxes belong to which photo: by the longest end of the path that both share."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from scenegpi.data import DataError, Dataset
from scenegpi.graph import SceneGraph


def pair(photos: Sequence[Path], boxes: Dataset) -> list[int | None]:
    """For each photo the index of its boxes, or None: by the longest shared end of the paths.

    The last part may differ in its suffix, or be the image's id. DataError if two images match one photo equally well,
    or one image's boxes match two photos. A single photo and the boxes of a single image always match.
    """
    ends: dict[str, list[int]] = {}
    parts: list[tuple[str, ...]] = []
    for i, graph in enumerate(boxes):
        parts.append(PurePosixPath(graph.file).parts if graph.file else ())
        for name in _names(graph):
            ends.setdefault(name, []).append(i)
    if len(photos) == len(boxes) == 1:
        return [0]
    claims: dict[int, list[tuple[int, int]]] = {}
    for k, path in enumerate(photos):
        candidates = next((ends[name] for name in _wanted(path) if name in ends), [])
        shared = {i: _shared(path.parts, parts[i]) for i in candidates}
        best = max(shared.values(), default=0)
        fits = [i for i, count in shared.items() if count == best]
        if len(fits) > 1:
            who = " and ".join(repr(called(boxes[i], i)) for i in fits[:2])
            raise DataError(path, f"the boxes of images {who} match this photo equally well")
        if fits:
            claims.setdefault(fits[0], []).append((best, k))
    found: list[int | None] = [None] * len(photos)
    for i, claimed in claims.items():
        (best, k), *others = sorted(claimed, key=lambda claim: (-claim[0], claim[1]))
        if others and others[0][0] == best:
            other = photos[others[0][1]]
            raise DataError(photos[k], f"the boxes of image {called(boxes[i], i)!r} match this photo and {other}")
        found[k] = i
    return found


def _shared(path: tuple[str, ...], other: tuple[str, ...]) -> int:
    """Number of parts that two paths share, from the end; the suffix of the last is ignored."""
    count = 0
    for a, b in zip(reversed(path), reversed(other), strict=False):
        if a != b and not (count == 0 and PurePosixPath(a).stem == PurePosixPath(b).stem):
            break
        count += 1
    return count


def _names(graph: SceneGraph) -> Iterator[str]:
    """What the last part of the photo's path may be, given an image's boxes."""
    if graph.file:
        yield from (PurePosixPath(graph.file).name, PurePosixPath(graph.file).stem)
    if graph.image_id is not None:
        yield str(graph.image_id)


def _wanted(path: Path) -> Iterator[str]:
    """The same, given a photo; the surest first."""
    yield path.name
    yield path.stem
    number = re.search(r"\d+$", path.stem)  # COCO_val2014_000000000042.jpg is image 42
    if number and len(number[0]) >= 6:
        yield str(int(number[0]))


def called(graph: SceneGraph | None, place: int) -> str:
    """The name of an image: its id, its file, or its position."""
    return str(place if graph is None or graph.key is None else graph.key)
