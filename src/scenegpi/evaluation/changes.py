"""What changed between two sets of graphs of the same images.

Objects are the same if their labels are equal and their boxes overlap (IoU >= 0.5, best first, each once); relations
are the same if both objects and the predicate are.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from scenegpi.boxes import box_iou
from scenegpi.data import Dataset, open_dataset, write_jsonl
from scenegpi.data.jsonl import JsonLines
from scenegpi.errors import DataError
from scenegpi.graph import SceneGraph
from scenegpi.models.shipped import shipped_models
from scenegpi.prediction import Predictor, scored_pairs
from scenegpi.prediction.model import open_model
from scenegpi.prediction.tracking import best_pairs

IOU = 0.5
Triple = tuple[str, str, str]


@dataclass(frozen=True)
class Change:
    """One image in both: its graphs, and the triples that only one of them has."""

    key: str
    a: SceneGraph
    b: SceneGraph
    same: int
    only_a: tuple[Triple, ...]
    only_b: tuple[Triple, ...]

    @property
    def size(self) -> int:
        """Number of relations that differ."""
        return len(self.only_a) + len(self.only_b)


@dataclass
class Changes:
    """Sums over the images: relations in both and in one only, by predicate; images that only one has; and `most`, the
    images that changed most."""

    images: int = 0
    alone: tuple[int, int] = (0, 0)
    same: int = 0
    only_a: Counter[str] = field(default_factory=Counter)
    only_b: Counter[str] = field(default_factory=Counter)
    most: list[Change] = field(default_factory=list)


def changes(a: Path, b: Path, keep: int = 12) -> Changes:
    """Compares two runs of `predict`, or two data sets, image by image; keeps the images that changed most."""
    first, second = (open_dataset(predictions_path(path)) for path in (a, b))
    names, others = _keys(first, second)
    places = {key: i for i, key in enumerate(others)}
    found = Changes()
    shared = 0
    for key, graph in zip(names, first, strict=True):
        if key not in places:
            continue
        shared += 1
        change = compared(key, graph, second[places[key]])
        found.same += change.same
        found.only_a.update(t[1] for t in change.only_a)
        found.only_b.update(t[1] for t in change.only_b)
        if change.size:
            found.most = sorted([*found.most, change], key=lambda each: -each.size)[:keep]
    if not shared:
        raise DataError(b, f"has no image in common with {a}")
    found.images, found.alone = shared, (len(first) - shared, len(second) - shared)
    return found


def compared(key: str, a: SceneGraph, b: SceneGraph) -> Change:
    """One image."""
    place = same_objects(a, b)
    left = Counter((s, o, b.vocabulary.predicates[p]) for s, o, p in b.relations.tolist())
    names = a.names, b.names
    same, only_a = 0, []
    for s, o, p in a.relations.tolist():
        word = a.vocabulary.predicates[p]
        there = (place.get(s), place.get(o), word)
        if left[there] > 0:
            left[there] -= 1
            same += 1
        else:
            only_a.append((names[0][s], word, names[0][o]))
    only_b = [(names[1][s], word, names[1][o]) for s, o, word in left.elements()]
    return Change(key, a, b, same, tuple(only_a), tuple(only_b))


def same_objects(a: SceneGraph, b: SceneGraph) -> dict[int, int]:
    """Objects of a -> objects of b."""
    if not len(a) or not len(b):
        return {}
    iou = box_iou(a.boxes, b.boxes)
    iou[np.array(a.names)[:, None] != np.array(b.names)[None, :]] = 0
    return dict(best_pairs(iou, IOU))


def predictions_path(path: Path) -> Path:
    """A run of `predict` -> its predictions.jsonl; any other path as it is."""
    lines = path / "predictions.jsonl"
    return lines if lines.is_file() else path


def is_model(path: Path) -> bool:
    """Whether this is a model: a folder, or the name of a shipped one."""
    folder = path if path.exists() else shipped_models().get(str(path), path)
    return (folder / "config.json").is_file() and (folder / "vocabulary.json").is_file()


def write_answers(model: Path, data: Path, split: str | None, photos: Path | None, target: Path) -> None:
    """Writes a model's predictions for a data set, given its boxes and labels, as JSON lines."""
    predictor = Predictor(open_model(model).labels_only())
    pairs = scored_pairs(predictor, open_dataset(data, split, images=photos))
    write_jsonl(target, (found for found, _ in pairs))


def _keys(*both: Dataset) -> list[list[str]]:
    """The keys of the images of two data sets. Where some share a name or have none, the images of runs are known by
    their sources; otherwise one without a name is known by its position, and a shared name is a DataError."""
    named = [[None if graph.key is None else str(graph.key) for graph in data] for data in both]
    if any(None in keys or len(set(keys)) < len(keys) for keys in named):
        sources = [_sources(data) for data in both]
        if all(sources):
            return sources
    found = [[str(i) if key is None else key for i, key in enumerate(keys)] for keys in named]
    for data, keys in zip(both, found, strict=True):
        for key, count in Counter(keys).most_common(1):
            if count > 1:
                raise DataError(data.path, f"image {key!r:.60} is duplicated")
    return found


def _sources(data: Dataset) -> list[str]:
    """What identifies each image of a run; nothing for other data sets."""
    rows = data.rows.tolist() if isinstance(data.source, JsonLines) else []
    found = [str(data.source.fields(i, "source")[0] or "") for i in rows]  # type: ignore[attr-defined]
    return found if "" not in found and len(set(found)) == len(found) else []
