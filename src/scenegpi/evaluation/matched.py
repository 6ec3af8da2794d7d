"""Predictions of a file beside their ground truth, by image id or file name."""

from __future__ import annotations

from collections.abc import Iterator

from scenegpi.data.dataset import Dataset
from scenegpi.errors import DataError, MetricError
from scenegpi.graph import SceneGraph
from scenegpi.metrics.alignment import Alignment

Pairs = Iterator[tuple[SceneGraph, SceneGraph]]


def matched(found: Dataset, truth: Dataset, allow_missing: bool) -> Pairs:
    """Each prediction with its ground truth, by image id or file name; every image of the data exactly once."""
    place: dict[str, int] = {}
    for i, graph in enumerate(truth):
        for name in _names(graph):
            if place.setdefault(name, i) != i:
                raise DataError(truth.path, f"two images are named {name!r:.60}")
    align = Alignment(truth.vocabulary)
    seen: set[int] = set()
    for graph in found:
        names = _names(graph)
        if not names:
            raise MetricError("a prediction without image id or file name")
        i = next((place[name] for name in names if name in place), -1)
        if i < 0:
            raise MetricError(f"image {names[0]!r:.60} is not in {truth.path} ({len(truth):,} images)")
        if i in seen:
            raise MetricError(f"image {names[0]!r:.60} is predicted twice")
        seen.add(i)
        try:
            yield align(graph), truth[i]
        except MetricError as error:
            raise MetricError(f"image {names[0]!r:.60}: {error}") from None
    missing = [i for i in range(len(truth)) if i not in seen]
    if missing and not allow_missing:
        raise MetricError(
            f"no prediction for {len(missing):,} of {len(truth):,} images, the first is image "
            f"{_names(truth[missing[0]])[0]!r:.60} (--allow-missing counts them as images without predictions)"
        )
    for i in missing:
        target = truth[i]
        yield target.subset([]), target


def _names(graph: SceneGraph) -> list[str]:
    return [str(name) for name in (graph.image_id, graph.file) if name is not None]
